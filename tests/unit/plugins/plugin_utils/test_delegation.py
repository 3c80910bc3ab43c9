"""Results of modules that actions delegate to hosts."""

from __future__ import annotations

from types import SimpleNamespace

from ansible_collections.ipu.fabric.plugins.plugin_utils._delegation import plain


def test_a_warning_is_its_text_whatever_ansible_makes_of_it() -> None:
    """Objects since ansible-core 2.19, text before."""
    warning = SimpleNamespace(event=SimpleNamespace(msg="The API did not answer."))
    assert plain({"warnings": [warning, "Other."], "_ansible_no_log": False}) == {
        "warnings": ["The API did not answer.", "Other."]
    }

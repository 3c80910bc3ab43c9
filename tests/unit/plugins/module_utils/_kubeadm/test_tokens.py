"""Tokens for hosts that join."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import program
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.tokens import parse_join_command
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._kubeadm.conftest import DISCOVERY

LINE = "kubeadm join 192.0.2.1:6443 --token abcdef.0123 --discovery-token-ca-cert-hash sha256:12 \n"


def test_parse_join_command():
    assert parse_join_command(LINE, "key") == {
        "endpoint": "192.0.2.1:6443",
        "token": "abcdef.0123",
        "ca_hashes": ["sha256:12"],
        "certificate_key": "key",
    }
    with pytest.raises(FabricError) as caught:
        parse_join_command("kubeadm join 192.0.2.1:6443 --token abcdef.0123")
    assert "abcdef" not in str(caught.value)


def test_token(host, make_module):
    host["api"] = True
    module = make_module("token", printed={"token": LINE}, certificates=True)
    discovery = module.apply()["discovery"]
    assert discovery["endpoint"] == "192.0.2.1:6443"
    assert len(discovery["certificate_key"]) == 64
    # The key is in no argument, where every user of the host could read it.
    assert not any(discovery["certificate_key"] in call for call in module.calls)


def test_no_token_without_an_api(host, make_module):
    with pytest.raises(FabricError, match="Could not create a token"):
        make_module("token").apply()


def test_no_token_in_check_mode(host, make_module):
    result = make_module("token", check_mode=True, certificates=True).apply()
    assert result["discovery"]["token"] == ""


def test_a_token_is_deleted_by_the_part_of_it_that_is_no_secret(host, make_module):
    module = make_module("token", state="absent", discovery=DISCOVERY)
    assert module.apply()["changed"]
    assert module.calls == ["kubeadm token delete abcdef"]


@pytest.mark.parametrize(
    ("said", "error"), [('secrets "bootstrap-token-abcdef" not found', None), ("refused", "refused")]
)
def test_a_token_that_is_gone_already_is_no_error(host, make_module, monkeypatch, said, error):
    module = make_module("token", state="absent", discovery=DISCOVERY)
    monkeypatch.setattr(program, "run_program", lambda *_arguments, **_options: Done(1, "", said))
    if not error:
        assert not module.apply()["changed"]
        return
    with pytest.raises(FabricError, match="refused") as caught:
        module.apply()
    assert "kubeadm token delete abcdef" in caught.value.next_step
    assert "0123" not in str(caught.value)

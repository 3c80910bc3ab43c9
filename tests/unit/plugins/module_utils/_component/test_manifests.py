"""A manifest is the file that was expected, or it is refused."""

from __future__ import annotations

import hashlib

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component.manifests import check_manifest, parse_manifest

TEXT = "kind: Namespace\n"
DIGEST = hashlib.sha256(TEXT.encode()).hexdigest()


@pytest.mark.parametrize(
    ("url", "sha256", "refused"),
    [
        ("https://site/crd.yaml", "", False),
        ("/srv/crd.yaml", "", False),
        ("https://site/crd.yaml", DIGEST, False),
        ("http://site/crd.yaml", f"sha256:{DIGEST.upper()}", False),
        ("http://site/crd.yaml", "", True),
        ("https://site/crd.yaml", "0" * 64, True),
        ("/srv/crd.yaml", "0" * 64, True),
    ],
)
def test_what_is_taken(url: str, sha256: str, refused: bool) -> None:
    if not refused:
        check_manifest(TEXT, url, sha256, "ipu_operator_crd_sha256")
        return
    with pytest.raises(FabricError, match="not the file that was expected") as raised:
        check_manifest(TEXT, url, sha256, "ipu_operator_crd_sha256")
    assert raised.value.where == "ipu_operator_crd_sha256"
    assert DIGEST in raised.value.seen


def test_empty_documents_are_left_out() -> None:
    assert parse_manifest("---\n---\nkind: A\n---\n") == [{"kind": "A"}]

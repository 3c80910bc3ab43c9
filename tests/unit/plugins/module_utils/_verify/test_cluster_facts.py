"""What the API says of a fabric, where it may say nothing."""

from __future__ import annotations

import types
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import ApiError
from ansible_collections.ipu.fabric.plugins.module_utils._verify.cluster_facts import read_ca

PLACE = "/api/v1/namespaces/kube-system/configmaps"
PEM = "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n"


def api(answer: t.Any) -> t.Any:
    def items(path: str, **query: str) -> t.Any:
        assert (path, query) == (PLACE, {"fieldSelector": "metadata.name=kube-root-ca.crt"})
        if isinstance(answer, Exception):
            raise answer
        return answer

    return types.SimpleNamespace(items=items)


def test_clusters_are_told_by_their_ca() -> None:
    first, second = (read_ca(api([{"data": {"ca.crt": PEM.format(text)}}])) for text in ("one", "two"))
    assert first
    assert first != second


@pytest.mark.parametrize("answer", [[], [{"data": {}}], ApiError(types.SimpleNamespace(status=403, body=""))])
def test_a_ca_that_is_not_to_be_read_is_not_known(answer: t.Any) -> None:
    assert read_ca(api(answer)) == ""

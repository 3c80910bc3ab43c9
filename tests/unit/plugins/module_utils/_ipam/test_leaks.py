"""What of a pod counts when its addresses are audited."""

from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube.multus import NETWORK_STATUS
from ansible_collections.ipu.fabric.tests.unit.fixtures.pools import live, pod


@pytest.mark.parametrize("text", ["", "no JSON", "{}", "[3]", '[{"ips": null}]'])
def test_a_pod_without_a_readable_status_has_its_own_address_only(text: str) -> None:
    item = pod("a")
    item["metadata"]["annotations"] = {NETWORK_STATUS: text}
    assert live(item)["default/a"][3:] == ((), ("10.244.0.9",))

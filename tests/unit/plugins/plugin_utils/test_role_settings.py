"""The settings of a component, out of the variables of a host."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component import kubernetes_encryption
from ansible_collections.ipu.fabric.plugins.plugin_utils._role_settings import role_settings


@pytest.mark.parametrize("fact", ["kubernetes_kubelet_config", "fabric_site", "ip"])
def test_facts_of_a_host_are_no_settings(fact):
    variables = {"inventory_hostname": "w7", "ansible_facts": {"default_ipv4": {}, fact: "x"}}
    with pytest.raises(FabricError) as refused:
        role_settings(kubernetes_encryption.Settings, "kubernetes", variables, lambda value: value)
    assert (refused.value.where, refused.value.seen, refused.value.code) == ("ansible_facts of w7", fact, "unsafe")

"""`site --tags ROLE`: the plan is made, and that role is applied, with nothing beside it."""

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play
from ansible_collections.ipu.fabric.tests.unit.playbooks.test_api import GROUPS, answers

ALWAYS = {"fabric_plan", "host_info", "cluster_info", "port_probe"}


@pytest.mark.parametrize(
    ("tag", "called"),
    [
        ("network_operator", {"fabric_stack", "helm_release", "kube_apply", "kube_wait", "node_labels", "program"}),
        ("macvlan", {"kube_apply", "macvlan_network"}),
        ("memlock", {"memlock"}),
        ("verify", {"fabric_probe", "node_admission"}),
    ],
)
def test_one_role(tmp_path, tag, called):
    found = {**answers(), "memlock": {"*": {"restartable": []}}}
    done = play(tmp_path, "ipu.fabric.site", GROUPS, found, "--check", "--tags", tag, fabric_manage_kubernetes=False)
    assert done.code == 0, done.text
    assert "can be applied" in done.text
    assert {call.module for call in done.calls} - ALWAYS == called, done.text


@pytest.mark.parametrize(("mode", "modes"), [(False, ["off"]), ("enforce", ["enforce", "enforce"])])
def test_nodes_are_marked_before_anything_is_installed_and_after_the_proof(tmp_path, mode, modes):
    """False is how YAML reads a bare off. Then only what installs the fabric asks: it takes marks away."""
    given = {"fabric_manage_kubernetes": False, "fabric_admission": mode}
    done = play(tmp_path, "ipu.fabric.site", GROUPS, answers(), "--check", "--tags", "verify", **given)
    assert done.code == 0, done.text
    assert [call.options["mode"] for call in done.calls if call.module == "node_admission"] == modes


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tags", "macvaln"], "macvaln (did you mean macvlan?)"),
        (["--tags", "memlock,networks"], "Seen: networks. Next: Correct the tag."),
        (["-e", '{"fabric_networks": null}'], "fabric_networks is null"),
        (["-e", '{"fabric_networks": [{}]}'], "fabric_networks: [] for no network"),
        (["-e", "gpu_operater_driver=false"], "Did you mean gpu_operator_driver?"),
        (["-e", "verify_memlok=64G"], "Did you mean verify_memlock?"),
    ],
)
def test_what_is_misspelt_or_empty_is_named_before_anything_is_changed(tmp_path, arguments, said):
    given = {"fabric_manage_kubernetes": False, "fabric_probe_ports": False}
    done = play(tmp_path, "ipu.fabric.site", GROUPS, answers(), *arguments, **given)
    assert done.code != 0
    assert said in done.said, done.text
    assert {call.module for call in done.calls} <= ALWAYS
    assert "Traceback" not in done.text

"""Playbooks on clusters of k3s, RKE2 and others, whose hosts are only names: those for our own clusters refuse."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host.distributions import read_kubernetes
from ansible_collections.ipu.fabric.tests.unit.fixtures import rancher, site
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play

GROUPS = {"kube_control_plane": ["cp1", "cp2"], "kube_node": ["w1", "w2"]}
LOOKS = {"host_info", "cluster_info", "delegated_module"}
CA = "ab"


def hosts(folder, name):
    """What hosts of a cluster answer, by their files."""
    found = {}
    for number, host in enumerate(("cp1", "cp2", "w1", "w2"), 11):
        rancher.make_node(folder / "trees" / host, name, server=host.startswith("cp"))
        seen = site.host(number, [])
        facts = seen["host"]
        facts["kubernetes"] = read_kubernetes(str(folder / "trees" / host))
        facts["kubelet"] = {"present": True, "version": f"v1.35.4+{name}1", "server": "", "cluster": CA}
        if host == "cp1":
            facts["cluster"] = site.running(version=f"1.35.4+{name}1", endpoint="", pod_cidr="10.42.0.0/16")
        found[host] = seen
    return {
        "host_info": site.observed(found),
        "cluster_info": {"*": {"present": True, "ca": CA, "nodes": [{"name": "node11", "machine_id": ""}]}},
    }


@pytest.mark.parametrize(
    ("playbook", "variables", "step"),
    [
        ("upgrade", {}, "run its installer with the new release"),
        ("renew_certificates", {}, "systemctl restart"),
        ("backup", {}, "etcd-snapshot save"),
        ("restore", {"fabric_backup": "/backups/x"}, "--cluster-reset-restore-path"),
        ("remove_node", {"fabric_remove_nodes": "w2"}, "drain and delete the node with kubectl"),
        ("reset", {"fabric_reset": "cluster", "fabric_reset_name": "x"}, "-uninstall.sh"),
    ],
)
@pytest.mark.parametrize(("name", "managed"), [("k3s", True), ("rke2", False)])
def test_refused(tmp_path, playbook, variables, step, name, managed):
    """Also where the site has forgotten to say who manages it."""
    variables = {**variables, "fabric_manage_kubernetes": managed}
    run = play(tmp_path, f"ipu.fabric.{playbook}", GROUPS, hosts(tmp_path, name), **variables)
    assert run.code != 0
    assert "This cluster is managed elsewhere" in run.said, run.text
    seen = f"fabric_manage_kubernetes is {str(managed).lower()}; the host is a node of {name}."
    assert (seen in run.said, step in run.said) == (True, True), run.text
    assert {call.module for call in run.calls} <= LOOKS


def options(run, module):
    return {call.host: call.options for call in run.calls if call.module == module}


@pytest.mark.parametrize("asked", [False, True])
def test_site_on_k3s(tmp_path, asked):
    """Hosts get files, and the API objects with the paths of k3s. Nothing of Kubernetes is installed or restarted."""
    servers = {
        host: {"stale": ["k3s"], "server": True, "node": host, "restartable": ["k3s"] * asked}
        for host in ("cp1", "cp2")
    }
    agents = {
        host: {"stale": ["k3s-agent"], "server": False, "node": host, "restartable": ["k3s-agent"] * asked}
        for host in ("w1", "w2")
    }
    answers = {
        **hosts(tmp_path, "k3s"),
        "embedded_containerd": {**servers, **agents},
        "memlock": {**servers, **agents},
    }
    plays = "ipu.fabric.kubernetes"
    variables = {"fabric_restart_kubernetes": asked, "fabric_mirror": {"registry": "mirror:5000"}}
    run = play(tmp_path, plays, GROUPS, answers, fabric_manage_kubernetes=False, fabric_probe_ports=False, **variables)
    assert run.code == 0, run.text
    assert "nodes made by k3s" in run.said
    assert {call.module for call in run.calls} <= {
        *LOOKS,
        "rdma_host",
        "memlock",
        "embedded_containerd",
    }
    written = options(run, "embedded_containerd")
    assert {host: given["registry_mirror"] for host, given in written.items()} == dict.fromkeys(
        written, "https://mirror:5000"
    )
    for module in ("embedded_containerd", "memlock"):
        restarts = [
            call.host
            for call in run.calls
            if call.module == module and call.options.get("restart", module == "memlock")
        ]
        assert (set(restarts[:2]), set(restarts[2:])) == (({"cp1", "cp2"}, {"w1", "w2"}) if asked else (set(), set()))


def test_a_server_that_does_not_come_back_spares_the_others(tmp_path):
    found = {host: {"restartable": ["rke2-server"], "server": True, "node": host} for host in ("cp1", "cp2")}
    found.update({host: {"restartable": ["rke2-agent"], "server": False, "node": host} for host in ("w1", "w2")})
    plays = [
        {
            "hosts": "all",
            "gather_facts": False,
            "vars": {"memlock_restart_kubernetes": True},
            "tasks": [{"ansible.builtin.import_role": {"name": "ipu.fabric.memlock", "tasks_from": "restart"}}],
        }
    ]
    failed = {"failed": True, "msg": "The API server was not ready again"}
    answers = {"memlock": {"cp1": failed, "cp2": failed}}
    seen = {host: {"__memlock": result} for host, result in found.items()}
    run = play(tmp_path, plays, GROUPS, answers, host_vars=seen)
    assert run.code != 0
    assert run.where("memlock") in (["cp1"], ["cp2"]), run.text

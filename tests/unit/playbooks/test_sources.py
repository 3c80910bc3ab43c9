"""A dead source of each kind: `site` names it with its variable, and has changed nothing."""

import pytest
import yaml
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import make_stage, play
from ansible_collections.ipu.fabric.tests.unit.fixtures.web_source import closed_port, serve

GROUPS = {"kube_control_plane": ["cp1"], "kube_node": ["cp1", "w1"]}


def mirror(url):
    keys = {"kubernetes": f"{url}/file", "containerd": ""}
    return {
        "apt": {
            name: {"uri": f"{url}/apt", "suite": "/", "key_url": key, "key_fingerprint": "none"}
            for name, key in keys.items()
        },
        "registry": url,
        "charts": dict.fromkeys(("network_operator", "ipu_operator"), f"{url}/charts"),
        "helm": {"url": f"{url}/file", "checksum": "sha256:" + "ab" * 32},
        "calico": {"crds_url": f"{url}/file", "operator_url": f"{url}/file"},
        "mpi_operator": {"url": f"{url}/file"},
    }


@pytest.mark.parametrize(
    ("part", "key", "variable"),
    [
        ("apt", "kubernetes", "fabric_mirror.apt.kubernetes.uri"),
        ("registry", "", "fabric_mirror.registry"),
        ("charts", "network_operator", "fabric_mirror.charts.network_operator"),
        ("calico", "operator_url", "fabric_mirror.calico.operator_url"),
        ("helm", "url", "fabric_mirror.helm.url"),
    ],
)
def test_a_dead_source(tmp_path, monkeypatch, part, key, variable):
    """The hosts are this machine: its own host_info asks."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    make_stage(tmp_path, GROUPS, {}, {})
    (tmp_path / "collections/ansible_collections/ipu/fabric/plugins/action/host_info.py").unlink()
    dead = f"http://{closed_port()}"
    with serve() as url:
        sources = mirror(url)
        if part == "registry":
            sources["registry"] = dead
        elif part == "apt":
            sources["apt"][key]["uri"] = dead
        else:
            sources[part][key] = dead
        given = {
            "fabric_probe_sources": True,
            "fabric_probe_ports": False,
            "fabric_mirror": sources,
            "fabric_allow": [],
        }
        done = play(tmp_path, "ipu.fabric.site", GROUPS, {}, **given)
    assert done.code, done.text
    assert done.calls == []
    found = [each for each in done.read("artifacts/plan.json")["findings"] if each["check"] == "sources"]
    dead_ones = [each for each in found if "connection refused" in each["seen"]]
    assert [(each["level"], f"({variable})" in each["seen"]) for each in dead_ones] == [("error", True)], found
    assert dead_ones[0]["hosts"] == (["cp1", "w1"] if part in ("apt", "registry") else [])
    named = dead_ones[0]["next"].partition("Name a source that answers, ")[2].partition(", or let ")[0]
    typed, *keys = yaml.safe_load(named), *variable.split(".")  # as an inventory has it
    for key in keys:
        typed = typed[key]
    assert typed == "URL"
    assert variable in done.text

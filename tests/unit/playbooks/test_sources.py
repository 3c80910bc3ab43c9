"""A dead source of each kind, and digests that are not those of the site: `site` names them and has changed nothing."""

import pytest
import yaml
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import make_stage, play
from ansible_collections.ipu.fabric.tests.unit.fixtures.web_source import DIGEST, closed_port, serve

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


def site(tmp_path, monkeypatch, sources):
    """The run, which stops at the plan. The hosts are this machine: its own host_info asks."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    make_stage(tmp_path, GROUPS, {}, {})
    (tmp_path / "collections/ansible_collections/ipu/fabric/plugins/action/host_info.py").unlink()
    given = {"fabric_probe_sources": True, "fabric_probe_ports": False, "fabric_mirror": sources, "fabric_allow": []}
    done = play(tmp_path, "ipu.fabric.site", GROUPS, {}, **given)
    assert done.code, done.text
    assert done.calls == []
    return done


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
    dead = f"http://{closed_port()}"
    with serve() as url:
        sources = mirror(url)
        if part == "registry":
            sources["registry"] = dead
        elif part == "apt":
            sources["apt"][key]["uri"] = dead
        else:
            sources[part][key] = dead
        done = site(tmp_path, monkeypatch, sources)
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


def test_digests_that_are_wrong_are_told_in_one_plan(tmp_path, monkeypatch):
    """Site failed at the first one, and once that was corrected at the second one."""
    with serve() as url:
        sources, wrong = mirror(url), "ab" * 32
        sources["apt"]["kubernetes"].update(key_url=f"{url}/key", key_fingerprint="AB12 CD34")
        sources["calico"]["crds_checksum"] = f"sha256:{wrong}"  # the other one is compared with that of its release
        sources["mpi_operator"]["sha256"] = wrong
        sources["chart_sha256"] = {"network-operator-26.7.1": wrong}
        done = site(tmp_path, monkeypatch, {**sources, "charts": {**sources["charts"], "ipu_operator": f"{url}/503"}})
    found = [each for each in done.read("artifacts/plan.json")["findings"] if each["check"] == "source-digest"]
    told = {each["next"].rpartition(", or correct ")[2].rstrip("."): each for each in found}
    assert {setting: (each["level"], each["hosts"]) for setting, each in told.items()} == {
        "fabric_mirror: {apt: {kubernetes: {key_fingerprint: FINGERPRINT}}}": ("error", ["cp1", "w1"]),
        "fabric_mirror: {calico: {crds_checksum: sha256:SHA256}}": ("error", []),
        "fabric_mirror: {calico: {operator_checksum: sha256:SHA256}}": ("error", []),
        "fabric_mirror: {chart_sha256: {network-operator-26.7.1: SHA256}}": ("error", []),
        "fabric_mirror: {helm: {checksum: sha256:SHA256}}": ("error", []),
        "fabric_mirror: {mpi_operator: {sha256: SHA256}}": ("warning", []),
    }, found
    assert told["fabric_mirror: {chart_sha256: {network-operator-26.7.1: SHA256}}"]["seen"] == (
        f"{url}/charts (fabric_mirror.charts.network_operator): chart network-operator 26.7.1 has sha256 {DIGEST},"
        f" expected {wrong}"
    )

"""A connection that breaks once, at the ten moments that change most: the next run ends as an unbroken one.

The module has been sent by then, and does not run. tests/unit/playbooks/test_connection_lost.py loses every task, also
after it was done, on hosts that are only names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.ipu.fabric.tests.e2e.bed import Bed, Result

# ssh, but for one module on one address, once. A file says that it has happened: each task has a process of its own.
PLUGIN = """
import os
from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection import ssh

DOCUMENTATION = ssh.DOCUMENTATION.replace("name: ssh", "name: breaking_ssh")


class Connection(ssh.Connection):
    transport = "breaking_ssh"

    def put_file(self, in_path, out_path):
        address, module, number, log = os.environ["BREAKS_AT"].split()
        if f"AnsiballZ_{module}.py" in out_path and self.get_option("host") == address:
            with open(log, "a+") as file:
                file.write("x")
                file.seek(0)
                if len(file.read()) == int(number):
                    raise AnsibleConnectionFailure("Connection reset by peer")
        return super().put_file(in_path, out_path)
"""
# Playbook, host, module, which of its calls there, and what the playbook is given. Each begins with what the one before
# it has left behind. After some the next one goes on at once: a host joins only once.
GOES_ON = {("cp1", "apt_packages"), ("cp1", "kubeadm")}
MOMENTS: list[tuple[str, str, str, int, dict[str, Any]]] = [
    ("site", "cp1", "apt_packages", 1, {}),
    ("site", "cp1", "kubeadm", 1, {}),
    ("site", "w1", "kubeadm", 2, {}),  # join, after its images
    ("renew_certificates", "cp1", "node_certificates", 2, {"fabric_renew_force": True}),
    ("site", "cp1", "control_plane", 1, {"fabric_hardening": "cis"}),
    ("site", "w1", "kubelet_config", 2, {"fabric_hardening": "cis"}),
    ("rotate_encryption_key", "cp1", "secrets_encryption", 3, {"fabric_hardening": "cis"}),
    ("remove_node", "w1", "host_reset", 1, {"fabric_remove_nodes": "w1", "drain_force": True}),
    ("reset", "w1", "host_reset", 2, {"fabric_reset": "cluster"}),
    ("reset", "cp1", "host_reset", 2, {"fabric_reset": "cluster"}),
]


@pytest.fixture(scope="module")
def broken(bed: Bed, unbroken: dict[str, Any]) -> Bed:
    """Fresh hosts, after the state of an unbroken run was taken."""
    bed.testbed("reset")
    return bed


def variables(bed: Bed) -> dict[str, Any]:
    return dict(yaml.safe_load(bed.inventory.read_text())["all"]["vars"])


def address(bed: Bed, host: str) -> str:
    found = yaml.safe_load(bed.inventory.read_text())
    pending = [found["all"]]
    while pending:
        group = pending.pop()
        if (group.get("hosts") or {}).get(host):
            return str(group["hosts"][host]["ansible_host"])
        pending += (group.get("children") or {}).values()
    raise AssertionError(f"{host} is not in {bed.inventory}")


def play_breaking(bed: Bed, monkeypatch: pytest.MonkeyPatch, place: Path, moment: tuple[Any, ...]) -> Result:
    playbook, host, module, number, given = moment
    (place / "breaking_ssh.py").write_text(PLUGIN)
    monkeypatch.setenv("ANSIBLE_CONNECTION_PLUGINS", str(place))
    monkeypatch.setenv("BREAKS_AT", f"{address(bed, host)} {module} {number} {place}/calls")
    # With pipelining, which the testbed's inventory asks for, modules are sent without names.
    variables = {"ansible_connection": "breaking_ssh", "ansible_ssh_pipelining": False}
    (place / "breaking.yml").write_text(yaml.safe_dump({"all": {"vars": variables}}))
    result = bed.play(playbook, "-i", str(place / "breaking.yml"), **given)  # localhost keeps its own
    assert "Connection reset by peer" in result.text
    monkeypatch.undo()
    return result


@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: f"{moment[0]}-{moment[1]}-{moment[2]}")
def test_a_lost_connection(
    broken: Bed, unbroken: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, moment: tuple[Any, ...]
) -> None:
    playbook, host, module, _number, given = moment
    if module == "kubelet_config":
        given = {
            **given,
            "kubernetes_kubelet_config": {**variables(broken)["kubernetes_kubelet_config"], "maxPods": 150},
        }
    if playbook == "reset":
        broken.play("site")
        given = {**given, "fabric_reset_name": broken.plan()["cluster"]["endpoint"]}
    assert play_breaking(broken, monkeypatch, tmp_path, (*moment[:4], given)).code != 0
    if playbook != "reset":
        cordoned = [node["metadata"]["name"] for node in nodes(broken) if node["spec"].get("unschedulable")]
        assert cordoned in ([], ["w1"] if playbook == "remove_node" else [])
    if (host, module) in GOES_ON:
        return
    assert broken.play(playbook, **given).code == 0
    assert broken.play(playbook, **given).code == 0


def nodes(bed: Bed) -> list[dict[str, Any]]:
    """Of the cluster, if there is one by now."""
    if not bed.on("cp1", "ls /etc/kubernetes/admin.conf", check=False):
        return []
    return list(bed.kubectl("get nodes")["items"])


def test_site_ends_like_an_unbroken_one(broken: Bed, unbroken: dict[str, Any]) -> None:
    assert broken.play("site").code == 0
    state = broken.state()
    for name, part in unbroken.items():
        assert state[name] == part, name

"""`ipu.fabric.plan` of hosts that answer at once: Ansible's own time, and the collection's on the controller."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from ansible_collections.ipu.fabric.tests.bench import ansible, sites
from ansible_collections.ipu.fabric.tests.bench.figures import Figure
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import shadow

PARTS = {"host_info": ("host", "rdma", "vipu"), "port_probe": ("ports",)}
PLAIN = 8  # tasks that a plan has for each host
SIZES = (100, 1000)  # hosts


def collection(folder: Path, observed: dict[str, Any]) -> None:
    """This checkout, whose modules answer with what was observed, each from a file of its own."""
    actions = shadow(folder / "collections") / "ansible_collections/ipu/fabric/plugins/action"
    for module, parts in PARTS.items():
        (actions / f"{module}.py").unlink()
        (actions / f"{module}.py").symlink_to(ROOT / "tests/bench/recorded_answer.py")
        (folder / "answers" / module).mkdir(parents=True)
        for name, host in observed.items():
            answer = {part: host[part] for part in parts if part in host}
            (folder / "answers" / module / name).write_text(json.dumps(answer))


def figures() -> list[Figure]:
    found = []
    for hosts in SIZES:
        observed = sites.observations(hosts, 1)
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            collection(folder, observed)
            groups: dict[str, dict[str, Any]] = {"kube_control_plane": {"hosts": {}}, "kube_node": {"hosts": {}}}
            for name, host in observed.items():
                groups[host["groups"][0]]["hosts"][name] = {}
            variables = {
                **ansible.LOCAL,
                "fabric_networks": sites.networks(1),
                "fabric_ipu": False,
                "fabric_control_plane_endpoint": "10.88.255.250:6443",
                "fabric_probe_ports": False,
                "fabric_probe_sources": False,
            }
            (folder / "hosts.json").write_text(json.dumps({"all": {"vars": variables, "children": groups}}))
            settings = {"ANSIBLE_COLLECTIONS_PATH": str(folder / "collections"), "ANSWERS": str(folder / "answers")}
            plan = ansible.seconds(folder, [{"import_playbook": "ipu.fabric.plan"}], "-i", "hosts.json", **settings)
            tasks = [{"name": "nothing", "ansible.builtin.debug": {"msg": ""}}] * PLAIN
            play = [{"hosts": "kube_control_plane:kube_node", "gather_facts": False, "tasks": tasks}]
            plain = ansible.seconds(folder, play, "-i", "hosts.json")
        found.append(Figure(f"plan of {hosts} hosts that answer at once", plan, f"{PLAIN} debug tasks on them", plain))
    return found

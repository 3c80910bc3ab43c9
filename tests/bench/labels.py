"""Labels on many nodes of a real API server: one task, against loops of kubectl and of kubernetes.core.k8s."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from ansible_collections.ipu.fabric.tests.bench import ansible
from ansible_collections.ipu.fabric.tests.bench.figures import Figure
from ansible_collections.ipu.fabric.tests.integration.api_server import ApiServer, programs

NODES = 1000
LOOPED = 20  # nodes in a loop: its time for all is so many times longer


def nodes(api: ApiServer, names: list[str]) -> None:
    items = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in names]
    api.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def task(module: str, **options: Any) -> list[dict[str, Any]]:
    loop = {"loop": options.pop("loop")} if "loop" in options else {}
    return [{"hosts": "localhost", "gather_facts": False, "tasks": [{module: options, "name": "label", **loop}]}]


def figures() -> list[Figure]:
    names = [f"n{number:04}" for number in range(NODES)]
    with tempfile.TemporaryDirectory() as folder:
        api = ApiServer(programs(), Path(folder))
        try:
            api.start()
            nodes(api, names)
            wanted = [{"name": name, "labels": {"a": "one"}} for name in names]
            own = task("ipu.fabric.node_labels", kubeconfig=str(api.kubeconfig), nodes=wanted)
            module = ansible.seconds(Path(folder), own)
            empty = ansible.seconds(Path(folder), task("ansible.builtin.debug", msg=""))
            start = time.monotonic()
            for name in names[:LOOPED]:
                api.kubectl("label", "node", name, "b=two")
            kubectl = (time.monotonic() - start) * NODES / LOOPED
            metadata = {"name": "{{ item }}", "labels": {"c": "three"}}
            definition = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
            k8s = {"kubeconfig": str(api.kubeconfig), "state": "patched", "definition": definition}
            start_of_one = ansible.seconds(Path(folder), task("kubernetes.core.k8s", **k8s, loop=names[:1]))
            of_all = ansible.seconds(Path(folder), task("kubernetes.core.k8s", **k8s, loop=names[: LOOPED + 1]))
            looped = (of_all - start_of_one) * NODES / LOOPED
        finally:
            api.stop()
    what = f"labels on {NODES} nodes, a playbook with one task"
    return [
        Figure(what, module, f"kubectl label for each node (timed for {LOOPED})", kubectl),
        Figure(what, module, f"a loop of kubernetes.core.k8s (timed for {LOOPED})", looped),
        Figure(what, module, "a playbook with one task of debug", empty),
    ]

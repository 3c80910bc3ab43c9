"""The inventory of a running testbed, as an air-gapped site would write it."""

from __future__ import annotations

import hashlib
import json
import string
from pathlib import Path

from . import programs
from .build import Parts
from .common import SOURCE, ProblemError
from .hosts import MIRROR, REGISTRY, WORKERS, Testbed
from .workers import FABRIC


def _place(testbed: Testbed) -> Path:
    return testbed.state / "inventory" / "hosts.yml"


def path(testbed: Testbed) -> Path:
    """The path of the inventory, if it exists."""
    if not _place(testbed).exists():
        raise ProblemError(f"{testbed.name} does not run: `testbed up` first")
    return _place(testbed)


def _machine(testbed: Testbed, host: str) -> dict[str, object]:
    """How to reach a virtual machine, and that it supports what containers don't."""
    return {
        "ansible_host": testbed.management(WORKERS[host]),
        "ansible_timeout": 60,
        "kubernetes_kubeadm_timeouts": {"kubeletHealthCheck": "10m0s", "tlsBootstrap": "10m0s"},
        "kubernetes_containerd_restrict_oom_score_adj": False,
        "kubernetes_containerd_unit": {"LimitMEMLOCK": "infinity"},
    }


def write(testbed: Testbed, parts: Parts) -> Path:
    """Render inventory.yml.tmpl into the testbed's state. If there are machines with RDMA, they are the workers."""

    def sha256(path: str) -> str:
        return hashlib.sha256((parts.www / path).read_bytes()).hexdigest()

    # The testbed's charts have upstream's names and releases, but their own content.
    charts = sorted((parts.www / "charts").glob("*/*.tgz"))
    archive = f"helm-v{programs.HELM}-linux-amd64.tar.gz"
    addresses: dict[str, dict[str, object]] = {
        host: {"ansible_host": testbed.management(number)} for host, number in testbed.hosts.items()
    }
    machines = {host: _machine(testbed, host) for host in testbed.workers}
    workers = machines or {host: addresses[host] for host in addresses if host not in testbed.control_planes}
    fabric = string.Template((SOURCE / f"inventory-{'rdma' if machines else 'plain'}.yml.tmpl").read_text())
    values = {
        "control_planes": json.dumps({host: addresses[host] for host in testbed.control_planes}),
        "etcd": json.dumps(dict.fromkeys(testbed.control_planes)),
        "workers": json.dumps(workers),
        "ipu_nodes": json.dumps(dict.fromkeys(machines or ["cp1", "w1"])),
        "fabric": fabric.substitute(machines=json.dumps(list(machines)), nic=FABRIC),
        "endpoint": testbed.endpoint,
        "virtual_address": testbed.virtual_address,
        "ssh_key": testbed.key,
        "mirror": f"http://{testbed.management(MIRROR)}",
        "registry": f"http://{testbed.management(REGISTRY)}:5000",
        "kubernetes_version": programs.KUBERNETES,
        "kubernetes_key_sha256": sha256("apt/kubernetes/Release.key"),
        "containerd_key_sha256": sha256("apt/containerd/gpg"),
        "calico_version": programs.CALICO,
        "calico_crds_sha256": sha256("calico/operator-crds.yaml"),
        "calico_operator_sha256": sha256("calico/tigera-operator.yaml"),
        "mpi_operator_sha256": sha256("mpi-operator/mpi-operator.yaml"),
        "chart_sha256": json.dumps({chart.stem: sha256(str(chart.relative_to(parts.www))) for chart in charts}),
        "helm_archive": archive,
        "helm_sha256": sha256(f"helm/{archive}"),
    }
    template = string.Template((SOURCE / "inventory.yml.tmpl").read_text())
    target = _place(testbed)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(template.substitute(values))
    return target

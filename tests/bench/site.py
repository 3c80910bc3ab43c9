"""How long the Kubernetes part of site takes on fresh hosts, against a plain script that does only kubeadm's own steps.

Both run on fresh hosts, in turn, three times each, since one run says little on a machine with other work. Then the
whole of site once, and three times more with nothing to change. The figures are medians.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import yaml
from ansible_collections.ipu.fabric.tests.bench.ansible import LOG, PROFILE
from ansible_collections.ipu.fabric.tests.bench.figures import Figure
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

CACHE = Path(os.environ.get("IPU_FABRIC_CACHE") or Path.home() / ".cache/ipu-fabric")
NUMBER = (os.environ.get("TESTBED_ID") or "0").replace("0", "8")  # not that of the demo
ROUNDS = 3
INVENTORY = CACHE / "testbed" / NUMBER / "inventory/hosts.yml"


def timed(title: str, *command: object) -> float:
    """Seconds that a command takes; its output goes to the log."""
    begin = time.monotonic()
    with LOG.open("a") as log:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=ROOT,
            env=os.environ | {"TESTBED_ID": NUMBER} | PROFILE,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        sys.exit(f"error: {title} ended with {done.returncode}\n  next: read {LOG.relative_to(ROOT)}")
    seconds = time.monotonic() - begin
    print(f"  {title}: {seconds:.1f} s", file=sys.stderr, flush=True)
    return seconds


def play(title: str, *playbooks: str) -> float:
    names = [f"ipu.fabric.{playbook}" for playbook in playbooks]
    artifacts = f"fabric_artifacts_dir={ROOT}/.cache/bench"
    return timed(title, "ansible-playbook", "-i", INVENTORY, "-e", artifacts, *names)


def fresh() -> None:
    timed("fresh hosts", ROOT / "testbed/testbed", "reset")


def plain_arguments() -> list[object]:
    """What the plain script needs to know, from the testbed's inventory."""
    inventory: dict[str, Any] = yaml.safe_load(INVENTORY.read_text())["all"]
    variables = inventory["vars"]
    address = {
        host: settings["ansible_host"]
        for group in inventory["children"].values()
        for host, settings in group["hosts"].items()
        if settings
    }
    mirror = variables["fabric_mirror"]["apt"]["containerd"]["uri"].removesuffix("/apt/containerd")
    key, version = variables["ansible_ssh_private_key_file"], variables["fabric_kubernetes_version"]
    return [mirror, variables["fabric_mirror"]["registry"], version, key, address["cp1"], address["w1"]]


def figures() -> list[Figure]:
    timed("build", ROOT / "testbed/testbed", "build")
    plain, kubernetes = [], []
    for _round in range(ROUNDS):
        fresh()
        plain.append(timed("plain script", ROOT / "tests/bench/plain.sh", *plain_arguments()))
        fresh()
        kubernetes.append(play("plan and kubernetes", "plan", "kubernetes"))
    play("site: the rest", "site")
    before = LOG.read_text().count("\nTASK [")
    again = [play("site: nothing to change", "site") for _round in range(ROUNDS)]
    headers = (LOG.read_text().count("\nTASK [") - before) // ROUNDS
    timed("remove hosts", ROOT / "testbed/testbed", "down")
    baseline = "plain script with kubeadm's own steps, on fresh hosts"
    return [
        Figure("Kubernetes of site on two fresh hosts", median(kubernetes), baseline, median(plain)),
        Figure(f"site on them with nothing to change, {headers} task headers", median(again), baseline, median(plain)),
    ]

#!/usr/bin/env python3
"""How long the Kubernetes part of site takes on fresh hosts, against a plain script that does only kubeadm's own steps.

Both run on fresh hosts of the same kind, one after the other, in one run. Then the whole of site once, and once more:
the second run has nothing to change. Writes artifacts/bench.json and prints a table.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("IPU_FABRIC_CACHE") or Path.home() / ".cache/ipu-fabric")
NUMBER = os.environ.get("TESTBED_ID", "0") if os.environ.get("TESTBED_ID", "0") != "0" else "4"
INVENTORY = CACHE / "testbed" / NUMBER / "inventory/hosts.yml"
LOG = ROOT / ".cache/logs/bench.log"


def timed(title: str, *command: object) -> float:
    """Seconds that a command takes; its output goes to the log."""
    print(f"  {title} ...", flush=True)
    begin = time.monotonic()
    with LOG.open("a") as log:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=ROOT,
            env=os.environ | {"TESTBED_ID": NUMBER},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        sys.exit(f"error: {title} ended with {done.returncode}\n  next: read {LOG.relative_to(ROOT)}")
    seconds = time.monotonic() - begin
    print(f"  {title}: {seconds:.1f} s", flush=True)
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


def main() -> None:
    LOG.parent.mkdir(parents=True, exist_ok=True)
    LOG.write_text("")
    timed("build", ROOT / "testbed/testbed", "build")
    figures: dict[str, float] = {}
    fresh()
    figures["plain"] = timed("plain script", ROOT / "tests/bench/plain.sh", *plain_arguments())
    fresh()
    figures["kubernetes"] = play("plan and kubernetes", "plan", "kubernetes")
    figures["rest"] = play("site: the rest", "site")
    figures["second"] = play("site: second run", "site")
    figures["ratio"] = figures["kubernetes"] / figures["plain"]
    timed("remove hosts", ROOT / "testbed/testbed", "down")
    (ROOT / "artifacts").mkdir(exist_ok=True)
    (ROOT / "artifacts/bench.json").write_text(json.dumps(figures, indent=2) + "\n")
    print(
        f"\nKubernetes on fresh hosts  {figures['kubernetes']:6.1f} s\n"
        f"plain script               {figures['plain']:6.1f} s\n"
        f"ratio                      {figures['ratio']:6.2f}   (aim: below 2.0)\n"
        f"second run of site         {figures['second']:6.1f} s (aim: below 40 s)"
    )


if __name__ == "__main__":
    main()

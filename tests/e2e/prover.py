# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image of docs/images/prover.Containerfile, put on a testbed's hosts. No base image can be pulled there: Debian's
Python of the testbed's tools stands in for it, and packages come from the wheels that pip has downloaded before."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from ansible_collections.ipu.fabric.tests.e2e.bed import HOSTS, Bed
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

IMAGE = "registry.site:5000/ipu-fabric/prover:0.1.0"
CONTAINERFILE = ROOT / "docs/images/prover.Containerfile"
WHEELS = "/usr/share/wheels"
FILES = {
    "usr/local/bin/pip": f'#!/bin/sh\nexec python3 "$(echo {WHEELS}/pip-*.whl)/pip" "$@"\n',
    "etc/pip.conf": f"[global]\nno-index = true\nfind-links = {WHEELS}\nbreak-system-packages = true\n",
}


def run(*words: str | Path, folder: Path | None = None) -> str:
    done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {(done.stdout + done.stderr)[-2000:]}"
    return done.stdout


def put_on_hosts(bed: Bed, folder: Path) -> str:
    """Build the image in a folder, give it to all hosts, and return its name."""
    base, context, wheels, archive = folder / "base", folder / "context", folder / "wheels", folder / "prover.tar"
    packages = re.search(r"pip install --no-cache-dir (.+) \\$", CONTAINERFILE.read_text(), re.MULTILINE)
    assert packages
    run(sys.executable, "-m", "pip", "download", "--only-binary=:all:", "--dest", wheels, "pip", *packages[1].split())
    for name, text in FILES.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text)
        (base / name).chmod(0o755)
    # What the collection depends on: Galaxy is not asked for what is there already.
    core = "ansible_collections/kubernetes/core"
    shutil.copytree(Path(sysconfig.get_path("purelib"), core), base / "usr/share/ansible/collections" / core)
    tools = run("podman", "inspect", "--format", "{{.ImageName}}", f"ipu-fabric-{bed.number}-mirror").strip()
    (folder / "Containerfile").write_text(f"FROM {tools}\nCOPY . /\n")
    run("ansible-galaxy", "collection", "build", "--output-path", context, folder=ROOT)
    podman = ("podman", "build", "--quiet", "--isolation=chroot", f"--volume={wheels}:{WHEELS}:ro")
    run(*podman, "--file", folder / "Containerfile", "--tag", f"{IMAGE}-base", base)
    try:
        run(*podman, "--from", f"{IMAGE}-base", "--file", CONTAINERFILE, "--tag", IMAGE, context)
        run("podman", "save", "--output", archive, IMAGE)
        for host in HOSTS:
            container = f"ipu-fabric-{bed.number}-{host}"
            run("podman", "cp", archive, f"{container}:/root/prover.tar")
            bed.on(host, "ctr --namespace k8s.io images import /root/prover.tar && rm /root/prover.tar")
    finally:
        subprocess.run(["podman", "rmi", "--force", IMAGE, f"{IMAGE}-base"], capture_output=True, check=False)
    return IMAGE

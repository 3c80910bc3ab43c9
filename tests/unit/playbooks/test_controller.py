# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller that can't run the plan ends in the first seconds, before any host is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

HIDE = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in {hidden!r} else find(name, package)
"""


@pytest.mark.parametrize(
    ("hidden", "api_host", "said"),
    [
        (["netaddr"], "localhost", "without netaddr. Next: "),
        (["cryptography"], "localhost", "-m pip install cryptography"),
        (["cryptography"], "cp1", ""),
        ([], "localhost", ""),
    ],
)
def test_python_packages(hidden: list[str], api_host: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HIDE.format(hidden=hidden))
    # Nothing answers there.
    host = f"ansible_host=127.0.0.1 ansible_port=1 fabric_api_host={api_host}"
    (tmp_path / "hosts").write_text(f"[kube_control_plane]\ncp1 {host}\n")
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "-i", tmp_path / "hosts", "ipu.fabric.plan"],
        cwd=tmp_path,
        env=os.environ
        | {
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections"),
            "PYTHONPATH": str(tmp_path),
            "COLUMNS": "1000",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    text = " ".join((done.stdout + done.stderr).split())
    assert done.returncode != 0
    assert ("The controller must have" in text) == bool(said), text
    assert said in text
    assert ("Observe the hosts and plan" in text) == (not said)

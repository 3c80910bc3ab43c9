"""What can be seen on the controller alone ends a run in its first seconds, before any host is asked."""

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


def plan(folder: Path, variables: str, hidden: tuple[str, ...] = (), group: str = "kube_control_plane") -> str:
    """What the playbook says where no host answers, and Python finds none of the hidden packages."""
    (folder / "sitecustomize.py").write_text(HIDE.format(hidden=hidden))
    (folder / "hosts").write_text(f"[{group}]\ncp1 ansible_host=127.0.0.1 ansible_port=1 {variables}\n")
    ours = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections"), "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "-i", folder / "hosts", "ipu.fabric.plan"],
        cwd=folder,
        env=os.environ | ours,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode != 0
    return " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize(
    ("hidden", "api_host", "said"),
    [
        (("netaddr",), "localhost", "without netaddr. Next: "),
        (("cryptography",), "localhost", "-m pip install cryptography"),
        (("cryptography",), "cp1", ""),
        (("ansible_collections.kubernetes.core",), "cp1", "Next: ansible-galaxy collection install kubernetes.core"),
        ((), "localhost", ""),
    ],
)
def test_packages(hidden: tuple[str, ...], api_host: str, said: str, tmp_path: Path) -> None:
    text = plan(tmp_path, f"fabric_api_host={api_host}", hidden)
    assert ("The controller must have" in text) == bool(said), text
    assert said in text
    assert ("Observe the hosts and plan" in text) == (not said)


def test_no_hosts(tmp_path: Path) -> None:
    text = plan(tmp_path, "", group="control_plane")
    assert f"Where: {tmp_path}/hosts. Seen: no host in the groups kube_control_plane, kube_node and ipu_node" in text
    assert "Conditional" not in text


def test_types_of_variables(tmp_path: Path) -> None:
    text = plan(tmp_path, "fabric_gpu=perhaps fabric_pods_per_node=many")
    assert 'fabric_gpu is "perhaps": not of type bool; fabric_pods_per_node is "many": not of type int. Next' in text
    assert "Observe the hosts and plan" not in text
    assert len(text) < 3000

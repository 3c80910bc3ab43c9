"""Playbooks of the benchmark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

LOG = ROOT / ".cache/logs/bench.log"  # shows which tasks the time of a playbook goes to
PROFILE = {
    "ANSIBLE_CALLBACKS_ENABLED": "ansible.posix.profile_tasks",
    "PROFILE_TASKS_SUMMARY_ONLY": "true",
    "PROFILE_TASKS_TASK_OUTPUT_LIMIT": "15",
}
LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "ansible_become": False}


def seconds(folder: Path, plays: list[dict[str, Any]], *arguments: str, **environment: str) -> float:
    """How long ansible-playbook takes with these plays; a failure ends the benchmark."""
    (folder / "play.yml").write_text(json.dumps(plays))
    command = [sys.executable, "-m", "ansible", "playbook", *arguments, "play.yml"]
    defaults = {
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections"),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
        "ANSIBLE_FORKS": "10",
        **PROFILE,
    }
    start = time.monotonic()
    done = subprocess.run(
        command, cwd=folder, env=os.environ | defaults | environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"error: {' '.join(command)} ended with {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-2000:]}")
    spent = time.monotonic() - start
    with LOG.open("a") as log:
        log.write(f"{plays!s:.120}\n{done.stdout.partition('TASKS RECAP')[2]}\n")
    return spent

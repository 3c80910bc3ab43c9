# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""IPUJobs as docs/ipujobs.md shows them, on a finished cluster."""

from __future__ import annotations

from ansible_collections.ipu.fabric.tests.e2e.bed import KUBECTL, Bed


def logs(bed: Bed) -> dict[str, str]:
    return {path.name: path.read_text() for path in (bed.artifacts / "logs").iterdir()}


def jobs(bed: Bed) -> list[str]:
    return [job["metadata"]["name"] for job in bed.kubectl("get ipujobs -A")["items"]]


def test_training(finished: Bed) -> None:
    result = finished.example("training")
    assert result.code == 0
    assert "Completed" in result.text
    assert logs(finished)["training-launcher.train.log"] == "".join(f"epoch {n} of 3\n" for n in (1, 2, 3))
    assert jobs(finished) == []


def test_inference(finished: Bed) -> None:
    result = finished.example("inference")
    assert result.code == 0
    assert "inference is Running" in result.text
    assert all(f"p-inference-default-{n}" in result.text for n in range(3))
    # One task made it, one scaled it, one found nothing to do, one removed it.
    assert result.changed() == {"localhost": 3}
    assert jobs(finished) == []


def test_failure(finished: Bed) -> None:
    result = finished.example("failure")
    assert result.code == 0
    assert result.recap["localhost"]["rescued"] == 1
    assert "exit code 3" in result.text
    assert "2 restarts" in result.text
    runs = ("failing-worker-0.train.log", "failing-worker-0.train.2.log", "failing-worker-0.train.3.log")
    assert {name: logs(finished)[name] for name in runs} == dict.fromkeys(runs, "no dataset in /data\n")
    assert jobs(finished) == []


def test_interactive(finished: Bed) -> None:
    result = finished.example("interactive", seconds=120)
    assert result.code == 0
    assert "kubectl exec -it --namespace default session-launcher -- bash" in result.text
    inside = "sh -c 'echo $IPUOF_VIPU_API_PARTITION_ID'"
    assert finished.on("cp1", f"{KUBECTL} exec session-launcher -- {inside}") == "p-session-default-0\n"
    finished.on("cp1", f"{KUBECTL} delete ipujob session --timeout=60s")

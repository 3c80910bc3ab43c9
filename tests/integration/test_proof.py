"""How the playbook prove, with which site and verify end, ends for what a probe saw. The probe itself is recorded."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._verify import test_checks as fabrics

Facts = t.Dict[str, t.Any]
FIRST = "Compare the results with the plan, and write the reports"
RDMA_TESTS = ["rping", "write_bandwidth", "gpu_bandwidth", "read_latency", "rdma_counters"]


def without_tools(probe: Facts) -> None:
    """An image without RDMA's tools: all else is as it should be."""
    for test in probe["traffic"]:
        test["missing"] = True


def without_second_node(probe: Facts) -> None:
    probe.update(traffic=[])


def with_a_dead_path(probe: Facts) -> None:
    probe["traffic"][0].update(rc=1, value=0.0, seen="UNREACHABLE")


def prove(folder: Path, change: t.Optional[t.Callable[[Facts], None]], **variables: t.Any) -> t.Tuple[int, str, Facts]:
    """Exit code, output and report.json of the playbook, from the task on that follows the probe."""
    probe = fabrics.probe()
    if change:
        change(probe)
    site = {
        "api_host": "localhost",
        "api_kubeconfig": "",
        "artifacts_dir": str(folder),
        "ipu": True,
        "admission": "off",
        "max_unproved": "",
        "baseline": "",
        "report_key": "",
        "rail_isolation": "",
    }
    expected = {name: value for name, value in fabrics.EXPECT._asdict().items() if name != "allow_unproven"}
    extra = {
        "fabric_plan": {**fabrics.plan(), "cluster": {"endpoint": "cp1:6443"}},
        "fabric_site": site,
        "__verify_probe": {"probe": probe},
        **{f"verify_{name}": value for name, value in expected.items()},
        **variables,
    }
    (folder / "extra.json").write_text(json.dumps(extra))
    hosts = {"cp1": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}}
    (folder / "hosts.json").write_text(json.dumps({"kube_control_plane": {"hosts": hosts}}))
    done = subprocess.run(
        [
            *(str(Path(sys.executable).parent / "ansible-playbook"), "-i", str(folder / "hosts.json")),
            *("-e", f"@{folder / 'extra.json'}", "--start-at-task", FIRST, "ipu.fabric.plays.prove"),
        ],
        env={
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache" / "collections"),
            "ANSIBLE_NOCOLOR": "true",
            "ANSIBLE_CALLBACK_RESULT_FORMAT": "yaml",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return done.returncode, done.stdout + done.stderr, json.loads((folder / "report.json").read_text())


@pytest.mark.parametrize(
    ("change", "allow", "code", "outcome", "said"),
    [
        (None, [], 0, "proved", "proved: "),
        (without_tools, [], 2, "unproven", "Set verify_rdma_image"),
        (without_tools, ["rping"], 2, "unproven", "1 accepted"),
        (without_tools, RDMA_TESTS, 0, "proved", "5 accepted"),
        (without_second_node, [], 2, "unproven", "Add a second node with a NIC on this network"),
        (with_a_dead_path, RDMA_TESTS, 2, "failed", "UNREACHABLE"),
    ],
)
def test_what_a_site_ends_with(
    change: t.Optional[t.Callable[[Facts], None]],
    allow: t.List[str],
    code: int,
    outcome: str,
    said: str,
    tmp_path: Path,
) -> None:
    seen, text, report = prove(tmp_path, change, verify_allow_unproven=allow)
    assert (seen, report["outcome"]) == (code, outcome), text
    assert said in text
    assert f"{outcome}: " in text
    tasks = re.findall(r"^TASK \[(?:[^]]* : )?([^]]*)\]((?:(?!^TASK|^PLAY).*\n)*)", text, re.MULTILINE)
    assert outcome == "proved" or re.search(f"msg: '?{outcome}: ", text), text
    failing = [] if outcome == "proved" else ["Fail unless the fabric is proved, or no worse than before"]
    assert [name for name, shown in tasks if "fatal:" in shown] == failing, text
    missing = {name for entry in report["unproven"] for name in entry["checks"]}
    assert missing == (set(RDMA_TESTS) - set(allow) if outcome == "unproven" else set())

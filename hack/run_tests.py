#!/usr/bin/env python3
"""Run test suites, two at a time unless told otherwise, and end with a line `N passed, N failed, N skipped`.

Names are suites or groups of them (`--list`). Suites that need a cluster run one after another, on their own testbeds:
a control plane that does not have a core to itself misses its deadlines. Only the long suites that mostly wait run in
parallel, and next to all of these, suites without deadlines use the remaining processor time. Full logs and JUnit
reports are kept in .cache/logs; for a failing suite, the end of its log is shown.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / ".cache/logs"
SKIPPED = 77  # exit code of a suite that can't run here, and has printed why
TAIL = 200 if os.environ.get("CI") else 60
PULSE = 60  # seconds between progress lines of a running suite


@dataclasses.dataclass(frozen=True)
class Suite:
    """A command whose exit code is its result; {junit} in it stands for its report, if it writes one."""

    name: str
    command: str
    group: str
    cluster: str = ""  # TESTBED_ID of a suite with a cluster
    after: str = ""  # a suite that must have passed before
    minutes: int = 20
    patient: bool = False  # has a cluster, and may run in parallel with other patient ones
    spare: bool = False  # has no deadlines: beside a cluster, it gets only processor time that nobody else wants


def spare(name: str, command: str, group: str, minutes: int = 75) -> Suite:
    return Suite(name, command, group, minutes=minutes, spare=True)


PLAYS = [Path("tests/unit/playbooks"), Path("tests/unit/roles")]  # they run ansible-playbook, which takes seconds each
# What `make test` does with a finished cluster, besides molecule; the rest of `quick` is for `make test-all`.
QUICK = [f"tests/e2e/quick/test_{name}.py" for name in ("drift", "finished", "support")]
# Moved so that the long suites, which run in parallel, end together.
MOVED = [f"tests/e2e/lifecycle/test_{name}.py" for name in ("cluster_reset", "kubernetes_upgrade")]
SUITES = [
    *(spare(f"unit-{path.name}", f"hack/pytest.sh 3.11 {{junit}} {path}", "unit") for path in PLAYS),
    Suite("testbed", "testbed/testbed build && testbed/testbed sriov-operator", "cluster", minutes=60),
    Suite("calico", "testbed/testbed build --calico", "cluster", minutes=60),
    # What the long suites would otherwise build: a compiler running in parallel makes them miss their deadlines.
    Suite("testbed-long", "testbed/testbed build --next-kubernetes && testbed/testbed docker", "long", minutes=60),
    Suite("integration", "hack/pytest.sh 3.11 {junit} tests/integration", "cluster", "2", "testbed", 30),
    Suite("molecule-default", "KEEP=1 hack/molecule.sh default", "cluster", "1", "calico", 30),
    # On the cluster that molecule left behind.
    Suite("e2e", f"hack/pytest.sh 3.11 {{junit}} {' '.join(QUICK)}", "cluster", "1", "molecule-default", 40),
    Suite("molecule-roles", "hack/molecule.sh preflight memlock chrony", "cluster", "1", "testbed"),
    Suite(
        "e2e-more",
        f"hack/pytest.sh 3.11 {{junit}} tests/e2e/quick {' '.join(f'--ignore {path}' for path in QUICK)}",
        "release",
        "1",
        "calico",
        75,
    ),
    Suite("soft-roce", "hack/molecule.sh soft_roce", "release", "1", minutes=30),
    Suite("e2e-rdma", "hack/pytest.sh 3.11 {junit} tests/e2e/rdma", "long", "4", "testbed-long", 120),
    Suite(
        "e2e-control-planes",
        "hack/pytest.sh 3.11 {junit} tests/e2e/control_planes",
        "long",
        "5",
        "testbed-long",
        150,
        True,
    ),
    Suite(
        "e2e-lifecycle",
        "hack/packages.sh skopeo && hack/pytest.sh 3.11 {junit} tests/e2e/lifecycle"
        f" {' '.join(f'--ignore {path}' for path in MOVED)}",
        "long",
        "6",
        "testbed-long",
        150,
        True,
    ),
    Suite(
        "e2e-fabric",
        f"hack/pytest.sh 3.11 {{junit}} tests/e2e/fabric {' '.join(MOVED)}",
        "long",
        "3",
        "testbed-long",
        150,
        True,
    ),
    spare(
        "lost-connections",
        "LOSE_EVERY_TASK=1 hack/pytest.sh 3.11 {junit} tests/unit/playbooks/test_connection_lost.py",
        "long",
        60,
    ),
    spare("sanity", "OUTER=1 hack/ansible-test.sh sanity --color no --junit", "sanity"),
    Suite(
        "unit-3.11",
        f"hack/pytest.sh 3.11 {{junit}} tests/unit {' '.join(f'--ignore {path}' for path in PLAYS)}",
        "unit",
    ),
    spare("ansible-lint", "ansible-lint --nocolor", "lint"),
    # Not in `make test`: these versions mostly differ in what can be imported, and `matrix` imports everything.
    Suite(
        "sanity-pythons",
        "hack/ansible-test.sh sanity --venv --color no --junit --test compile --test import",
        "release",
    ),
    Suite("unit-3.12", "hack/pytest.sh 3.12 {junit} tests/unit/plugins", "release"),
    Suite("unit-3.13", "hack/pytest.sh 3.13 {junit} tests/unit/plugins", "release"),
    Suite(
        "browser",
        "(hack/packages.sh chromium || exit 77) && hack/pytest.sh 3.11 {junit} tests/browser",
        "unit",
        minutes=10,
    ),
    spare("mypy", "mypy --package ansible_collections.ipu.fabric.plugins && mypy hack testbed molecule", "lint"),
    # The long suites run seldom: this shows what can no longer be imported.
    spare("collect", "hack/pytest.sh 3.11 {junit} --collect-only --quiet tests/e2e tests/integration", "lint"),
    spare("ruff", "ruff check --output-format concise . && ruff format --check .", "lint"),
    spare("yamllint", "yamllint .", "lint"),
    spare(
        "docs",
        "hack/role_docs.py --check && hack/troubleshooting.py --check && hack/release_docs.py --check"
        " && hack/plan_schema.py --check && antsibull-changelog lint",
        "lint",
    ),
    spare(
        "project",
        "pre-commit validate-config && reuse lint"
        " && check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml"
        " && check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml",
        "lint",
    ),
    spare("docs-site", "hack/docs_site.sh", "lint"),
    spare("shellcheck", "hack/shellcheck.sh", "lint"),
    spare("go", "hack/go_check.sh", "lint"),
    spare("package", "hack/package.sh", "package"),
    spare("matrix", "hack/pytest.sh 3.11 {junit} tests/matrix", "package"),
]
GROUPS = {
    "fast": {"lint", "sanity", "unit"},
    "all": {"lint", "sanity", "unit", "package", "cluster"},
}


@dataclasses.dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, other: Count) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def chosen(names: list[str]) -> list[Suite]:
    """The suites with these names; a suite given by name brings the one that it must follow."""
    groups = {name: {name} for suite in SUITES for name in [suite.group]} | GROUPS
    wanted: set[str] = set()
    for name in names:
        wanted |= {suite.name for suite in SUITES if suite.name == name or suite.group in groups.get(name, ())}
        if name not in groups and name not in wanted:
            sys.exit(f"error: no suite or group is called {name}\n  next: hack/run_tests.py --list")
    wanted |= {suite.after for suite in SUITES if suite.name in wanted and suite.after}
    return [suite for suite in SUITES if suite.name in wanted]


def count(reports: list[Path], code: int) -> Count:
    """The result in JUnit reports. A suite without any counts as one test, as does a failure that none of them has."""
    total = Count()
    for report in reports:
        for case in ET.parse(report).iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                total.failed += 1
            elif case.find("skipped") is not None:
                total.skipped += 1
            else:
                total.passed += 1
    if code == SKIPPED:
        total.skipped += 1
    elif code and not total.failed:
        total.failed += 1
    elif total == Count():
        total.passed += 1
    return total


def reason(log: Path) -> str:
    """The last non-empty line of a log, without colours."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    return re.sub(r"\x1b\[[0-9;]*m", "", next((line for line in reversed(lines) if line), ""))[:100]


class Run:
    """A running suite: the process, its log and its reports."""

    def __init__(self, suite: Suite, spare_group: Path | None = None) -> None:
        self.suite, self.started, self.code = suite, time.monotonic(), 0
        self.reports = LOGS / f"{suite.name}.junit"
        shutil.rmtree(self.reports, ignore_errors=True)
        self.reports.mkdir(parents=True)
        self.log = LOGS / f"{suite.name}.log"
        environment = os.environ | {
            "JUNIT_DIR": str(self.reports),
            "PATH": f"{ROOT}/.cache/venv/bin:{os.environ['PATH']}",
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections"),
        }
        if suite.cluster:
            environment["TESTBED_ID"] = suite.cluster
        command = suite.command.replace("{junit}", str(self.reports / "report.xml"))
        if suite.spare and spare_group:
            command = f"echo $$ >{spare_group}/cgroup.procs\n{command}"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                ["bash", "-c", command],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def seconds(self) -> float:
        return time.monotonic() - self.started

    def stop(self) -> None:
        """End the suite and everything that it started."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=15)

    def finish(self) -> Count:
        """Wait, with a progress line now and then, and report the result."""
        pulse = PULSE
        while True:
            try:
                self.code = self.process.wait(timeout=1)
                break
            except subprocess.TimeoutExpired:
                if self.seconds() > self.suite.minutes * 60:
                    self.stop()
                    self.code = 124
                    with self.log.open("a") as log:
                        log.write(f"\nended after its limit of {self.suite.minutes} minutes\n")
                    break
                if self.seconds() > pulse:
                    pulse += PULSE
                    say(f"  ...  {self.suite.name} ({self.seconds():.0f} s): {reason(self.log)}")
        return self.report()

    def report(self) -> Count:
        total = count(sorted(self.reports.glob("*.xml")), self.code)
        word = "FAIL" if total.failed else "skip" if self.code == SKIPPED else "ok"
        note = f": {reason(self.log)}" if self.code == SKIPPED else ""
        say(f"{word:>5}  {self.suite.name} in {self.seconds():.0f} s ({total}){note}")
        if total.failed:
            lines = self.log.read_text(errors="replace").splitlines()[-TAIL:]
            print("\n".join([f"---- end of {self.log.relative_to(ROOT)}", *lines, "----"]), flush=True)
        return total


@contextlib.contextmanager
def spare_processor_time() -> Iterator[Path | None]:
    """A control group whose processes run only if no others want the processor; None if it can't be created.

    A nice value would not do: the kernel weighs sessions and containers against each other, not their processes.
    """
    hierarchies = [Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")]  # of version 1 first, which may exist beside 2
    parent = next((path for path in hierarchies if (path / "cgroup.procs").exists()), None)
    group = parent / "ipu-fabric-spare" if parent else None
    if group:
        try:
            group.mkdir(exist_ok=True)
            (group / "cpu.idle").write_text("1")
        except OSError:
            group = None
    yield group
    if group:
        with contextlib.suppress(OSError):  # another run is using it
            group.rmdir()


class Queue:
    """Decides which suite is next: first those without a cluster, two at a time, then those with a cluster, one by one.

    With a group for spare processor time, suites without deadlines run in parallel with all others.
    """

    def __init__(self, suites: list[Suite], spare_group: Path | None = None) -> None:
        self.spare_group = spare_group if any(suite.cluster for suite in suites) else None
        self.waiting = sorted(suites, key=lambda suite: (self.yields(suite), bool(suite.cluster)))
        self.running = dict[str, Run]()
        self.total, self.failed = Count(), set[str]()
        self.seconds = dict[str, float]()
        self.changed = threading.Condition()

    def yields(self, suite: Suite) -> bool:
        return suite.spare and self.spare_group is not None

    def together(self, one: Suite, other: Suite) -> bool:
        if self.yields(one) or self.yields(other):
            return True
        return (one.patient and other.patient) or not (one.cluster or other.cluster)

    def next(self) -> Suite | None:
        others = [run.suite for run in self.running.values()]
        return next((suite for suite in self.waiting if all(self.together(suite, other) for other in others)), None)

    def take(self) -> Run | None:
        with self.changed:
            while self.waiting:
                suite = self.next()
                if suite is None:
                    self.changed.wait()
                    continue
                self.waiting.remove(suite)
                if suite.after in self.failed:
                    say(f" FAIL  {suite.name}: not run, because {suite.after} failed")
                    self.total.failed += 1
                    continue
                say(f"start  {suite.name}")
                self.running[suite.name] = Run(suite, self.spare_group)
                return self.running[suite.name]
            return None

    def done(self, run: Run, total: Count) -> None:
        with self.changed:
            del self.running[run.suite.name]
            self.total.add(total)
            self.seconds[run.suite.name] = run.seconds()
            if total.failed:
                self.failed.add(run.suite.name)
            self.changed.notify_all()

    def work(self) -> None:
        for run in iter(self.take, None):
            self.done(run, run.finish())


@contextlib.contextmanager
def ended_with_us(queue: Queue) -> Iterator[None]:
    """End the suites when this process is ended."""

    def end(_number: int, _frame: object) -> None:
        queue.waiting.clear()  # otherwise the end of one suite would start the next one
        for run in list(queue.running.values()):
            run.stop()
        os._exit(130)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    yield


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["all"], help="suites or groups (default: all)")
    parser.add_argument("--list", action="store_true", help="list suites and groups")
    parser.add_argument("--jobs", type=int, default=2, help="suites at a time (default: 2)")
    arguments = parser.parse_args()
    if arguments.list:
        for suite in SUITES:
            print(f"{suite.name:15} {suite.group:8} {suite.command}")
        for name, groups in GROUPS.items():
            print(f"{name:15} {' + '.join(sorted(groups))}")
        return 0
    LOGS.mkdir(parents=True, exist_ok=True)
    # Done here, since two suites that install packages in parallel would wait for apt's lock.
    if not shutil.which("shellcheck"):
        subprocess.run([ROOT / "hack/packages.sh", "shellcheck"], check=True)
    started, suites = time.monotonic(), chosen(arguments.names)
    if arguments.names == ["all"]:
        os.environ["FIRST_CASES"] = "1"  # see tests/unit/conftest.py
    with spare_processor_time() as spare_group, ended_with_us(queue := Queue(suites, spare_group)):
        workers = [threading.Thread(target=queue.work) for _ in range(arguments.jobs)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    print("\nMinutes of each suite, the longest first; several run side by side:")
    for name, seconds in sorted(queue.seconds.items(), key=lambda pair: -pair[1]):
        print(f"  {seconds / 60:5.1f}  {name}")
    minutes = (time.monotonic() - started) / 60
    print(f"\n{minutes:.1f} minutes; logs in {LOGS.relative_to(ROOT)}\n{queue.total}", flush=True)
    return 1 if queue.total.failed else 0


if __name__ == "__main__":
    sys.exit(main())

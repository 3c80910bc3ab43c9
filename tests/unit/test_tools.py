"""The tools of a checkout: the runner of the test suites, and scripts in hack/ that have no test of their own."""

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

JUNIT = """<testsuites><testsuite>
<testcase name="a"/><testcase name="b"><skipped/></testcase>
<testcase name="c"><failure/></testcase><testcase name="d"><error/></testcase>
</testsuite></testsuites>"""


@pytest.fixture(scope="module")
def run_tests():
    specification = importlib.util.spec_from_file_location("run_tests", ROOT / "hack/run_tests.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules["run_tests"] = module  # dataclasses look there
    specification.loader.exec_module(module)
    yield module
    del sys.modules["run_tests"]


@pytest.mark.parametrize(
    ("report", "code", "summary"),
    [
        (JUNIT, 1, "1 passed, 2 failed, 1 skipped"),
        ('<testsuite><testcase name="a"/></testsuite>', 0, "1 passed, 0 failed, 0 skipped"),
        # A failure that no test case tells, as an import error or a time limit.
        ('<testsuite><testcase name="a"/></testsuite>', 124, "1 passed, 1 failed, 0 skipped"),
        ("", 0, "1 passed, 0 failed, 0 skipped"),
        ("", 2, "0 passed, 1 failed, 0 skipped"),
        ("", 77, "0 passed, 0 failed, 1 skipped"),
    ],
)
def test_the_summary_counts_test_cases(run_tests, tmp_path, report, code, summary):
    if report:
        (tmp_path / "report.xml").write_text(report, encoding="utf-8")
    assert str(run_tests.count(sorted(tmp_path.glob("*.xml")), code)) == summary


def test_a_suite_brings_what_it_comes_after(run_tests):
    assert [suite.name for suite in run_tests.chosen(["integration"])] == ["testbed", "integration"]
    names = [suite.name for suite in run_tests.SUITES]
    for number, suite in enumerate(run_tests.SUITES):
        assert not suite.after or suite.after in names[:number]
    with pytest.raises(SystemExit, match="no suite or group is called e3e"):
        run_tests.chosen(["e3e"])


def test_every_suite_is_in_make_test_or_before_a_release_or_a_long_one(run_tests):
    left_out = {suite.name for suite in run_tests.SUITES} - {suite.name for suite in run_tests.chosen(["all"])}
    assert left_out == {suite.name for suite in run_tests.SUITES if suite.group in ("long", "release")}


def test_suites_and_targets_name_what_is_there(run_tests):
    for suite in run_tests.SUITES:
        for path in re.findall(r"\b(?:hack|tests|testbed)/[\w./-]+", suite.command):
            assert (ROOT / path).exists(), path
    folders = {path.name for path in (ROOT / "tests/e2e").iterdir() if list(path.glob("test_*.py"))}
    assert folders == set(re.findall(r"tests/e2e/(\w+)", " ".join(suite.command for suite in run_tests.SUITES)))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for names in re.findall(r"@hack/run_tests\.py (.+)", makefile):
        assert run_tests.chosen(names.partition(" --")[0].split())
    for path in re.findall(r"\b(?:hack|tests|testbed)/[\w./-]+", makefile):
        assert (ROOT / path).exists(), path


def test_molecule_scenarios_are_all_run(run_tests):
    scenarios = {path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml")}
    commands = [suite.command for suite in run_tests.SUITES if "hack/molecule.sh" in suite.command]
    assert {word for command in commands for word in command.partition("hack/molecule.sh ")[2].split()} == scenarios
    assert "default" in scenarios  # what `molecule test` runs


@pytest.mark.parametrize(
    "command",
    [("pytest", "--collect-only", "tests/unit/test_repository.py"), ("ansible-doc", "ipu.fabric.host_info")],
    ids=lambda command: command[0],
)
def test_tools_need_no_variables(command):
    """Typed in a checkout with the virtual environment active, and nothing else set."""
    folder = Path(sys.executable).parent
    environment = {"HOME": os.environ["HOME"], "PATH": f"{folder}:/usr/bin:/bin", "LANG": "C.UTF-8"}
    done = subprocess.run(
        [folder / command[0], *command[1:]], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_clean_ends_every_testbed(tmp_path):
    checkout, cache = tmp_path / "checkout", tmp_path / "cache"
    for path in ("testbed/0", "testbed/9", "vm/4", "store/kept"):
        (cache / path).mkdir(parents=True)
    for path in ("hack", "testbed", ".cache", "artifacts"):
        (checkout / path).mkdir(parents=True)
    for name in ("clean.sh", "lib.sh"):
        shutil.copy(ROOT / "hack" / name, checkout / "hack" / name)
    testbed = checkout / "testbed/testbed"
    testbed.write_text(f'#!/bin/sh\necho "$TESTBED_ID $*" >> {tmp_path}/calls\n', encoding="utf-8")
    testbed.chmod(0o755)
    environment = {**os.environ, "IPU_FABRIC_CACHE": str(cache)}
    subprocess.run([checkout / "hack/clean.sh"], env=environment, check=True, stderr=subprocess.DEVNULL)
    assert (tmp_path / "calls").read_text(encoding="utf-8").splitlines() == ["0 down", "9 down", "4 vm down"]
    assert sorted(path.name for path in checkout.iterdir()) == ["hack", "testbed"]
    assert (cache / "store/kept").exists()


def test_packages_that_could_not_be_installed_are_installed_the_next_time(tmp_path):
    """A virtual environment counts only when its packages are in it."""
    python = tmp_path / "python"
    # Its virtual environments can take no packages.
    python.write_text('#!/bin/sh\n[ "$1" = -m ] || exit 0\nmkdir -p "$3/bin"\nln -s /bin/false "$3/bin/python"\n')
    python.chmod(0o755)
    command = f'. {ROOT}/hack/lib.sh; where=$(venv_for {python}); echo "then $where"'
    environment = os.environ | {"IPU_FABRIC_CACHE": str(tmp_path / "cache")}
    for _run in range(2):
        done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert "then" not in done.stdout
        assert "setup: Python packages" in done.stderr


@pytest.mark.parametrize(
    ("running", "waiting", "starts"),
    [
        ([], "e2e", True),
        (["mypy"], "ruff", True),
        (["mypy"], "e2e", False),
        (["e2e"], "e2e-fabric", False),
        (["e2e-control-planes"], "e2e-lifecycle", True),
        (["e2e-fabric"], "e2e-rdma", False),
    ],
)
def test_what_runs_beside_what(run_tests, running, waiting, starts):
    """A suite with a cluster has the machine for itself, unless both are among those that can wait."""
    suites = {suite.name: suite for suite in run_tests.SUITES}
    queue = run_tests.Queue([suites[waiting]])
    queue.running = {name: argparse.Namespace(suite=suites[name]) for name in running}
    assert (queue.next() is not None) == starts


def test_suites_without_deadlines_run_beside_a_cluster_in_spare_time(run_tests, tmp_path):
    suites = {suite.name: suite for suite in run_tests.SUITES}
    chosen = [suites[name] for name in ("sanity", "e2e", "unit-3.11", "integration")]
    queue = run_tests.Queue(chosen, tmp_path)
    order = []
    while len(order) < 3:  # integration waits for the end of e2e
        suite = queue.next()
        queue.waiting.remove(suite)
        order.append(suite.name)
        if suite.name != "unit-3.11":  # that one has ended
            queue.running[suite.name] = argparse.Namespace(suite=suite)
    assert order == ["unit-3.11", "e2e", "sanity"]
    assert queue.next() is None
    # Without a cluster in the run, or where no such group can be made, nothing has to make room.
    assert run_tests.Queue([suites["sanity"]], tmp_path).spare_group is None
    queue = run_tests.Queue(chosen)
    queue.running = {"e2e": argparse.Namespace(suite=suites["e2e"])}
    assert queue.next() is None


def test_a_suite_in_spare_time_joins_its_group(run_tests, tmp_path, monkeypatch):
    monkeypatch.setattr(run_tests, "LOGS", tmp_path)
    (tmp_path / "group").mkdir()
    for spare in (True, False):
        suite = run_tests.Suite(f"s-{spare}", "echo $$", "lint", spare=spare)
        run_tests.Run(suite, tmp_path / "group").process.wait(timeout=60)
    assert (tmp_path / "group/cgroup.procs").read_text() == (tmp_path / "s-True.log").read_text()


def test_testbeds_that_run_together_are_not_the_same(run_tests):
    numbers = [suite.cluster for suite in run_tests.SUITES if suite.patient]
    assert sorted(set(numbers)) == sorted(numbers)


def test_the_site_has_each_page_as_markdown_and_a_list_of_them(tmp_path):
    source, site = tmp_path / "source", tmp_path / "html"
    (source / "docs/examples").mkdir(parents=True)
    shutil.copy(ROOT / "hack/site/conf.py", source)
    (source / "index.md").write_text(
        "# ipu.fabric\n\nFrom bare hosts\nto a proof.\n\n```{toctree}\n:caption: Guides\n:maxdepth: 1\n\ndocs/a\n```\n"
    )
    (source / "docs/a.md").write_text(
        "# A page\n\nWhat it is about. More.\n\n[role](../roles/memlock/README.md#x), [b](b.md), [code](../site.yml)\n"
    )
    (source / "docs/b.md").write_text("# Another\n")
    (source / "docs/examples/README.md").write_text("# No page\n")
    subprocess.run([sys.executable, ROOT / "hack/site/markdown.py", source, site], check=True)
    listed = (site / "llms.txt").read_text()
    assert "> From bare hosts to a proof.\n\n## Guides\n\n- [A page](docs/a.md): What it is about.\n" in listed
    assert "- [ipu.fabric.memlock](reference/memlock_role.md): Let containers lock memory.\n" in listed
    pages = set(re.findall(r"\]\(([\w/.-]+)\)", listed))
    assert pages >= {f"reference/{name}.md" for name in ("node_labels_module", "mpi_job_filter")}
    assert {page for page in pages if not (site / page).is_file()} == set()
    assert not (site / "docs/examples").exists()
    page = (site / "docs/a.md").read_text()
    checkout = "https://github.com/ipu-fabric/ipu.fabric/blob/main"
    assert f"[role](../reference/memlock_role.md#x), [b](b.md), [code]({checkout}/site.yml)" in page

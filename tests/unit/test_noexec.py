"""Hosts whose temporary directories are mounted with noexec: no program is ever run from one."""

from __future__ import annotations

import ast
import os
import re
import stat
import sys
import types
import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._kube import helm
from ansible_collections.ipu.fabric.tests.unit.fixtures.module import Module
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

TASKS = [path for folder in ("roles", "playbooks") for path in sorted((ROOT / folder).rglob("*.y*ml"))]
TEMPLATES = sorted(path for path in (ROOT / "roles").rglob("*") if "templates" in path.parts and path.is_file())
PLUGINS = sorted((ROOT / "plugins").rglob("*.py"))
TEMPORARY = re.compile(r"(?<![\w.-])/(?:var/)?tmp\b|\bTMPDIR\b")
# The first copies a program to the temporary directory of Ansible and runs it there. Scratch directories have data.
RUNS = re.compile(r"^\s*(?:- )?(?:ansible\.builtin\.)?(?:script:|(?:command|shell|cmd|argv):.*scratch)", re.MULTILINE)
# Calls that make a file, or say which mode it has.
MAKE_FILES = ("open", "write_file", "fchmod", "mkstemp")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [*TASKS, *TEMPLATES], ids=name_of)
def test_roles_run_nothing_from_a_temporary_directory(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert TEMPORARY.findall(text) == []
    assert RUNS.findall(text) == []


def executables(tree: ast.AST) -> t.Iterator[int]:
    """Lines that make a file that can be executed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in MAKE_FILES:
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
            modes = [each.value for each in values if isinstance(each, ast.Constant) and isinstance(each.value, int)]
            yield from (node.lineno for mode in modes if 0o100 <= mode <= 0o777 and mode & 0o111)


@pytest.mark.parametrize("path", PLUGINS, ids=name_of)
def test_code_runs_nothing_from_a_temporary_directory(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert [text for text in texts if TEMPORARY.search(text)] == []
    if "tempfile" in {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}:
        assert list(executables(tree)) == []


def test_such_files_would_be_found() -> None:
    assert list(executables(ast.parse("os.makedirs(path, 0o700)\nos.open(path, os.O_CREAT, 0o700)"))) == [2]
    assert TEMPORARY.search("command: /tmp/install.sh")
    assert not TEMPORARY.search("/etc/kubernetes/tmp and ~/.ansible/tmp")
    assert RUNS.search("- name: x\n  ansible.builtin.script: x.sh")
    assert RUNS.search("  ansible.builtin.command: '{{ __x_scratch.path }}/helm version'")


def test_helm_gets_nothing_to_run_from_its_scratch_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its post-renderer is ours, and was a script there."""
    calls: t.List[t.Sequence[str]] = []
    modes: t.List[int] = []

    def run_program(argv: t.Sequence[str], _limit: float, **_options: t.Any) -> Done:
        calls.append(argv)
        scratch = os.path.dirname(argv[argv.index("--post-renderer-args") + 1])
        modes.extend(stat.S_IMODE(entry.stat().st_mode) for entry in os.scandir(scratch) if entry.is_file())
        return Done(0)

    monkeypatch.setattr(helm, "run_program", run_program)
    module = Module(
        binary="helm", kubeconfig="/nowhere", name="x", namespace="x", chart_version="1", values={}, images={"a": "b"},
        image_digests={}, tolerations=[], timeout=1, take_ownership=False,
    )  # fmt: skip
    with helm.Helm(t.cast(t.Any, module), t.cast(t.Any, types.SimpleNamespace())) as program:
        program.upgrade("chart", "render")
    assert {mode & 0o111 for mode in modes} == {0}
    (argv,) = calls
    assert argv[argv.index("--post-renderer") + 1] == sys.executable

"""The action that writes an archive: not one with a secret in it, and for its owner alone."""

from __future__ import annotations

import json
import types
import typing as t
from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible_collections.ipu.fabric.plugins.action import support_archive
from ansible_collections.ipu.fabric.plugins.module_utils._support import contents
from ansible_collections.ipu.fabric.plugins.plugin_utils import _collection

TOKEN = "abcdef.0123456789abcdef"
CLUSTER = {"cluster": {"objects": {"Pod": []}, "logs": {"a/b/c": f"join --token {TOKEN}"}, "gaps": []}}


def run(folder: Path, check: bool = False) -> t.Dict[str, t.Any]:
    options = {"artifacts_dir": str(folder), "cluster": CLUSTER, "journals": {}}
    task = types.SimpleNamespace(
        args=options, check_mode=check, async_val=0, action="ipu.fabric.support_archive", diff=True
    )
    nobody: t.Any = None
    connection: t.Any = types.SimpleNamespace(_shell=types.SimpleNamespace(tmpdir=""))
    return support_archive.ActionModule(task, connection, nobody, DataLoader(), nobody, nobody).run(task_vars={})


def test_it_is_for_its_owner_alone(tmp_path: Path) -> None:
    result = run(tmp_path / "new")
    (path,) = (tmp_path / "new").iterdir()
    assert (result["changed"], result["path"], path.stat().st_mode & 0o777) == (True, str(path), 0o600)
    assert [gap["what"] for gap in result["gaps"]] == list(contents.ARTIFACTS)
    assert result["diff"]["after"] == "about.json\ncluster/objects.json\ncluster/logs/a/b/c.log\n"


@pytest.mark.parametrize("check", [True, False])
def test_a_redaction_that_fails_leaves_no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: bool) -> None:
    monkeypatch.setattr(contents, "redact", lambda value: value)
    result = run(tmp_path, check)
    assert result["failed"]
    assert result["error"]["code"] == "unsafe"
    assert result["error"]["seen"] == "a bootstrap token in cluster/logs/a/b/c.log"
    assert TOKEN not in json.dumps(result)
    assert list(tmp_path.iterdir()) == []


def test_check_mode_writes_nothing(tmp_path: Path) -> None:
    result = run(tmp_path / "new", check=True)
    assert result["changed"]
    assert not (tmp_path / "new").exists()


def test_the_version_of_an_installed_collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _collection.collection_version()
    (tmp_path / "MANIFEST.json").write_text('{"collection_info": {"version": "9.8.7"}}')
    monkeypatch.setattr(_collection, "COLLECTION", tmp_path)
    assert support_archive.versions()["ipu.fabric"] == "9.8.7"

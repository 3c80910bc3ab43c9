# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A secret in every input that may have one: no output, not even with -vvv --diff, and no file of a run has it."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play
from ansible_collections.ipu.fabric.tests.unit.playbooks.test_api import GROUPS, answers

MARKER = "planted-4711"
ENCODED = base64.b64encode(f"me:{MARKER}".encode()).decode()
ENV = [{"name": "PLAIN", "value": MARKER}]
VALUES = {"deep": [{"plain": MARKER}]}
POD = {"containers": [{"name": "a", "image": "a", "env": ENV}]}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "a", "namespace": "default"},
    "spec": {"template": {"spec": POD}},
}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"plain": MARKER}}
HERE = {"hosts": "localhost", "gather_facts": False, "connection": "local"}


def assert_kept(text, folder):
    """Neither the output nor a file that the run has left has it."""
    written = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()} if folder.exists() else {}
    for word in (MARKER, ENCODED):
        assert word not in text, text[max(0, text.index(word) - 2000) : text.index(word) + 200]
        assert [name for name, content in written.items() if word.encode() in content] == []


@pytest.mark.parametrize("playbook", ["ipu.fabric.plan ipu.fabric.kubernetes", "ipu.fabric.plan ipu.fabric.fabric"])
def test_a_site_keeps_its_secrets(tmp_path, playbook):
    found = answers()
    nodes = {
        "name": "cp1",
        "membership": "none",
        "seen": "",
        "images": [],
        "distribution": "debian",
        "release": "trixie",
    }
    found["kubernetes_node_info"] = {"*": {"node": {**nodes, "address": "10.88.0.11", "kubeconfig_sha256": ""}}}
    found["apt_packages"] = {"*": {"versions": {"containerd.io": "2.2.1"}}}
    found["systemd_units"] = {"*": {"stale": [], "restarted": []}}
    secrets = {
        "fabric_registry_auth": {"username": "me", "password": MARKER},
        "network_operator_values": VALUES,
        "ipu_operator_values": VALUES,
        "kubernetes_containerd_config": {"plugins": {"a": {"password": MARKER}}},
    }
    given = {"fabric_probe_ports": False, "fabric_cni": "none", "fabric_mirror": {"registry": "mirror.site:5000"}}
    done = play(tmp_path, playbook, GROUPS, found, "--check", "--diff", "-vvv", **given, **secrets)
    assert "fabric_plan" in done.text
    assert {call.module for call in done.calls} & {"helm_release", "systemd_units"}, done.text
    assert_kept(done.text, tmp_path / "artifacts")


def test_the_file_with_the_login_is_for_root_alone(tmp_path):
    done = play(
        tmp_path,
        [{**HERE, "roles": [{"role": "ipu.fabric.helm", "when": False}], "tasks": [
            {"ansible.builtin.include_vars": {"file": str(ROOT / "roles/kubernetes/defaults/main.yml")}},
            {"ansible.builtin.include_vars": {"file": str(ROOT / "roles/kubernetes/vars/main.yml")}},
            {"ipu.fabric.systemd_units": {"files": "{{ _kubernetes_mirror_files }}"}},
        ]}],
        {"all": []},
        {},
        kubernetes_registry_mirror="https://mirror.site",
        kubernetes_registry_auth={"username": "me", "password": MARKER},
    )  # fmt: skip
    [call] = [call for call in done.calls if call.module == "systemd_units"]
    [file] = call.options["files"]
    assert file["mode"] == "0600"
    assert f'authorization = "Basic {ENCODED}"' in file["content"]


@pytest.mark.parametrize(
    "task",
    [
        {"ipu.fabric.systemd_units": {"files": [
            {"path": "{{ folder }}/hosts.toml", "mode": "0600", "content": f'authorization = "Basic {ENCODED}"\n'}
        ]}},
        {"ipu.fabric.kube_apply": {"kubeconfig": "{{ folder }}/none", "objects": [DEPLOYMENT, SECRET]}},
        {"ipu.fabric.helm_release": {
            "kubeconfig": "{{ folder }}/none", "name": "a", "namespace": "a", "chart": "a", "chart_version": "1.0.0",
            "values": VALUES,
        }},
        {"ipu.fabric.ipujob": {
            "kubeconfig": "{{ folder }}/none", "name": "a", "namespace": "a",
            "launcher": {"command": ["a"], "env": ENV},
            "workers": {"template": {"spec": POD}}, "ipus_per_job_instance": 1,
        }},
    ],
    ids=lambda task: next(iter(task)),
)  # fmt: skip
def test_a_module_keeps_them(tmp_path, task):
    """The real ones, which may fail for want of a cluster: what they say has no secret either."""
    source = tmp_path / "play.json"
    source.write_text(json.dumps([{**HERE, "tasks": [task]}]), encoding="utf-8")
    program = [sys.executable, "-m", "ansible", "playbook", "-vvv", "--diff", "-i", "localhost,", str(source)]
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections"),
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "ANSIBLE_LOG_PATH": str(tmp_path / "log/ansible.log"),
        "ANSIBLE_LOCAL_TEMP": str(tmp_path / "tmp"),
        "ANSIBLE_REMOTE_TEMP": str(tmp_path / "tmp"),
    }
    (tmp_path / "log").mkdir()
    done = subprocess.run(
        [*program, "-e", f"folder={tmp_path}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert "module_args" in done.stdout or "invocation" in done.stdout, done.stdout + done.stderr
    assert_kept(done.stdout + done.stderr, tmp_path / "log")


def test_a_workload_keeps_its_environment(tmp_path):
    """The role hands its objects to kube_apply, and shows none of them."""
    tasks = [{"ansible.builtin.import_role": {"name": "ipu.fabric.native_workload"}}]
    secrets = {"native_workload_env": {"PLAIN": MARKER}, "native_workload_name": "a", "native_workload_image": "a"}
    done = play(tmp_path, [{**HERE, "tasks": tasks}], {"all": []}, {}, "-vvv", "--diff", **secrets)
    [call] = [call for call in done.calls if call.module == "kube_apply"]
    assert MARKER in json.dumps(call.options["objects"])
    assert_kept(done.text, tmp_path / "artifacts")

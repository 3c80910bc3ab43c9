# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import fcntl
import json
import os

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import bootstrap, membership
from ansible_collections.ipu.fabric.tests.unit.fixtures import module as fake

DISCOVERY = {"endpoint": "192.0.2.1:6443", "token": "abcdef.0123", "ca_hashes": ["sha256:12"], "certificate_key": "key"}
JOIN = {"kind": "JoinConfiguration", "nodeRegistration": {"name": "w1"}}


def test_discovery_of_a_worker():
    (document,) = bootstrap.with_discovery([JOIN], DISCOVERY)
    assert document["discovery"]["bootstrapToken"] == {
        "token": "abcdef.0123",
        "apiServerEndpoint": "192.0.2.1:6443",
        "caCertHashes": ["sha256:12"],
    }
    assert "controlPlane" not in document
    assert "discovery" not in JOIN


def test_discovery_of_a_control_plane():
    local = {"localAPIEndpoint": {"advertiseAddress": "192.0.2.2"}}
    documents = [{"kind": "Other"}, {**JOIN, "controlPlane": local}]
    other, document = bootstrap.with_discovery(documents, DISCOVERY)
    assert other == {"kind": "Other"}
    assert document["controlPlane"] == {**local, "certificateKey": "key"}


def test_documents_without_discovery_stay():
    assert bootstrap.with_discovery([JOIN], None) == [JOIN]


def test_to_documents():
    texts = bootstrap.to_documents([{"a": 1}, {"b": "x: y"}]).split("\n---\n")
    assert [json.loads(text) for text in texts] == [{"a": 1}, {"b": "x: y"}]


def test_parse_join_command():
    line = "kubeadm join 192.0.2.1:6443 --token abcdef.0123 --discovery-token-ca-cert-hash sha256:12 \n"
    assert bootstrap.parse_join_command(line) == {k: v for k, v in DISCOVERY.items() if k != "certificate_key"}
    with pytest.raises(FabricError) as caught:
        bootstrap.parse_join_command("kubeadm join 192.0.2.1:6443 --token abcdef.0123")
    assert "abcdef" not in str(caught.value)


def found(membership, complete=False):
    return {"membership": membership, "complete": complete}


@pytest.mark.parametrize(
    ("state", "action", "api", "expected"),
    [
        (found("none"), "init", False, "start"),
        (found("none"), "join", False, "start"),
        (found("member", True), "init", True, "nothing"),
        (found("member", True), "join", False, "nothing"),
        (found("unfinished"), "init", False, "restart"),
        (found("unfinished"), "init", True, "continue"),
        (found("unfinished", True), "init", True, "continue"),
        (found("unfinished"), "join", False, "restart"),
        (found("unfinished"), "join", True, "restart"),
        (found("unfinished", True), "join", False, "settle"),
    ],
)
def test_next_action(state, action, api, expected):
    assert bootstrap.next_action(state, action, api) == expected


def test_important_leaves_out_progress():
    text = """\
[certs] Generating "ca" certificate and key
[control-plane-check] kube-scheduler is healthy after 17s
[control-plane-check] kube-apiserver is not healthy after 4m0s

error: port 6443 is in use
\t[ERROR Port-6443]: Port 6443 is in use
"""
    assert bootstrap.important(text).splitlines() == [
        "[control-plane-check] kube-apiserver is not healthy after 4m0s",
        "error: port 6443 is in use",
        "\t[ERROR Port-6443]: Port 6443 is in use",
    ]


class Module(fake.Module):
    """A host with a kubeadm that writes down how it was called."""

    def __init__(self, state="init", code=0, **options):
        options = {
            "node_name": "n1",
            "control_plane": state == "init",
            "documents": [{"kind": "InitConfiguration"}],
            "discovery": DISCOVERY if state == "join" else None,
            "images": [],
            "lock_timeout": 0,
            **options,
        }
        super().__init__(state=state, **options)
        self.code, self.calls, self.marked = code, [], []

    def run_command(self, argv, **_options):
        words = [word for word in argv[1:] if not word.startswith("--config")]
        self.calls.append(" ".join([os.path.basename(argv[0]), *words]))
        self.marked.append(os.path.exists(bootstrap.MARKER))
        code = self.code if words[0] in ("init", "join") and "phase" not in words else 0
        return code, "", "it went wrong"


@pytest.fixture
def host(tmp_path, monkeypatch):
    """Paths of a host under a directory, and what is found on it."""
    for name in ("ADMIN", "KUBELET", "LOCK", "MARKER", "CONFIG"):
        monkeypatch.setattr(bootstrap, name, str(tmp_path / name.lower()))
    monkeypatch.setattr(bootstrap.time, "sleep", lambda seconds: None)
    clock = iter(range(0, 100000, 10))
    monkeypatch.setattr(bootstrap.time, "monotonic", lambda: next(clock))
    state = {"membership": "none", "registered": False, "is_control_plane": False, "seen": "", "api": False}

    def inspect(module, name, control_plane, unfinished):
        return {**state, "membership": "unfinished" if unfinished else state["membership"]}

    monkeypatch.setattr(bootstrap, "inspect", inspect)
    monkeypatch.setattr(bootstrap, "api_ready", lambda module: state["api"])
    state["path"] = tmp_path
    return state


INIT = ["kubeadm config validate", "kubeadm init phase preflight", "kubeadm init --skip-phases=preflight"]


def test_a_bare_host(host):
    module = Module()
    result = bootstrap.run(module)
    assert (result["changed"], result["action"]) == (True, "start")
    assert module.calls == INIT
    # A preflight that fails leaves no mark: nothing was changed yet.
    assert module.marked == [False, False, True]
    assert {entry.name for entry in host["path"].iterdir()} == {"lock"}


def test_a_member_is_left_alone(host):
    host.update(membership="member", registered=True, is_control_plane=True, api=True)
    module = Module()
    result = bootstrap.run(module)
    assert (result["changed"], result["action"], module.calls) == (False, "nothing", [])


def test_a_broken_host_is_left_alone(host):
    host.update(membership="broken", seen="there is a kubelet.conf")
    module = Module()
    with pytest.raises(FabricError, match="there is a kubelet"):
        bootstrap.run(module)
    assert module.calls == []


def test_an_init_that_was_cut_off_early_starts_over(host):
    (host["path"] / "marker").touch()
    module = Module()
    assert bootstrap.run(module)["action"] == "restart"
    assert module.calls == [INIT[0], "kubeadm reset --force", *INIT[1:]]
    assert not (host["path"] / "marker").exists()


def test_an_init_whose_api_answers_goes_on(host):
    host["api"] = True
    (host["path"] / "marker").touch()
    module = Module()
    assert bootstrap.run(module)["action"] == "continue"
    assert module.calls == [INIT[0], INIT[2]]


def test_an_init_that_came_to_its_end_is_never_reset(host):
    (host["path"] / "marker").touch()
    (host["path"] / "kubelet").write_text(f"client-certificate: /var/lib/kubelet/pki/{bootstrap.ROTATED}")
    module = Module()
    with pytest.raises(FabricError, match="its API server does not answer"):
        bootstrap.run(module)
    assert module.calls == []
    assert (host["path"] / "marker").exists()


def test_a_join_that_only_kept_its_mark(host):
    host["registered"] = True
    (host["path"] / "marker").touch()
    module = Module(state="join")
    result = bootstrap.run(module)
    assert (result["action"], module.calls) == ("settle", [])
    assert not (host["path"] / "marker").exists()


def test_a_half_joined_control_plane_is_taken_out_first(host):
    host["registered"] = True
    (host["path"] / "marker").touch()
    (host["path"] / "admin").touch()
    module = Module(state="join", control_plane=True)
    assert bootstrap.run(module)["action"] == "restart"
    assert [call.split(" --request")[0] for call in module.calls[:3]] == [
        "kubeadm config validate",
        f"kubectl --kubeconfig {bootstrap.ADMIN}",
        "kubeadm reset --force",
    ]
    assert module.calls[1].endswith("delete node n1")


def test_a_failure_leaves_the_mark_but_no_token(host):
    module = Module(state="join", code=1)
    with pytest.raises(FabricError, match="kubeadm join failed") as caught:
        bootstrap.run(module)
    assert "it went wrong" in caught.value.seen
    assert {entry.name for entry in host["path"].iterdir()} == {"lock", "marker"}


def test_check_mode_touches_nothing(host):
    module = Module(check_mode=True)
    result = bootstrap.run(module)
    assert (result["changed"], module.calls) == (True, [])
    assert not list(host["path"].iterdir())


def test_config_file_is_for_root_only(host):
    with bootstrap.config_file([JOIN]) as path:
        assert os.stat(path).st_mode & 0o777 == 0o600
    assert not os.path.exists(path)


def test_another_kubeadm_is_waited_for_and_then_named(host):
    with open(bootstrap.LOCK, "a") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(FabricError, match="Another kubeadm"):
            bootstrap.run(Module())


def test_token(host):
    host["api"] = True
    line = "kubeadm join 192.0.2.1:6443 --token abcdef.0123 --discovery-token-ca-cert-hash sha256:12\n"

    class Printing(Module):
        def run_command(self, argv, **options):
            super().run_command(argv, **options)
            return 0, line if "token" in argv else "", ""

    module = Printing(ttl="30m0s", certificates=True, version="1.35.4")
    discovery = bootstrap.make_discovery(module)["discovery"]
    assert discovery["endpoint"] == "192.0.2.1:6443"
    assert len(discovery["certificate_key"]) == 64
    # The key is in no argument, where every user of the host could read it.
    assert not any(discovery["certificate_key"] in call for call in module.calls)


def test_no_token_without_an_api(host):
    with pytest.raises(FabricError, match="No token can be made"):
        bootstrap.make_discovery(Module(ttl="30m0s", certificates=False, version="1.35.4"))


def test_no_token_in_check_mode(host):
    result = bootstrap.make_discovery(Module(check_mode=True, ttl="30m0s", certificates=True, version="1.35.4"))
    assert result["discovery"]["token"] == ""


def test_the_mark_is_where_the_observer_looks():
    assert (bootstrap.MARKER, bootstrap.LOCK) == (membership.MARKER, membership.LOCK)


class Job:
    def __init__(self, argv, **_options):
        self.returncode = 1 if "missing" in argv[-1] else 0

    def communicate(self):
        return "", "not found"


def test_images_that_are_there_are_not_pulled(monkeypatch):
    monkeypatch.setattr(bootstrap.subprocess, "Popen", Job)

    listed = 0, "pause:3.10.1\n", ""
    options = {"state": "images", "node_name": "n1", "lock_timeout": 0}
    module = fake.Module(listed, images=["pause:3.10.1", "kube-proxy:v1", "missing:v1"], **options)
    result = bootstrap.run(module)
    assert result["changed"]
    assert result["diff"]["after"] == {"images": ["kube-proxy:v1", "pause:3.10.1"]}
    assert module.warnings == ["Could not pull missing:v1 yet: not found"]
    assert not bootstrap.run(fake.Module(listed, images=["pause:3.10.1"], **options))["changed"]

"""A host of files, with a kubeadm that writes down how it was called."""

import os

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host import kubectl
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import bootstrap, paths, program, tokens
from ansible_collections.ipu.fabric.plugins.modules import kubeadm
from ansible_collections.ipu.fabric.tests.unit.fixtures import module as fake

DISCOVERY = {"endpoint": "192.0.2.1:6443", "token": "abcdef.0123", "ca_hashes": ["sha256:12"], "certificate_key": "key"}


class Module(fake.Module):
    """An AnsibleModule whose programs succeed, but for kubeadm init and join, which end with `code`."""

    def __init__(self, command="init", check_mode=False, code=0, printed=None, **params):
        options = {
            "node_name": "n1",
            "control_plane": command == "init",
            "documents": [{"kind": "InitConfiguration"}],
            "discovery": DISCOVERY if command == "join" else None,
            "images": [],
            "runtime": "containerd",
            "ttl": "30m0s",
            "state": "present",
            "certificates": False,
            "version": "1.35.4",
            "lock_timeout": 0,
            "timeout": 60,
            **params,
        }
        super().__init__(check_mode=check_mode, command=command, **options)
        self.code, self.printed, self.calls, self.marked = code, printed or {}, [], []

    def run_command(self, argv, **_options):
        words = [word for word in argv[1:] if not word.startswith("--config")]
        self.calls.append(" ".join([os.path.basename(argv[0]), *words]))
        self.marked.append(os.path.exists(paths.MARKER))
        code = self.code if words[0] in ("init", "join") and "phase" not in words else 0
        return code, self.printed.get(words[0], ""), "it went wrong"

    def apply(self):
        """What the module kubeadm does with these options."""
        return kubeadm.COMMANDS[self.params["command"]](self)


@pytest.fixture
def make_module(monkeypatch):
    def make(*words, **params):
        module = Module(*words, **params)
        for user in (kubectl, program):
            monkeypatch.setattr(user, "run_program", module.run_program)
        return module

    return make


@pytest.fixture
def host(tmp_path, monkeypatch):
    """Paths of a host under a directory, and what is found on it."""
    for name in ("ADMIN", "KUBELET", "ETCD", "LOCK", "MARKER", "CONFIG", "RESTORING"):
        monkeypatch.setattr(paths, name, str(tmp_path / name.lower()))
    monkeypatch.setattr(bootstrap.time, "sleep", lambda seconds: None)
    clock = iter(range(0, 100000, 10))
    monkeypatch.setattr(bootstrap.time, "monotonic", lambda: next(clock))
    state = {
        "membership": "none",
        "seen": "",
        "next_step": "",
        "answered": False,
        "registered": False,
        "is_control_plane": False,
        "api": False,
    }

    def inspect_host(name, control_plane, unfinished):
        return {**state, "membership": "unfinished" if unfinished else state["membership"]}

    monkeypatch.setattr(bootstrap, "inspect_host", inspect_host)
    for user in (bootstrap, tokens):
        monkeypatch.setattr(user, "is_api_ready", lambda: state["api"])
    state["path"] = tmp_path
    return state

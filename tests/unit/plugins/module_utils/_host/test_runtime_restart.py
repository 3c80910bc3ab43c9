"""Restarts of container runtimes, and what is waited for after them."""

import functools
import itertools
import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import (
    cri,
    distributions,
    kubectl,
    runtime_restart,
    systemd,
)
from ansible_collections.ipu.fabric.tests.unit.fixtures import module as fake
from ansible_collections.ipu.fabric.tests.unit.fixtures.rancher import make_node

Module = functools.partial(fake.Module, node_name="w1", timeout=60)


def pod(name, ready, namespace="default"):
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {"metadata": {"namespace": namespace, "name": name}, "status": {"conditions": conditions}}


def test_ready_pods():
    pods = {
        "items": [
            pod("a", True),
            pod("b", False),
            pod("c", True, "other"),
            {"metadata": {"namespace": "x", "name": "d"}},
        ]
    }
    assert runtime_restart.ready_pods(pods) == {"default/a", "other/c"}


def test_pods_that_do_not_come_back_are_named(monkeypatch):
    monkeypatch.setattr(
        runtime_restart, "node_pods", lambda module: runtime_restart.NodePods({"default/a", "default/b"}, {"default/b"})
    )
    monkeypatch.setattr(runtime_restart.time, "sleep", lambda seconds: None)
    with pytest.raises(FabricError) as caught:
        runtime_restart.wait_for_pods(Module(timeout=-1), {"default/a", "default/b", "default/gone"})
    assert caught.value.seen == "not ready: default/a"


def test_pods_that_are_back(monkeypatch):
    pods = {"default/a"}
    answers = iter([None, runtime_restart.NodePods(pods, set()), runtime_restart.NodePods(pods, pods)])
    waits = []
    monkeypatch.setattr(runtime_restart, "node_pods", lambda module: next(answers))
    monkeypatch.setattr(runtime_restart.time, "sleep", waits.append)
    runtime_restart.wait_for_pods(Module(timeout=60), {"default/a", "default/gone"})
    assert len(waits) == 2  # no answer, then not ready
    assert next(answers, "all asked for") == "all asked for"


@pytest.fixture
def programs(monkeypatch):
    """Every program that is run by its name, and how the next ones end; without more of them, well."""
    run, ends = [], []

    def answer(argv, seconds, **_options):
        assert seconds > 0
        run.append(list(argv))
        return ends.pop(0) if ends else Done(0)

    monkeypatch.setattr(runtime_restart, "run_program", answer)
    monkeypatch.setattr(kubectl, "run_program", answer)
    monkeypatch.setattr(systemd, "run_program", lambda argv, seconds: Done(0))
    monkeypatch.setattr(cri, "silence", lambda unit: cri.Silence("nobody is there", False))
    monkeypatch.setattr(runtime_restart, "node_pods", lambda module: None)
    monkeypatch.setattr(runtime_restart.time, "sleep", lambda seconds: None)
    return run, ends


def restart(module, *names):
    runtime_restart.restart_runtimes(module, {name: {} for name in names}, names)


def on(monkeypatch, tmp_path, name, **more):
    make_node(tmp_path, name, **more)
    found = distributions.find_distribution(str(tmp_path))
    monkeypatch.setattr(runtime_restart, "find_distribution", lambda: found)


def test_a_server_is_left_when_its_api_server_is_ready(monkeypatch, tmp_path, programs):
    on(monkeypatch, tmp_path, "k3s", server=True)
    run, ends = programs
    ends += [Done(0), Done(1, "", "the connection was refused"), Done(0, "ok")]
    module = Module()
    restart(module, "k3s")
    ready = ["k3s", "kubectl", "--kubeconfig", "/etc/rancher/k3s/k3s.yaml", "--request-timeout", "10s"]
    assert run == [["systemctl", "restart", "k3s.service"], *[[*ready, "get", "--raw", "/readyz"]] * 2]
    assert module.commands == []


def test_an_api_server_that_does_not_come_back_ends_it(monkeypatch, tmp_path, programs):
    on(monkeypatch, tmp_path, "rke2", server=True)
    run, ends = programs
    ends += [Done(0), *[Done(1, "", "etcd has no leader")] * 3]
    clock = itertools.count()
    monkeypatch.setattr(runtime_restart.time, "monotonic", lambda: next(clock))
    with pytest.raises(FabricError) as caught:
        restart(Module(timeout=1), "rke2-server")
    assert caught.value.seen == "etcd has no leader"
    assert "journalctl -u rke2-server" in caught.value.next_step
    assert run[-1][0] == f"{tmp_path}/var/lib/rancher/rke2/bin/kubectl"


def test_other_nodes_have_no_api_to_wait_for(monkeypatch, tmp_path, programs):
    on(monkeypatch, tmp_path, "k3s", server=False)
    restart(Module(), "k3s-agent")
    assert programs[0] == [["systemctl", "restart", "k3s-agent.service"]]


@pytest.mark.parametrize(("rc", "what"), [(None, "was not ready 60 s after its restart"), (1, "did not start again")])
def test_a_service_that_does_not_start_is_not_waited_for_without_an_end(programs, rc, what):
    """The units of k3s and RKE2 have no time-out of their own."""
    _run, ends = programs
    ends += [Done(rc, "", "Job failed."), Done(0, "token is not valid\n")]
    with pytest.raises(FabricError, match=what) as caught:
        restart(Module(), "k3s-agent")
    assert caught.value.seen == "Job failed.\ntoken is not valid"


def test_k3s_that_does_not_start_gets_its_former_files(tmp_path, monkeypatch, programs):
    run, ends = programs
    monkeypatch.setattr(systemd, "FORMER", str(tmp_path / "{}.json"))
    template = tmp_path / "config-v3.toml.tmpl"
    systemd.keep_former(Module(), "k3s-agent", {str(template): None})
    template.write_text("bad")
    ends += [Done(None), Done(0, "table defined twice\n"), Done(0)]
    with pytest.raises(FabricError, match="k3s-agent does not work with its new settings") as caught:
        restart(Module(), "k3s-agent")
    assert [argv for argv in run if argv[0] == "systemctl"] == [["systemctl", "restart", "k3s-agent.service"]] * 2
    assert "table defined twice" in caught.value.seen
    assert (str(template) in caught.value.where, list(tmp_path.iterdir())) == (True, [])


@pytest.mark.parametrize(
    ("name", "command", "config"),
    [
        ("kubeadm", ["kubectl"], "/etc/kubernetes/kubelet.conf"),
        ("k3s", ["k3s", "kubectl"], "/var/lib/rancher/k3s/agent/kubelet.kubeconfig"),
    ],
)
def test_pods_are_read_as_the_kubelet_of_the_host(monkeypatch, name, command, config):
    found = distributions.DISTRIBUTIONS[name]
    kubelet = (found.kubelet.replace("{data}", found.data), list(found.kubectl))
    monkeypatch.setattr(runtime_restart, "kubelet_kubectl", lambda: kubelet)
    module = Module((0, json.dumps({"items": [pod("a", True), pod("b", False)]}), ""))
    monkeypatch.setattr(kubectl, "run_program", module.run_program)
    assert runtime_restart.node_pods(module) == ({"default/a", "default/b"}, {"default/a"})
    [argv] = module.commands
    assert (argv[: len(command)], argv[len(command) + 1]) == (command, config)
    assert argv[-1] == "spec.nodeName=w1"

"""kubeadm init and join: run once, and again after any interruption."""

import fcntl

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import files
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import bootstrap, paths
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.init import ROTATED, Init
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.join import Join

NEXT_ACTION = {"init": Init.next_action, "join": Join.next_action}


def found(membership, complete=False, answered=True, may_be_member=False):
    return {"membership": membership, "complete": complete, "answered": answered, "may_be_member": may_be_member}


@pytest.mark.parametrize(
    ("state", "action", "api", "expected"),
    [
        (found("none"), "init", False, "start"),
        (found("none"), "join", False, "start"),
        (found("member", True), "init", True, "nothing"),
        (found("member", True), "join", False, "nothing"),
        (found("unfinished"), "init", False, "restart"),
        (found("unfinished", may_be_member=True), "init", False, "refuse"),
        (found("unfinished", may_be_member=True), "init", True, "continue"),
        (found("unfinished"), "init", True, "continue"),
        (found("unfinished", True), "init", True, "continue"),
        (found("unfinished"), "join", False, "restart"),
        (found("unfinished"), "join", True, "restart"),
        (found("unfinished", True), "join", False, "settle"),
        # The cluster has no such node, or it gave no answer.
        (found("unfinished", answered=True, may_be_member=True), "join", True, "restart"),
        (found("unfinished", answered=False, may_be_member=True), "join", False, "refuse"),
        (found("unfinished", answered=False, may_be_member=False), "join", False, "restart"),
    ],
)
def test_next_action(state, action, api, expected):
    assert NEXT_ACTION[action](state, api) == expected


def test_a_full_disk_leaves_the_marker_as_it_is(host, make_module, monkeypatch):
    """An empty one would say nothing of what was interrupted."""

    def fail(*_args):
        raise OSError(28, "No space left on device")

    bootstrap.write_marker(make_module(), "join")
    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(FabricError, match="Could not write a file"):
        bootstrap.write_marker(make_module(), "init")
    assert files.read_text(paths.MARKER) == "join"


INIT = ["kubeadm config validate", "kubeadm init phase preflight", "kubeadm init --skip-phases=preflight"]


def test_a_bare_host(host, make_module):
    module = make_module()
    result = module.apply()
    assert (result["changed"], result["action"]) == (True, "start")
    assert module.calls == INIT
    # A preflight that fails leaves no mark: nothing was changed yet.
    assert module.marked == [False, False, True]
    assert {entry.name for entry in host["path"].iterdir()} == {"lock"}


def test_a_member_is_left_alone(host, make_module):
    host.update(membership="member", registered=True, is_control_plane=True, api=True)
    module = make_module()
    result = module.apply()
    assert (result["changed"], result["action"], module.calls) == (False, "nothing", [])


@pytest.mark.parametrize(
    ("membership", "what"), [("broken", "parts of a Kubernetes node"), ("expired", "Certificates of the cluster have")]
)
def test_a_broken_host_is_left_alone(host, make_module, membership, what):
    host.update(membership=membership, seen="there is a kubelet.conf")
    module = make_module()
    with pytest.raises(FabricError, match=f"{what}.*there is a kubelet"):
        module.apply()
    assert module.calls == []


def test_an_init_that_was_cut_off_early_starts_over(host, make_module):
    (host["path"] / "marker").touch()
    module = make_module()
    assert module.apply()["action"] == "restart"
    assert module.calls == [INIT[0], "kubeadm reset --force", *INIT[1:]]
    assert not (host["path"] / "marker").exists()


def test_a_half_restored_host_is_not_reset(host, make_module):
    """A new cluster would begin in place of the one in the backup."""
    (host["path"] / "marker").touch()
    (host["path"] / "restoring").write_text("20261123T004500Z")
    module = make_module()
    with pytest.raises(FabricError, match=r"names the backup 20261123T004500Z.*Run ipu\.fabric\.restore again"):
        module.apply()
    assert module.calls == []


def test_an_init_whose_api_answers_goes_on(host, make_module):
    host["api"] = True
    (host["path"] / "marker").touch()
    module = make_module()
    assert module.apply()["action"] == "continue"
    assert module.calls == [INIT[0], INIT[2]]


def test_an_init_that_came_to_its_end_is_never_reset(host, make_module):
    (host["path"] / "marker").touch()
    (host["path"] / "kubelet").write_text(f"client-certificate: /var/lib/kubelet/pki/{ROTATED}")
    module = make_module()
    with pytest.raises(FabricError, match="may already be a member"):
        module.apply()
    assert module.calls == []
    assert (host["path"] / "marker").exists()


@pytest.mark.parametrize("trace", ["kubelet", "etcd"])
def test_a_joined_host_is_not_reset_while_no_api_answers(host, make_module, trace):
    """The run was killed before it removed its mark, and the cluster is down for a while."""
    (host["path"] / "marker").touch()
    (host["path"] / trace).touch()
    module = make_module(command="join", control_plane=True)
    with pytest.raises(FabricError, match="may already be a member"):
        module.apply()
    assert module.calls == []
    assert (host["path"] / "marker").exists()


def test_a_host_that_never_became_a_node_joins_again(host, make_module):
    (host["path"] / "kubelet").touch()
    (host["path"] / "marker").touch()
    host["answered"] = True
    module = make_module(command="join")
    assert module.apply()["action"] == "restart"
    assert "kubeadm reset --force" in module.calls


@pytest.mark.parametrize(("interrupted", "command"), [("init", "join"), ("join", "init")])
def test_only_the_command_that_was_interrupted_goes_on(host, make_module, interrupted, command):
    """A cluster of its own would be taken for the one that is joined, and an etcd of the cluster would be reset."""
    failed = make_module(command=interrupted, code=1)
    with pytest.raises(FabricError):
        failed.apply()
    host.update(registered=True, is_control_plane=True, answered=True)
    module = make_module(command=command)
    with pytest.raises(FabricError, match=f"kubeadm {interrupted} was interrupted"):
        module.apply()
    assert module.calls == []


def test_a_join_that_only_kept_its_mark(host, make_module):
    host["registered"] = True
    (host["path"] / "marker").touch()
    module = make_module(command="join")
    result = module.apply()
    assert (result["action"], module.calls) == ("settle", [])
    assert not (host["path"] / "marker").exists()


def test_a_half_joined_control_plane_is_taken_out_first(host, make_module):
    host["registered"] = True
    (host["path"] / "marker").touch()
    (host["path"] / "admin").touch()
    module = make_module(command="join", control_plane=True)
    assert module.apply()["action"] == "restart"
    assert [call.split(" --request")[0] for call in module.calls[:3]] == [
        "kubeadm config validate",
        f"kubectl --kubeconfig {paths.ADMIN}",
        "kubeadm reset --force",
    ]
    assert module.calls[1].endswith("delete --timeout=60s node n1")  # without it kubectl waits for finalizers for ever


def test_a_failure_leaves_the_mark_but_no_token(host, make_module):
    module = make_module(command="join", code=1)
    with pytest.raises(FabricError, match="kubeadm join failed") as caught:
        module.apply()
    assert "it went wrong" in caught.value.seen
    assert {entry.name for entry in host["path"].iterdir()} == {"lock", "marker"}


def test_check_mode_touches_nothing(host, make_module):
    module = make_module(check_mode=True)
    result = module.apply()
    assert (result["changed"], module.calls) == (True, [])
    assert not list(host["path"].iterdir())


def test_another_kubeadm_is_waited_for_and_then_named(host, make_module):
    with open(paths.LOCK, "a") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(FabricError, match="Another kubeadm"):
            make_module().apply()

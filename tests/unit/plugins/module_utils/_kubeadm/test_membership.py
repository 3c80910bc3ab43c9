import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.text import EXPIRED
from ansible_collections.ipu.fabric.plugins.module_utils._host import kubectl
from ansible_collections.ipu.fabric.plugins.module_utils._host.distributions import find_distribution
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import membership, paths
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.membership import Lookup
from ansible_collections.ipu.fabric.tests.unit.fixtures import rancher
from ansible_collections.ipu.fabric.tests.unit.fixtures.module import Module

WORKER = {"metadata": {"labels": {}}, "spec": {}}
CONTROL_PLANE = {
    "metadata": {"labels": {membership.CONTROL_PLANE_LABEL: ""}},
    "spec": {"taints": [{"key": membership.CONTROL_PLANE_LABEL, "effect": "NoSchedule"}]},
}
TRACES = [paths.KUBELET]


@pytest.mark.parametrize(
    ("traces", "unfinished", "node", "control_plane", "expected"),
    [
        ([], False, {}, False, "none"),
        (TRACES, False, WORKER, False, "member"),
        (TRACES, False, CONTROL_PLANE, True, "member"),
        (TRACES, False, WORKER, True, "broken"),  # a node, but not the control plane that it should be
        (TRACES, False, {}, False, "broken"),  # the cluster has forgotten it
        (TRACES, False, None, False, "broken"),  # the cluster is down
        ([], True, {}, False, "unfinished"),  # marked, and interrupted before the first file
        (TRACES, True, None, True, "unfinished"),
        (TRACES, True, WORKER, False, "unfinished"),
    ],
)
def test_membership(traces, unfinished, node, control_plane, expected):
    assert membership.classify(traces, unfinished, node, control_plane) == expected


TIMEOUT = "Unable to connect to the server: dial tcp: i/o timeout"
OLD = ["/etc/kubernetes/pki/apiserver.crt on 2026-03-01"]


@pytest.mark.parametrize(
    ("lookup", "expired", "kind", "seen", "next_step"),
    [
        (Lookup(None, TIMEOUT), [], "broken", "i/o timeout", membership.START),
        (Lookup(None), [], "broken", "no API server can be asked", membership.START),
        (Lookup(None, TIMEOUT), OLD, "expired", "apiserver.crt on 2026-03-01", membership.RENEW),
        (Lookup(None, f"x509: {EXPIRED}"), [], "expired", "has expired", membership.RENEW),
        (Lookup({}), OLD, "broken", "knows no such node", membership.REMOVED),
        (Lookup(WORKER), [], "broken", "not as a control plane", membership.WORKER),
    ],
)
def test_diagnose(lookup, expired, kind, seen, next_step):
    found = membership.diagnose(TRACES, lookup, expired)
    assert (found.membership, found.next_step) == (kind, next_step)
    assert (paths.KUBELET in found.seen) == (kind == "broken")
    assert seen in found.seen


def test_a_member_is_never_to_be_reset():
    """Only a host that its cluster has removed."""
    steps = [membership.START, membership.RENEW, membership.REMOVED, membership.WORKER]
    assert [step for step in steps if "kubeadm reset" in step] == [membership.REMOVED]


NOT_FOUND = (1, "", 'Error from server (NotFound): nodes "w1" not found')
SILENT = (1, "", f"E1122 memcache.go: couldn't get current server API group list\n{TIMEOUT}\n")
NO_ANSWER = Lookup(None, f"the API server gives no answer ({TIMEOUT})")


@pytest.mark.parametrize(
    ("files", "answers", "expected"),
    [
        (["KUBELET"], [(0, '{"kind": "Node"}', "")], Lookup({"kind": "Node"})),
        (["KUBELET"], [NOT_FOUND], Lookup({})),
        (["KUBELET"], [SILENT], NO_ANSWER),
        (["KUBELET"], [(1, "", "")], Lookup(None, "the API server gives no answer (kubectl: rc 1)")),
        (
            ["KUBELET"],
            [(127, "", "kubectl: not found")],
            Lookup(None, "the API server gives no answer (kubectl: not found)"),
        ),
        ([], [], Lookup(None)),
        # A control plane's kubelet asks the API server of its own host.
        (["KUBELET", "ADMIN"], [SILENT, (0, '{"kind": "Node"}', "")], Lookup({"kind": "Node"})),
        (["KUBELET", "ADMIN"], [SILENT, NOT_FOUND], Lookup({})),
        (["KUBELET", "ADMIN"], [SILENT, SILENT], NO_ANSWER),
        (["KUBELET", "ADMIN"], [NOT_FOUND], Lookup({})),
    ],
)
def test_find_node(files, answers, expected, tmp_path, monkeypatch):
    for name in ("KUBELET", "ADMIN"):
        monkeypatch.setattr(paths, name, str(tmp_path / name))
    for name in files:
        (tmp_path / name).touch()
    module = Module(*answers)
    monkeypatch.setattr(kubectl, "run_program", module.run_program)
    assert membership.find_node("w1") == expected
    assert len(module.commands) == len(answers)


def test_inspect_host(tmp_path, monkeypatch):
    kubelet = tmp_path / "kubelet.conf"
    monkeypatch.setattr(paths, "TRACES", [str(kubelet)])
    monkeypatch.setattr(membership, "find_node", lambda name: Lookup(CONTROL_PLANE))
    assert membership.inspect_host("cp1", True, False)["membership"] == "none"
    kubelet.write_text("")
    assert membership.inspect_host("cp1", True, False) == {
        "membership": "member",
        "seen": "",
        "next_step": "",
        "answered": True,
        "registered": True,
        "is_control_plane": True,
        "taints": [membership.CONTROL_PLANE_LABEL],
    }


@pytest.mark.parametrize(("name", "membership_of"), [("k3s", "broken"), ("rke2", "broken"), ("kubeadm", "none")])
def test_kubeadm_builds_nothing_over_k3s(tmp_path, monkeypatch, name, membership_of):
    rancher.make_node(tmp_path, name, server=False)
    found = find_distribution(str(tmp_path))
    monkeypatch.setattr(membership, "find_distribution", lambda: found)
    monkeypatch.setattr(paths, "KUBELET", str(tmp_path / "none"))
    monkeypatch.setattr(paths, "TRACES", [])
    seen = membership.inspect_host("w1", False, False)
    assert seen["membership"] == membership_of
    if name != "kubeadm":
        assert seen["seen"] == f"it is a node of {name}"
        assert "fabric_manage_kubernetes" in seen["next_step"]


def test_an_expired_cluster_is_reported_as_that(tmp_path, monkeypatch):
    (tmp_path / "kubelet.conf").touch()
    monkeypatch.setattr(paths, "TRACES", [str(tmp_path / "kubelet.conf")])
    monkeypatch.setattr(membership, "expired_certificates", lambda root, now: OLD)
    monkeypatch.setattr(membership, "find_node", lambda name: NO_ANSWER)
    found = membership.inspect_host("cp1", True, False)
    assert (found["membership"], found["answered"], found["next_step"]) == ("expired", False, membership.RENEW)
    assert "apiserver.crt on 2026-03-01" in found["seen"]

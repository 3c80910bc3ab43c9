"""On which control plane a cluster is begun, which hosts join it, and for how long their token lasts."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component import kubernetes_cluster, kubernetes_join
from ansible_collections.ipu.fabric.plugins.module_utils._model.wish import ClusterWish, JoinWish
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults

GROUPS = {"kube_control_plane": ["cp1", "cp2", "cp3"], "kube_node": ["w1", "w9"]}
BARE = dict.fromkeys(("cp1", "cp2", "cp3", "w1", "w9"), "none")
SILENT = "unreachable"  # in this run, or outside it


def node(host: str, membership: str, **more: t.Any) -> t.Dict[str, t.Any]:
    seen = "there is /etc/kubernetes/kubelet.conf, but the API server gives no answer" * (membership == "broken")
    found = {"name": host, "address": f"192.0.2.{host[-1]}", "membership": membership, "kubelet": "1.35.4"}
    return {**found, "seen": seen, "next_step": "Start its cluster.", "kubeconfig_sha256": f"of {host}", **more}


def cluster(
    found: t.Mapping[str, t.Any],
    run: t.Sequence[str] = tuple(BARE),
    host: str = "",
    groups: t.Optional[t.Mapping[str, t.Sequence[str]]] = None,
    **more: t.Any,
) -> ClusterWish:
    """What is decided on a host, where hosts are in these states. The planes of `run` are in it, the others outside."""
    groups = groups or GROUPS
    planes = groups["kube_control_plane"]
    nodes = {name: node(name, state) if isinstance(state, str) else state for name, state in found.items()}
    inside = [name for name in planes if name in run and found[name] != SILENT]
    left_out = {name: {"node": nodes[name]} if "membership" in nodes[name] else nodes[name] for name in planes}
    left_out.update({name: {"msg": "Connection timed out"} for name in planes if found[name] == SILENT})
    about = {"joins": True, "check_mode": False, "kubeconfig_sha256": "", **more}
    chosen = {name: about.pop(name) for name in ("allow_new_cluster", "schedulable", "node_addresses") if name in about}
    settings = defaults("kubernetes", "kubernetes_cluster", version="1.35.4", **chosen)
    host = host or run[0]
    seen = kubernetes_cluster.Seen(
        host=host,
        groups=groups,
        run=run,
        answered=inside,
        nodes=[nodes[name] for name in inside],
        left_out={name: answer for name, answer in left_out.items() if name not in run},
        node=nodes[host] if found[host] != SILENT else {},
        **about,
    )
    return kubernetes_cluster.decide(settings, seen)


def test_bare_hosts_become_one_cluster() -> None:
    decided = cluster(BARE)
    assert (decided.first, decided.is_first, decided.running) == ("cp1", True, False)
    assert not cluster(BARE, host="cp2").is_first


@pytest.mark.parametrize("allow", [False, True])
@pytest.mark.parametrize("other", [SILENT, "broken", "unfinished"])
def test_one_that_was_begun_before_goes_on_unless_another_may_have_one(other: str, allow: bool) -> None:
    assert cluster({**BARE, "cp1": "unfinished"}).first == "cp1"
    if allow:
        assert cluster({**BARE, "cp1": "unfinished", "cp2": other}, allow_new_cluster=True).first == "cp1"
        return
    with pytest.raises(FabricError, match="may be in one already") as error:
        cluster({**BARE, "cp1": "unfinished", "cp2": other})
    assert "cp1" not in error.value.seen


@pytest.mark.parametrize(
    ("run", "other", "seen"),
    [
        (tuple(BARE), SILENT, "cp2: no answer"),
        (
            tuple(BARE),
            "broken",
            "cp2: broken (there is /etc/kubernetes/kubelet.conf, but the API server gives no answer)",
        ),
        (("cp1", "w9"), SILENT, "cp2: no answer (Connection timed out)"),
        (("cp1", "w9"), {"msg": "kubelet --version does not end"}, "cp2: no answer (kubelet --version does not end)"),
        (("cp1", "w9"), "unfinished", "cp2: unfinished"),
    ],
)
def test_no_second_cluster_while_a_control_plane_may_be_in_one(run: t.Tuple[str, ...], other: t.Any, seen: str) -> None:
    with pytest.raises(FabricError, match="may be in one already") as error:
        cluster({**BARE, "cp2": other}, run)
    assert (error.value.where, error.value.seen) == ("cp1", seen)
    assert "kubernetes_allow_new_cluster" in error.value.next_step
    assert cluster({**BARE, "cp2": other}, run, allow_new_cluster=True).first == "cp1"
    assert cluster({**BARE, "cp2": other}, run, joins=False).first == "cp1"


def test_without_the_first_control_plane_there_is_nothing_to_join() -> None:
    for allow in (False, True):
        with pytest.raises(FabricError, match="Next: Run without --limit, or with cp1 in it"):
            cluster(BARE, ("w1",), allow_new_cluster=allow)


def test_a_member_comes_before_the_first_of_the_group() -> None:
    for run in (tuple(BARE), ("cp1", "w9"), ("cp1",)):
        for allow in (False, True):
            decided = cluster({**BARE, "cp2": "member", "cp3": SILENT}, run, allow_new_cluster=allow)
            assert (decided.first, decided.members, decided.running) == ("cp2", ["cp2"], True)
            assert decided.first_node.name == "cp2"


@pytest.mark.parametrize(
    ("state", "what", "step"),
    [
        ("broken", "w1 has parts of a Kubernetes node, but its cluster does not confirm that it is one.", "Start its"),
        ("expired", "Certificates of the cluster that w1 is in have expired.", "Start its cluster. Then run again."),
        (
            {"membership": "member", "kubelet": "1.34.1"},
            "w1 is a node of another release",
            "Run ipu.fabric.upgrade",
        ),
    ],
)
def test_a_host_that_must_not_join_ends_there_and_the_others_go_on(state: t.Any, what: str, step: str) -> None:
    found = {**BARE, "cp1": "member", "w1": state}
    with pytest.raises(FabricError) as error:
        cluster(found, host="w1")
    assert what in error.value.what
    assert step in error.value.next_step
    assert cluster(found, host="w9").first == cluster(found, host="w1", joins=False).first == "cp1"


@pytest.mark.parametrize(
    ("groups", "setting", "runs_pods"),
    [
        (GROUPS, "auto", False),
        (GROUPS, "true", True),
        (GROUPS, "False", False),
        ({"kube_control_plane": ["cp1"]}, "auto", True),
        ({"kube_control_plane": ["cp1"]}, "false", False),
        ({"kube_control_plane": ["cp1"], "kube_node": ["cp1", "w1"]}, "auto", True),
        ({"kube_control_plane": ["cp1"], "kube_node": ["w1"], "ipu_node": ["cp1"]}, "auto", True),
    ],
)
def test_pods_on_control_planes(groups: t.Mapping[str, t.Sequence[str]], setting: str, runs_pods: bool) -> None:
    decided = cluster(BARE, groups=groups, schedulable=setting)
    assert (decided.schedulable, decided.untaints) == (runs_pods, False)
    tainted = {**BARE, "cp1": node("cp1", "member", taints=["node-role.kubernetes.io/control-plane"])}
    assert cluster(tainted, groups=groups, schedulable=setting).untaints is runs_pods


@pytest.mark.parametrize(
    ("members", "here", "about", "fetches", "renews"),
    [
        (["cp1", "cp2"], "of cp2", {}, False, False),
        (["cp1", "cp2"], "", {}, True, True),
        ([], "", {}, True, True),
        ([], "", {"check_mode": True}, False, True),  # there is none yet
        (["cp1", "cp2"], "", {"check_mode": True}, True, True),
        (["cp1", "cp2"], "of cp2", {"check_mode": True, "renewed": ["cp2"]}, False, True),
        (["cp1", "cp2"], "of cp2", {"check_mode": True, "renewed": ["cp1"]}, False, False),
    ],
)
def test_when_the_kubeconfig_is_fetched(
    members: t.List[str], here: str, about: t.Any, fetches: bool, renews: bool
) -> None:
    decided = cluster({**BARE, **dict.fromkeys(members, "member")}, kubeconfig_sha256=here, **about)
    assert (decided.fetches, decided.renews) == (fetches, renews)


@pytest.mark.parametrize(
    ("host", "state", "stops"), [("cp1", "none", True), ("cp1", "member", False), ("w1", "none", False)]
)
def test_a_control_plane_joins_with_the_address_that_was_planned(host: str, state: str, stops: bool) -> None:
    """Else it would choose whose etcd member is removed."""
    found = {**BARE, "cp2": "member", host: state}
    assert cluster(found, host=host, node_addresses={host: ["fd00::1", "192.0.2.1"]}).running
    planned = {"cp1": ["192.0.2.7"], "w1": ["192.0.2.7"]}
    if not stops:
        assert cluster(found, host=host, node_addresses=planned).running
        return
    with pytest.raises(FabricError) as refused:
        cluster(found, host=host, node_addresses=planned)
    assert (refused.value.seen, refused.value.code) == ("it says 192.0.2.1; planned is 192.0.2.7", "unsafe")
    assert cluster(found, host=host, node_addresses=planned, joins=False).running


def join(hosts: t.Mapping[str, str], control_plane: bool = False, forks: int = 50, **settings: t.Any) -> JoinWish:
    seen = kubernetes_join.Seen(
        control_plane=control_plane,
        control_planes=GROUPS["kube_control_plane"],
        hosts=list(hosts),
        nodes=[node(name, state) for name, state in hosts.items()],
        forks=forks,
    )
    return kubernetes_join.decide(defaults("kubernetes", "kubernetes_join", **settings), seen)


@pytest.mark.parametrize(
    ("hosts", "throttle", "forks", "ttl"),
    [
        (1, 50, 50, "30m0s10m"),
        (100, 1, 50, "30m0s1000m"),
        (100, 50, 50, "30m0s20m"),
        (100, 50, 5, "30m0s200m"),  # Ansible itself takes five hosts at a time, unless it is told otherwise
        (101, 50, 50, "30m0s30m"),
    ],
)
def test_the_token_outlives_joins_one_after_another(hosts: int, throttle: int, forks: int, ttl: str) -> None:
    names = dict.fromkeys(["cp1", *(f"w{number}" for number in range(hosts))], "none")  # cp1 does not join
    assert join(names, forks=forks, join_throttle=throttle).ttl == ttl


def test_control_planes_wait_for_each_other_alone() -> None:
    names = dict.fromkeys([*GROUPS["kube_control_plane"], *(f"w{number}" for number in range(100))], "none")
    decided = join(names, control_plane=True, forks=5)
    assert (decided.ttl, decided.throttle) == ("30m0s30m", 1)


def test_a_token_without_an_end_stays_one() -> None:
    assert join(BARE, token_ttl="0").ttl == "0"


def test_what_reinstalled_hosts_may_have_left_behind() -> None:
    found = {"cp1": "none", "cp2": "member", "w1": "none", "w9": "unfinished"}
    planes, workers = join(found, control_plane=True), join(found)
    assert (planes.rejoining, planes.addresses) == (["cp1"], ["192.0.2.1"])
    # When workers join, a control plane that has just joined is no node that its host has left behind.
    assert (workers.rejoining, workers.addresses) == (["w1"], [])
    planned = join(found, control_plane=True, node_addresses={"cp1": ["192.0.2.7", "fd00::7"]})
    assert planned.addresses == ["192.0.2.7", "fd00::7"]

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._plan.restoring import plan_restore
from ansible_collections.ipu.fabric.tests.unit.fixtures import site

CA, ENDPOINT = "0123456789abcdef", "10.88.0.1:6443"
PLAN = {
    "releases": {"kubernetes": "1.35.4"},
    "cluster": {"pod_cidr": "10.244.0.0/16", "service_cidr": "10.96.0.0/12", "endpoint": ENDPOINT},
    "hosts": {"cp1": {"node": "node1"}, "w1": {"node": "node2"}},
}


def about(**changes):
    cluster = {
        "name": ENDPOINT,
        "ca": CA,
        "version": "1.35.4",
        "pod_cidr": "10.244.0.0/16",
        "service_cidr": "10.96.0.0/12",
        "nodes": ["node1", "node2", "node3"],
    }
    return {"format": 1, "name": "20261123T004500Z", "cluster": {**cluster, **changes}}


def host(number, ca="", answered=False, endpoint=ENDPOINT):
    facts = site.host(number, [])["host"]
    facts["kubelet"].update(cluster=ca)
    facts["cluster"].update(answered=answered, endpoint=endpoint, version="1.35.4")
    return facts


BARE = {"cp1": host(1), "w1": host(2)}
LOST = {"cp1": host(1, CA), "w1": host(2, CA)}
ALIVE = {"cp1": host(1, CA, answered=True), "w1": host(2, CA)}


NOW, NAME = "20261126T101500Z", "20261123T004500Z"
RUNNING, OTHER = f"{NAME} begun 20261126T090000Z", "20261122T004500Z begun 20261126T090000Z"


def state(restoring="", going_on=False, aside="", files=True):
    return {"restoring": restoring, "going_on": going_on, "aside": aside, "files": files}


def planned(hosts=None, named="", backup=None, **planes):
    return plan_restore(backup or about(), PLAN, LOST if hosts is None else hosts, planes, (named, NOW))


@pytest.mark.parametrize(
    ("backup", "hosts", "named", "seen"),
    [
        (about(), BARE, "", ""),
        (about(), LOST, "", ""),
        (about(), ALIVE, "", f"-e fabric_restore={ENDPOINT}."),
        (about(), ALIVE, "kubernetes", "A cluster is running: the API server of cp1 answers"),
        (about(), ALIVE, ENDPOINT, ""),
        (about(), {**BARE, "w1": host(2, "fedcba9876543210")}, "", "w1 belongs to another cluster"),
        (about(version="1.34.4"), BARE, "", "set fabric_kubernetes_version to 1.34.4"),
        (about(pod_cidr="10.9.0.0/16"), BARE, "", "fabric_pod_cidr: the backup is of a cluster with 10.9.0.0/16"),
        (about(name="10.88.0.9:6443"), BARE, "", "fabric_control_plane_endpoint"),
        (about(nodes=["a", "b"]), BARE, "", "its nodes were a, b, the hosts are node1, node2"),
        ({**about(), "format": 2}, BARE, "", "format 2, this release reads 1"),
    ],
)
def test_problems(backup, hosts, named, seen):
    found = planned(hosts, named, backup, cp1=state(), cp2=state())["problems"]
    assert len(found) == bool(seen)
    assert seen in " ".join(found)


def test_all_others_are_set_aside_first():
    found = planned(cp1=state(), cp2=state(), cp3=state(files=False))
    assert found == {
        "problems": [],
        "restore": f"{NAME} begun {NOW}",
        "aside": ["cp2", "cp3"],
        "puts_back": True,
    }


def test_a_control_plane_that_is_not_reached():
    """It may run the old cluster, beside the restored one."""
    found = planned(cp1=state(), cp2=None)
    assert "cp2 could not be reached" in found["problems"][0]
    assert "cp1 could not be reached" in planned(cp1=None, cp2=state())["problems"][0]


@pytest.mark.parametrize("going_on", [False, True])
def test_one_that_was_interrupted_goes_on_under_its_name(going_on):
    """Killed before kubeadm init had ended, it starts over on the first host; what was set aside is so for good."""
    hosts = ALIVE if going_on else BARE
    found = planned(hosts, cp1=state(RUNNING, going_on), cp2=state(aside=RUNNING), cp3=state(files=False))
    assert found == {"problems": [], "restore": RUNNING, "aside": [], "puts_back": not going_on}


def test_one_whose_init_has_ended_is_not_put_back_again():
    """Its API server is away for a moment. The marker is no leave to take a cluster away."""
    away = {"cp1": host(1, CA), "cp2": host(2, CA, answered=True)}
    found = planned(away, cp1=state(RUNNING, going_on=True), cp2=state(aside=RUNNING))
    assert (found["problems"], found["aside"], found["puts_back"]) == ([], [], False)


@pytest.mark.parametrize("restoring", [RUNNING, OTHER, NAME])
def test_a_marker_that_was_left_names_no_cluster(restoring):
    """The restore was completed by hand: cp2 has joined without it. Nothing is taken away that was not named."""
    away = {"cp1": host(1, CA), "cp2": host(2, CA, answered=True)}
    marked = state(restoring, going_on=True)
    found = planned(away, cp1=marked, cp2=state())
    [problem] = found["problems"]
    assert f"-e fabric_restore={ENDPOINT}" in problem
    asked = planned(away, ENDPOINT, cp1=marked, cp2=state())
    assert asked == {"problems": [], "restore": f"{NAME} begun {NOW}", "aside": ["cp2"], "puts_back": True}


def test_one_that_never_came_to_its_cluster_takes_no_other_away():
    away = {"cp1": host(1, CA), "cp2": host(2, CA, answered=True)}
    assert "the API server of cp2 answers" in planned(away, cp1=state(RUNNING), cp2=state())["problems"][0]
    assert planned(cp1=state(RUNNING), cp2=state(), cp3=state(aside=RUNNING))["aside"] == ["cp2"]


def test_another_order_of_control_planes_begins_again():
    """What makes a host the restored one is on that host."""
    found = planned(ALIVE, cp2=state(aside=RUNNING), cp1=state(RUNNING, going_on=True))
    assert "A cluster is running" in found["problems"][0]
    found = planned(cp2=state(aside=RUNNING, files=False), cp1=state(RUNNING))
    assert (found["restore"], found["aside"], found["puts_back"]) == (f"{NAME} begun {NOW}", ["cp1"], True)

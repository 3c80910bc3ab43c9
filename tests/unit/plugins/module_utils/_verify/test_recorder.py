"""When pods of a job are looked into, and what stays of them when they have ended."""

from __future__ import annotations

import typing as t
from concurrent.futures import wait

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import ApiError
from ansible_collections.ipu.fabric.plugins.module_utils._kube.pod_exec import Output
from ansible_collections.ipu.fabric.plugins.module_utils._verify import recorder
from ansible_collections.ipu.fabric.plugins.module_utils._verify.look import PLACES

Object = t.Dict[str, t.Any]
ROUTES = "Iface Destination Gateway\nnet1 0000050A 00000000 0001 0 0 0 0000FFFF 0 0 0"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Cluster:
    """Takes annotations, or refuses them."""

    def __init__(self, refusal: str = "") -> None:
        self.refusal = refusal
        self.patches: t.List[t.Any] = []

    def patch(self, *what: t.Any) -> None:
        if self.refusal:
            raise ApiError(status=403, reason=self.refusal)
        self.patches.append(what)

    def items(self, *_path: t.Any, **_query: t.Any) -> t.List[Object]:
        return []


def pod(name: str, state: str = "running", limits: t.Sequence[str] = ()) -> Object:
    containers = [{"name": "side"}, {"name": "main", "resources": {"limits": dict.fromkeys(limits, "1")}}]
    statuses = [{"name": each["name"], "state": {state: {}}} for each in containers]
    metadata = {"name": name, "uid": f"uid-{name}"}
    return {"metadata": metadata, "spec": {"containers": containers}, "status": {"containerStatuses": statuses}}


class Execs:
    """100 MB more by eth0 with each exec, or what the test says instead."""

    def __init__(self) -> None:
        self.ran: t.List[t.Tuple[str, str]] = []
        self.places: t.List[str] = []
        self.instead: t.Optional[Output] = None
        self.variables = "NCCL_IB_DISABLE=1"

    def __call__(self, _cluster: t.Any, path: str, container: str, command: t.Sequence[str], *_more: t.Any) -> Output:
        if tuple(command[-len(PLACES) :]) == PLACES:
            self.places.append(path)
            return Output(f"\n@@ routes\n{ROUTES}\n@@ rc 0\n", "")
        self.ran.append((path, container))
        text = f"net/eth0/statistics/tx_bytes:{len(self.ran) * 10**8}"
        parts = {"counters": text, "environment": self.variables}
        return self.instead or Output("".join(f"\n@@ {n}\n{text}\n@@ rc 0\n" for n, text in parts.items()), "")


@pytest.fixture
def execs(monkeypatch: pytest.MonkeyPatch) -> Execs:
    made = Execs()
    monkeypatch.setattr(recorder, "run_in_pod", made)
    return made


def look(recording: recorder.Recorder, *pods: Object) -> None:
    recording.look(pods)
    wait(recording.busy.values())


def test_pods_that_run_are_looked_into_when_they_are_due(execs: Execs) -> None:
    clock = Clock()
    recording = recorder.Recorder(t.cast(t.Any, Cluster()), "ns", clock)
    for clock.now in (0.0, 1.0, 2.0, 3.0, 4.0):
        look(recording, pod("a"), pod("b", "waiting"))
    assert execs.ran == [("/api/v1/namespaces/ns/pods/a", "side")] * 3
    assert recording.ranks["uid-a"].looks == 3
    assert recording.ranks["uid-a"].seconds == 4.0


def test_gids_and_routes_of_a_pod_are_read_once(execs: Execs) -> None:
    """They stay, and a port has hundreds: on a busy processor no look would end in time."""
    clock = Clock()
    recording = recorder.Recorder(t.cast(t.Any, Cluster()), "ns", clock)
    for clock.now in (0.0, 2.0, 4.0):
        look(recording, pod("a"))
    assert (len(execs.ran), len(execs.places)) == (3, 1)
    assert recording.finish({}, "/job")["ranks"][0]["routes"] == ["10.5.0.0/16 dev net1"]


def test_many_pods_are_looked_into_less_often(execs: Execs) -> None:
    clock = Clock()
    recording = recorder.Recorder(t.cast(t.Any, Cluster()), "ns", clock)
    pods = [pod(f"p{number}") for number in range(50)]
    for clock.now in (0.0, 2.0, 4.0, 5.0):
        look(recording, *pods)
    assert len(execs.ran) == 2 * len(pods)


def test_a_pod_that_answers_slowly_is_left_alone_for_longer(monkeypatch: pytest.MonkeyPatch, execs: Execs) -> None:
    """Each look would begin before the one before has ended in the pod, and the job would get no processor."""
    clock = Clock()
    recording = recorder.Recorder(t.cast(t.Any, Cluster()), "ns", clock)

    def slow(*what: t.Any) -> Output:
        clock.now += 3
        return execs(*what)

    monkeypatch.setattr(recorder, "run_in_pod", slow)
    for at in (0.0, 9.0, 17.0, 18.0):
        clock.now = at
        look(recording, pod("a"))
    assert len(execs.ran) == 2


def test_the_container_with_rdma_is_the_rank() -> None:
    assert recorder.container_of(pod("a", limits=["rdma/shared"])) == "main"
    assert recorder.container_of(pod("a", limits=["nvidia.com/gpu"])) == "side"


def test_what_was_seen_stays_when_the_pod_ends(execs: Execs) -> None:
    clock, cluster = Clock(), Cluster()
    recording = recorder.Recorder(t.cast(t.Any, cluster), "ns", clock)
    for clock.now in (0.0, 2.0):
        look(recording, pod("a"))
    execs.variables = ""  # the program has ended before its pod
    clock.now = 4.0
    look(recording, pod("a"))
    execs.instead = Output("", "exec failed: container not found")
    found = recording.finish({}, "/job")
    assert found["text"] == "moved 200 MB over TCP on eth0: NCCL_IB_DISABLE is 1; its pods have no RDMA device"
    assert cluster.patches == [("/job", {"metadata": {"annotations": {"fabric.ipu/moved": found["text"]}}})]
    assert recording.finish({}, "/job") is found


def test_a_first_look_that_fails_is_repeated(execs: Execs) -> None:
    clock = Clock()
    recording = recorder.Recorder(t.cast(t.Any, Cluster()), "ns", clock)
    execs.instead = Output("", "exec failed: container is starting")
    look(recording, pod("a"))
    execs.instead = None
    for clock.now in (2.0, 4.0):
        look(recording, pod("a"))
    assert recording.finish({}, "/job")["verdict"] == "tcp"


def test_a_refused_annotation_is_said(execs: Execs) -> None:
    recording = recorder.Recorder(t.cast(t.Any, Cluster("Forbidden")), "ns", Clock())
    look(recording, pod("a"))
    assert "the job could not be annotated with it: " in recording.finish({}, "/job")["note"]

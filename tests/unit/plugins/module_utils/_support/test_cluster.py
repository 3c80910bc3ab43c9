"""What is asked of the API, and what is not; what becomes of requests that fail."""

from __future__ import annotations

import types
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Cluster
from ansible_collections.ipu.fabric.plugins.module_utils._support import cluster as support

Object = t.Dict[str, t.Any]
DISCOVERY = {
    "/api/v1": [
        ("Node", "nodes", False),
        ("Pod", "pods", True),
        ("Event", "events", True),
        ("Secret", "secrets", True),
    ],
    "/apis/apps/v1": [("DaemonSet", "daemonsets", True), ("Deployment", "deployments", True)],
}


def pod(
    name: str, owner: str = "", restarts: int = 0, ready: str = "True", kind: str = "", namespace: str = "kube-system"
) -> Object:
    owners = [{"uid": owner, **({"kind": kind} if kind else {})}] if owner or kind else []
    return {
        "metadata": {"namespace": namespace, "name": name, "ownerReferences": owners, "managedFields": [1]},
        "spec": {"containers": [{"name": "c"}]},
        "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": [{"name": "c", "ready": True, "restartCount": restarts}],
        },
    }


class Api(Cluster):
    """Answers from a table of lists by path."""

    def __init__(self, lists: t.Mapping[str, t.Any]) -> None:
        super().__init__(types.SimpleNamespace(request=self.log))
        self.lists, self.asked, self.logs = lists, t.cast(t.List[str], []), t.cast(t.List[t.Any], [])

    def get(self, path: str, **query: t.Any) -> t.Optional[Object]:
        self.asked.append(path)
        if path in DISCOVERY:
            return {"resources": [{"kind": k, "name": n, "namespaced": s} for k, n, s in DISCOVERY[path]]}
        found = self.lists.get(path)
        if isinstance(found, Exception):
            raise found
        return None if found is None else {"items": found}

    def log(self, _verb: str, path: str, query_params: t.Any, **_options: t.Any) -> t.Any:
        self.logs.append((path, dict(query_params)))
        return types.SimpleNamespace(data=b"password=hunter22\n" + b"x" * 90)


def test_what_is_read() -> None:
    node = {"metadata": {"name": "w1"}, "status": {"images": [1], "conditions": []}}
    events = [{"metadata": {}, "involvedObject": {"kind": kind}} for kind in ("Node", "Pod")]
    system = [pod("coredns-a"), pod("coredns-b", restarts=1), pod("etcd-of-a-site", kind="Job"), pod("x")]
    api = Api({
        "/api/v1/nodes": [node],
        "/api/v1/namespaces/kube-system/pods": system,
        "/api/v1/namespaces/team/pods": [pod("coredns-x", restarts=1, namespace="team")],
        "/api/v1/namespaces/default/events": events,
    })  # fmt: skip
    part = support.collect(api, ["kube-system"], 10, 50, ["team", "kube-system"])
    assert part["gaps"] == []
    assert part["objects"]["Node"] == [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "w1"}, "status": {"conditions": []}}
    ]
    assert ["managedFields" in each["metadata"] for each in part["objects"]["Pod"]] == [False] * 5
    assert [each["involvedObject"]["kind"] for each in part["objects"]["Event"]] == ["Node"]
    assert list(part["logs"]) == [
        "kube-system/coredns-b/c",
        "kube-system/coredns-b/c.previous",
        "kube-system/coredns-a/c",
    ]
    assert {len(text) for text in part["logs"].values()} == {50}
    assert [query.get("previous") for _path, query in api.logs] == [None, "true", None]
    assert not any("secrets" in path or "configmaps" in path for path in api.asked)


def test_a_log_is_redacted_before_it_is_cut() -> None:
    api = Api({"/api/v1/namespaces/kube-system/pods": [pod("coredns-a")]})
    (text,) = support.collect(api, ["kube-system"], 10, 101)["logs"].values()
    assert "hunter" not in text
    assert "nter22" not in text


def test_what_can_not_be_read_is_a_gap() -> None:
    refused = FabricError("Read.", "nodes", "forbidden", "Ask.")
    part = support.collect(Api({"/api/v1/nodes": refused}), ["kube-system"], 10, 50)
    assert part["gaps"] == [{"what": "objects of the kind Node (v1)", "where": "the cluster", "seen": "forbidden"}]


def test_a_server_that_hangs_is_given_up() -> None:
    reader = support.Reader(Api({}), seconds=-1)
    assert reader.objects("v1", "Node") == []
    assert reader.log(pod("a"), "c", 1, 1) == ""
    assert [gap["seen"] for gap in reader.gaps] == ["the time limit for the API was reached"] * 2


def test_more_objects_than_an_archive_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "MOST_OBJECTS", 1)
    part = support.collect(Api({"/api/v1/nodes": [pod("a"), pod("b")]}), [], 10, 50)
    assert len(part["objects"]["Node"]) == 1
    assert part["gaps"][0]["seen"] == "there are more than 1"


def test_logs_of_pods_with_trouble_come_first_and_of_each_owner_a_few() -> None:
    pods = [pod(f"p{number}", "set") for number in range(9)] + [pod("bad", "set", ready="False"), pod("lone")]
    assert [each["metadata"]["name"] for each in support.pods_to_read(pods)] == ["bad", "p0", "p1", "p2", "lone"]

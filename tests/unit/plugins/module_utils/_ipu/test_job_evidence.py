import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipu import job_evidence

JOB = {
    "metadata": {"name": "mnist", "namespace": "n", "creationTimestamp": "2026-11-21T10:00:00Z"},
    "status": {
        "conditions": [
            {"type": "Failed", "status": "True", "reason": "F", "message": "m", "lastTransitionTime": "2"},
            {"type": "Running", "status": "False", "lastTransitionTime": "1"},
        ]
    },
}


def event(name, kind="Pod", when="2026-11-21T10:00:01Z", **more):
    about = {"kind": kind, "name": name}
    return {
        "involvedObject": about,
        "type": "Warning",
        "reason": "R",
        "message": "a\n b",
        "lastTimestamp": when,
        **more,
    }


def pod(name, *containers):
    return {"metadata": {"namespace": "ops", "name": name}, "spec": {"containers": [{"name": c} for c in containers]}}


class Answer:
    def __init__(self, text):
        self.data = text.encode()


class Cluster:
    """Has events, pods of the operator and their logs; an exception instead of one is raised."""

    def __init__(self, events=(), pods=(), log="one\ntwo\n"):
        self.events, self.pods, self.log, self.asked, self.client = events, pods, log, [], self

    def items(self, path, **_query):
        found = self.pods if path == "/api/v1/pods" else self.events
        if isinstance(found, Exception):
            raise found
        return list(found)

    def request(self, _verb, path, query_params, **_options):
        self.asked.append((path, dict(query_params)))
        if isinstance(self.log, Exception):
            raise self.log
        return Answer(self.log)


def evidence(**cluster):
    return job_evidence.collect_evidence(Cluster(**cluster), "n", "mnist", JOB)


def test_conditions_in_the_order_of_their_changes():
    assert [(one["type"], one["status"], one["reason"]) for one in evidence()["conditions"]] == [
        ("Running", "False", ""),
        ("Failed", "True", "F"),
    ]


@pytest.mark.parametrize(
    ("name", "kind", "own"),
    [
        ("mnist", "IPUJob", True),
        ("mnist-launcher", "Pod", True),
        ("mnist-worker-12", "Pod", True),
        ("mnist-worker-x", "Pod", False),
        ("mnist-2-worker-0", "Pod", False),
        ("mnist", "Job", False),
        ("mnist-2", "IPUJob", False),
    ],
)
def test_events_of_the_job_and_of_its_pods(name, kind, own):
    assert bool(evidence(events=[event(name, kind)])["events"]) == own


def test_events_are_the_newest_and_one_line_each():
    many = [event("mnist-launcher", when=f"2026-11-21T10:{n:02}:00Z", count=n) for n in range(59, -1, -1)]
    found = evidence(events=many)["events"]
    assert len(found) == job_evidence.EVENTS
    assert found[-1] == "2026-11-21T10:59:00Z Warning Pod mnist-launcher: R: a b (59 times)"


def test_logs_of_the_controller_and_of_the_proxy_are_bounded():
    cluster = Cluster(pods=[pod("proxy", "vipu-proxy"), pod("manager", "kube-rbac-proxy", "manager")])
    found = job_evidence.collect_evidence(cluster, "n", "mnist", JOB)["operator"]
    assert [(log["name"], log["lines"]) for log in found] == [
        ("ops/manager.manager", ["one", "two"]),
        ("ops/proxy.vipu-proxy", ["one", "two"]),
    ]
    path, asked = cluster.asked[0]
    assert path == "/api/v1/namespaces/ops/pods/manager/log"
    assert asked["sinceTime"] == "2026-11-21T10:00:00Z"
    assert (asked["tailLines"], asked["limitBytes"]) == (job_evidence.LINES, job_evidence.BYTES)


def test_what_cannot_be_read_is_named_and_hides_nothing():
    refused = FabricError("w", "x", "pods is forbidden", "n")
    found = evidence(events=refused, pods=refused)
    assert found["events"] == ["events can't be read: pods is forbidden"]
    assert found["operator"] == [{"name": "ipu-operator", "lines": [], "error": "pods is forbidden"}]
    assert found["conditions"]
    broken = evidence(pods=[pod("manager", "manager")], log=OSError("broken"))["operator"][0]
    assert (broken["lines"], broken["error"]) == ([], "broken")
    assert "no pod has the labels" in evidence()["operator"][0]["error"]


def test_the_file_has_all_lines_and_the_result_the_last(tmp_path):
    found = evidence(pods=[pod("manager", "manager")])
    written = job_evidence.write_evidence(found, str(tmp_path), "mnist")
    assert written["file"] == str(tmp_path / "mnist.evidence.json")
    assert [path.name for path in tmp_path.iterdir()] == ["mnist.evidence.json"]
    assert json.loads((tmp_path / "mnist.evidence.json").read_text())["operator"][0]["lines"] == ["one", "two"]
    assert job_evidence.shorten_evidence(written, 1)["operator"][0]["lines"] == ["two"]
    assert job_evidence.shorten_evidence(written, 0)["operator"][0]["lines"] == []

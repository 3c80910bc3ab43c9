"""Which rights a kubeconfig lacks, as an API server answers that has a set of them."""

from __future__ import annotations

import typing as t

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import ApiError, Cluster, NoCluster
from ansible_collections.ipu.fabric.plugins.module_utils._kube.rights import (
    NEEDED,
    REVIEWS,
    TO_MARK,
    WHO_AM_I,
    missing_rights,
    require_rights,
    user_name,
)
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

Review = t.Dict[str, t.Any]


class Reviewer(Cluster):
    """Allows verbs, of whatever resource."""

    def __init__(self, *verbs: str) -> None:
        super().__init__(client=None)
        self.verbs = verbs
        self.asked: t.List[Review] = []

    def request(self, verb: str, path: str, body: t.Any = None, content_type: str = "", **query: t.Any) -> Review:
        assert (verb, path) == ("post", REVIEWS)
        self.asked.append(body["spec"]["resourceAttributes"])
        return {"status": {"allowed": self.asked[-1]["verb"] in self.verbs}}


def test_an_administrator_is_asked_one_question() -> None:
    cluster = Reviewer("*")
    assert missing_rights(cluster) == []
    assert len(cluster.asked) == 1


def test_who_may_only_look_is_told_everything_at_once() -> None:
    cluster = Reviewer("get", "list", "watch")
    missing = missing_rights(cluster)
    assert missing[:2] == ["patch nodes", "create namespaces"]
    assert len(missing) == sum(map(len, NEEDED.values())) - 1
    exec_in_pods = {"verb": "create", "group": "", "resource": "pods", "subresource": "exec"}
    assert exec_in_pods in cluster.asked
    definitions = {"verb": "patch", "group": "apiextensions.k8s.io", "resource": "customresourcedefinitions"}
    assert {**definitions, "subresource": ""} in cluster.asked


def test_who_has_what_is_needed_is_no_finding() -> None:
    assert missing_rights(Reviewer("create", "delete", "patch", "list", "escalate")) == []


def test_no_cluster_answers() -> None:
    assert missing_rights(NoCluster()) == []


class Marker(Reviewer):
    """A user who may list nodes, and what else is given as `verb resource`."""

    def __init__(self, user: str, *given: str) -> None:
        super().__init__()
        self.user, self.given = user, ("list nodes", *given)

    def request(self, verb: str, path: str, body: t.Any = None, content_type: str = "", **query: t.Any) -> Review:
        if path == WHO_AM_I:
            return {"status": {"userInfo": {"username": self.user}}}
        asked = body["spec"]["resourceAttributes"]
        what = "/".join(filter(None, [asked["resource"], asked["subresource"]]))
        return {"status": {"allowed": f"{asked['verb']} {what}" in self.given}}


@pytest.mark.parametrize(
    ("given", "seen"),
    [(["patch nodes"], "without patch nodes/status"), ([], "without patch nodes, patch nodes/status")],
)
def test_who_may_not_mark_nodes_is_told_which_right_is_missing(given: t.List[str], seen: str) -> None:
    with pytest.raises(FabricError) as caught:
        require_rights(Marker("anna", *given), TO_MARK, "Marks need rights.", "Give it the ClusterRole x.")
    told = caught.value
    assert (told.where, told.seen, told.next_step) == ("the user anna", seen, "Give it the ClusterRole x.")
    assert told.code == "api-denied"


def test_who_may_mark_nodes_is_told_nothing() -> None:
    require_rights(Marker("anna", "patch nodes", "patch nodes/status"), TO_MARK, "", "")


def test_the_role_of_the_page_gives_what_marks_need() -> None:
    page = (ROOT / "docs/admission.md").read_text(encoding="utf-8")
    role = yaml.safe_load(page.partition("```yaml\napiVersion: rbac")[2].partition("```")[0].partition("\n")[2])
    given = {(name, verb) for rule in role["rules"] for name in rule["resources"] for verb in rule["verbs"]}
    assert {(name, verb) for name, verbs in TO_MARK.items() for verb in verbs} <= given
    assert ("nodes", "list") in given


class Named(Cluster):
    """Says who asks, or answers with a status of HTTP."""

    def __init__(self, answer: t.Union[str, int]) -> None:
        super().__init__(client=None)
        self.answer = answer

    def request(self, verb: str, path: str, body: t.Any = None, content_type: str = "", **query: t.Any) -> Review:
        assert (verb, path, body["kind"]) == ("post", WHO_AM_I, "SelfSubjectReview")
        if isinstance(self.answer, int):
            raise ApiError(status=self.answer)
        return {"status": {"userInfo": {"username": self.answer, "groups": ["system:authenticated"]}}}


@pytest.mark.parametrize(
    ("answer", "name"),
    [("system:serviceaccount:default:viewer", "system:serviceaccount:default:viewer"), (404, ""), (403, "")],
)
def test_the_api_says_who_asks(answer: t.Union[str, int], name: str) -> None:
    assert user_name(Named(answer)) == name


def test_without_a_cluster_nobody_asks() -> None:
    assert user_name(NoCluster()) == ""


def test_an_api_that_fails_is_no_older_one() -> None:
    with pytest.raises(ApiError):
        user_name(Named(500))

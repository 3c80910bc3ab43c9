import copy
import datetime
import json
import os
import signal

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipu import webhook

VALIDATING = f"{webhook.CONFIGURATIONS}/validatingwebhookconfigurations"
MUTATING = f"{webhook.CONFIGURATIONS}/mutatingwebhookconfigurations"


def hook(name, policy="Fail", groups=("graphcore.ai",), resources=("ipujobs",), **more):
    rule = {"apiGroups": list(groups), "resources": list(resources)}
    return {"name": name, "failurePolicy": policy, "rules": [rule], **more}


class Api:
    """Webhook configurations by their path. A strategic merge patch merges webhooks by name."""

    def __init__(self, validating, mutating):
        kinds = ((VALIDATING, validating), (MUTATING, mutating))
        self.stored = {
            f"{kind}/{name}": {"metadata": {"name": name}, "webhooks": hooks}
            for kind, configurations in kinds
            for name, hooks in configurations.items()
        }
        self.patches = []

    def items(self, path):
        return [copy.deepcopy(each) for place, each in self.stored.items() if place.rpartition("/")[0] == path]

    def request(self, verb, path, body, content_type):
        assert (verb, content_type) == ("patch", "application/strategic-merge-patch+json")
        self.patches.append(path)
        stored = self.stored[path]
        annotations = {**stored["metadata"].get("annotations", {}), **body["metadata"]["annotations"]}
        stored["metadata"]["annotations"] = {key: value for key, value in annotations.items() if value is not None}
        own = {each["name"]: each for each in stored["webhooks"]}
        for each in body.get("webhooks", []):
            own[each["name"]].update(each)

    def policies(self):
        return {each["name"]: each.get("failurePolicy") for found in self.stored.values() for each in found["webhooks"]}

    def notes(self):
        return [each["metadata"]["annotations"] for each in self.stored.values() if each["metadata"].get("annotations")]


def api():
    others = [hook("kyverno", groups=["*"], resources=["*"]), hook("other", resources=["others"])]
    default = hook("mutate", resources=["*"])
    del default["failurePolicy"]
    return Api(
        validating={"ipu-operator-admission": [hook("validate"), hook("lenient", "Ignore"), *others]},
        mutating={"ipu": [default], "unrelated": [hook("pods", groups=[""])]},
    )


BEFORE = {"validate": "Fail", "lenient": "Ignore", "kyverno": "Fail", "other": "Fail", "mutate": None, "pods": "Fail"}
RESTORED = {**BEFORE, "mutate": "Fail"}


def test_failures_are_ignored_for_a_moment_and_webhooks_stay():
    cluster = api()
    assert cluster.policies() == BEFORE
    with webhook.failures_ignored(cluster):
        assert cluster.policies() == {**BEFORE, "validate": "Ignore", "mutate": "Ignore"}
        assert len(cluster.notes()) == 2
    assert cluster.policies() == RESTORED
    assert cluster.notes() == []
    assert not any("unrelated" in path for path in cluster.patches)


@pytest.mark.parametrize("error", [FabricError("a", "b", "c", "d"), KeyboardInterrupt()])
def test_failures_count_again_after_an_error(error):
    cluster = api()
    with pytest.raises(type(error)), webhook.failures_ignored(cluster):
        raise error
    assert (cluster.policies(), cluster.notes()) == (RESTORED, [])


def test_failures_count_again_after_an_error_halfway():
    cluster = api()
    answer = cluster.request

    def break_down(verb, path, body, content_type):
        if path.startswith(VALIDATING):
            cluster.request = answer
            raise FabricError("The Kubernetes API stopped answering.", path, "x", "y")
        answer(verb, path, body, content_type)

    cluster.request = break_down
    with pytest.raises(FabricError, match="stopped answering"), webhook.failures_ignored(cluster):
        raise AssertionError("nothing is tried where this failed")
    assert (cluster.policies(), cluster.notes()) == (RESTORED, [])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_failures_count_again_after_a_signal(number):
    cluster, handler = api(), signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt, match="signal"), webhook.failures_ignored(cluster):
        os.kill(os.getpid(), number)
    assert (cluster.policies(), cluster.notes()) == (RESTORED, [])
    assert signal.getsignal(number) is handler


def test_the_next_run_restores_what_a_killed_one_has_left():
    cluster = api()
    webhook.ignore_failures(cluster)
    webhook.ignore_failures(cluster)  # killed twice
    ignored = cluster.policies()
    assert ignored["validate"] == "Ignore"
    left = webhook.restore_after_kill(cluster, dry_run=True)
    assert cluster.policies() == ignored
    assert webhook.restore_after_kill(cluster) == left
    assert left == (
        {
            "MutatingWebhookConfiguration ipu": {"mutate": "Ignore"},
            "ValidatingWebhookConfiguration ipu-operator-admission": {"validate": "Ignore"},
        },
        {
            "MutatingWebhookConfiguration ipu": {"mutate": "Fail"},
            "ValidatingWebhookConfiguration ipu-operator-admission": {"validate": "Fail"},
        },
    )
    assert (cluster.policies(), cluster.notes()) == (RESTORED, [])
    cluster.patches.clear()
    assert webhook.restore_after_kill(cluster) == ({}, {})
    assert cluster.patches == []


def test_what_an_upgrade_has_changed_meanwhile_stays():
    cluster = api()
    path = f"{VALIDATING}/ipu-operator-admission"
    with webhook.failures_ignored(cluster):
        cluster.stored[path]["webhooks"] = [hook("validate", "Ignore", clientConfig={"caBundle": "new"})]
        del cluster.stored[f"{MUTATING}/ipu"]
    assert cluster.stored[path]["webhooks"] == [hook("validate", clientConfig={"caBundle": "new"})]


def test_a_user_who_may_not_read_webhooks_can_remove_jobs():
    cluster = api()

    def refuse(path):
        raise FabricError("The API server refused to read an object.", path, "forbidden", "y")

    cluster.items = refuse
    webhook.restore_after_kill(cluster)
    with pytest.raises(FabricError, match="forbidden"), webhook.failures_ignored(cluster):
        raise AssertionError("the webhooks still refuse")


@pytest.mark.parametrize(
    ("message", "unanswered"),
    [
        ('Internal error occurred: failed calling webhook "v": no endpoints available', True),
        ('admission webhook "v" denied the request: no', False),
    ],
)
def test_only_silence_counts_as_unanswered(message, unanswered):
    assert webhook.is_unanswered(message) == unanswered


class RefusalError(Exception):
    def __init__(self, status):
        super().__init__("refused")
        self.status, self.body = status, json.dumps({"message": "refused"})


def test_a_configuration_that_was_uninstalled_needs_no_restoring(monkeypatch):
    monkeypatch.setattr(webhook, "ApiError", RefusalError)
    cluster = api()

    def refuse(*_words, **_options):
        raise RefusalError(status)

    cluster.request = refuse
    status = 404
    webhook.ignore_failures(cluster)
    status = 403
    with pytest.raises(FabricError, match="change the failure policies of the IPU operator's webhooks"):
        webhook.ignore_failures(cluster)


@pytest.mark.parametrize(("hours", "days"), [(49, 2), (-1, -1), (None, None)])
def test_certificate(monkeypatch, hours, days):
    end = None
    if hours is not None:
        end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=hours, minutes=1)
    monkeypatch.setattr(webhook, "first_end", lambda secret: end if secret == "the Secret" else None)

    class Secrets:
        def get(self, path):
            assert path == "/api/v1/namespaces/o/secrets/ipu-operator-admission"
            return "the Secret"

    assert webhook.read_certificate(Secrets(), "o") == {"end": end.isoformat() if end else "", "days": days}

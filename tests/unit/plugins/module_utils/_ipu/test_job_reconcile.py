import contextlib

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipu import job_reconcile, webhook
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._ipu.test_webhook import RESTORED, Api, api

OPTIONS = {
    "name": "train",
    "namespace": "ml",
    "scope": "job",
    "job_instances": None,
    "ipus_per_job_instance": None,
    "workers_per_job_instance": None,
    "model_replicas_per_worker": None,
    "launcher": None,
    "interactive": None,
    "workers": None,
    "networks": [],
    "rdma_resource": "",
    "volumes": [],
    "restart_policy": None,
    "clean_pod_policy": None,
    "labels": {},
    "recreate": False,
    "delete_all": False,
    "force": False,
    "wait": True,
    "wait_timeout": 1,
    "record": False,
    "logs": None,
}
JOB = {
    "ipus_per_job_instance": 1,
    "workers": {"replicas": None, "template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}},
}
ALL = {"scope": "cluster", "name": None, "namespace": None}


class WithoutJobs(Api):
    """A cluster that a killed run has left with webhooks at Ignore, and that does not know IPUJobs."""

    def resource(self, *_kind):
        return None

    def get(self, _path):
        return None


class Module:
    def __init__(self, check_mode, **params):
        self.params, self.check_mode, self.warnings = {**OPTIONS, **params}, check_mode, []
        self.log = self.warn = self.warnings.append


@pytest.fixture
def cluster(monkeypatch):
    left = api()
    left.__class__ = WithoutJobs
    webhook.ignore_failures(left)
    left.patches.clear()
    monkeypatch.setattr(job_reconcile, "connect", lambda _module: left)
    return left


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"state": "present", **JOB},
        {"state": "finished", **JOB},
        {"state": "absent"},
        {"state": "scaled", "job_instances": 2},
        {"state": "absent", **ALL},
        {"state": "restored", **ALL},
    ],
)
def test_every_run_restores_webhooks_that_a_killed_one_has_left(monkeypatch, cluster, options, check):
    monkeypatch.setattr(job_reconcile, "remove_all_jobs", lambda *_: {"changed": False, "jobs": []})
    ignored, module, result = cluster.policies(), Module(check, **options), {"changed": True}
    with contextlib.suppress(FabricError):  # this cluster can't have jobs
        result = job_reconcile.reconcile_jobs(module)
    assert result["changed"]
    assert (cluster.policies(), len(cluster.patches)) == ((ignored, 0) if check else (RESTORED, 2))
    if options["state"] != "restored":
        assert "ValidatingWebhookConfiguration ipu-operator-admission" in module.warnings[0]
    if not check:
        module = Module(check, state="restored", **ALL)
        assert (job_reconcile.reconcile_jobs(module)["changed"], module.warnings) == (False, [])


def test_who_may_not_change_webhooks_can_run_jobs(monkeypatch, cluster):
    def refuse(*_args, **_more):
        raise FabricError("The API server refused to change it.", "webhooks", "forbidden", "Ask.", code="api-denied")

    monkeypatch.setattr(cluster, "request", refuse)
    module = Module(False, state="absent")
    assert not job_reconcile.reconcile_jobs(module)["changed"]
    assert "left the IPU operator's webhooks at Ignore" in module.warnings[0]
    with pytest.raises(FabricError, match="forbidden"):
        job_reconcile.reconcile_jobs(Module(False, state="restored", **ALL))

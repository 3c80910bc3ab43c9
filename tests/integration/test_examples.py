"""The examples of the documentation and their roles, against an API server without controllers."""

from __future__ import annotations

import hashlib
import json
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._plan.report import native_job_variables
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.mpijob import mpi_job
from ansible_collections.ipu.fabric.tests.integration.api_server import ApiServer, Modules, crds, run_playbook
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT, SCHEMAS
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import plan, site

EXAMPLES = ROOT / "docs" / "examples"
PLAN = ROOT / "tests/integration/plan.json"  # as much of one as the examples read
# What site prints as the next command.
FIRST_JOB = native_job_variables(plan(site(), ipu=False)["networks"][0], "", "site/tools:1")
RECAP = "changed={} "


def play(api: ApiServer, playbook: Path, *options: str, **variables: t.Any) -> str:
    """Run a playbook on this machine and return what it said."""
    given = {"native_workload_kubeconfig": str(api.kubeconfig), "plan_file": str(PLAN)}
    done = run_playbook(playbook, *options, **{**given, **variables})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("native-training", {"native_workload_user": "0"}),
        ("native-training", {**FIRST_JOB, "plan_file": "/nonexistent"}),
        ("native-inference", {"example_replicas": "3", "example_vipu": "10.5.0.2", "plan_file": "/nonexistent"}),
    ],
)
def test_native_workloads(api: ApiServer, name: str, given: t.Dict[str, t.Any]) -> None:
    """Nothing runs here, so what would be applied is checked by a dry run. Variables of the command line are text."""
    assert RECAP.format(1) in play(api, EXAMPLES / f"{name}.yml", "--check")
    assert RECAP.format(1) in play(api, EXAMPLES / f"{name}.yml", "--check", **given)
    assert RECAP.format(0) in play(api, EXAMPLES / f"{name}.yml", native_workload_state="absent")


@pytest.mark.usefixtures("schemas")
def test_mpi(api: ApiServer, run: Modules) -> None:
    definition = SCHEMAS / "mpi-operator" / "0.8.2" / "kubeflow.org_mpijobs.yaml"
    run("kube_apply", objects=crds(definition), validation="Warn")
    for example, jobs in (("mpi", 2), ("mpi-compare", 2), ("mpi-horovod", 1)):
        assert RECAP.format(jobs) in play(api, EXAMPLES / f"{example}.yml", "--check")


@pytest.mark.usefixtures("schemas")
def test_an_ipujob_without_a_launcher(api: ApiServer, run: Modules) -> None:
    definition = SCHEMAS / "ipu-operator" / "1.2.0" / "graphcore.ai_ipujobs.yaml"
    run("kube_apply", objects=crds(definition), validation="Warn")
    api.kubectl("wait", "--for=condition=Established", "crd/ipujobs.graphcore.ai")
    assert RECAP.format(1) in play(api, EXAMPLES / "mnist.yml", "--check", fabric_kubeconfig=str(api.kubeconfig))


def test_teams(api: ApiServer) -> None:
    assert RECAP.format(1) in play(api, EXAMPLES / "teams.yml")
    assert RECAP.format(0) in play(api, EXAMPLES / "teams.yml", "--check")
    quota = api.get("resourcequota", "fabric", "-n", "speech")
    assert quota["spec"]["hard"] == {"requests.rdma/rdma_shared_device_a": "8", "count/ipujobs.graphcore.ai": "4"}
    assert api.get("rolebinding", "team", "-n", "vision")["subjects"][0]["name"] == "vision-team"


def role(tmp_path: Path, name: str) -> Path:
    """A playbook of one role."""
    playbook = tmp_path / f"{name}.yml"
    content = [{"hosts": "localhost", "connection": "local", "gather_facts": False, "roles": [f"ipu.fabric.{name}"]}]
    playbook.write_text(json.dumps(content))
    return playbook


def test_datasets_role(api: ApiServer, tmp_path: Path) -> None:
    """Nothing binds a claim here, so it is checked by a dry run."""
    playbook = role(tmp_path, "datasets")
    sets = [{"name": "sets", "server": "10.1.0.5", "path": "/export"}, {"name": "b", "server": "n", "path": "/b"}]
    variables = {"datasets_kubeconfig": str(api.kubeconfig), "datasets_volumes": sets}
    assert RECAP.format(1) in play(api, playbook, "--check", **variables)
    assert RECAP.format(0) in play(api, playbook, datasets_state="absent", **variables)
    assert RECAP.format(0) in play(api, playbook, datasets_kubeconfig=str(api.kubeconfig))


def test_metrics_role(api: ApiServer, run: Modules, tmp_path: Path) -> None:
    playbook = role(tmp_path, "metrics")
    variables = {
        "metrics_kubeconfig": str(api.kubeconfig),
        "metrics_namespace": "default",
        "metrics_files_dir": str(tmp_path / "files"),
        "metrics_networks": [{"name": "rdma-net", "resource": "rdma/a", "hosts": ["w1"], "subnet": {"capacity": 8}}],
    }
    assert RECAP.format(3) in play(api, playbook, "--check", **variables)
    assert not (tmp_path / "files").exists()
    assert RECAP.format(4) in play(api, playbook, **variables)
    assert RECAP.format(0) in play(api, playbook, **variables)
    assert "RdmaNodesMissing" in (tmp_path / "files" / "rules.yml").read_text()
    assert api.get("configmap", "ipu-fabric-dashboard")["metadata"]["labels"] == {"grafana_dashboard": "1"}
    assert RECAP.format(2) in play(api, playbook, **variables, metrics_state="absent")


@pytest.mark.usefixtures("schemas")
def test_mpi_operator_role(api: ApiServer, run: Modules, tmp_path: Path) -> None:
    definition = SCHEMAS / "mpi-operator" / "0.8.2" / "kubeflow.org_mpijobs.yaml"
    container = {"name": "mpi-operator", "image": "mpioperator/mpi-operator:0.8.2"}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [container]}}
    metadata = {"name": "mpi-operator", "namespace": "mpi-operator"}
    spec = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mpi-operator"}}
    manifest = tmp_path / "mpi-operator.yaml"
    # The namespace is not in it: without controllers it would never go.
    manifest.write_text(yaml.safe_dump_all([*crds(definition), deployment]))
    playbook, digest = role(tmp_path, "mpi_operator"), hashlib.sha256(manifest.read_bytes()).hexdigest()
    variables = {
        "mpi_operator_kubeconfig": str(api.kubeconfig),
        "mpi_operator_manifest_url": str(manifest),
        "mpi_operator_manifest_sha256": digest,
    }
    with pytest.raises(AssertionError, match="is not the file that was expected"):
        play(api, playbook, "--check", **{**variables, "mpi_operator_manifest_sha256": "0" * 64})
    assert RECAP.format(1) in play(api, playbook, "--check", **variables, mpi_operator_image="site/mpi:1")
    run("kube_apply", objects=[namespace, *crds(definition), deployment], validation="Warn")
    counts = dict.fromkeys(
        ("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1
    )
    ready = json.dumps({"status": counts})
    api.kubectl(
        "patch", "deployment", "mpi-operator", "-n", "mpi-operator", "--subresource=status", "--type=merge", "-p", ready
    )
    assert RECAP.format(0) in play(api, playbook, **variables)
    other = play(api, playbook, "--check", "--diff", **variables, mpi_operator_image="site/mpi:1")
    assert RECAP.format(1) in other
    assert "site/mpi:1" in other
    job = mpi_job({"name": "last", "image": "x", "command": ["true"], "transport": "tcp"})
    run("kube_apply", objects=[job])
    for options in ((), ("--check",)):
        with pytest.raises(AssertionError, match="1 of them, default/last"):
            play(api, playbook, *options, **variables, mpi_operator_state="absent")
    told = {**variables, "mpi_operator_state": "absent", "mpi_operator_delete_jobs": True}
    assert RECAP.format(2) in play(api, playbook, **told)
    assert api.kubectl("get", "crd", "mpijobs.kubeflow.org", check=False).returncode
    assert RECAP.format(0) in play(api, playbook, **variables, mpi_operator_state="absent")

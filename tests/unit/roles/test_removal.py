"""What roles with state=absent and the playbook reset remove, and what they leave to others."""

from __future__ import annotations

import base64
import hashlib
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.ipu.fabric.tests.unit.fixtures.play import Answers, Data, Outcome, play

GROUPS = {"kube_control_plane": ["cp1"], "kube_node": ["w1"]}
OPERATOR = {"namespace": "nvidia-network-operator", "name": "network-operator", "version": "26.4.1"}
OURS = {**OPERATOR, "release": "network-operator"}
THEIRS = {**OPERATOR, "namespace": "gpu-team", "release": "fabric"}
OUR_NAME = "nvidia-network-operator/network-operator"
WHEREABOUTS = "kube-system/whereabouts-whereabouts-chart"
LABEL = "feature.node.kubernetes.io/pci-15b3.present"
CLUSTER: Data = {
    "present": True, "version": "1.36.3", "ca": "", "nodes": [], "nfd": [], "multus": [], "api_groups": [],
    "nv_ipam": [],
    "whereabouts": [], "whereabouts_networks": [], "network_operators": [], "own": [], "policy_ipam": "",
    "device_plugin": "",
    "node_policies": [],
    "policy_in_chart": False,
}  # fmt: skip
IPU: Data = {
    "operators": [],
    "own": [],
    "vipu_controllers": [],
    "labelled": [],
    "tracker": False,
    "jobs": [],
    "definition": False,
}


class Cluster(Answers):
    def cluster_info(self, args: Data) -> Data:
        gpu = {"operators": [], "pods": [], "drivers": [], "labelled": [], **self.state["gpu"]}
        return {"mpi": {"ours": False, "jobs": []}, **self.state["cluster"], "ipu": self.state["ipu"], "gpu": gpu}

    def fabric_stack(self, args: Data) -> Data:
        if args["stack"] == "network_operator":
            nothing = {"objects": [], "pods": [], "other_pods": [], "attachments": [], "needed_by": []}
            return {**nothing, **self.state["found"]}
        nothing = {"objects": [], "pods": [], "needed_by": [], "installations": [], "definitions": []}
        found = {**nothing, **self.state["spiderpool"]}
        self.state["asked"] = self.state.get("asked", 0) + 1
        # Looked at, removed, and looked at once more when it is uninstalled.
        return {**found, "installations": []} if self.state["asked"] > 2 else found

    def helm_release(self, args: Data) -> Data:
        if args["name"] == "gpu-operator":
            self.state["gpu"]["operators"] = []
        return {"upgraded": False}

    def kube_apply(self, args: Data) -> Data:
        # After the first removal everything is gone.
        self.state["cluster"]["network_operators"] = []
        return {"objects": [], "kept": []}

    def host_reset(self, args: Data) -> Data:
        return {"removed": {}}


def run(
    folder: Path,
    what: t.Union[str, t.List[Data]],
    *options: str,
    found: Data | None = None,
    ipu: Data | None = None,
    variables: Data | None = None,
    spiderpool: Data | None = None,
    gpu: Data | None = None,
    **cluster: t.Any,
) -> Outcome:
    state: Data = {"found": found or {}, "ipu": {**IPU, **(ipu or {})}, "cluster": {**CLUSTER, **cluster}}
    state |= {"spiderpool": spiderpool or {}, "gpu": gpu or {}}
    return play(folder, what, Cluster, GROUPS, *options, state=state, **(variables or {}))


def role(name: str, **variables: t.Any) -> t.List[Data]:
    task = {"import_role": {"name": f"ipu.fabric.{name}"}, "run_once": True, "delegate_to": "localhost"}
    return [{"hosts": "all", "gather_facts": False, "tasks": [{**task, "vars": variables}]}]


NETWORK_OPERATOR = role("network_operator", network_operator_state="absent")
RESET = "ipu.fabric.reset"
TRUE = hashlib.sha256(Path("/bin/true").read_bytes()).hexdigest()
ASKED = {"fabric_reset": "fabric", "helm_binary": "/bin/true", "helm_sha256": TRUE, "fabric_ipu": False}
CHANGING = ("fabric_stack", "helm_release", "kube_apply", "node_labels", "ipujob", "host_reset")


HOOK = [{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "spiderpool-init", "namespace": "spiderpool"}}]


def changing(outcome: Outcome) -> t.List[str]:
    """The modules that changed something, in their order; fabric_stack by its stack."""
    return [call.args.get("stack", call.module) for call in outcome.of(*CHANGING) if not call.check]


def objects(outcome: Outcome) -> t.Dict[str, t.List[str]]:
    """Names that kube_apply was to remove, by kind. All of them only if they are ours."""
    found: t.Dict[str, t.List[str]] = {}
    for call in outcome.of("kube_apply"):
        assert call.args.get("only_ours") or call.args["objects"] == HOOK
        for each in call.args["objects"]:
            found.setdefault(each["kind"], []).append(each["metadata"]["name"])
    return found


def test_what_others_need_stays(tmp_path: Path) -> None:
    found = {"needed_by": ["MacvlanNetwork theirs"]}
    result = run(tmp_path, NETWORK_OPERATOR, found=found, network_operators=[OURS], own=[OUR_NAME])
    assert result.code == 0
    assert changing(result) == ["network_operator"]


def test_the_removal_takes_what_is_ours(tmp_path: Path) -> None:
    nodes = [{"name": "w1", "own_labels": [LABEL]}, {"name": "w2", "own_labels": []}]
    more = {"nodes": nodes, "nv_ipam": ["dpf/nv-ipam-node"], "network_operators": [OURS], "own": [OUR_NAME]}
    result = run(tmp_path, NETWORK_OPERATOR, **more)
    assert result.code == 0
    assert changing(result) == ["network_operator", "helm_release", "kube_apply", "node_labels"]
    gone = objects(result)
    assert "macvlannetworks.mellanox.com" in gone["CustomResourceDefinition"]
    assert "ippools.nv-ipam.nvidia.com" not in gone["CustomResourceDefinition"]
    assert gone["Namespace"] == ["nvidia-network-operator"]
    (labels,) = result.of("node_labels")
    assert [(each["name"], LABEL in each["labels"]) for each in labels.args["nodes"]] == [("w1", True), ("w2", False)]


@pytest.mark.parametrize(
    ("cluster", "ipu", "named"),
    [
        ({"network_operators": [THEIRS]}, {}, "gpu-team/network-operator"),
        (
            {},
            {"operators": [{**OPERATOR, "namespace": "ipu-operator", "release": "ipu-operator"}]},
            "ipu-operator/network-operator",
        ),
    ],
)
def test_reset_leaves_all_as_it_was_with_an_operator_of_others(
    tmp_path: Path, cluster: Data, ipu: Data, named: str
) -> None:
    result = run(tmp_path, RESET, variables={**ASKED, "fabric_ipu": True}, ipu=ipu, **cluster)
    assert result.code != 0
    assert named in result.text
    assert changing(result) == []


@pytest.mark.parametrize(
    ("found", "cluster", "releases"),
    [
        # The operator serves others: hosts keep its files.
        ({"needed_by": ["IPPool dpf/theirs"]}, {"own": [OUR_NAME], "network_operators": [OURS]}, ["whereabouts"]),
        # Somebody else's whereabouts under the name that ours would have.
        ({}, {"whereabouts": [WHEREABOUTS]}, ["network-operator"]),
        ({}, {"whereabouts": [WHEREABOUTS], "own": [WHEREABOUTS]}, ["network-operator", "whereabouts"]),
        (
            {},
            {"whereabouts": [WHEREABOUTS], "own": [WHEREABOUTS], "whereabouts_networks": ["jobs/theirs"]},
            ["network-operator"],
        ),
    ],
)
def test_reset_uninstalls_what_nobody_else_needs(
    tmp_path: Path, found: Data, cluster: Data, releases: t.List[str]
) -> None:
    result = run(tmp_path, RESET, variables=ASKED, found=found, **cluster)
    assert result.code == 0
    assert [call.args["name"] for call in result.of("helm_release")] == ["spiderpool", *releases]
    files = {path for call in result.of("host_reset") for path in call.args["files"]}
    assert ("/opt/cni/bin/multus" in files) == ("network-operator" in releases)
    assert ("/opt/cni/bin/whereabouts" in files) == ("whereabouts" in releases)


def test_whereabouts_that_others_need_is_not_removed(tmp_path: Path) -> None:
    content = role("whereabouts", whereabouts_state="absent")
    result = run(tmp_path, content, whereabouts_networks=["jobs/theirs"])
    assert result.code != 0
    assert "jobs/theirs" in result.text
    assert changing(result) == []


def test_definitions_of_whereabouts_go_only_if_they_are_ours(tmp_path: Path) -> None:
    result = run(tmp_path, role("whereabouts", whereabouts_state="absent"))
    assert result.code == 0
    assert "ippools.whereabouts.cni.cncf.io" in objects(result)["CustomResourceDefinition"]


DEFINITION = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}


@pytest.mark.parametrize(("options", "asked"), [((), True), ((), False), (("--check",), False)])
def test_mpijobs_are_deleted_only_when_told(tmp_path: Path, options: t.Sequence[str], asked: bool) -> None:
    manifest = tmp_path / "mpi-operator.yaml"
    manifest.write_text(yaml.safe_dump({**DEFINITION, "metadata": {"name": "mpijobs.kubeflow.org"}}))
    variables = {"mpi_operator_manifest_url": str(manifest), "mpi_operator_manifest_sha256": ""}
    content = role("mpi_operator", mpi_operator_state="absent", mpi_operator_delete_jobs=asked, **variables)
    result = run(tmp_path, content, *options, mpi={"ours": True, "jobs": ["jobs/train"]})
    assert (result.code == 0) == asked
    assert ("jobs/train" in result.text) != asked
    kinds = [[each["kind"] for each in call.args["objects"]] for call in result.of("kube_apply")]
    assert kinds == ([["MPIJob"], ["CustomResourceDefinition"]] if asked else [])
    assert [call.args.get("only_ours", False) for call in result.of("kube_apply")] == ([False, True] if asked else [])


SPIDERPOOL = role("spiderpool", spiderpool_state="absent")
INSTALLED = {**OURS, "namespace": "spiderpool", "name": "spiderpool-controller", "release": "spiderpool", "ours": True}
POOLS = {**DEFINITION, "metadata": {"name": "spiderippools.spiderpool.spidernet.io"}}


def test_the_removal_of_spiderpool_takes_what_is_ours(tmp_path: Path) -> None:
    result = run(tmp_path, SPIDERPOOL, spiderpool={"installations": [INSTALLED], "definitions": [POOLS]})
    assert result.code == 0
    # Its own objects go when nobody puts their finalizers back.
    assert changing(result) == ["spiderpool", "helm_release", "spiderpool", "kube_apply", "kube_apply"]
    (helm,) = result.of("helm_release")
    assert helm.args["hooks"] is False, "the hook deletes what others have"
    assert objects(result) == {
        "Job": ["spiderpool-init"],
        "CustomResourceDefinition": ["spiderippools.spiderpool.spidernet.io"],
        "Namespace": ["spiderpool"],
    }


def test_spiderpool_that_others_need_stays(tmp_path: Path) -> None:
    found = {"installations": [INSTALLED], "needed_by": ["SpiderIPPool theirs"]}
    result = run(tmp_path, SPIDERPOOL, spiderpool=found)
    assert (result.code, changing(result)) == (0, ["spiderpool"])


def test_reset_removes_what_the_pods_of_spiderpool_left_on_hosts(tmp_path: Path) -> None:
    result = run(tmp_path, RESET, variables=ASKED, spiderpool={"installations": [INSTALLED]})
    assert result.code == 0
    files = {path for call in result.of("host_reset") for path in call.args["files"]}
    assert {"/opt/cni/bin/spiderpool", "/opt/cni/bin/coordinator", "/opt/cni/bin/ifacer"} <= files
    assert "/etc/cni/net.d/00-multus.conf" in files


def test_reset_leaves_the_files_of_a_spiderpool_that_others_need(tmp_path: Path) -> None:
    found = {"installations": [INSTALLED], "needed_by": ["SpiderIPPool theirs"]}
    result = run(tmp_path, RESET, variables=ASKED, spiderpool=found)
    assert result.code == 0
    assert "/opt/cni/bin/spiderpool" not in {path for call in result.of("host_reset") for path in call.args["files"]}
    assert "spiderpool" not in [call.args["name"] for call in result.of("helm_release")]


OURS_GPU = {
    "namespace": "gpu-operator",
    "name": "gpu-operator",
    "version": "26.7.0",
    "release": "gpu-operator",
    "ours": True,
}
GPU = role("gpu_operator", gpu_operator_state="absent")


def test_pods_with_gpus_stop_the_removal(tmp_path: Path) -> None:
    result = run(tmp_path, GPU, gpu={"operators": [OURS_GPU], "pods": ["jobs/train"]})
    assert result.code != 0
    assert "jobs/train" in result.text
    assert changing(result) == []


def test_the_removal_of_the_gpu_operator_takes_what_is_ours(tmp_path: Path) -> None:
    labelled = [{"name": "w1", "labels": {"nvidia.com/gpu.present": None}}]
    result = run(tmp_path, GPU, gpu={"operators": [OURS_GPU], "labelled": labelled})
    assert result.code == 0
    assert changing(result) == ["helm_release", "kube_apply", "node_labels"]
    gone = objects(result)
    assert gone["Secret"] == ["licensing-config"]
    assert gone["Namespace"] == ["gpu-operator"]
    assert "clusterpolicies.nvidia.com" in gone["CustomResourceDefinition"]
    (labels,) = result.of("node_labels")
    assert labels.args["nodes"] == labelled


@pytest.mark.parametrize("site", [True, False])
def test_reset_knows_the_gpu_operator_of_a_site_that_has_one(tmp_path: Path, site: bool) -> None:
    result = run(tmp_path, RESET, variables={**ASKED, "fabric_gpu": site}, gpu={"operators": [OURS_GPU]})
    assert result.code == 0
    assert ("gpu-operator" in [call.args["name"] for call in result.of("helm_release")]) == site


def test_reset_lists_spiderpool_and_gpus_before_it_is_asked_to_remove_them(tmp_path: Path) -> None:
    found = {"installations": [INSTALLED], "objects": ["SpiderIPPool rail-0-v4"], "pods": ["jobs/on-a-rail"]}
    variables = {**ASKED, "fabric_reset": "", "fabric_gpu": True}
    gpu = {"operators": [OURS_GPU], "pods": ["jobs/with-a-gpu"]}
    result = run(tmp_path, RESET, variables=variables, spiderpool=found, gpu=gpu)
    assert result.code != 0
    assert all(text in result.text for text in ("SpiderIPPool rail-0-v4", "jobs/on-a-rail", "jobs/with-a-gpu"))
    assert changing(result) == []


@pytest.mark.parametrize(
    ("spiderpool", "gpu", "named"),
    [({"pods": ["jobs/a"]}, {}, "jobs/a"), ({}, {"operators": [OURS_GPU], "pods": ["jobs/b"]}, "jobs/b")],
)
def test_reset_waits_for_pods_on_rails_and_with_gpus(tmp_path: Path, spiderpool: Data, gpu: Data, named: str) -> None:
    result = run(tmp_path, RESET, variables={**ASKED, "fabric_gpu": True}, spiderpool=spiderpool, gpu=gpu)
    assert result.code != 0
    assert named in result.text
    assert changing(result) == []


# ---- the licence of vGPU


def test_the_licence_is_a_secret_and_nothing_shows_it(tmp_path: Path) -> None:
    file = tmp_path / "token.tok"
    file.write_text("VERY-SECRET-TOKEN")
    content = role(
        "gpu_operator", gpu_operator_license_token_file=str(file), gpu_operator_driver_repository="registry.site/vgpu"
    )
    result = run(tmp_path, content, "-vvv", "--diff")
    assert result.code == 0, result.text
    (applied,) = result.of("kube_apply")
    _namespace, secret = applied.args["objects"]
    assert base64.b64decode(secret["data"]["client_configuration_token.tok"]) == b"VERY-SECRET-TOKEN"
    assert applied.args["adopt"] is False, "a Secret of others is left as it is"
    assert changing(result) == ["kube_apply", "helm_release"]
    assert "VERY-SECRET-TOKEN" not in result.text

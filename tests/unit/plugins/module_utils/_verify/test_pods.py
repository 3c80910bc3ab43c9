"""Which pods are made, with which rights, and when one is given up."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._verify import pod_manifests
from ansible_collections.ipu.fabric.plugins.module_utils._verify import pods as pod_data

Facts = t.Dict[str, t.Any]
OPTIONS = pod_data.Options("", "verify", "small", "tools", 60, 30, 100, 300, 4, True, "", 0)
READY = {"type": "Ready", "status": "True"}


def plan(rdma: bool = False) -> Facts:
    link: Facts = {"netdev": "eth1", "mtu": 1500, "addresses": []}
    return {
        "hosts": {
            "cp1": {"node": "cp1.example.com", "roles": ["control_plane"], "links": {}},
            "w1": {"node": "w1", "roles": ["worker"], "links": {"a": link, "b": link}},
            "w2": {"node": "w2", "roles": ["worker"], "links": {"b": {**link, "mtu": 9000}}},
        },
        "networks": [
            {"name": "a", "namespace": "default", "rdma": rdma, "resource": "rdma/shared_a", "mtu": 0},
            {"name": "b", "namespace": "fabric", "rdma": rdma, "resource": "shared_b", "mtu": 1450},
        ],
        "rdma_resources": [{"resourceName": "shared_b", "resourcePrefix": "example.com"}],
        "vipu": {
            "controllers": [
                {"address": "10.5.0.20", "port": 8090, "serves": ["w1"]},
                {"address": "10.5.0.21", "port": "8091", "serves": []},
            ]
        },
    }


def node(**allocatable: str) -> Facts:
    resources = {name.replace("__", "/"): count for name, count in allocatable.items()}
    return {"metadata": {"name": "n"}, "status": {"allocatable": resources, "conditions": [READY]}}


def test_a_control_plane_without_work_or_nic_is_left_alone() -> None:
    found = [(target.host, target.networks) for target in pod_data.targets(plan())]
    assert found == [("w1", ("a", "b")), ("w2", ("b",))]


GPUS = [{"pci": f"0000:{bus}:00.0", "model": "", "networks": near} for bus, near in (("17", ["b"]), ("81", ["a"]))]


@pytest.mark.parametrize(
    ("gpus", "driver", "expected"),
    [
        ([], "mlx5_core", ["--use_cuda=0", "--use_cuda_dmabuf"]),
        (GPUS, "mlx5_core", ["--use_cuda_bus_id=0000:81:00.0", "--use_cuda_dmabuf"]),
        (GPUS[:1], "mlx5_core", []),  # none is near
        (GPUS, "vmw_pvrdma", []),
    ],
)
def test_a_nic_is_tested_with_the_gpu_that_is_nearest(gpus: t.List[Facts], driver: str, expected: t.List[str]) -> None:
    planned, pod = plan(rdma=True), t.cast(t.Any, {"host": "w1", "gpus": 2})
    planned["hosts"]["w1"].update(gpus=gpus)
    planned["hosts"]["w1"]["links"]["a"]["driver"] = driver
    assert pod_data.gpu_options(planned, pod, "a", "dma-buf") == expected
    assert pod_data.gpu_options(planned, pod, "a", "peermem") == expected[:1]
    assert pod_data.gpu_options(planned, {**pod, "gpus": 0}, "a", "dma-buf") == []


@pytest.mark.parametrize(
    ("change", "allocatable", "gpus", "expected"),
    [
        ({}, {"nvidia.com__gpu": "8"}, [], 8),
        ({}, {"nvidia.com__gpu": "8"}, GPUS, 8),
        ({}, {}, GPUS, 0),
        ({"gpu": False}, {"nvidia.com__gpu": "8"}, GPUS, 0),
        ({"checks": ["mtu"]}, {"nvidia.com__gpu": "8"}, GPUS, 0),
        ({"checks": ["gpu_bandwidth"]}, {"nvidia.com__gpu": "8"}, GPUS, 8),
        ({}, {"nvidia.com__gpu": "1"}, [{**GPUS[0], "networks": []}], 0),
    ],
)
def test_a_pod_asks_for_all_gpus_of_its_node_or_for_none(
    change: Facts, allocatable: t.Dict[str, str], gpus: t.List[Facts], expected: int
) -> None:
    planned, options = plan(rdma=True), OPTIONS._replace(**{"gpu": True, **change})
    planned["hosts"]["w1"]["gpus"] = gpus
    target, offered = pod_data.Target("w1", "w1", ("a",)), node(rdma__shared_a="63", **allocatable)
    assert pod_manifests.gpus_for(target, planned, offered, options) == expected
    assert pod_manifests.gpus_for(target._replace(second=True), planned, offered, options) == 0
    spec = pod_manifests.pod_manifest(target, planned, offered, options, expected)["spec"]
    held = {"rdma/shared_a": "1", **({"nvidia.com/gpu": str(expected)} if expected else {})}
    assert [each.get("resources", {}).get("limits", {}) for each in spec["containers"]] == [{}, {}, held]


def test_without_networks_one_container_is_privileged_and_has_the_devices_of_the_host() -> None:
    planned = plan()
    planned["networks"], planned["hosts"]["w1"]["links"] = [], {"host": {"netdev": "eth1"}}
    target = pod_data.Target("w1", "w1", ())
    spec = pod_manifests.pod_manifest(target, planned, node(), OPTIONS)["spec"]
    root, user, rdma = spec["containers"]
    assert rdma["securityContext"] == {"allowPrivilegeEscalation": True, "runAsUser": 0, "privileged": True}
    assert rdma["volumeMounts"] == [{"name": "infiniband", "mountPath": "/dev/infiniband"}]
    assert spec["volumes"] == [{"name": "infiniband", "hostPath": {"path": "/dev/infiniband"}}]
    assert not any("privileged" in other["securityContext"] for other in (root, user))
    assert [other["image"] for other in spec["containers"]] == ["tools"] * 3


@pytest.mark.parametrize(
    ("network", "rdma", "name"),
    [(0, True, "rdma/shared_a"), (1, True, "example.com/shared_b"), (0, False, ""), (1, False, "")],
)
def test_resource_name(network: int, rdma: bool, name: str) -> None:
    planned = plan(rdma)
    assert pod_data.resource_name(planned, planned["networks"][network]) == name


@pytest.mark.parametrize(("network", "host", "mtu"), [(0, "w1", 1500), (1, "w2", 1450), (0, "w2", 0), (0, "gone", 0)])
def test_mtu_of(network: int, host: str, mtu: int) -> None:
    planned = plan()
    assert pod_data.mtu_of(planned, planned["networks"][network], host) == mtu


FIRST, SECOND = ("10.5.0.20", 8090), ("10.5.0.21", 8091)


@pytest.mark.parametrize(("host", "controllers"), [("w1", [FIRST, SECOND]), ("w2", [SECOND])])
def test_controllers_of(host: str, controllers: t.List[t.Tuple[str, int]]) -> None:
    assert pod_data.controllers_of(plan(), host) == controllers


def test_pods_do_not_reach_a_controller_on_their_own_nic() -> None:
    planned = plan()
    planned["hosts"]["w1"]["links"]["a"]["addresses"] = [{"address": FIRST[0], "prefix": 24}]
    assert pod_data.own_controllers(planned, "w1") == [FIRST]
    assert pod_data.controllers_of(planned, "w1") == [SECOND]


def manifest(rdma: bool, **allocatable: str) -> Facts:
    target = pod_data.Target("w1", "w1", ("a", "b"))
    return pod_manifests.pod_manifest(target, plan(rdma), node(**allocatable), OPTIONS)


def test_the_pod_asks_for_its_networks_in_order_and_tolerates_every_taint() -> None:
    pod = manifest(False)
    assert pod["metadata"]["annotations"] == {pod_manifests.NETWORKS: "default/a,fabric/b"}
    assert pod["spec"]["nodeName"] == "w1"
    assert pod["spec"]["tolerations"] == [{"operator": "Exists"}]
    assert pod["spec"]["activeDeadlineSeconds"] > OPTIONS.timeout


def test_without_rdma_the_pod_needs_no_rights() -> None:
    pod = manifest(False)
    assert [container["name"] for container in pod["spec"]["containers"]] == ["root", "user"]
    assert "resources" not in str(pod)
    assert "add" not in str(pod["spec"]["containers"])
    assert "hostPath" not in str(pod)
    assert pod["spec"]["automountServiceAccountToken"] is False


def test_only_the_rdma_container_may_lock_memory_and_it_asks_for_what_the_node_has() -> None:
    root, user, rdma = manifest(True, rdma__shared_a="63")["spec"]["containers"]
    assert rdma["securityContext"]["capabilities"] == {"add": ["IPC_LOCK"]}
    assert rdma["resources"]["limits"] == {"rdma/shared_a": "1"}
    assert user["securityContext"]["runAsUser"] == 1000
    assert "add" not in f"{root}{user}"


PINNED = "nvcr.io/nvidia/doca/doca@sha256:" + 64 * "0"


@pytest.mark.parametrize(
    ("rdma", "rdma_image", "image"),
    [(True, "tools", "tools"), (False, "tools", "small"), (True, "", "small"), (True, PINNED, PINNED)],
)
def test_a_plan_needs_one_image(rdma: bool, rdma_image: str, image: str) -> None:
    target = pod_data.Target("w1", "w1", ("a", "b"))
    pod = pod_manifests.pod_manifest(target, plan(rdma), node(), OPTIONS._replace(rdma_image=rdma_image))
    assert {container["image"] for container in pod["spec"]["containers"]} == {image}


@pytest.mark.parametrize(
    ("node", "name"),
    [
        ("w1", "probe-w1"),
        ("w1.example.com", "probe-w1.example.com"),
        ("n" * 253, "probe-" + "n" * 247),
        ("n" * 246 + ".example.com", "probe-" + "n" * 246),  # no dot at the end
    ],
)
def test_pod_names_fit(node: str, name: str) -> None:
    assert pod_data.Target("h", node, ()).pod == name
    assert pod_data.Target("h", node, (), second=True).pod == f"second-{name[6:]}"[:253].rstrip(".-")


def status(*states: Facts, **more: t.Any) -> Facts:
    return {"status": {"phase": "Pending", "containerStatuses": [{"image": "img", "state": s} for s in states], **more}}


def waiting(reason: str) -> Facts:
    return {"waiting": {"reason": reason, "message": "because"}}


RUNNING: Facts = {"running": {"startedAt": "now"}}


API_AWAY = 'failed (add): Get "https://10.96.0.1:443/api": dial tcp 10.96.0.1:443: connect: connection refused'


@pytest.mark.parametrize(
    ("pod", "failures", "state", "reason"),
    [
        (None, [], "failed", "the pod was removed by something else"),
        ({"status": {"phase": "Pending"}}, [], "waiting", "the kubelet has not started the pod"),
        ({}, [], "waiting", "the kubelet has not started the pod"),
        (status(RUNNING, RUNNING, phase="Running"), [], "running", ""),
        (status({"running": {}}, phase="Running"), [], "running", ""),
        (status(RUNNING, {"running": None}), [], "waiting", "the kubelet has not started the pod"),
        (status(RUNNING, waiting("ContainerCreating")), [], "waiting", "ContainerCreating"),
        (status(RUNNING, waiting("ErrImagePull")), [], "waiting", "ErrImagePull"),
        (status(RUNNING, waiting("ImagePullBackOff")), [], "failed", "ImagePullBackOff, img: because"),
        (status(waiting("InvalidImageName")), [], "failed", "InvalidImageName, img: because"),
        (status(waiting("CreateContainerError")), [], "failed", "CreateContainerError, img: because"),
        (status(phase="Failed", reason="OutOfcpu", message="no room"), [], "failed", "OutOfcpu: no room"),
        (status(phase="Succeeded"), [], "failed", "Ended: no message"),
        (status(waiting("ContainerCreating")), ["pool is full"], "waiting", "could not be set up yet: pool is full"),
        (status(waiting("ContainerCreating")), ["pool is full"] * 3, "failed", "could not be set up: pool is full"),
        (status(waiting("ContainerCreating")), [API_AWAY] * 9, "waiting", f"could not be set up yet: {API_AWAY}"),
    ],
)  # fmt: skip
def test_pod_state(pod: t.Optional[Facts], failures: t.List[str], state: str, reason: str) -> None:
    found = pod_manifests.pod_state(pod, failures)
    assert (found.state, found.reason.endswith(reason)) == (state, True)
    assert bool(found.reason) == (state != "running")


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (None, "the cluster has no node of this name"),
        (node(), ""),
        ({"status": {}}, "the node is not Ready: no Ready condition"),
        (
            {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "message": "kubelet stopped"}]}},
            "the node is not Ready: kubelet stopped",
        ),
    ],
)
def test_node_fault(found: t.Optional[Facts], fault: str) -> None:
    assert pod_manifests.node_fault(found) == fault


@pytest.mark.parametrize(
    ("text", "expected"), [('[{"name": "default/a"}]', [{"name": "default/a"}]), ("{broken", None), ("", None)]
)
def test_network_status(text: str, expected: object) -> None:
    assert pod_manifests.network_status({"metadata": {"annotations": {pod_manifests.NETWORK_STATUS: text}}}) == expected
    assert pod_manifests.network_status({"metadata": {}}) is None


def test_ends_are_the_running_pods_with_an_address() -> None:
    links = {"net1": {"addresses": []}, "net2": {"addresses": [{"address": "10.6.0.9"}]}}
    pod = {"pod": "probe", "networks": ["a", "b"], "state": "running", "root": {"links": links}}
    pods = {
        "w1": pod,
        "w2": {**pod, "state": "failed"},
        "w3": {**pod, "root": {"links": None}},
        "w4": {**pod, "root": {}},
    }
    assert pod_data.ends(pods, "a") == {}
    assert pod_data.ends(pods, "b") == {"w1": pod_data.End("w1", "probe", "net2", "10.6.0.9")}

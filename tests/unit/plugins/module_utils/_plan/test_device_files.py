"""A device plugin that demands more of RDMA devices than the kernel has."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._verify.rdma_checks import missing_part
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import plan, site

OLD = {"network_operator_version": "24.7.0", "kubernetes_version": "1.30.4", "manage_kubernetes": False}
NEW_KERNEL = "6.12.48+deb13-amd64"


def findings(kernel: str, files: t.Optional[t.List[str]] = None, **settings: t.Any) -> t.List[t.Dict[str, t.Any]]:
    hosts = site()
    hosts["w1"]["host"]["kernel"] = kernel
    if files is not None:
        hosts["w1"]["rdma"]["mad_files"] = {"mlx5_0": files, "mlx5_1": ["issm9", "umad9"]}
    return [each for each in plan(hosts, **{**OLD, **settings})["findings"] if each["check"] == "rdma-modules"]


@pytest.mark.parametrize(
    ("kernel", "files", "settings", "seen"),
    [
        (NEW_KERNEL, None, {}, "mlx5_0 of ens1f0 is RoCE; the kernel is 6.12.48+deb13-amd64; kernels from 6.11 on"),
        ("6.11.0", [], {}, "mlx5_0 of ens1f0 is RoCE; the kernel is 6.11.0"),
        ("7.0.1", None, {"network_operator_version": "24.4.1"}, "the kernel is 7.0.1"),
        (NEW_KERNEL, ["umad0"], {}, "mlx5_0 has umad0 alone; the kernel is 6.12.48"),
        ("5.14.0-570.el9", ["umad0"], {}, "mlx5_0 has umad0 alone; the kernel is 5.14.0-570.el9"),  # taken over earlier
        (NEW_KERNEL, ["issm0", "umad0"], {}, ""),  # drivers of the vendor
        ("6.10.3", None, {}, ""),
        ("6.1", None, {}, ""),
        ("", None, {}, ""),
        (NEW_KERNEL, None, {"network_operator_version": "24.10.1"}, ""),
        (NEW_KERNEL, None, {"stack": "spiderpool"}, ""),
        (NEW_KERNEL, None, {"require_rdma": False}, ""),
    ],
)
def test_the_kernel_and_the_release(
    kernel: str, files: t.Optional[t.List[str]], settings: t.Dict[str, t.Any], seen: str
) -> None:
    found = findings(kernel, files, **settings)
    assert [(each["level"], each["hosts"]) for each in found] == ([("error", ["w1"])] if seen else [])
    if seen:
        assert seen in found[0]["seen"]
        assert found[0]["next"].startswith("Set fabric_network_operator_version to 24.10.1 or later, or boot a kernel")


def test_no_newer_operator_for_this_kubernetes() -> None:
    (found,) = findings(NEW_KERNEL, network_operator_version="23.7.0", kubernetes_version="1.24.9")
    assert found["next"].startswith("Boot a kernel before 6.11.")


@pytest.mark.parametrize(
    ("more", "issm", "text"),
    [
        ([], True, "without issm*, which Linux 6.11 and later do not create for RoCE"),
        ([], False, "select it; it knows only the first of the names in /sys/class/infiniband/mlx5_0/device/net"),
        (["infiniband_mad/issm0"], True, "the device plugin does not select it"),
    ],
)
def test_what_the_proof_says(more: t.List[str], issm: bool, text: str) -> None:
    link = plan(site())["hosts"]["w1"]["links"]["rdma-net"]
    classes = ["infiniband/mlx5_0", "infiniband_verbs/uverbs0", "infiniband_mad/umad0", "misc/rdma_cm", *more]
    assert text in missing_part(link, classes, issm)

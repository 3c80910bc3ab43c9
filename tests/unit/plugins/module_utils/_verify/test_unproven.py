"""Every reason why no check is made: unproven if it is planned (docs/proof.md), else skipped (tests/faults.md)."""

from __future__ import annotations

import re
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Check
from ansible_collections.ipu.fabric.plugins.module_utils._verify.checks import check_fabric, outcome
from ansible_collections.ipu.fabric.plugins.module_utils._verify.parsers import gid_of
from ansible_collections.ipu.fabric.plugins.module_utils._verify.report import notes
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._verify import test_checks as fabrics

Facts = t.Dict[str, t.Any]
PAGE = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in ("docs/proof.md", "tests/faults.md"))


def rows(status: str) -> t.Dict[str, t.Set[str]]:
    """The checks of each reason, from one table of the page."""
    section = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    text = next(part for part in section if part.startswith(status.capitalize()))
    found = re.findall(r"^\| (.+?) \| (`[^|]+) \|", text, re.MULTILINE)
    return {reason: set(re.findall(r"`([^`]+)`", checks)) for reason, checks in found}


ROWS = [(status, reason, checks) for status in ("unproven", "skipped") for reason, checks in rows(status).items()]
STOPPED = {**{key: fabrics.pod("w1")[key] for key in ("host", "pod", "networks")}, "state": "failed", "reason": "no"}
NO_PODS = {"pods/cp1": {**STOPPED, "host": "cp1"}, "pods/w1": STOPPED, "pairs": [], "traffic": [], "host_traffic": []}
MISSING = [{**test, "missing": True} for test in fabrics.probe()["traffic"]]
BLOCKED = [{**test, "blocked": test["check"] != "rping"} for test in fabrics.probe()["traffic"]]
NO_COUNTERS = [{**test, "moved": 2 * [{"rdma": {}, "interfaces": {}}]} for test in fabrics.probe()["traffic"]]
NO_DEVICE = [{**test, "sent": {**test["sent"], "device": ""}} for test in fabrics.probe()["traffic"]]
NO_TOOL = {"links": None, "tool_missing": True}
PLANNED = "networks/0"
LINK = {name: host["links"]["rdma-net"] for name, host in fabrics.plan()["hosts"].items()}
HOST_DEVICES = {"networks": [], **{f"hosts/{name}/links": {"host": link} for name, link in LINK.items()}}
NO_NETWORKS = {
    **{f"pods/{name}/networks": [] for name in LINK},
    **{f"pods/{name}/rdma/gids/1/gid": gid_of(link["address"]) for name, link in LINK.items()},
    "pairs": [],
    "traffic": [],
}
LABELS = {"vipu-ctrl": "vctl"}
NO_GPU_TEST = {"traffic": fabrics.probe()["traffic"][:3]}
NOT_GIVEN = {f"pods/{name}/{key}": value for name in LINK for key, value in (("gpus", 0), ("gpus_refused", "OutOf"))}
FAR_GPU = [{"pci": "0000:17:00.0", "model": "", "networks": ["rail-9"]}]
GATEWAY = fabrics.pod("w1")["gateways"][0]


class Case(t.NamedTuple):
    """What is changed in a good plan, in what a good probe saw, and in what the site expects."""

    probe: t.Mapping[str, t.Any] = {}
    plan: t.Mapping[str, t.Any] = {}
    expect: t.Mapping[str, t.Any] = {}


CASES: t.Dict[str, Case] = {
    "the probe pod of this node does not run": Case(NO_PODS),
    "needs pods with an address on two nodes": Case({"pairs": [], "traffic": []}),
    "no pod has an address on this network": Case(NO_PODS),
    "the pod has no address on this network": Case({"pods/w1/root/links/net1/addresses": []}),
    "the image has no `ip` command": Case(
        {"pods/w1/root": {**fabrics.pod("w1")["root"], **NO_TOOL}},
    ),
    "the image has neither getent nor nslookup": Case({"pods/w1/root/dns": {**fabrics.NO_DNS, "rc": 127}}),
    "the image's ping:": Case(
        {
            "crossings": [{**fabrics.crossing(), "far": fabrics.NO_PING}],
            "pairs/0/small": fabrics.NO_PING,
            "pods/w1/gateways/0": {**GATEWAY, "ping": fabrics.NO_PING, "mac": ""},
        }
    ),
    "needs pods with an address on two networks": Case(
        {
            "crossings": [],
            "pods_without/second": [],
            "networks/second": fabrics.probe()["networks"]["rdma-net"],
        },
        {"networks": [fabrics.plan()["networks"][0], {**fabrics.plan()["networks"][0], "name": "second"}]},
    ),
    "pods have no IPv6 link-local address": Case({"crossings": [fabrics.crossing(asked="")]}),
    "the image's ping cannot forbid fragments": Case({"pairs/0/full": {**fabrics.NO_REPLY, "supported": False}}),
    "is not in the image tools": Case({"traffic": MISSING}),
    "of the image tools has no CUDA": Case({"traffic/3": fabrics.NO_CUDA}),
    "rping failed between these pods": Case({"traffic": BLOCKED}),
    "the port's rate is not known, and there are too few pairs to compare": Case(
        {},
        {"hosts/cp1/links/rdma-net/rate_gbps": 0, "hosts/w1/links/rdma-net/rate_gbps": 0},
        {"rdma_bandwidth": "auto", "rdma_latency": "auto", "gpu_bandwidth": "auto"},
    ),
    "only measured": Case(expect={"rdma_bandwidth": "0", "rdma_latency": "0", "gpu_bandwidth": "0"}),
    "only pods on a fabric network are measured": Case(NO_NETWORKS, HOST_DEVICES),
    "no RDMA test ran between these pods": Case({"traffic": MISSING}),
    "no counters in the pods show the traffic of": Case({"traffic": NO_COUNTERS}),
    "no RDMA device has the pod's address": Case(
        {"pods/cp1/rdma/gids": [], "pods/w1/rdma/gids": [], "traffic": NO_DEVICE}
    ),
    "a node has the image without the digest of its registry": Case({"images/0/id": f"sha256:{'0' * 64}"}),
    "the image has neither nc nor bash": Case({"pods/w1/root/vipu/0": {**fabrics.VIPU, "rc": 127, "seen": ""}}),
    "no probe pod that could try the port": Case(NO_PODS),
    "the operator's ConfigMap of V-IPU controllers could not be read": Case({"ipu/controllers": None}),
    "gc-hosttraffictest is not in the image": Case({"host_traffic/0/missing": True}),
    "no IPU node has a running pod with RDMA": Case({"host_traffic": []}),
    "no node has the label nvidia.com/gpu.present": Case({"nodes/cp1/labels": LABELS, "nodes/w1/labels": LABELS}),
    "needs pods with GPUs on two nodes": Case(NO_GPU_TEST),
    "the probe pod did not get the node's GPUs": Case({**NO_GPU_TEST, **NOT_GIVEN}),
    "the node offers no nvidia.com/gpu": Case({**NO_GPU_TEST, "pods/w1/gpus": 0}),
    "planned without RDMA": Case({"traffic": [], "host_traffic": []}, {f"{PLANNED}/rdma": False}),
    "planned without a fabric network": Case(NO_NETWORKS, HOST_DEVICES),
    "pods take the devices of their host": Case(NO_NETWORKS, HOST_DEVICES),
    "rdma_cm finds no device by addresses of the pod network": Case(NO_NETWORKS, HOST_DEVICES),
    "no V-IPU partition was given for it (verify_ipu_partition)": Case(
        {"host_traffic": []}, expect={"ipu_partition": ""}
    ),
    "GPU checks are off": Case(expect={"gpu": False}),
    "gdrcopy is not planned": Case(expect={"gdrcopy": False}),
    "PVRDMA does not reach the memory of GPUs": Case(
        {"pods/w1/root/gpu/modules": ["nvidia"], **NO_GPU_TEST},
        {"hosts/w1/links/rdma-net/driver": "vmw_pvrdma"},
        {"gdrcopy": False},
    ),
    "no GPU of the node is near the NIC of this network": Case(NO_GPU_TEST, {"hosts/w1/gpus": FAR_GPU}),
    "fabric_rail_isolation does not say whether rails must be isolated": Case(expect={"rail_isolation": ""}),
    "there is only one network": Case({"crossings": []}),
    "no V-IPU controller in the plan": Case(
        {"pods/cp1/root/vipu": [], "pods/w1/root/vipu": []}, {"vipu/controllers": []}
    ),
    "V-IPU is on this node's own NIC, which pods don't reach": Case(
        {"pods/w1/root/vipu": []}, {"vipu/controllers/0/address": "10.5.0.12"}
    ),
    "the plan has no node labels": Case({}, {"vipu/node_labels": {}}),
    "the plan has no subnet for this network": Case({}, {f"{PLANNED}/subnet": None, f"{PLANNED}/subnets": []}),
    "before the first address is given out": Case({"pools": []}, {f"{PLANNED}/ipam": {"type": "whereabouts"}}),
    "the plan has no MTU for this network": Case(
        {"pairs/0/full": None},
        {f"{PLANNED}/mtu": 0, "hosts/cp1/links/rdma-net/mtu": 0, "hosts/w1/links/rdma-net/mtu": 0},
    ),
    "the network has no gateway": Case(),
    "not installed by Helm": Case({"releases": []}),
    "there is no DaemonSet of multus": Case({"addons/multus": []}),
    "kubeadm had made no certificates yet when the hosts were observed": Case({}, {"certificates": []}),
    "no CNI plugin had a token on a host when the hosts were observed": Case({}, {"cni_token_ends/hosts": []}),
    "no image is pinned (fabric_image_digests)": Case({}, {"image_digests": {}}),
}


def checked(reason: str, allow: t.Sequence[str] = ()) -> t.List[Check]:
    case = CASES[reason]
    planned, probe = fabrics.spiderpool() if "gateway" in reason else (fabrics.plan(), fabrics.probe())
    if "gateway" in reason:
        planned["networks"][0]["subnet"]["gateway"] = ""
    for facts, changes in ((planned, case.plan), (probe, case.probe)):
        for path, value in changes.items():
            fabrics.put(facts, path, value)
    return check_fabric(planned, probe, fabrics.EXPECT._replace(allow_unproven=allow, **case.expect))


@pytest.mark.parametrize(("status", "reason", "named"), ROWS, ids=[reason for _status, reason, _named in ROWS])
def test_a_reason_is_unproven_or_skipped_as_the_page_says(status: str, reason: str, named: t.Set[str]) -> None:
    checks = checked(reason)
    found = [check for check in checks if reason in check.seen]
    assert {check.check for check in found} == named
    assert {check.status for check in found} == {status}
    later = reason == "before the first address is given out"
    assert all(bool(check.next) == (status == "unproven" or later) for check in found)


def test_what_the_run_that_builds_a_cluster_can_not_see_is_named() -> None:
    """The first run said 47 passed, the second 50, and nobody knew which three."""
    planned, probe = fabrics.plan(), fabrics.probe()
    second = check_fabric(planned, probe, fabrics.EXPECT)
    planned["cluster"]["running"] = None
    planned["certificates"], planned["cni_token_ends"]["hosts"] = [], []
    first = check_fabric(planned, probe, fabrics.EXPECT)
    passed = [{check.check for check in checks if check.status == "passed"} for checks in (first, second)]
    assert passed[1] - passed[0] == {"certificates", "cni_tokens"}
    assert any(
        note.startswith(
            "Not checked yet: certificates, cni_tokens. They did not exist yet when the hosts were observed"
        )
        for note in notes(first)
    )
    assert not any(note.startswith("Not checked yet") for note in notes(second))
    planned["cluster"]["running"] = {"host": "cp1"}  # k3s, which has none of kubeadm's
    assert not any(note.startswith("Not checked yet") for note in notes(check_fabric(planned, probe, fabrics.EXPECT)))


@pytest.mark.parametrize("reason", rows("unproven"))
def test_what_is_unproven_counts_until_a_site_accepts_all_of_it(reason: str) -> None:
    checks = checked(reason)
    names = sorted({check.check for check in checks if check.status == "unproven"})
    failed = any(check.status == "failed" for check in checks)
    for allowed, expected in (([], "unproven"), (names[1:], "unproven"), (names, "proved")):
        assert outcome(checked(reason, allowed)) == ("failed" if failed else expected)


def test_the_page_and_the_tests_have_the_same_reasons() -> None:
    assert [reason for _status, reason, _named in ROWS] == list(CASES)

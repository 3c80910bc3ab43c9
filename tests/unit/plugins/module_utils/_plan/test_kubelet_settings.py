# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the plan says of kubernetes_kubelet_config, and of disks that are too full for a kubelet."""

import json

import pytest
import yaml
from ansible_collections.ipu.fabric.tests.unit.fixtures import site as sites

CHECKS = ("disk", "kubelet-config")
MEMBER = {"kubelet": {"present": True, "version": "v1.35.4", "server": "10.88.0.10:6443", "cluster": ""}}


def found(config, **seen):
    """Findings about a site with this configuration and a worker that was seen like this."""
    hosts = {"cp": sites.host(10, ["kube_control_plane"]), "it": sites.host(11, ["kube_node"], **seen)}
    planned, checked = (each(hosts, kubelet_config=config)["findings"] for each in (sites.plan, sites.preflight))
    one, two = ([each for each in findings if each["check"] in CHECKS] for findings in (planned, checked))
    assert one == two
    return one


def disk(free, total, **seen):
    return {"disk_mb": {"/var/lib": free}, "disk_total_mb": {"/var/lib": total}, **seen}


@pytest.mark.parametrize(
    ("seen", "thresholds", "expected"),
    [
        (disk(75000, 500000), {}, []),
        (disk(74000, 500000), {}, ["error"]),
        (disk(74000, 500000, **MEMBER), {}, []),  # its kubelet may have others
        (disk(74000, 500000, **MEMBER), {"nodefs.available": "15%"}, ["warning"]),
        (disk(74000, 500000), {"memory.available": "100Mi"}, []),  # it replaces upstream's
        (disk(74000, 500000), {"imagefs.available": "1%"}, []),
        (disk(74000, 500000), {"nodefs.available": "80Gi"}, ["error"]),
        (disk(74000, 500000), {"nodefs.available": "70Gi", "imagefs.available": "1"}, []),
    ],
)
def test_a_kubelet_needs_a_part_of_its_disk(seen, thresholds, expected):
    findings = found({"evictionHard": thresholds}, **seen)
    assert [(each["level"], each["check"]) for each in findings] == [(level, "disk") for level in expected]


def test_how_much_a_kubelet_lacks_is_said():
    [finding] = found({}, **disk(70000, 500000))
    assert finding["what"] == (
        "A kubelet with less than 15% of its disk free (imagefs.available) evicts pods and takes no new ones"
        " (DiskPressure)."
    )
    assert finding["seen"] == "/var/lib is on a file system of 524 GB with 73.4 GB free (14%)"
    assert finding["next"].startswith("Free 6 GB or more there (`df -h /var/lib`), or set kubernetes_kubelet_config")
    pasted = yaml.safe_load(finding["next"].partition("or set ")[2].partition(" Or allow")[0].rstrip("."))
    assert found(pasted["kubernetes_kubelet_config"], **disk(70000, 500000)) == []


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, []),
        ({"maxPods": 250, "authentication": {"anonymous": {"enabled": False}}}, []),
        ({"evictionHard": {"imagefs.availble": "5%", "nodefs.available": "1%"}}, [("error", "imagefs.availble")]),
        (
            {"evictionHard": {"nodefs.available": "ten"}},
            [("error", 'nodefs.available of evictionHard is "ten", not a quantity such as 1Gi or 10%')],
        ),
        (
            {"evictionHard": {"nodefs.available": "110%"}},
            [("error", 'nodefs.available of evictionHard is "110%", not a quantity such as 1Gi or 10%')],
        ),
        ({"evictionHard": {"nodefs.available": "1e9", "memory.available": "1.5Gi"}}, []),
        ({"evictionHard": "5%"}, [("error", 'evictionHard is "5%", not a mapping of strings')]),
        ({"maxpods": 250}, [("warning", "maxpods (did you mean maxPods?)")]),
        ({"swap": True, "maxPods": 250}, [("warning", "swap")]),
    ],
)
def test_what_no_kubelet_knows(config, expected):
    assert [(each["level"], each["seen"]) for each in found(config)] == expected


@pytest.mark.parametrize(
    ("field", "right", "wrong"),
    [
        ("maxPods", [250, None], ["250", "many", 2.5, True, [250]]),
        ("serializeImagePulls", [False], ["false", 0]),
        ("memoryThrottlingFactor", [0.9, 1], ["0.9"]),
        ("runtimeRequestTimeout", ["15m", "1h0m0s", "0", "1.5h"], [15, "15", "a while"]),
        ("reservedSystemCPUs", ["0", "0-3"], [0, ["0"]]),
        ("systemReserved", [{"cpu": "2"}, {}], [{"cpu": 2}, "cpu=2"]),
        ("featureGates", [{"A": True}], [{"A": "true"}, ["A"]]),
        ("clusterDNS", [["10.96.0.10"]], ["10.96.0.10"]),
        ("logging", [{"verbosity": 3}], [3]),
    ],
)
def test_types_of_fields(field, right, wrong):
    assert [found({field: value}) for value in right] == [[]] * len(right)
    for value in wrong:
        [finding] = found({field: value})
        assert finding["level"] == "error"
        assert finding["seen"].startswith(f"{field} is {json.dumps(value)}, not ")


def test_a_cluster_of_others_has_its_own_kubelets():
    plan = sites.plan(sites.site(), manage_kubernetes=False, kubelet_config={"maxpods": 250})
    assert "kubelet-config" not in {each["check"] for each in plan["findings"]}

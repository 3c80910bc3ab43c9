"""NICs of a rail that are not like the others."""

import random

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._plan.rail_nics import most_common
from ansible_collections.ipu.fabric.tests.unit.fixtures import site as sites


def rail(count=4, **of_host):
    """The findings about a rail of workers, with what the fabric NIC of each has else than the others."""
    hosts = {"cp1": sites.host(10, ["kube_control_plane"])}
    hosts.update({f"w{number}": sites.host(10 + number, ["kube_node"]) for number in range(1, count + 1)})
    for name, changes in of_host.items():
        nic = hosts[name]["rdma"]["links"][1]
        nic.update({key: value for key, value in changes.items() if key != "pcie"})
        pcie = changes.get("pcie", {})
        nic["pcie"] = None if pcie is None else {**nic["pcie"], **pcie}
    for planned in (sites.plan(hosts), sites.preflight(hosts)):
        found = [finding for finding in planned["findings"] if finding["check"] == "rail-nics"]
        assert [finding["level"] for finding in found] == ["warning"] * len(found)
    return found


@pytest.mark.parametrize(
    ("changes", "what", "seen"),
    [
        ({"firmware": "20.31.1014"}, "firmware", "w3's mlx5_0 has 20.31.1014; the other 3 have 20.35.1012"),
        (
            {"firmware": "20.31.1014", "device": "mlx5_1"},
            "firmware",
            "w3's mlx5_1 has 20.31.1014; the other 3 have 20.35.1012",
        ),
        ({"rate_gbps": 25.0}, "port rate", "w3's mlx5_0 has 25 Gb/s; the other 3 have 100 Gb/s"),
        ({"model": "MT_0000000008"}, "model", "w3's mlx5_0 has MT_0000000008; the other 3 have MT_0000000359"),
        (
            {"pcie": {"max_width": 8, "width": 8}},
            "PCIe slot",
            "w3's mlx5_0 has 16 GT/s x8; the other 3 have 16 GT/s x16",
        ),
        (
            {"pcie": {"max_speed_gtps": 8.0, "speed_gtps": 8.0}},
            "PCIe slot",
            "w3's mlx5_0 has 8 GT/s x16; the other 3 have 16 GT/s x16",
        ),
    ],
)
def test_the_one_that_differs_is_named(changes, what, seen):
    (finding,) = rail(w3=changes)
    assert finding["what"] == f"rdma-net: NICs of a rail should be alike, but their {what} differs."
    assert (finding["hosts"], finding["seen"]) == (["w3"], seen)


def test_without_a_majority_all_are_named():
    (finding,) = rail(2, w1={"firmware": "20.31.1014"})
    assert finding["hosts"] == ["w1", "w2"]
    assert finding["seen"] == "w1's mlx5_0 has 20.31.1014; w2's mlx5_0 has 20.35.1012"


def test_many_are_one_finding():
    (finding,) = rail(20, **{f"w{number}": {"firmware": "20.31.1014"} for number in range(1, 9)})
    assert len(finding["hosts"]) == 8
    assert finding["seen"] == (
        "w1's mlx5_0, w2's mlx5_0, w3's mlx5_0, w4's mlx5_0 and 4 more have 20.31.1014; the other 12 have 20.35.1012"
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"firmware": ""},  # software, or not known
        {"model": "", "firmware": "", "rate_gbps": None, "pcie": None},  # a guest of a hypervisor
        {"pcie": {"width": 8}},  # trained below what it can: pcie-link says so
        {"mtu": 1500},  # fabric-mtu says so
    ],
)
def test_what_is_not_known_or_said_elsewhere_is_no_finding(changes):
    assert rail(w3=changes) == []


def test_firmware_is_compared_between_nics_of_one_model():
    (finding,) = rail(w3={"model": "MT_0000000008", "firmware": "16.35.4030", "rate_gbps": 25.0})
    assert "model" in finding["what"]


def test_an_observation_of_an_earlier_release_is_no_finding():
    hosts = sites.site()
    for name in ("model", "firmware"):
        del hosts["w2"]["rdma"]["links"][1][name]
    assert "rail-nics" not in sites.errors(sites.plan(hosts), "warning")


def test_the_most_common_value():
    for seed in range(200):
        numbers = random.Random(seed)
        counts = {str(number): numbers.randint(1, 5) for number in range(numbers.randint(2, 5))}
        best = [value for value, count in counts.items() if count == max(counts.values())]
        assert most_common(counts) == (best[0] if len(best) == 1 else "")

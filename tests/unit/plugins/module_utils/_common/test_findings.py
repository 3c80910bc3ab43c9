from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import Findings, fold_networks


@pytest.mark.parametrize(("hosts", "told"), [(3, 3), (4, 1), (200, 1)])
def test_one_mistake_on_many_hosts_is_told_once(hosts: int, told: int) -> None:
    """Each host has other addresses: a mistyped NIC name took 3,200 lines for 200 hosts."""
    findings = Findings()
    findings.warning("time", ["w1"], "Clocks differ.", "2 s", "Set fabric_ntp.")
    for number in range(1, hosts + 1):
        findings.error("networks", [f"w{number}"], "No device fits.", f"eth0 has 10.0.0.{number}", "Correct `select`.")
    *errors, warning = findings.as_list()
    assert len(errors) == told
    assert warning["check"] == "time"
    assert [host for error in errors for host in error["hosts"]] == [f"w{number}" for number in range(1, hosts + 1)]
    if told == 1:
        assert errors[0]["seen"] == f"w1: eth0 has 10.0.0.1; and similar on {hosts - 1} more hosts"


def test_hosts_that_are_out_of_reach_for_the_same_cause_are_told_once() -> None:
    """From two on: a network that is down took an error for each host."""
    ssh = "Failed to connect to the host via ssh: ssh: connect to host 10.0.0.{} port 22: {} (at host_info)"
    causes = ["Connection refused", "No route to host", "Connection refused", "No route to host", "No route to host"]
    findings = Findings()
    for number, cause in enumerate(causes, 1):
        findings.error("unobserved", [f"w{number}"], "Not observed.", ssh.format(number, cause), "Make it reachable.")
    refused, no_route = findings.as_list()
    assert (refused["hosts"], no_route["hosts"]) == (["w1", "w3"], ["w2", "w4", "w5"])
    assert refused["seen"] == f"w1: {ssh.format(1, causes[0])}; and similar on 1 more host"
    assert no_route["seen"] == f"w2: {ssh.format(2, causes[1])}; and similar on 2 more hosts"


@pytest.mark.parametrize(
    ("hosts", "seen"),
    [
        (1, "eth1 at 10.0.0.1"),
        (2, "w1: eth1 at 10.0.0.1; w2: eth1 at 10.0.0.2"),
        (3, "w1: eth1 at 10.0.0.1; w2: eth1 at 10.0.0.2; w3: eth1 at 10.0.0.3"),
        (4, "w1: eth1 at 10.0.0.1; and similar on 3 more hosts"),
    ],
)
def test_nics_of_a_few_hosts_are_told_side_by_side(hosts: int, seen: str) -> None:
    """Two hosts without RDMA took two blocks of the same words."""
    findings = Findings()
    for number in range(1, hosts + 1):
        findings.error("fabric-nic", [f"w{number}"], "No RDMA.", f"eth1 at 10.0.0.{number}", "Load the driver.")
    findings.error("fabric-nic", ["x1"], "No RDMA.", "none", "Load another driver.")
    together, alone = findings.as_list()
    assert (together["hosts"], together["seen"]) == ([f"w{number}" for number in range(1, hosts + 1)], seen)
    assert (alone["hosts"], alone["seen"]) == (["x1"], "none")


def test_what_differs_in_advice_or_has_no_host_stays_apart() -> None:
    findings = Findings()
    for number in range(5):
        findings.error("networks", [f"w{number}"], "The NIC is down.", "down", f"Run ip link set eth{number} up.")
        findings.error("networks", [], "A network is not valid.", f"entry {number}", "Correct fabric_networks.")
    assert len(findings.as_list()) == 10


RAILS = (("rail-1", "rdma/a"), ("rail-10", "rdma/b"), ("rail-2", "rdma/c"), ("rail-3", "rdma/d"), ("rail-4", "rdma/d"))


def told(*whats, names=RAILS, **parts):
    found = Findings()
    for number, what in enumerate(whats):
        given = {name: values[number] if isinstance(values, list) else values for name, values in parts.items()}
        found.warning("subnet", [], what, given.get("seen", "small"), given.get("next_step", "Do it."))
    return [(one["what"], one["seen"], one["next"]) for one in fold_networks(found.as_list(), names)]


def test_findings_that_differ_only_by_the_network_are_one():
    said = told("rail-1: it is full.", "rail-10: it is full.", next_step=["Widen rail-1.", "Widen rail-10."])
    assert said == [("rail-1, rail-10: it is full.", "small", "Widen rail-1, rail-10.")]
    assert told("rdma/a should do.", "rdma/b should do.") == [("rdma/a, rdma/b should do.", "small", "Do it.")]


def test_what_was_seen_of_each_network_is_told_of_the_first_ones():
    whats = [f"{name}: it overlaps." for name, _resource in RAILS]
    [(what, seen, _next)] = told(*whats, seen=[f"10.{number}.0.0/16" for number in range(5)])
    assert what == "rail-1, rail-10, rail-2, rail-3, rail-4: it overlaps."
    assert seen == "rail-1: 10.0.0.0/16; rail-10: 10.1.0.0/16; rail-2: 10.2.0.0/16; and the like for 2 more"


def test_other_findings_stay_as_they_are():
    assert len(told("rail-1: it is full.", "rail-2: it is empty.")) == 2
    assert len(told("The site is full.", "The site is empty.")) == 2
    assert len(told("rail-1: it is full.", "rail-2: it is full.", next_step=["Do it.", "Don't."])) == 2
    assert told("rail-1: it is full.", names=[("rail", "")[:1]]) == [("rail-1: it is full.", "small", "Do it.")]

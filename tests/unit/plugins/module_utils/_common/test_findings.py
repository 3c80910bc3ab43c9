# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import Findings


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
        assert errors[0]["seen"] == f"w1: eth0 has 10.0.0.1; and the like on {hosts - 1} more hosts"


def test_what_differs_in_advice_or_has_no_host_stays_apart() -> None:
    findings = Findings()
    for number in range(5):
        findings.error("networks", [f"w{number}"], "The NIC is down.", "down", f"Run ip link set eth{number} up.")
        findings.error("networks", [], "A network is not valid.", f"entry {number}", "Correct fabric_networks.")
    assert len(findings.as_list()) == 10

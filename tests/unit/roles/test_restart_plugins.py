# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which CNI plugins the role network_operator starts again: those of its own operator alone."""

from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.templates import evaluate

ENDS = "2026-12-01T00:00:00Z"


@pytest.mark.parametrize(
    ("multus", "whereabouts", "restart", "expected"),
    [
        (["nvidia/kube-multus-ds"], [], {}, []),
        (["nvidia/kube-multus-ds"], [], {"multus": ENDS}, [{"key": "multus", "value": ENDS}]),
        (["kube-system/kube-multus-ds"], [], {"multus": ENDS}, []),
        (["nvidia/kube-multus-ds"], ["kube-system/whereabouts"], {"whereabouts": ENDS}, []),
        (
            ["nvidia/kube-multus-ds"],
            ["nvidia/whereabouts"],
            {"whereabouts": ENDS},
            [{"key": "whereabouts", "value": ENDS}],
        ),
    ],
)
def test_only_the_operators_own_start_again(multus, whereabouts, restart, expected):
    found = {
        "__network_operator_cluster": {"multus": multus, "whereabouts": whereabouts, "nodes": []},
        "network_operator_namespace": "nvidia",
        "network_operator_restart": restart,
    }
    assert evaluate("network_operator", "_network_operator_restarts", **found) == expected

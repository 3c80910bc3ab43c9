# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import importlib

import pytest
from ansible.errors import AnsibleFilterError

WORKLOAD = {"name": "Not A Name", "image": "i", "command": ["c"], "transport": "tcp"}
REFUSED = [
    ("gpu_operator_values", {"driver": True, "host_mofed": True}, "gpu_operator_host_mofed"),
    ("ipu_node_labels", [{"label": f"k={value}", "nodes": ["w1"]} for value in (1, 2)], "node w1"),
    (
        "ipu_operator_values",
        {"release": "1.2.0", "vipu_controllers": [{"host": "localhost", "label": "k=1"}]},
        "loopback",
    ),
    ("mpi_job", WORKLOAD, "Not A Name"),
    ("transport_comparison", {"logs": {"roce": "ssh: no route to host"}}, "ssh: no route to host"),
]


@pytest.mark.parametrize(("name", "given", "said"), REFUSED, ids=[row[0] for row in REFUSED])
def test_a_filter_ends_with_an_error_that_a_play_shows(name, given, said):
    plugin = importlib.import_module(f"ansible_collections.ipu.fabric.plugins.filter.{name}").FilterModule()
    with pytest.raises(AnsibleFilterError, match=rf"{said}.*Next: "):
        plugin.filters()[name](given)

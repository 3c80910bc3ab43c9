# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every worker of a play imports the filters that it uses: they must not load the Kubernetes client for that."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FILTERS = (
    "gpu_operator_values",
    "ipu_node_labels",
    "ipu_operator_values",
    "kubelet_config",
    "mpi_job",
    "native_workload",
    "nfs_volumes",
    "transport_comparison",
)
SCRIPT = """
import importlib, sys
importlib.import_module("ansible_collections.ipu.fabric.plugins.filter.{name}")
print(sorted({{"kubernetes", "urllib3", "jmespath"}} & set(sys.modules)))
"""


@pytest.mark.parametrize("name", FILTERS)
def test_filters_do_not_load_the_kubernetes_client(name):
    command = [sys.executable, "-c", SCRIPT.format(name=name)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

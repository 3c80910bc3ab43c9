# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules that look and compute, from their options to their JSON."""

from __future__ import annotations

import inspect
import json
import typing as t

import pytest
import yaml
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args
from ansible_collections.ipu.fabric.plugins.module_utils._host.links import read_rdma
from ansible_collections.ipu.fabric.plugins.module_utils._host.vipu import find_controller
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.subnet import plan_subnet
from ansible_collections.ipu.fabric.plugins.modules import rdma_info, rdma_subnet, vipu_info

NODES = [
    {"name": "w1", "address": "10.5.0.11", "prefix": 24, "mtu": 9000},
    {"name": "w2", "address": "10.5.0.12", "prefix": 24},
]


@pytest.fixture
def run(capsys) -> t.Callable[..., t.Dict[str, t.Any]]:
    def run_module(module, **options: t.Any) -> t.Dict[str, t.Any]:
        with patch_module_args(options), pytest.raises(SystemExit):
            module.main()
        return json.loads(capsys.readouterr().out)

    return run_module


def documented(module) -> t.Dict[str, t.Any]:
    return yaml.safe_load(module.RETURN)


def test_rdma_subnet(run):
    result = run(rdma_subnet, nodes=NODES, gateway="10.5.0.1", reserved=["10.5.0.20"], pods=16)
    assert not result.get("changed")
    assert result["range_start"] == "10.5.0.128"
    assert result["ipam"]["exclude"] == ["10.5.0.0/25"]
    assert set(documented(rdma_subnet)) - {"warnings"} <= set(result)


def test_rdma_subnet_warns(run, monkeypatch):
    warned: t.List[str] = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda _self, warning: warned.append(warning))
    result = run(rdma_subnet, nodes=[NODES[0], {**NODES[1], "mtu": 1500}], ipam="nv-ipam", pool_name="rdma-net")
    assert "different MTUs" in warned[0]
    assert result["pool"]["perNodeBlockSize"] == 32
    assert result["ipam"]["poolName"] == "rdma-net"


def test_a_failure_has_its_parts(run):
    result = run(rdma_subnet, nodes=NODES, avoid=["10.0.0.0/8"])
    assert result["failed"] is True
    assert result["where"] == "avoid 10.0.0.0/8"
    assert result["seen"] in result["msg"]
    assert result["next_step"] in result["msg"]


def test_vipu_info(run, tmp_path):
    program = tmp_path / "vipu"
    program.write_text("""#!/bin/sh\necho '{"host": "10.5.0.20:8090", "version": "1.18.0"}'\n""")
    program.chmod(0o755)
    result = run(vipu_info, executable=str(program))
    assert {key: result[key] for key in documented(vipu_info)} == {
        "host": "10.5.0.20",
        "port": 8090,
        "address": "10.5.0.20",
        "version": "1.18.0",
        "source": "json",
    }
    assert not result.get("changed")


def test_rdma_info(run, monkeypatch):
    """On whatever machine this runs: the shape is as documented."""
    link = dict.fromkeys(documented(rdma_info)["rdma"]["contains"]["links"]["contains"])
    seen = {"links": [link], "gpus": [], "netns_mode": "", "memlock": {}, "modules": [], "rdma_subsystem": False}
    monkeypatch.setattr(rdma_info, "read_rdma", lambda routes_to: {**seen, "routes": dict.fromkeys(routes_to)})
    result = run(rdma_info, routes_to=["10.5.0.20"])
    assert set(result["rdma"]) == set(documented(rdma_info)["rdma"]["contains"])
    assert result["rdma"]["routes"] == {"10.5.0.20": None}


@pytest.mark.parametrize(
    ("module", "function"), [(rdma_subnet, plan_subnet), (vipu_info, find_controller), (rdma_info, read_rdma)]
)
def test_defaults_of_options_are_those_of_the_function(module, function):
    """The plan calls the function, people the module: both must mean the same."""
    parameters = inspect.signature(function).parameters
    for name, option in yaml.safe_load(module.DOCUMENTATION)["options"].items():
        if not option.get("required"):
            default = parameters[name].default
            assert (list(default) if default == () else default) == option.get("default"), name

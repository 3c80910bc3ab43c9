"""The modules that read and compute, from their options to their JSON, which is as documented."""

from __future__ import annotations

import functools
import inspect
import json
import socket
import typing as t

import pytest
import yaml
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import facts, observe
from ansible_collections.ipu.fabric.plugins.module_utils._host.links import read_rdma
from ansible_collections.ipu.fabric.plugins.module_utils._host.vipu import find_controller
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.subnet import SubnetRequest
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import paths
from ansible_collections.ipu.fabric.plugins.modules import (
    host_info,
    kubernetes_node_info,
    rdma_info,
    rdma_subnet,
    vipu_info,
)
from ansible_collections.ipu.fabric.tests.unit.fixtures.sysfs import Tree

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


TYPES = {"str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict}


def shape(value: t.Any) -> t.Any:
    """The keys of a sample or of a result, and the types of what they hold."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(item) for item in value[:1]] if isinstance(value, list) else type(value)


def check_documented(described: t.Dict[str, t.Any], value: t.Any, where: str) -> None:
    """That a returned value has the documented type and keys, at every depth, or those of the sample."""
    assert value.__class__ is TYPES[described["type"]], where
    items = value if isinstance(value, list) else [value]
    for item in items:
        if isinstance(value, list):
            assert item.__class__ is TYPES[described["elements"]], where
        if "contains" in described:
            assert set(item) == set(described["contains"]), where
            for key, inner in described["contains"].items():
                check_documented(inner, item[key], f"{where}.{key}")
        elif isinstance(item, dict) and isinstance(value, list):
            assert shape(item) == shape(described["sample"][0]), where
        elif isinstance(item, dict) and "sample" in described:
            sample = next(iter(described["sample"].values()))
            assert [shape(inner) for inner in item.values()] == [shape(sample)] * len(item), where


def check_result(module, result: t.Dict[str, t.Any]) -> None:
    for key, described in documented(module).items():
        check_documented(described, result[key], key)
    assert not result.get("changed")


@pytest.mark.parametrize(
    ("described", "value"),
    [
        ({"type": "str"}, 1),
        ({"type": "int"}, True),
        ({"type": "list", "elements": "str"}, [1]),
        ({"type": "dict", "contains": {"a": {"type": "int"}}}, {}),
        ({"type": "dict", "contains": {"a": {"type": "int"}}}, {"a": 1, "b": 1}),
        ({"type": "dict", "contains": {"a": {"type": "int"}}}, {"a": "1"}),
        ({"type": "list", "elements": "dict", "sample": [{"a": 1}]}, [{"b": 1}]),
        ({"type": "dict", "sample": {"10.5.0.20": {"dev": "eth1"}}}, {"10.5.0.21": {"dev": None}}),
    ],
)
def test_what_is_not_as_documented(described, value):
    with pytest.raises(AssertionError):
        check_documented(described, value, "value")


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
    error = result["error"]
    assert (error["code"], error["where"], error["transient"]) == ("invalid-input", "avoid 10.0.0.0/8", False)
    assert error["seen"] in result["msg"]
    assert error["next_step"] in result["msg"]


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
    check_result(vipu_info, result)


def test_rdma_info(run, monkeypatch):
    monkeypatch.setattr(rdma_info, "read_rdma", lambda routes: {"routes": dict.fromkeys(routes)})
    assert run(rdma_info, routes_to=["10.5.0.20"])["rdma"] == {"routes": {"10.5.0.20": None}}


def links_of(tmp_path):
    """How the links of a host are read that has a NIC, a VLAN on it, a GPU and a container runtime."""
    tree = Tree(tmp_path)
    tree.nic("ens1f0np0", "mlx5_0", "0000:81:00.0")
    tree.lanes("0000:81:00.0", "16.0 GT/s PCIe x16", "16.0 GT/s PCIe x16")
    tree.write("sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)")
    tree.vlan("ens1f0np0.100", "ens1f0np0")
    # A GPU below a switch whose port has ACS: an extended capability at 0x100, and its control 6 bytes into that.
    tree.gpu("0000:84:00.0", above="pci0000:80/0000:80:01.0/0000:82:00.0/0000:83:08.0")
    port = bytes(0x100) + b"\x0d\x00\x01\x00\x00\x00\x1d\x00"
    tree.link("sys/bus/pci/devices/0000:83:08.0", "sys/devices/pci0000:80/0000:80:01.0/0000:82:00.0/0000:83:08.0")
    (tree.root / "sys/bus/pci/devices/0000:83:08.0/config").write_bytes(port)
    tree.write("proc/modules", "ib_core 1 0 - Live 0x0")
    tree.write("sys/class/infiniband_mad/umad0/ibdev", "mlx5_0")
    tree.rdma("rdmap0s6", tree.pci("0000:00:06.0", "efa"), link_layer="Unknown")
    addresses = [{"local": "10.5.0.11", "prefixlen": 24, "scope": "global"}]
    outputs = {
        "addr": json.dumps(
            [
                {"ifname": "lo", "addr_info": [{"local": "192.0.2.1", "prefixlen": 32, "scope": "global"}]},
                {"ifname": "ens1f0np0", "addr_info": addresses, "altnames": ["enp129s0f0np0"]},
            ]
        ),
        "route": '[{"dev": "ens1f0np0", "prefsrc": "10.5.0.11"}]',
        "system": '[{"netns": "shared"}]',
        "show": "Id=containerd.service\nLoadState=loaded\nLimitMEMLOCK=infinity\n",
    }

    def answer(argv: t.Sequence[str]) -> Done:
        return Done(0, next(text for word, text in outputs.items() if word in argv))

    return functools.partial(read_rdma, root=str(tree), run=answer)


def vipu_of(tmp_path, answer):
    program = tmp_path / "vipu"
    program.write_text(f"#!/bin/sh\n{answer}\n")
    program.chmod(0o755)
    return {"executable": str(program)}


def test_host_info(run, tmp_path, monkeypatch):
    """Of the machine that this runs on, as if it were a control plane, with a port that is busy."""
    plane = {"arguments": {"kube-apiserver": {"profiling": "false"}}, "open_files": [], "super_admin": False}
    monkeypatch.setattr(facts, "read_control_plane", lambda _root: plane)
    monkeypatch.setattr(observe, "read_rdma", links_of(tmp_path))
    monkeypatch.setattr(observe, "read_journal", lambda units, lines, size: dict.fromkeys(units, f"{lines} {size}"))
    vipu = vipu_of(tmp_path, """echo '{"host": "10.5.0.20:8090", "version": "1.18.0"}'""")
    asked = {
        "names": ["https://localhost:5000/v2"],
        "controller_time": 1,
        "vip": "127.0.0.1",
        "routes_to": ["10.5.0.99"],
    }
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = run(host_info, ports=[port], vipu=vipu, journal={"units": ["kubelet"]}, **asked)
    check_result(host_info, result)
    assert [busy["port"] for busy in result["host"]["ports_busy"]] == [port]
    assert set(result["host"]["time"]) == {"synchronized", "asked", "read", "services", "servers"}
    assert set(result["host"]["kubelet"]) == {"present", "version", "server", "cluster"}
    assert list(result["host"]["dns"]) == ["localhost"]
    rdma = result["rdma"]
    assert [link["netdev"] for link in rdma["links"]] == ["ens1f0np0", "ens1f0np0.100"]
    assert [rdma["links"][0]["addresses"], rdma["links"][0]["altnames"]] == [
        [{"address": "10.5.0.11", "prefix": 24}],
        ["enp129s0f0np0"],
    ]
    assert all(rdma.values()), "a part without an entry is not compared"
    assert list(rdma["routes"]) == ["10.5.0.20"], "each host is asked for the route to its own controller"
    controller = {"host": "10.5.0.20", "port": 8090, "address": "10.5.0.20", "version": "1.18.0", "source": "json"}
    assert result["vipu"] == controller
    assert result["logs"] == {"kubelet": "200 32768"}
    alone = run(host_info, vipu=vipu_of(tmp_path, "echo 'host: 127.0.0.1:8090'"))
    assert (alone["vipu"]["address"], alone["rdma"]["routes"]) == ("127.0.0.1", {}), "nobody has a route to itself"


def test_what_could_not_be_read_is_said_and_the_rest_is_there(run, tmp_path, monkeypatch):
    monkeypatch.setattr(observe, "read_rdma", links_of(tmp_path))
    result = run(
        host_info, vipu=vipu_of(tmp_path, "exit 1"), routes_to=["vipu.example", {"host": "10.5.0.99", "port": 1}]
    )
    assert result["failures"].keys() == {"vipu"}
    assert "vipu" not in result
    assert list(result["rdma"]["routes"]) == ["10.5.0.99"]

    def refuse(_routes):
        raise FabricError("a", "b", "c", "d", code="failed")

    monkeypatch.setattr(observe, "read_rdma", refuse)
    assert run(host_info)["failures"]["rdma"]["seen"] == "c"
    alone = run(host_info, links=False)
    assert alone.keys() & {"rdma", "vipu", "logs"} == set()
    assert (alone["failures"], alone["host"]["dns"]) == ({}, {})


def test_kubernetes_node_info(run, monkeypatch):
    monkeypatch.setattr(paths, "TRACES", ())
    result = run(kubernetes_node_info, node_name="w1", address="192.0.2.11", version="1.35.4")
    check_result(kubernetes_node_info, result)
    assert (result["node"]["name"], result["node"]["address"]) == ("w1", "192.0.2.11")


@pytest.mark.parametrize(
    ("options", "function"),
    [
        (yaml.safe_load(rdma_subnet.DOCUMENTATION)["options"], SubnetRequest),
        (yaml.safe_load(host_info.DOCUMENTATION)["options"]["vipu"]["suboptions"], find_controller),
    ],
)
def test_defaults_of_options_are_those_of_the_function(options, function):
    """The plan calls the function, people the module: both must mean the same."""
    parameters = inspect.signature(function).parameters
    for name, option in options.items():
        if not option.get("required"):
            default = parameters[name].default
            assert (list(default) if default == () else default) == option.get("default"), name

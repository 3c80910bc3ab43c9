import copy
import json

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import rdma_apply as edge
from ansible_collections.ipu.fabric.plugins.module_utils._host import rdma_desired as plans
from ansible_collections.ipu.fabric.plugins.module_utils._host.links import Port
from ansible_collections.ipu.fabric.plugins.modules import rdma_host
from ansible_collections.ipu.fabric.tests.unit.fixtures.module import Module

DEFAULT = "/usr/lib/systemd/network/99-default.link"
MLNX_QOS = """\
DCBX mode: OS controlled
Priority trust state: pcp
default priority:
Receive buffer size (bytes): 20016,156096,0,0,0,0,0,0,
Cable len: 7
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   1   0   1   0   0   
\tbuffer      0   0   0   1   0   0   0   0   
tc: 0 ratelimit: unlimited, tsa: vendor
"""  # noqa: W291 (as the tool writes it)
MLXCONFIG = """\
Device type:    ConnectX6
Configurations:                              Next Boot
        MEMIC_BAR_SIZE                       0
        LINK_TYPE_P1                         IB(1)
*       LINK_TYPE_P2                         ETH(2)
"""

FILES = {
    plans.MODULES_FILE: "ib_uverbs\nib_umad\nrdma_cm\nrdma_ucm\nmlx5_ib\n",
    plans.NETNS_FILE: "options ib_core netns_mode=1\n",
    "/etc/systemd/network/00-fabric-ens1f0.link": "",
}


def link(**more):
    return {
        "mtu": 1500,
        "altnames": ["enp129s0f0np0"],
        "permanent_mac": "0c:42:a1:00:00:01",
        "driver": "mlx5_core",
        "link_file": DEFAULT,
        "link_settings": ["NamePolicy=keep kernel", "MACAddressPolicy=persistent"],
        "roce_mode": {"mlx5_0/1": "RoCE v2"},
        "qos_tool": "",
        "qos": {"pfc": [], "trust": ""},
        "ecn": None,
        **more,
    }


def seen(links=None, **more):
    links = {"ens1f0": link()} if links is None else links
    owners = {name: netdev for netdev, facts in links.items() for name in (netdev, *facts["altnames"])}
    modules = ["ib_uverbs", "ib_umad", "rdma_cm", "rdma_ucm", "mlx5_ib"]
    return {"links": links, "owners": owners, "ports": {}, "netns_mode": "shared", "modules": modules, **more}


def params(*links, **more):
    return {
        "links": list(links) or [{"netdev": "ens1f0"}],
        "rdma": True,
        "modules": ["ib_uverbs", "ib_umad", "rdma_cm", "rdma_ucm"],
        "mtu": 0,
        "qos": {},
        "link_type": None,
        **more,
    }


def changes(plan, facts):
    """Keys of links that the plan changes, and whether anything else is."""
    return {
        name: {key: value for key, value in after.items() if value != facts["links"][name][key]}
        for name, after in plan.after["links"].items()
    }


# ---- what programs and files say


def test_link_section():
    text = "[Match]\nName=*\n[Link]\n# why\nNamePolicy=keep\n;no\n MACAddressPolicy=persistent\n[SR-IOV]\nVLANId=1\n"
    assert plans.link_section(text) == ["NamePolicy=keep", "MACAddressPolicy=persistent"]
    assert plans.link_section("") == []


def test_mlnx_qos():
    assert plans.parse_mlnx_qos(MLNX_QOS) == {"pfc": [3, 5], "trust": "pcp"}
    assert plans.parse_mlnx_qos("") == {"pfc": [], "trust": ""}


@pytest.mark.parametrize(
    ("pfc", "trust", "expected"),
    [
        ("prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:on 7:off \n", "", {"pfc": [3, 6], "trust": ""}),
        (
            "pfc-cap 8 macsec-bypass off delay 0\nprio-pfc 0:off 3:on\n",
            "order: dscp pcp\n",
            {"pfc": [3], "trust": "dscp"},
        ),
        ("", "", {"pfc": [], "trust": ""}),
    ],
)
def test_dcb(pfc, trust, expected):
    assert plans.parse_dcb(pfc, trust) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MLXCONFIG, {"P1": "IB", "P2": "ETH"}),
        ("  LINK_TYPE_P1   ETH(2)   IB(1)   ETH(2)\n", {"P1": "ETH"}),  # default, current, next boot
        ("  LINK_TYPE_P1   IB\n", {"P1": "IB"}),
        ("-E- Failed to open device\n", {}),
    ],
)
def test_link_types(text, expected):
    assert plans.parse_link_types(text) == expected


@pytest.mark.parametrize(
    ("pci", "types", "port"),
    [
        ("0000:81:00.0", {"P1": "IB", "P2": "IB"}, "P1"),
        ("0000:81:00.1", {"P1": "IB", "P2": "IB"}, "P2"),
        ("0000:81:00.1", {"P1": "IB"}, "P1"),
    ],
)
def test_port_of(pci, types, port):
    assert plans.port_of(pci, types) == port


# ---- the plan


def test_a_host_that_has_it_all_is_left_alone():
    facts = seen()
    plan = plans.plan_host(params({"netdev": "ens1f0", "altname": "enp129s0f0np0"}), facts)
    assert (plan.commands, plan.boot, plan.notes, plan.reboot) == ([], [], [], [])
    assert changes(plan, facts) == {"ens1f0": {}}
    assert plan.after["modules"] == facts["modules"]


def test_without_rdma_only_names_and_mtu_count():
    wanted = params(
        {"netdev": "ens1f0", "altname": "rail0"}, rdma=False, mtu=9000, qos={"pfc": [3]}, link_type="ethernet"
    )
    plan = plans.plan_host(wanted, seen(netns_mode="exclusive", modules=[]))
    assert plan.commands == [
        ["ip", "link", "property", "add", "dev", "ens1f0", "altname", "rail0"],
        ["ip", "link", "set", "dev", "ens1f0", "mtu", "9000"],
    ]
    assert list(plan.files) == ["/etc/systemd/network/00-fabric-ens1f0.link"]
    assert plan.after["modules"] == []


def test_nothing_asked_nothing_done():
    plan = plans.plan_host(params(rdma=False), seen())
    assert (plan.files, plan.commands) == ({}, [])


def test_modules_are_those_asked_for_and_those_of_the_nics():
    links = {
        "ens1f0": link(),
        "ens2": link(driver="bnxt_en", altnames=[]),
        "eth0": link(driver="virtio_net", altnames=[]),
    }
    wanted = params(*({"netdev": name} for name in links), modules=["ib_uverbs", "mlx5_ib"])
    plan = plans.plan_host(wanted, seen(links, modules=[]))
    assert plan.after["modules"] == ["ib_uverbs", "mlx5_ib", "bnxt_re"]
    assert plan.files[plans.MODULES_FILE]["content"] == "ib_uverbs\nmlx5_ib\nbnxt_re\n"


@pytest.mark.parametrize(
    ("mode", "commands"),
    [("exclusive", [["rdma", "system", "set", "netns", "shared"]]), ("shared", []), ("", [])],
)
def test_netns_mode(mode, commands):
    plan = plans.plan_host(params(), seen(netns_mode=mode))
    assert plan.commands == commands
    assert plan.files[plans.NETNS_FILE]["content"] == "options ib_core netns_mode=1\n"


@pytest.mark.parametrize(
    ("mac", "match"),
    [("0c:42:a1:00:00:01", "PermanentMACAddress=0c:42:a1:00:00:01"), ("", "OriginalName=ens1f0")],
)
def test_a_link_file_keeps_the_settings_of_the_other(mac, match):
    text = plans.link_text("ens1f0", link(permanent_mac=mac), "rail0", 9000)
    assert match in text.splitlines()
    assert plans.link_section(text) == [
        "NamePolicy=keep kernel",
        "MACAddressPolicy=persistent",
        "AlternativeName=rail0",
        "MTUBytes=9000",
    ]
    assert plans.based_on(text) == DEFAULT


def test_a_vlan_is_changed_after_what_lies_below():
    links = {"ens1f0": link(), "ens1f0.5": link(altnames=[], driver="", permanent_mac="")}
    wanted = params({"netdev": "ens1f0.5", "altname": "rail0", "rdma_netdevs": ["ens1f0"]}, mtu=9000, qos={"pfc": [3]})
    plan = plans.plan_host(wanted, seen(links))
    assert [argv[-1] for argv in plan.commands] == ["9000", "rail0", "9000"]
    assert [argv[4] for argv in plan.commands] == ["ens1f0", "dev", "ens1f0.5"]
    assert plan.notes == ["ens1f0: PFC and trust stay as they are: neither mlnx_qos nor dcb can set them."]


def test_a_name_that_another_nic_has_is_refused():
    links = {"ens1f0": link(), "eth0": link(altnames=["rail0"])}
    with pytest.raises(FabricError, match="eth0 has it"):
        plans.plan_host(params({"netdev": "ens1f0", "altname": "rail0"}), seen(links))


def test_a_nic_that_is_not_there_is_named():
    with pytest.raises(FabricError, match=r"Where: ens9\. Seen: the host has ens1f0"):
        plans.plan_host(params({"netdev": "ens9"}), seen())


@pytest.mark.parametrize(
    ("nic", "qos", "boot", "after", "notes"),
    [
        (
            {"qos_tool": "/usr/bin/mlnx_qos"},
            {"pfc": [3], "trust": "dscp"},
            [["/usr/bin/mlnx_qos", "-i", "ens1f0", "--pfc", "0,0,0,1,0,0,0,0", "--trust", "dscp"]],
            {"pfc": [3], "trust": "dscp"},
            0,
        ),
        (
            {"qos_tool": "/sbin/dcb", "qos": {"pfc": [], "trust": ""}},
            {"pfc": [3, 4], "trust": "dscp"},
            [["/sbin/dcb", "pfc", "set", "dev", "ens1f0", "prio-pfc", "all:off", "3:on", "4:on"]],
            {"pfc": [3, 4], "trust": ""},
            1,
        ),
        (
            {"qos_tool": "/sbin/dcb", "qos": {"pfc": [1], "trust": "pcp"}},
            {"pfc": [], "trust": "dscp"},
            [
                ["/sbin/dcb", "pfc", "set", "dev", "ens1f0", "prio-pfc", "all:off"],
                ["/sbin/dcb", "apptrust", "set", "dev", "ens1f0", "order", "dscp"],
            ],
            {"pfc": [], "trust": "dscp"},
            0,
        ),
        ({}, {"pfc": [3]}, [], {"pfc": [], "trust": ""}, 1),
        ({"qos_tool": "/usr/bin/mlnx_qos"}, {"pfc": None, "trust": None}, [], {"pfc": [], "trust": ""}, 0),
    ],
)
def test_qos(nic, qos, boot, after, notes):
    plan = plans.plan_host(params(qos=qos), seen({"ens1f0": link(**nic)}))
    assert plan.boot == boot
    assert plan.after["links"]["ens1f0"]["qos"] == after
    assert len(plan.notes) == notes
    assert (plans.QOS_FILE in plan.files) == bool(boot)


def test_ecn_is_set_both_ways_for_all_priorities():
    plan = plans.plan_host(params(qos={"ecn": [3]}), seen({"ens1f0": link(ecn=[])}))
    on, off = (argv[2] for argv in plan.boot)
    base = "/sys/class/net/ens1f0/ecn"
    assert on == f"echo 1 | tee {base}/roce_np/enable/3 {base}/roce_rp/enable/3"
    assert off.count("enable/") == 14
    assert plan.after["links"]["ens1f0"]["ecn"] == [3]
    lines = plan.files[plans.QOS_FILE]["content"].splitlines()
    assert f'ExecStart=/bin/sh -c "{on}"' in lines


@pytest.mark.parametrize(
    ("port", "commands", "notes", "reboot"),
    [
        (
            {"tool": "mlxconfig", "types": {"P1": "IB", "P2": "IB"}, "link_layer": "InfiniBand"},
            [["mlxconfig", "-d", "0000:81:00.1", "-y", "set", "LINK_TYPE_P2=2"]],
            0,
            1,
        ),
        ({"tool": "mlxconfig", "types": {"P1": "ETH"}, "link_layer": "InfiniBand"}, [], 0, 1),  # set, not yet rebooted
        ({"tool": "mlxconfig", "types": {"P1": "ETH"}, "link_layer": "Ethernet"}, [], 0, 0),
        ({"tool": "mlxconfig", "types": {}, "link_layer": "Ethernet"}, [], 1, 0),
        ({"tool": "", "types": {}, "link_layer": "InfiniBand"}, [], 1, 0),
    ],
)
def test_link_type(port, commands, notes, reboot):
    wanted = params({"pci": "0000:81:00.1"}, link_type="ethernet")
    plan = plans.plan_host(wanted, seen({}, ports={"0000:81:00.1": port}))
    assert plan.commands == commands
    assert (len(plan.notes), len(plan.reboot)) == (notes, reboot)


def test_the_plan_leaves_what_it_was_given():
    facts = seen({"ens1f0": link(qos_tool="/usr/bin/mlnx_qos", ecn=[])}, netns_mode="exclusive", modules=[])
    before = copy.deepcopy(facts)
    plans.plan_host(params({"netdev": "ens1f0", "altname": "rail0"}, mtu=9000, qos={"pfc": [3], "ecn": [3]}), facts)
    assert facts == before


# ---- the edge


@pytest.mark.parametrize(
    ("ours", "applied", "expected"),
    [
        ("", "", "default"),
        ("", "vendor", "vendor"),
        ("", "ours", "default"),  # somebody removed it after udev had taken it
        ("# In place of vendor\n", "ours", "vendor"),
    ],
)
def test_which_link_file_ours_stands_for(tmp_path, monkeypatch, ours, applied, expected):
    files = {name: str(tmp_path / name) for name in ("default", "vendor", "ours")}
    (tmp_path / "default").write_text("[Link]\nNamePolicy=keep\n")
    (tmp_path / "vendor").write_text("[Match]\nDriver=x\n[Link]\nName=fast0\n")
    if ours:
        (tmp_path / "ours").write_text(ours.replace("vendor", files["vendor"]))
    monkeypatch.setattr(edge.plans, "link_path", lambda netdev: files["ours"])
    monkeypatch.setattr(edge, "udev_link_file", lambda index: files.get(applied, ""))
    monkeypatch.setattr(edge, "DEFAULT_LINK_FILES", (files["default"],))
    settings = {"default": ["NamePolicy=keep"], "vendor": ["Name=fast0"]}[expected]
    assert edge.link_file("ens1f0", 2) == (files[expected], settings)


@pytest.fixture
def configfs(tmp_path, monkeypatch):
    """A directory that fills what is made in it, as the kernel does."""
    (tmp_path / "rdma_cm").mkdir()
    monkeypatch.setattr(edge, "CONFIGFS", str(tmp_path / "rdma_cm"))
    removed = []
    real = edge.os.mkdir

    def mkdir(path):
        for part in ("", "/ports", "/ports/1"):
            real(path + part)
        with open(f"{path}/ports/1/default_roce_mode", "w") as stream:
            stream.write("IB/RoCE v1\n")

    monkeypatch.setattr(edge.os, "mkdir", mkdir)
    monkeypatch.setattr(edge.os, "rmdir", removed.append)
    return removed


def test_roce_mode_is_read_and_set_without_leaving_anything(configfs):
    port = Port("mlx5_0", 1, "Ethernet", "ACTIVE", "mlx5_core")
    assert edge.access_roce_mode(port) == {"mlx5_0/1": "IB/RoCE v1"}
    assert configfs == [f"{edge.CONFIGFS}/mlx5_0"]
    assert edge.access_roce_mode(port, plans.ROCE_V2) == {"mlx5_0/1": "RoCE v2"}
    assert edge.access_roce_mode(port._replace(link_layer="InfiniBand")) == {}


@pytest.mark.parametrize(("rc", "mode", "reboots"), [(0, "shared", 0), (1, "exclusive", 1)])
def test_a_mode_that_only_a_reboot_changes(monkeypatch, rc, mode, reboots):
    facts = seen(netns_mode="exclusive")
    monkeypatch.setattr(edge, "read_state", lambda params: facts)
    monkeypatch.setattr(edge, "run_program", lambda argv: Done(rc, "", "Device or resource busy"))
    monkeypatch.setattr(edge, "read_ports", lambda sysfs: {})
    written = {}
    monkeypatch.setattr(edge, "write_file", lambda module, path, content, mode: written.update({path: content}))
    module = Module(**params())
    result = edge.prepare_host(module)
    assert result["diff"][-1]["after"]["netns_mode"] == mode
    assert len(result["reboot"]) == reboots
    assert result["node"] == ""
    assert len(module.warnings) == reboots
    assert plans.NETNS_FILE in written


@pytest.mark.parametrize("options", [{}, {"qos": {}}, {"qos": {"pfc": [3]}, "rdma": False, "link_type": "ethernet"}])
def test_a_site_without_wishes_is_left_alone(monkeypatch, capsys, options):
    """Links come with all keys of the plan; those that do not count are no error."""
    monkeypatch.setattr(edge, "read_state", lambda params: seen())
    monkeypatch.setattr(edge, "read_file", lambda path: {"content": FILES[path], "mode": "0644"})
    links = [{"netdev": "ens1f0", "altname": "enp129s0f0np0", "address": "10.5.0.11", "mtu": 1500}]
    monkeypatch.setattr(edge.plans, "link_text", lambda *args: "")
    with patch_module_args({"links": links, **options}), pytest.raises(SystemExit):
        rdma_host.main()
    result = json.loads(capsys.readouterr().out)
    assert result["changed"] is False
    assert (result["reboot"], result["notes"]) == ([], [])

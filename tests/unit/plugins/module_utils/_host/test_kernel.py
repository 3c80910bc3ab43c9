import functools
import os

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import facts, kernel, swap
from ansible_collections.ipu.fabric.tests.unit.fixtures import module as fake

FSTAB = """\
# <file system> <mount point> <type> <options> <dump> <pass>
UUID=1 / ext4 defaults 0 1
UUID=2 none swap sw 0 0
/swap.img\tnone\tswap\tsw\t0\t0
#/dev/sdb1 none swap sw 0 0
//nas/swap /srv/swap cifs defaults 0 0
"""


def test_fstab_without_swap():
    after = kernel.fstab_without_swap(FSTAB)
    changed = [pair for pair in zip(FSTAB.splitlines(), after.splitlines()) if pair[0] != pair[1]]
    assert changed == [
        ("UUID=2 none swap sw 0 0", "# UUID=2 none swap sw 0 0"),
        ("/swap.img\tnone\tswap\tsw\t0\t0", "# /swap.img\tnone\tswap\tsw\t0\t0"),
    ]
    assert kernel.fstab_without_swap(after) == after
    assert kernel.fstab_without_swap("") == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Filename\tType\tSize\tUsed\tPriority\n", []),
        (
            "Filename Type Size Used Priority\n/dev/dm-1 partition 1 0 -2\n/my\\040swap file 1 0 -3\n",
            ["/dev/dm-1", "/my swap"],
        ),
    ],
)
def test_parse_swaps(text, expected):
    assert facts.parse_swaps(text) == expected


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("net.ipv4.ip_forward", "/proc/sys/net/ipv4/ip_forward"),
        ("net.ipv4.conf.eth0/5.rp_filter", "/proc/sys/net/ipv4/conf/eth0.5/rp_filter"),
    ],
)
def test_sysctl_path(key, path):
    assert kernel.sysctl_path(key) == path


def test_has_module(tmp_path):
    root = str(tmp_path)
    assert not kernel.has_module("overlay", root)
    assert not kernel.has_module("unheard_of", root)
    (tmp_path / "proc" / "sys" / "net" / "bridge").mkdir(parents=True)
    (tmp_path / "proc" / "filesystems").write_text("nodev\tproc\nnodev\tfuse.overlayfs\n")
    assert not kernel.has_module("overlay", root)
    assert kernel.has_module("br_netfilter", root)
    (tmp_path / "proc" / "filesystems").write_text("nodev\tproc\nnodev\toverlay\n")
    assert kernel.has_module("overlay", root)
    (tmp_path / "sys" / "module" / "ib_core").mkdir(parents=True)
    assert kernel.has_module("ib-core", root)


Module = functools.partial(fake.Module, name="kubernetes", modules=[], sysctl={}, disable_swap=False)


def test_a_module_that_can_not_be_loaded(monkeypatch):
    monkeypatch.setattr(kernel, "has_module", lambda name: False)
    with pytest.raises(FabricError, match="has no module br_netfilter") as caught:
        kernel.load_module(Module((1, "", "modprobe: FATAL: Module br_netfilter not found")), "br_netfilter")
    assert "FATAL" in caught.value.seen


def test_a_module_that_is_built_in(monkeypatch):
    monkeypatch.setattr(kernel, "has_module", lambda name: True)
    module = Module((1, "", "FATAL"))
    kernel.load_module(module, "overlay")
    assert module.commands == [["/sbin/modprobe", "overlay"]]


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host with one swap, one sysctl to change and no modules."""
    fstab = tmp_path / "fstab"
    fstab.write_text(FSTAB)
    live = {"net.ipv4.ip_forward": "0", "net.ipv4.tcp_rmem": "4096 131072 6291456"}
    swaps = ["/swap.img"]
    written = {}
    monkeypatch.setattr(kernel, "FSTAB", str(fstab))
    monkeypatch.setattr(kernel, "active_swaps", lambda: list(swaps))
    monkeypatch.setattr(kernel, "read_swap_units", lambda: ["dev-zram0.swap"])
    monkeypatch.setattr(swap, "UNITS", str(tmp_path / "units"))
    monkeypatch.setattr(swap, "systemd_runs", lambda: True)
    (tmp_path / "units").mkdir()
    monkeypatch.setattr(kernel, "has_module", lambda name: name == "overlay")
    monkeypatch.setattr(kernel, "read_sysctl", live.get)
    monkeypatch.setattr(kernel, "set_sysctl", live.__setitem__)
    real = kernel.write_file

    def write(module, path, content, mode, backup=False):
        written[path] = content
        if path == str(fstab):
            real(module, path, content, mode, backup)

    monkeypatch.setattr(kernel, "write_file", write)

    def make_module(**options):
        module = Module(**options)
        for user in (kernel, swap):
            monkeypatch.setattr(user, "run_program", module.run_program)
        return module

    return {"fstab": fstab, "live": live, "written": written, "module": make_module, "units": tmp_path / "units"}


WANTED = {
    "modules": ["overlay", "br_netfilter"],
    "sysctl": {"net.ipv4.ip_forward": 1, "net.ipv4.tcp_rmem": "4096\t131072\t6291456"},
    "disable_swap": True,
}


def test_everything_in_one_call(host):
    module = host["module"](**WANTED)
    result = kernel.apply_kernel_settings(module)
    assert result["changed"]
    assert module.commands == [
        ["/sbin/modprobe", "br_netfilter"],
        ["systemctl", "daemon-reload"],
        ["systemctl", "stop", "dev-zram0.swap"],
        ["swapoff", "/swap.img"],
    ]
    assert os.readlink(host["units"] / "dev-zram0.swap") == "/dev/null"
    assert host["live"]["net.ipv4.ip_forward"] == "1"
    assert "# /swap.img" in host["fstab"].read_text()
    assert module.backups == [str(host["fstab"])]
    assert host["written"]["/etc/modules-load.d/kubernetes.conf"] == f"{kernel.MARK}\noverlay\nbr_netfilter\n"
    assert "net.ipv4.ip_forward = 1\n" in host["written"]["/etc/sysctl.d/99-z-kubernetes.conf"]


@pytest.mark.parametrize(("there", "backups"), [("overlay\n", 1), (f"{kernel.MARK}\noverlay\n", 0)])
def test_a_file_of_others_is_not_lost(tmp_path, there, backups):
    path, module = tmp_path / "kubernetes.conf", Module()
    path.write_text(there)
    nothing = {"name": "", "modules": [], "sysctl": {}, "disable_swap": False}
    state = {"modules": [], "sysctl": {}, "swap": [], "swap_units": []}
    kernel.change_kernel(module, {str(path): {"content": "x", "mode": "0644"}}, state, nothing)
    assert len(module.backups) == backups


def test_check_mode_says_the_same_and_does_nothing(host):
    module = host["module"](check_mode=True, **WANTED)
    result = kernel.apply_kernel_settings(module)
    assert result["changed"]
    assert result["diff"][-1]["after"]["swap"] == []
    assert result["diff"][-1]["before"]["swap_units"] == ["dev-zram0.swap"]
    assert result["diff"][-1]["after"]["swap_units"] == []
    assert (module.commands, host["written"], list(host["units"].iterdir())) == ([], {}, [])


def test_swap_may_stay(host):
    module = host["module"]()
    assert not kernel.apply_kernel_settings(module)["changed"]
    assert (module.commands, host["written"], list(host["units"].iterdir())) == ([], {}, [])


def test_swap_that_can_not_be_turned_off(host, monkeypatch):
    host["module"](**WANTED)

    def refuse(argv, _seconds):
        return Done(1, "", "swapoff failed: Cannot allocate memory") if argv[0] == "swapoff" else Done(0)

    monkeypatch.setattr(kernel, "run_program", refuse)
    with pytest.raises(FabricError) as caught:
        kernel.apply_kernel_settings(Module(**WANTED))
    assert (caught.value.where, caught.value.seen) == ("swapoff /swap.img", "swapoff failed: Cannot allocate memory")


@pytest.mark.parametrize(
    ("key", "there", "wanted", "value"),
    [
        ("fs.inotify.max_user_instances", "128", "8192", "8192"),
        ("fs.inotify.max_user_instances", "65536", "8192", "65536"),
        ("fs.inotify.max_user_instances", None, "8192", "8192"),
        ("net.ipv4.neigh.default.gc_thresh3", "1024", "32768", "32768"),
        ("net.ipv4.neigh.default.gc_thresh3", "80000", "32768", "80000"),
        ("kernel.panic", "60", "10", "10"),
    ],
)
def test_a_limit_is_raised_and_never_lowered(key, there, wanted, value, monkeypatch):
    monkeypatch.setattr(kernel, "read_sysctl", {key: there}.get)
    assert kernel.raised(key, wanted) == value

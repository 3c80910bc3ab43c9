"""What containerd itself makes of its main file, our drop-in and those of others."""

from __future__ import annotations

import subprocess
import time
import typing as t
from pathlib import Path

import pytest
import tomllib
from ansible_collections.ipu.fabric.plugins.module_utils._common.toml import to_toml
from ansible_collections.ipu.fabric.plugins.module_utils._component.containerd import IMAGES, RUNTIME, containerd_config
from ansible_collections.ipu.fabric.plugins.module_utils._host import cri

PAUSE = "registry.site:5000/pause:3.10.1"
TOOLKIT = """version = {version}
# By the GPU toolkit, into the main file as its older releases do.
[plugins."{cri}".containerd]
default_runtime_name = "nvidia"
[plugins."{cri}".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
[plugins."{cri}".containerd.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
"""
OTHER = f"""version = 3
[plugins."{RUNTIME}"]
max_container_log_line_size = 1000
"""


def dump(binaries: Path, folder: Path, main: str, settings: t.Dict[str, t.Any], other: str = "") -> t.Dict[str, t.Any]:
    """The settings with which containerd would run, from files that lie here instead of in /etc."""
    files = containerd_config(main, "2.4.0", PAUSE, settings=settings)
    (folder / "conf.d").mkdir()
    (folder / "config.toml").write_text(files["main"].replace("/etc/containerd", str(folder)))
    (folder / "conf.d/10-kubernetes.toml").write_text(to_toml(files["drop_in"]))
    (folder / "conf.d/20-site.toml").write_text(other)
    command = [binaries / "containerd", "--config", folder / "config.toml", "config", "dump"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return tomllib.loads(done.stdout)


def test_settings_of_others_go_along_with_ours(binaries: Path, tmp_path: Path) -> None:
    settings = {"plugins": {RUNTIME: {"stats_collect_period": "10m"}}}
    seen = dump(binaries, tmp_path, TOOLKIT.format(version=3, cri=RUNTIME), settings, OTHER)["plugins"]
    runtime = seen[RUNTIME]
    assert runtime["containerd"]["default_runtime_name"] == "nvidia"
    assert sorted(runtime["containerd"]["runtimes"]) == ["nvidia", "runc"]
    assert runtime["containerd"]["runtimes"]["runc"]["options"]["SystemdCgroup"] is True
    assert (runtime["stats_collect_period"], runtime["max_container_log_line_size"]) == ("10m", 1000)
    assert seen[IMAGES]["pinned_images"]["sandbox"] == PAUSE
    assert seen[IMAGES]["registry"]["config_path"] == "/etc/containerd/certs.d"


def test_a_main_file_of_version_2(binaries: Path, tmp_path: Path) -> None:
    seen = dump(binaries, tmp_path, TOOLKIT.format(version=2, cri="io.containerd.grpc.v1.cri"), {})["plugins"]
    assert sorted(seen[RUNTIME]["containerd"]["runtimes"]) == ["nvidia", "runc"]
    assert seen[RUNTIME]["containerd"]["runtimes"]["runc"]["options"]["SystemdCgroup"] is True
    assert seen[IMAGES]["pinned_images"]["sandbox"] == PAUSE


def test_the_main_file_of_the_package(binaries: Path, tmp_path: Path) -> None:
    seen = dump(binaries, tmp_path, 'disabled_plugins = ["cri"]\n', {})
    assert seen["disabled_plugins"] == []
    assert seen["plugins"][IMAGES]["pinned_images"]["sandbox"] == PAUSE


DEBIAN = """version = 2
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "/srv/net.d"
"""


@pytest.mark.parametrize(
    ("main", "plugins"),
    [
        (DEBIAN, ["/opt/cni/bin"]),
        (
            f'version = 3\n[plugins."{RUNTIME}".cni]\nbin_dirs = ["/usr/lib/cni"]\nconf_dir = "/srv/net.d"\n',
            ["/opt/cni/bin", "/usr/lib/cni"],
        ),
    ],
)
def test_plugins_are_where_containerd_looks(binaries: Path, tmp_path: Path, main: str, plugins: t.List[str]) -> None:
    seen = dump(binaries, tmp_path, main, {})["plugins"][RUNTIME]["cni"]
    assert (seen["bin_dirs"], seen["conf_dir"]) == (plugins, "/etc/cni/net.d")


REGISTRIES = f"""
[plugins."{IMAGES}".registry]
config_path = "/etc/containerd/certs.d"
[plugins."{IMAGES}".registry.mirrors."docker.io"]
endpoint = ["https://mirror.local"]
"""


@pytest.mark.parametrize(("more", "works"), [("", True), (REGISTRIES, False)])
def test_containerd_that_runs_may_have_no_cri(binaries: Path, tmp_path: Path, more: str, works: bool) -> None:
    """It does not end at settings that its CRI refuses."""
    places = f'root = "{tmp_path}/root"\nstate = "{tmp_path}/state"\n'
    servers = "".join(
        f'[plugins."io.containerd.server.v1.{name}"]\naddress = "{tmp_path}/{name}.sock"\n'
        for name in ("grpc", "ttrpc")
    )
    (tmp_path / "config.toml").write_text(f"version = 4\n{places}{servers}{more}")
    command = [binaries / "containerd", "--config", tmp_path / "config.toml"]
    with (tmp_path / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            give_up = time.monotonic() + 60
            while (silent := cri.ask(f"{tmp_path}/grpc.sock")) and not silent.final and time.monotonic() < give_up:
                time.sleep(0.5)
        finally:
            process.terminate()
    assert (silent is None) == works, (tmp_path / "log").read_text()
    assert works or (silent and silent.final)

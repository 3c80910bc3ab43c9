# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd's main file keeps what others wrote, and imports the drop-in with ours."""

from __future__ import annotations

import pytest
import tomllib
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.containerd import (
    CRI_1,
    DROP_INS,
    IMAGES,
    RUNTIME,
    containerd_config,
)

PAUSE = "registry.k8s.io/pause:3.10.1"
IMPORTS = f'imports = ["{DROP_INS}"]\n'


def config(text="", release="2.2.1-1~debian.12", **more):
    return containerd_config(text, release, PAUSE, **more)


@pytest.mark.parametrize(
    ("text", "release", "main"),
    [
        ("", "2.2.1", f"version = 3\n{IMPORTS}"),
        ("", "1.7.28", f"version = 2\n{IMPORTS}"),
        # As packages bring it.
        (
            '# Copyright\n\ndisabled_plugins = ["cri"] # no CRI\n#root = "/x"\n#[grpc]\n',
            "2.2.1",
            f'version = 3\n{IMPORTS}# Copyright\n\ndisabled_plugins = [] # no CRI\n#root = "/x"\n#[grpc]\n',
        ),
        # Imports of others, over several lines.
        (
            'version = 3\nimports = [\n  "/opt/*.toml", # theirs\n  "x.toml",\n]\n[grpc]\nimports = 1\n',
            "2.2.1",
            f'version = 3\nimports = ["/opt/*.toml", "x.toml", "{DROP_INS}"]\n[grpc]\nimports = 1\n',
        ),
        (f"{IMPORTS}version = 2 # old\noom_score = -999\n", "2.2.1", f"{IMPORTS}version = 2 # old\noom_score = -999\n"),
        (
            'disabled_plugins = ["x.v1", "io.containerd.grpc.v1.cri"]',
            "1.7.28",
            f'version = 2\n{IMPORTS}disabled_plugins = ["x.v1"]',
        ),
    ],
)
def test_the_main_file(text, release, main):
    assert config(text, release)["main"] == main
    assert config(main, release)["main"] == main


@pytest.mark.parametrize(
    "entry",
    [DROP_INS, "conf.d/*.toml", "/etc/containerd/conf.d/10-kubernetes.toml", "./conf.d/1*", "/etc/containerd/*/*"],
)
def test_imports_that_have_the_drop_in_already(entry):
    text = f'version = 3\nimports = ["{entry}"]\n'
    assert config(text)["main"] == text


@pytest.mark.parametrize("entry", ["/etc/containerd/*", "/etc/containerd/conf.d/20-*.toml", "/opt/conf.d/*.toml"])
def test_imports_that_lack_the_drop_in(entry):
    assert tomllib.loads(config(f'version = 3\nimports = ["{entry}"]')["main"])["imports"] == [entry, DROP_INS]


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_drop_in_of_containerd_2(version):
    result = config(f"version = {version}", restrict_oom_score_adj=True)
    assert result["drop_in"] == {
        "version": 3,
        "plugins": {
            IMAGES: {"pinned_images": {"sandbox": PAUSE}, "registry": {"config_path": "/etc/containerd/certs.d"}},
            RUNTIME: {
                "restrict_oom_score_adj": True,
                "containerd": {
                    "runtimes": {"runc": {"runtime_type": "io.containerd.runc.v2", "options": {"SystemdCgroup": True}}}
                },
            },
        },
    }


def test_a_drop_in_has_the_version_of_an_old_main_file():
    drop_in = config("version = 2")["drop_in"]
    assert (drop_in["version"], list(drop_in["plugins"])) == (2, [CRI_1])
    assert drop_in["plugins"][CRI_1]["sandbox_image"] == PAUSE


def test_containerd_1_needs_all_of_a_plugin_in_one_file():
    text = f"""version = 2
[plugins."{CRI_1}"]
enable_cdi = true
sandbox_image = "old"
[plugins."{CRI_1}".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
[plugins.other]
x = 1
"""
    drop_in = config(text, "1.7.28")["drop_in"]
    assert list(drop_in["plugins"]) == [CRI_1]
    cri = drop_in["plugins"][CRI_1]
    assert (cri["enable_cdi"], cri["sandbox_image"]) == (True, PAUSE)
    assert sorted(cri["containerd"]["runtimes"]) == ["nvidia", "runc"]
    assert "enable_cdi" not in config(text)["drop_in"]["plugins"][CRI_1]


def test_settings_of_the_site_win():
    settings = {
        "oom_score": -1,
        "plugins": {RUNTIME: {"containerd": {"runtimes": {"runc": {"options": {"SystemdCgroup": False}}}}}},
    }
    drop_in = config(settings=settings)["drop_in"]
    assert drop_in["oom_score"] == -1
    assert drop_in["plugins"][RUNTIME]["containerd"]["runtimes"]["runc"]["options"] == {"SystemdCgroup": False}
    assert drop_in["plugins"][IMAGES]["pinned_images"] == {"sandbox": PAUSE}


@pytest.mark.parametrize(
    ("text", "settings", "seen"),
    [
        ("version = 2", {"plugins": {RUNTIME: {}}}, RUNTIME),
        ("version = 3", {"plugins": {CRI_1: {}}}, CRI_1),
        ("", {"version": 2}, "version = 2"),
    ],
)
def test_settings_of_another_version_are_refused(text, settings, seen):
    with pytest.raises(FabricError, match="have to be of the version") as caught:
        config(text, settings=settings)
    assert caught.value.seen == seen


@pytest.mark.parametrize(
    ("text", "release", "seen"),
    [
        ("imports = [", "2", "is not valid TOML"),
        ("[plugins.cri]\nsandbox_image = 1", "2", "settings of plugins in version 1"),
        ("version = 3", "1.7.28", "version 3, and containerd 1 knows version 2"),
        ('version = 3\n"imports" = []', "2", "can't be edited safely"),
        ("version = 3\nimports = ['a]b']", "2", "can't be edited safely"),
    ],
)
def test_what_a_person_has_to_look_at(text, release, seen):
    with pytest.raises(FabricError, match="Nothing of it was changed") as caught:
        config(text, release)
    assert seen in str(caught.value)


def test_a_table_may_follow_at_once():
    result = config('version = 3\n\n  [debug]\n  imports = ["x"]\n')["main"]
    assert tomllib.loads(result) == {"version": 3, "imports": [DROP_INS], "debug": {"imports": ["x"]}}

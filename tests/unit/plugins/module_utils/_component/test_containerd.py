"""containerd's main file keeps what others wrote, and imports the drop-in with ours."""

import pytest
import tomllib
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component.containerd import (
    CRI_1,
    DROP_INS,
    IMAGES,
    RUNTIME,
    containerd_config,
)

# /etc/containerd/config.toml of Debian's package containerd 1.6.20, which stays when that is removed.
DEBIAN = """\
version = 2

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni"
      conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.internal.v1.opt"]
    path = "/var/lib/containerd/opt"
"""
MIRRORS = """\
version = 2
[plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]
endpoint = ["https://u:hidden@mirror.local:5000", "http://cache.local/v2/hub"]
[plugins."io.containerd.grpc.v1.cri".registry.mirrors."*"]
endpoint = ["mirror.local:5000"]
[plugins."io.containerd.grpc.v1.cri".registry.configs."mirror.local:5000".tls]
insecure_skip_verify = true
ca_file = "/etc/ssl/site.crt"
[plugins."io.containerd.grpc.v1.cri".registry.configs."registry.local".tls]
cert_file = "/etc/ssl/me.crt"
key_file = "/etc/ssl/me.key"
[plugins."io.containerd.grpc.v1.cri".registry.configs."registry.local".auth]
password = "hidden"
"""
HOSTS = """\
/etc/containerd/certs.d/docker.io/hosts.toml:
[host."https://mirror.local:5000"]
capabilities = ["pull", "resolve"]
skip_verify = true
ca = "/etc/ssl/site.crt"
[host."http://cache.local/v2/hub"]
capabilities = ["pull", "resolve"]
override_path = true
/etc/containerd/certs.d/_default/hosts.toml:
[host."https://mirror.local:5000"]
capabilities = ["pull", "resolve"]
skip_verify = true
ca = "/etc/ssl/site.crt"
/etc/containerd/certs.d/registry.local/hosts.toml:
[host."https://registry.local"]
capabilities = ["pull", "resolve"]
client = [["/etc/ssl/me.crt", "/etc/ssl/me.key"]]
"""
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
    with pytest.raises(FabricError, match="It was not changed") as caught:
        config(text, release)
    assert seen in str(caught.value)


def test_a_table_may_follow_at_once():
    result = config('version = 3\n\n  [debug]\n  imports = ["x"]\n')["main"]
    assert tomllib.loads(result) == {"version": 3, "imports": [DROP_INS], "debug": {"imports": ["x"]}}


def registry_of(text, release, **more):
    """What the drop-in says of registries, and the one that it is in."""
    plugins = config(text, release, **more)["drop_in"]["plugins"]
    return plugins.get(IMAGES, plugins.get(CRI_1)).get("registry", {})


@pytest.mark.parametrize("release", ["1.6.20", "1.7.28", "2.2.1"])
@pytest.mark.parametrize("tables", [MIRRORS, MIRRORS.partition("configs")[0].rpartition("[")[0]])
def test_tables_of_registries_go_without_a_config_path(release, tables):
    """containerd does not load its CRI with both, and is active anyway."""
    assert "config_path" not in registry_of(tables, release)


def test_credentials_of_registries_go_with_a_config_path():
    text = f'version = 2\n[plugins."{CRI_1}".registry.configs."registry.local".auth]\nusername = "u"\n'
    assert registry_of(text, "2.2.1") == {"config_path": "/etc/containerd/certs.d"}
    empty = f'version = 2\n[plugins."{CRI_1}".registry]\nconfig_path = ""\n[plugins."{CRI_1}".registry.mirrors]\n'
    assert registry_of(empty, "1.7.28")["config_path"] == "/etc/containerd/certs.d"


@pytest.mark.parametrize("release", ["1.7.28", "2.2.1"])
def test_a_mirror_beside_tables_of_registries_is_refused(release):
    with pytest.raises(FabricError, match="settings of registries in two forms") as caught:
        config(MIRRORS, release, mirror=True)
    assert caught.value.seen.startswith(
        'registry.mirrors."docker.io", registry.mirrors."*", registry.configs."mirror.local:5000".tls, '
        'registry.configs."registry.local".tls beside'
    )
    assert HOSTS in caught.value.next_step
    assert "hidden" not in str(caught.value)


def test_the_tables_may_be_in_another_drop_in():
    text = f'version = 3\n[plugins."{IMAGES}".registry.mirrors."docker.io"]\nendpoint = ["https://mirror.local"]\n'
    others = {"/etc/containerd/conf.d/99-site.toml": text}
    assert registry_of("", "2.2.1", others=others) == {}
    with pytest.raises(FabricError, match="in two forms"):
        config("", others=others, mirror=True)
    with pytest.raises(FabricError, match="not valid TOML") as caught:
        config("", others={"/etc/containerd/conf.d/99-site.toml": "["})
    assert caught.value.where == "/etc/containerd/conf.d/99-site.toml"


OWN_PATH = f'version = 2\n[plugins."{CRI_1}".registry]\nconfig_path = "{{}}"\n'


@pytest.mark.parametrize("release", ["1.7.28", "2.2.1"])
def test_a_config_path_of_the_site_stays(release):
    assert registry_of(OWN_PATH.format("/srv/certs"), release).get("config_path", "/srv/certs") == "/srv/certs"
    both = OWN_PATH.format("/etc/containerd/certs.d/:/etc/docker/certs.d")
    assert registry_of(both, release, mirror=True).get("config_path") != "/etc/containerd/certs.d"
    with pytest.raises(FabricError, match="where the registry mirror's hosts") as caught:
        config(OWN_PATH.format("/srv/certs"), release, mirror=True)
    assert caught.value.seen == 'config_path = "/srv/certs"'
    assert '"/srv/certs:/etc/containerd/certs.d"' in caught.value.next_step


def test_what_can_not_load_is_refused_without_a_mirror_too():
    text = MIRRORS.replace("version = 2\n", OWN_PATH.format("/srv/certs"))
    with pytest.raises(FabricError, match="in two forms") as caught:
        config(text, "2.2.1")
    assert 'beside config_path = "/srv/certs"' in caught.value.seen


def test_containerd_1_keeps_what_an_earlier_drop_in_says():
    early, late = (f'version = 2\n[plugins."{CRI_1}"]\nenable_{name} = true\n' for name in ("cdi", "selinux"))
    others = {"/etc/containerd/conf.d/05-site.toml": early, "/etc/containerd/conf.d/20-site.toml": late}
    cri = config("version = 2", "1.7.28", others=others)["drop_in"]["plugins"][CRI_1]
    assert (cri.get("enable_cdi"), cri.get("enable_selinux")) == (True, None)


def cni_of(text, release, **more):
    plugins = config(text, release, **more)["drop_in"]["plugins"]
    return plugins.get(RUNTIME, plugins.get(CRI_1)).get("cni", {})


V3 = f'version = 3\n[plugins."{RUNTIME}".cni]\n'
LIBEXEC = {"plugins": ["/opt/cni/bin", "/usr/libexec/cni"], "networks": ["/etc/cni/net.d"]}


@pytest.mark.parametrize(
    ("text", "release", "directories", "expected"),
    [
        ("", "2.2.1", None, {}),
        # Plugins are in /opt/cni/bin, whatever Debian's file says.
        (DEBIAN, "1.6.20", None, {"bin_dir": "/opt/cni/bin", "conf_dir": "/etc/cni/net.d"}),
        (DEBIAN, "1.7.28", None, {"bin_dir": "/opt/cni/bin", "conf_dir": "/etc/cni/net.d"}),
        (DEBIAN, "2.2.1", None, {"bin_dir": "/opt/cni/bin"}),
        (DEBIAN, "2.4.2", None, {"bin_dir": "/opt/cni/bin"}),
        (DEBIAN.replace("net.d", "x.d"), "2.2.1", None, {"bin_dir": "/opt/cni/bin", "conf_dir": "/etc/cni/net.d"}),
        # The old setting in the newer format: beside bin_dirs it is an error, and from 2.4 on nothing.
        (f'{V3}bin_dir = "/usr/lib/cni"', "2.0.5", None, {"bin_dir": "/opt/cni/bin"}),
        (f'{V3}bin_dir = "/usr/lib/cni"', "2.2.1", None, {"bin_dir": "/opt/cni/bin"}),
        (f'{V3}bin_dir = "/usr/lib/cni"', "2.4.2", None, {}),
        # Several directories
        (f'{V3}bin_dirs = ["/usr/lib/cni"]', "2.2.1", None, {"bin_dirs": ["/opt/cni/bin", "/usr/lib/cni"]}),
        (f'{V3}bin_dirs = ["/usr/lib/cni", "/opt/cni/bin"]', "2.2.1", None, {}),
        ("", "2.2.1", LIBEXEC, {"bin_dirs": ["/opt/cni/bin", "/usr/libexec/cni"]}),
        # One of them that the site has chosen
        (DEBIAN.replace("/lib/", "/libexec/"), "2.2.1", LIBEXEC, {}),
        ("", "1.7.28", {**LIBEXEC, "plugins": ["/srv/cni"]}, {"bin_dir": "/srv/cni"}),
        ("", "1.7.28", {**LIBEXEC, "plugins": ["/opt/cni/bin"], "networks": ["/srv/net"]}, {"conf_dir": "/srv/net"}),
    ],
)
def test_containerd_looks_where_the_plugins_are(text, release, directories, expected):
    assert cni_of(text, release, cni=directories) == expected


@pytest.mark.parametrize(("text", "release"), [("", "1.7.28"), ("version = 2", "2.4.2"), (DEBIAN, "2.0.5")])
def test_plugins_in_two_directories_where_containerd_takes_one(text, release):
    with pytest.raises(FabricError, match="in one directory") as caught:
        config(text, release, cni=LIBEXEC)
    assert caught.value.seen == "/opt/cni/bin and /usr/libexec/cni"
    told = {"plugins": {CRI_1: {"cni": {"bin_dir": "/opt/cni/bin"}}}}
    assert cni_of(text or "version = 2", release, cni=LIBEXEC, settings=told)["bin_dir"] == "/opt/cni/bin"


def test_directories_that_the_site_has_told():
    told = {"plugins": {RUNTIME: {"cni": {"bin_dirs": ["/srv/cni"], "conf_dir": "/srv/net"}}}}
    assert cni_of("", "2.2.1", settings=told) == {"bin_dirs": ["/srv/cni"], "conf_dir": "/srv/net"}

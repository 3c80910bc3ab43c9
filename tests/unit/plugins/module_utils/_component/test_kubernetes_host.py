"""What a host gets: packages, the files and services of its runtime, cri-dockerd, keepalived; and what is refused."""

from __future__ import annotations

import base64
import re
import typing as t

import pytest
import tomllib
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component.kubernetes_host import Seen, decide
from ansible_collections.ipu.fabric.plugins.module_utils._host import package_removal
from ansible_collections.ipu.fabric.plugins.module_utils._host.files import OWN_MARK
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import host_reset
from ansible_collections.ipu.fabric.plugins.module_utils._model.wish import HostFile, HostWish
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults
from ansible_collections.ipu.fabric.tests.unit.fixtures.control_plane import NODE
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

PAUSE = "registry.k8s.io/pause:3.10.1"
VERSIONS = {"containerd.io": "2.2.1-1", "docker-ce": "5:28.5.2-1~debian.12~bookworm"}
MAIN, DROP_IN = "/etc/containerd/config.toml", "/etc/containerd/conf.d/10-kubernetes.toml"
IMAGES, RUNTIME = "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime"
PLANES = {"cp1": "10.88.0.11", "cp2": "10.88.0.12", "cp3": "10.88.0.13"}
PROXY = {"http": "http://user:secret@proxy:3128", "https": "http://proxy:3128", "no_proxy": ["10.96.0.0/12", ".svc"]}
DOCKER = {"runtime": "docker"}


def wish(
    node: t.Optional[t.Mapping[str, t.Any]] = None,
    texts: t.Optional[t.Mapping[str, str]] = None,
    host: str = "cp1",
    planes: t.Optional[t.Mapping[str, t.Any]] = None,
    run: t.Sequence[str] = tuple(PLANES),
    versions: t.Optional[t.Mapping[str, str]] = None,
    cni: t.Optional[t.Mapping[str, str]] = None,
    **settings: t.Any,
) -> HostWish:
    """What a host gets whose packages are installed."""
    read = [{"item": path, "content": base64.b64encode(text.encode()).decode()} for path, text in (texts or {}).items()]
    known = VERSIONS if versions is None else versions
    whole: t.Any = {**NODE, "name": f"node-{host}", "address": PLANES[host], **(node or {})}
    members = {name: {"membership": "member", "address": address} for name, address in PLANES.items()}
    seen = Seen(host, whole, known, read, cni or {}, planes or members, run)
    return decide(defaults("kubernetes", "kubernetes_host", **settings), seen)


def files(decided: HostWish) -> t.Dict[str, HostFile]:
    return {file.path: file for file in decided.files}


def toml(decided: HostWish, path: str = DROP_IN) -> t.Dict[str, t.Any]:
    return tomllib.loads(files(decided)[path].content)


def restarts(decided: HostWish) -> t.Dict[str, str]:
    return {unit.name: unit.restart for unit in decided.units}


def packages(decided: HostWish) -> t.Dict[str, str]:
    return {package.name: package.version for package in decided.packages}


# ---- packages -------------------------------------------------------------------------------------------------------


def test_a_bare_host_gets_packages_first_and_a_node_has_both_at_once() -> None:
    """Which files there are depends on what the packages are. On a node of the cluster a runtime's is not changed."""
    bare, member = wish(versions={}), wish({"membership": "member"}, versions={})
    assert (bare.files, bare.units, bare.keep) == ((), (), [])
    assert member.keep == ["containerd.io"]
    assert restarts(member) == {"containerd": "never", "kubelet": "stale"}
    assert wish({"membership": "member"}, versions={}, **DOCKER).files == ()  # what it knows depends on its release
    assert restarts(wish()) == {"containerd": "stale", "kubelet": "stale"}
    assert [package.name for package in bare.kubeadm] == ["kubeadm"]


def test_repositories_are_those_of_the_release_and_of_the_system() -> None:
    found = wish(version="1.35.4").repositories
    assert found["kubernetes"]["uri"] == "https://pkgs.k8s.io/core:/stable:/v1.35/deb/"
    assert (found["containerd"]["uri"], found["containerd"]["suite"]) == (
        "https://download.docker.com/linux/debian",
        "bookworm",
    )


def test_a_bundle_is_the_only_source() -> None:
    found = wish(bundle="/media/bundle")
    assert [(one["uri"], one["trusted"]) for one in found.repositories.values()] == [
        ("file:/var/lib/ipu-fabric/bundle/apt/", True)
    ]
    assert (found.bundle_part, found.architecture) == ("apt/debian-bookworm-amd64", "amd64")


def test_what_a_bundle_asks_for() -> None:
    """It has no host: places in URLs stay, and with an address of the API there is keepalived."""
    settings = {"control_plane_vip": "10.88.0.50", "extra_packages": [{"name": "cri-tools"}]}
    found = decide(defaults("kubernetes", "kubernetes_host", **settings), Seen())
    assert "{minor}" in found.repositories["kubernetes"]["uri"]
    assert {"kubelet", "cri-tools", "keepalived", "python3"} <= set(packages(found))
    assert {package.name: package.hold for package in found.packages}["keepalived"] is False


# ---- containerd -----------------------------------------------------------------------------------------------------

TOOLKIT = f"""
version = 3
[plugins."{RUNTIME}".containerd]
default_runtime_name = "nvidia"
[plugins."{RUNTIME}".containerd.runtimes.nvidia] # by the GPU toolkit
runtime_type = "io.containerd.runc.v2"
"""


def test_what_others_have_set_stays() -> None:
    settings = {"plugins": {RUNTIME: {"stats_collect_period": "10m"}}}
    found = wish(texts={MAIN: TOOLKIT}, containerd_config=settings)
    assert toml(found, MAIN) == {**tomllib.loads(TOOLKIT), "imports": ["/etc/containerd/conf.d/*.toml"]}
    own = toml(found)
    assert own["plugins"][RUNTIME]["stats_collect_period"] == "10m"
    assert own["plugins"][IMAGES]["pinned_images"] == {"sandbox": PAUSE}
    assert all(files(found)[path].backup and files(found)[path].units == ["containerd"] for path in (MAIN, DROP_IN))


def test_a_containerd_without_a_file() -> None:
    assert toml(wish(), MAIN) == {"version": 3, "imports": ["/etc/containerd/conf.d/*.toml"]}


def test_tables_of_others_that_go_with_no_mirror() -> None:
    tables = f'version = 3\n[plugins."{IMAGES}".registry.mirrors."docker.io"]\nendpoint = ["https://x"]\n'
    others = {"/etc/containerd/conf.d/99-site.toml": tables}
    assert "registry" not in toml(wish(texts=others))["plugins"][IMAGES]
    with pytest.raises(FabricError, match="settings of registries in two forms"):
        wish(texts=others, registry_mirror="mirror.local:5000")


def test_containerd_is_told_where_calico_puts_its_plugins() -> None:
    calico = {"cni": {"binDir": "/usr/libexec/cni", "confDir": "/srv/net.d"}}
    found = wish(calico_installation=calico, cni={"plugins": "", "networks": "/srv/net.d"})
    directories = {"bin_dirs": ["/opt/cni/bin", "/usr/libexec/cni"], "conf_dir": "/srv/net.d"}
    assert toml(found)["plugins"][RUNTIME]["cni"] == directories


@pytest.mark.parametrize("mirror", ["", "mirror.site:5000", "http://mirror.site:5000"])
def test_a_mirror_and_its_login(mirror: str) -> None:
    login = {"username": "me", "password": "word"}
    file = files(wish(registry_mirror=mirror, registry_auth=login))["/etc/containerd/certs.d/_default/hosts.toml"]
    assert (file.state, file.mode) == ("present" if mirror else "absent", "0600")
    assert file.content.startswith(f"{OWN_MARK}\n")
    if mirror:
        (host,) = tomllib.loads(file.content)["host"].items()
        header = {"authorization": "Basic " + base64.b64encode(b"me:word").decode()}
        url = mirror if "://" in mirror else f"https://{mirror}"
        assert host == (url, {"capabilities": ["pull", "resolve"], "header": header})


def test_a_drop_in_with_a_login_is_for_root_alone() -> None:
    registry = {"plugins": {IMAGES: {"registry": {"configs": {"a": {"auth": {"password": "b"}}}}}}}
    assert files(wish(containerd_config=registry))[DROP_IN].mode == "0600"
    assert files(wish())[DROP_IN].mode == "0644"


# ---- the proxy ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runtime", ["containerd", "docker"])
def test_the_runtime_is_told_of_the_proxy_without_its_password(runtime: str) -> None:
    path = f"/etc/systemd/system/{runtime}.service.d/20-proxy.conf"
    found = files(wish(runtime=runtime, proxy=PROXY))
    assert (found[path].state, found[path].units) == ("present", [runtime])
    assert "EnvironmentFile=-/etc/containerd/proxy.env\n" in found[path].content
    assert "secret" not in found[path].content
    assert 'HTTP_PROXY="http://user:secret@proxy:3128"\n' in found["/etc/containerd/proxy.env"].content
    assert found["/etc/containerd/proxy.env"].mode == "0600"
    other = files(wish(runtime=runtime, proxy={**PROXY, "http": "http://user:other@proxy:3128"}))
    assert other[path].content != found[path].content, "it is restarted with the new one"
    gone = files(wish(runtime=runtime, proxy={"http": None}))
    assert {gone[path].state, gone["/etc/containerd/proxy.env"].state} == {"absent"}


# ---- Docker ---------------------------------------------------------------------------------------------------------

# Flags of cri-dockerd, by their kind, as its source has them at the tags v0.3.25 and v0.4.3.
CRI_DOCKERD_0_3_25_AND_0_4_3 = {
    **dict.fromkeys(
        (
            "cni-bin-dir",
            "cni-cache-dir",
            "cni-conf-dir",
            "container-runtime-endpoint",
            "cri-dockerd-root-directory",
            "docker-endpoint",
            "network-plugin",
            "pod-cidr",
            "pod-infra-container-image",
            "runtime-cgroups",
            "streaming-bind-addr",
        ),
        "text",
    ),
    "hairpin-mode": "mode",
    "image-pull-progress-deadline": "duration",
    "ipv6-dual-stack": "switch",
    "network-plugin-mtu": "number",
    "runtime-request-timeout": "duration",
}
SERVICE, SOCKET = "/etc/systemd/system/cri-docker.service", "/etc/systemd/system/cri-docker.socket"


def test_a_host_with_docker() -> None:
    found = wish(**DOCKER)
    assert {"docker-ce", "docker-ce-cli", "containerd.io", "kubelet"} <= set(packages(found))
    assert packages(found)["docker-ce"] == packages(found)["docker-ce-cli"] == "28"
    # containerd is left as its package has it.
    assert [path for path in files(found) if path.startswith("/etc/containerd")] == ["/etc/containerd/proxy.env"]
    daemon = files(found)["/etc/docker/daemon.json"]
    assert daemon.settings == {
        "exec-opts": ["native.cgroupdriver=systemd"],
        "log-driver": "json-file",
        "log-opts": {"max-size": "100m", "max-file": "3"},
        "live-restore": True,
        "ip-forward-no-drop": True,
    }
    assert (daemon.backup, daemon.units) == (True, ["docker"])
    assert daemon.validate == "/usr/bin/dockerd --validate --config-file %s"
    assert files(found)["/etc/crictl.yaml"].content == "runtime-endpoint: unix:///run/cri-dockerd.sock\n"
    assert restarts(found) == {"docker": "stale", "cri-docker": "stale", "kubelet": "stale"}
    node = wish({"membership": "member"}, **DOCKER)
    assert restarts(node) == {"docker": "never", "cri-docker": "stale", "kubelet": "stale"}
    assert set(node.keep) == {"containerd.io", "docker-ce", "docker-ce-cli"}


def test_nothing_of_docker_with_containerd() -> None:
    found = wish()
    assert [path for path in files(found) if "docker" in path] == []
    assert "docker-ce" not in packages(found)
    assert found.program is None


@pytest.mark.parametrize(
    ("runtime", "place"), [("docker", "cri-dockerd.sock"), ("containerd", "containerd/containerd.sock")]
)
def test_crictl_speaks_to_the_runtime(runtime: str, place: str) -> None:
    assert files(wish(runtime=runtime))["/etc/crictl.yaml"].content == f"runtime-endpoint: unix:///run/{place}\n"


def test_enabling_and_starting_the_service_does_so_with_its_socket() -> None:
    """It takes the socket over by its descriptor."""
    found = files(wish(**DOCKER))
    first, release = found[SERVICE].content.splitlines()[:2]
    assert first == OWN_MARK
    assert re.fullmatch(r"# cri-dockerd 0\.3\.26 sha256:[0-9a-f]{64}", release)
    assert found[SERVICE].units == ["cri-docker"]
    for setting in ("Requires=cri-docker.socket", "Also=cri-docker.socket", "Type=notify", "KillMode=process"):
        assert f"\n{setting}\n" in found[SERVICE].content
    assert "ListenStream=%t/cri-dockerd.sock\n" in found[SOCKET].content
    assert found[SOCKET].content.startswith(f"{first}\n[Unit]\n")


@pytest.mark.parametrize("cidr", ["10.244.0.0/16", "10.244.0.0/16,fd00:10:244::/56", "fd00:10:244::/56"])
def test_the_unit_has_flags_that_cri_dockerd_knows(cidr: str) -> None:
    (line,) = re.findall("^ExecStart=(.*)$", files(wish(pod_cidr=cidr, **DOCKER))[SERVICE].content, re.MULTILINE)
    words = line.split()
    assert words[:3] == ["/usr/local/bin/cri-dockerd", "--container-runtime-endpoint", "fd://"]
    flags = {word[2:].partition("=")[0]: word.partition("=")[2] for word in [words[1], *words[3:]]}
    assert set(flags) <= set(CRI_DOCKERD_0_3_25_AND_0_4_3)
    for name, value in flags.items():
        switch = CRI_DOCKERD_0_3_25_AND_0_4_3[name] == "switch"
        assert bool(value) == (not switch and name != "container-runtime-endpoint"), name
    assert flags["pod-infra-container-image"] == PAUSE
    assert ("ipv6-dual-stack" in flags) == (":" in cidr)


@pytest.mark.parametrize("checksum", ["", "sha256:https://site/sum", "md5:1"])
def test_an_archive_without_a_digest_is_refused(checksum: str) -> None:
    source = {"version": "0.4.3", "url": "https://site/{version}/{arch}.tgz", "checksum": checksum}
    with pytest.raises(FabricError, match=r"`curl -fsSL https://site/0\.4\.3/amd64\.tgz \| sha256sum`"):
        wish(cri_dockerd=source, **DOCKER)


THEIRS = {"others": True, "program": "/usr/bin/cri-dockerd", "release": "0.3.26", "silence": ""}


def test_a_cri_dockerd_of_others_is_used_as_it_is() -> None:
    found = wish({"cri_dockerd": THEIRS}, **DOCKER)
    assert found.program is None
    assert [path for path in files(found) if "cri-docker" in path] == []


@pytest.mark.parametrize(
    ("there", "seen"),
    [
        ({"release": "0.4.0"}, "0.4.0"),
        ({"silence": "it does not answer"}, "0.3.26; it does not answer"),
        ({"release": ""}, "whose release is not known"),
    ],
)
def test_a_cri_dockerd_of_others_that_does_not_do_is_refused(there: t.Mapping[str, str], seen: str) -> None:
    with pytest.raises(FabricError, match="this collection has not installed it") as caught:
        wish({"cri_dockerd": {**THEIRS, **there}}, **DOCKER)
    assert seen in caught.value.seen


def daemon(version: str, **config: t.Any) -> t.Mapping[str, t.Any]:
    found = wish(versions={"docker-ce": version}, docker_config=config, **DOCKER)
    return files(found)["/etc/docker/daemon.json"].settings


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ("5:28.5.2-1~debian.12~bookworm", True),
        ("28", True),
        ("5:27.5.1-1~debian", False),
        ("5:29.0.0-1", True),
        ("", False),
    ],
)
def test_a_setting_that_old_dockers_do_not_know(version: str, known: bool) -> None:
    """They would not start with it."""
    assert ("ip-forward-no-drop" in daemon(version)) == known


def test_settings_of_the_site_count() -> None:
    settings = daemon("28", **{"log-opts": {"max-size": "1g"}, "data-root": "/data/docker", "live-restore": False})
    assert settings["log-opts"] == {"max-size": "1g", "max-file": "3"}
    assert settings["data-root"] == "/data/docker"
    assert settings["live-restore"] is False


@pytest.mark.parametrize(
    ("driver", "own", "expected"),
    [
        ("local", {"compress": "true"}, {"max-size": "100m", "max-file": "3", "compress": "true"}),
        ("journald", {"tag": "x"}, {"tag": "x"}),
    ],
)
def test_log_options_go_with_their_driver(driver: str, own: t.Dict[str, str], expected: t.Dict[str, str]) -> None:
    """dockerd does not start with those of another one."""
    settings = daemon("28", **{"log-driver": driver, "log-opts": own})
    assert (settings["log-driver"], settings["log-opts"]) == (driver, expected)


# ---- keepalived -----------------------------------------------------------------------------------------------------

VIP = "10.88.0.50"
CONFIGURATION, CHECK = "/etc/keepalived/keepalived.conf", "/etc/keepalived/check-api-server"


def keepalived(host: str, vip: str = VIP, **more: t.Any) -> str:
    return files(wish(host=host, control_plane_vip=vip, **more))[CONFIGURATION].content


def section(text: str, name: str) -> t.List[str]:
    found = re.search(rf"^ *{name} \{{\n(.*?)^ *\}}", text, re.MULTILINE | re.DOTALL)
    assert found
    return [line.strip() for line in found.group(1).splitlines()]


@pytest.mark.parametrize(("host", "priority"), [("cp1", 200), ("cp2", 199), ("cp3", 198)])
def test_each_has_the_others_as_peers(host: str, priority: int) -> None:
    text = keepalived(host)
    others = [address for name, address in PLANES.items() if name != host]
    assert section(text, "unicast_peer") == [f"{address} min_ttl 255" for address in others]
    assert section(text, "virtual_ipaddress") == ["10.88.0.50/32 dev eno1"]
    assert f"unicast_src_ip {PLANES[host]}\n" in text
    assert f"priority {priority}\n" in text
    assert f'script "/etc/keepalived/check-api-server {PLANES[host]}"\n' in text
    assert text.endswith("}\n")


def test_who_has_it_keeps_it() -> None:
    """nopreempt holds only for one that began as BACKUP, and for a check without a weight."""
    text = keepalived("cp1")
    assert {"state BACKUP", "nopreempt"} <= {line.strip() for line in text.splitlines()}
    assert "weight" not in text
    assert "init_fail" in section(text, "vrrp_script api_server")


def test_a_control_plane_without_an_answer_is_no_peer_until_it_has_one() -> None:
    silent = {name: {"membership": "member", "address": address} for name, address in PLANES.items()}
    silent["cp3"]["address"] = ""
    assert section(keepalived("cp1", planes=silent), "unicast_peer") == ["10.88.0.12 min_ttl 255"]


def test_only_its_peers_are_heard() -> None:
    """VRRPv3 has no authentication, and that of version 2 can be read on the wire: docs/decisions/keepalived.md."""
    text = keepalived("cp1")
    assert "vrrp_check_unicast_src" in section(text, "global_defs")
    assert "authentication" not in text


def test_ipv6_has_its_prefix() -> None:
    assert section(keepalived("cp1", "fd00:88::50"), "virtual_ipaddress") == ["fd00:88::50/128 dev eno1"]


def test_of_ipv6_no_hop_limit_is_asked() -> None:
    """keepalived sends 64 there: with `min_ttl 255` no control plane hears another, and all have the address."""
    planes = {"cp1": "10.88.0.11", "cp2": "fd00:88::12"}
    assert section(keepalived("cp1", control_plane_addresses=planes), "unicast_peer") == ["fd00:88::12"]


def test_what_keepalived_gets() -> None:
    found = wish(control_plane_vip=VIP)
    assert "%s" in files(found)[CONFIGURATION].validate
    assert files(found)[CHECK].mode == "0755"
    # What the file names is there before it is tested.
    assert list(files(found))[-1] == CONFIGURATION
    assert restarts(found)["keepalived"] == "reload"
    assert [package.hold for package in found.packages if package.name in ("keepalived", "python3")] == [False, False]


def test_nothing_of_it_without_an_address_or_on_a_worker() -> None:
    workers = {"cp2": {"membership": "member", "address": "10.88.0.12"}}
    for found in (wish(), wish(control_plane_vip=VIP, planes=workers)):
        assert CONFIGURATION not in files(found)
        assert "keepalived" not in packages(found)


def test_keepalived_of_somebody_else_is_left_alone() -> None:
    with pytest.raises(FabricError, match="already serves another purpose, and is left alone"):
        wish({"keepalived": "others"}, control_plane_vip=VIP)


def test_a_new_control_plane_that_the_others_do_not_hear_of() -> None:
    """They would not tell it that they hold the address."""
    settings = {"control_plane_vip": VIP, "run": ["cp3"]}
    with pytest.raises(FabricError, match="cp1, cp2 outside --limit"):
        wish(host="cp3", **settings)
    assert CONFIGURATION in files(wish({"keepalived": "ours"}, host="cp3", **settings))


# ---- the way back ---------------------------------------------------------------------------------------------------


def test_a_reset_knows_repositories_packages_and_settings_of_the_kernel() -> None:
    assert set(host_reset.REPOSITORIES) == set(wish().repositories)
    assert set(package_removal.PACKAGES) <= set(packages(wish()))
    assert "    name: kubernetes\n" in (ROOT / "roles/kubernetes/tasks/prepare.yml").read_text()
    assert {"/etc/modules-load.d/kubernetes.conf", "/etc/sysctl.d/99-z-kubernetes.conf"} <= set(host_reset.OUR_FILES)


# Of Docker, of Kubernetes' own packages, and a file that stays as others may have made it.
LEFT = {"/etc/docker/daemon.json", MAIN}


@pytest.mark.parametrize("runtime", ["containerd", "docker"])
def test_a_reset_takes_away_all_that_a_host_gets(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    login = {"username": "me", "password": "word"}
    mirror = {"registry_mirror": "mirror:5000", "registry_auth": login} if runtime == "containerd" else {}
    found = files(wish(runtime=runtime, proxy=PROXY, control_plane_vip=VIP, **mirror))
    monkeypatch.setattr(host_reset, "read_text", lambda path: found[path].content if path in found else "")
    ours = {*host_reset.KEEPALIVED, *host_reset.CRI_DOCKER}
    for path, file in found.items():
        known = path in ours or (path in host_reset.OUR_FILES and host_reset.is_ours(path))
        known = known or (path == host_reset.CRICTL[0] and file.content in host_reset.CRICTL[1])
        assert known or path in LEFT, path
    for path in (host_reset.KEEPALIVED[0], *(host_reset.CRI_DOCKER[:2] if runtime == "docker" else ())):
        assert OWN_MARK in found[path].content


@pytest.mark.parametrize(
    ("settings", "forwarding"),
    [
        ({}, None),
        ({"pod_cidr": "fd00:10:244::/56"}, 1),
        ({"pod_cidr": "10.244.0.0/16,fd00:10:244::/56"}, 1),
        ({"pod_cidr": "fd00:10:244::/56", "sysctl": {"net.ipv6.conf.default.forwarding": 0}}, 0),
    ],
)
def test_kubeadm_begins_with_ipv6_only_where_it_is_forwarded(settings: t.Any, forwarding: t.Optional[int]) -> None:
    for found in (wish({"membership": "none"}, **settings), wish(versions={}, **settings)):
        assert found.sysctl.get("net.ipv6.conf.default.forwarding") == forwarding
        assert ("net.ipv6.conf.all.forwarding" in found.sysctl) == (forwarding is not None)

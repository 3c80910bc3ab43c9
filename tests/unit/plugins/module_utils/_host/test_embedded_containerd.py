"""Settings of the containerd in k3s and RKE2, on trees of files as they leave them."""

import functools

import pytest
import tomllib
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import distributions, embedded_containerd
from ansible_collections.ipu.fabric.tests.unit.fixtures import module as fake
from ansible_collections.ipu.fabric.tests.unit.fixtures import rancher

MIRROR = "https://mirror.example:5000"
TABLES = '[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.kata]\nruntime_type = "io.containerd.kata.v2"\n'
Module = functools.partial(fake.Module, registry_mirror="", config={}, restart=False, node_name="", timeout=60)


class Host:
    """A node whose paths all lie in a folder."""

    def __init__(self, folder, name, **options):
        self.name, self.folder = name, folder
        data = f"{folder}/data"
        rancher.make_node(folder / "root", name, data=data, **options)
        (folder / "data").symlink_to(folder / "root" / data[1:])
        self.directory = folder / "data/agent/etc/containerd"
        self.registries = folder / "registries.yaml"
        made = distributions.DISTRIBUTIONS[name]._replace(
            data=data,
            config=f"{folder}/config.yaml",
            registries=str(self.registries),
            admins=(f"{folder}/root/etc/rancher/{name}/{name}.yaml",),
        )
        self.found = distributions.Found(made, data, "/")

    def files(self):
        """Our files and those of others, but for what the distribution writes itself."""
        found = [path for path in self.directory.rglob("*") if path.is_file() and path.name != "config.toml"]
        return {path.name: path.read_text() for path in [*found, *self.folder.glob("registries.yaml")]}


@pytest.fixture
def make(tmp_path, monkeypatch):
    """A host, and the module on it. Its service runs with all present files."""
    hosts = []
    restarted = []

    def units(module, names):
        return {name: {"LoadState": "loaded", "ActiveState": "active"} for name in names}

    monkeypatch.setattr(embedded_containerd, "show_units", units)
    monkeypatch.setattr(embedded_containerd, "stale_units", lambda units, readers: dict.fromkeys(units, False))
    kept = {}
    monkeypatch.setattr(embedded_containerd, "keep_former", lambda module, name, files: kept.update({name: files}))
    monkeypatch.setattr(embedded_containerd, "restart_runtimes", lambda module, units, names: restarted.extend(names))

    def build(name="k3s", server=False, **options):
        host = Host(tmp_path / f"{len(hosts)}", name, server=server, **options)
        hosts.append(host)
        monkeypatch.setattr(embedded_containerd, "find_distribution", lambda: host.found)
        host.restarted, host.kept = restarted, kept
        return host

    return build


def imported(host_data, version=3):
    stem = "config-v3.toml" if version == 3 else "config.toml"
    return rancher.containerd_config(version, None, imports=f"{host_data}/agent/etc/containerd/{stem}.d")


def run(config="", **params):
    module = Module(config=tomllib.loads(config), **params)
    return embedded_containerd.set_embedded_containerd(module)


@pytest.mark.parametrize("name", ["k3s", "rke2"])
@pytest.mark.parametrize("server", [False, True])
def test_a_mirror(make, name, server):
    host = make(name, server)
    checked = run(registry_mirror=MIRROR, check_mode=True)
    assert host.files() == {}
    first = run(registry_mirror=MIRROR)
    unit = {("k3s", True): "k3s", ("k3s", False): "k3s-agent", ("rke2", True): "rke2-server"}.get(
        (name, server), "rke2-agent"
    )
    assert (checked["changed"], checked["diff"]) == (True, first["diff"])
    assert (first["changed"], first["stale"], first["server"], host.restarted) == (True, [unit], server, [])
    assert host.files()["registries.yaml"].splitlines()[1:] == [
        "mirrors:",
        '  "*":',
        "    endpoint:",
        f'      - "{MIRROR}"',
    ]
    assert host.registries.stat().st_mode & 0o777 == 0o600
    assert run(registry_mirror=MIRROR)["changed"] is False
    assert run()["changed"]
    assert host.files() == {}


def test_a_restart_when_asked(make, monkeypatch):
    host = make()
    assert run(registry_mirror=MIRROR, restart=True, check_mode=True)["changed"]
    assert (host.restarted, host.kept) == ([], {})
    run(registry_mirror=MIRROR, restart=True)
    assert host.kept == {"k3s-agent": {str(host.registries): None}}
    assert host.restarted == ["k3s-agent"]
    assert run(registry_mirror=MIRROR, restart=True)["changed"] is False
    monkeypatch.setattr(embedded_containerd, "stale_units", lambda units, readers: dict.fromkeys(units, True))
    assert (run(registry_mirror=MIRROR)["changed"], run(registry_mirror=MIRROR)["stale"]) == (False, ["k3s-agent"])
    assert run(registry_mirror=MIRROR, restart=True)["changed"]  # a run that was killed between both
    assert host.restarted == ["k3s-agent"] * 2


def test_registries_of_somebody_else_stay(make):
    host = make()
    host.registries.write_text("mirrors:\n  docker.io:\n    endpoint: [https://other.example]\nconfigs: {secret: 1}\n")
    before = host.files()
    with pytest.raises(FabricError) as caught:
        run(registry_mirror=MIRROR, config=TABLES)
    assert caught.value.seen == "it does not name the mirror mirror.example:5000 (fabric_mirror.registry)"
    assert host.files() == before
    assert run()["changed"] is False
    host.registries.write_text(f"mirrors:\n  docker.io:\n    endpoint: [{MIRROR}]\n")
    assert run(registry_mirror=MIRROR)["changed"] is False


def test_a_drop_in_where_there_are_imports(make, tmp_path):
    host = make(config=imported(tmp_path / "0/data"))
    assert run(config=TABLES)["changed"]
    written = host.files()
    assert list(written) == ["50-ipu-fabric.toml"]
    assert written["50-ipu-fabric.toml"].splitlines()[1:3] == ["version = 3", ""]
    assert written["50-ipu-fabric.toml"].endswith(TABLES)
    assert run(config=TABLES)["changed"] is False
    assert run()["changed"]
    assert host.files() == {}


@pytest.mark.parametrize(("bundle", "name"), [(False, "config-v3.toml.tmpl"), (True, "config.toml.tmpl")])
def test_a_template_where_there_are_none(make, bundle, name):
    """It extends that of the distribution, whatever the next release has in it."""
    host = make(bundle=bundle)
    assert run(config=TABLES)["changed"]
    assert host.files() == {name: f'{{{{ template "base" . }}}}\n\n{embedded_containerd.MARK}\n{TABLES}'}
    # k3s has started with it.
    config = host.directory / "config.toml"
    config.write_text(f"{config.read_text()}\n{embedded_containerd.MARK}\n{TABLES}")
    assert run(config=TABLES)["changed"] is False
    assert run()["changed"]
    assert host.files() == {}


def test_an_upgrade_that_brings_imports_takes_the_template_away(make, tmp_path):
    host = make()
    run(config=TABLES)
    (host.directory / "config.toml").write_text(imported(tmp_path / "0/data"))
    run(config=TABLES)
    assert list(host.files()) == ["50-ipu-fabric.toml"]


def test_a_template_of_somebody_else_stays(make, tmp_path):
    host = make()
    template = host.directory / "config-v3.toml.tmpl"
    template.write_text('{{ template "base" . }}\n[debug]\n')
    before = host.files()
    with pytest.raises(FabricError, match="A file that somebody else wrote") as caught:
        run(config=TABLES)
    assert "imports = [" in caught.value.next_step
    assert host.files() == before
    assert run()["changed"] is False
    (host.directory / "config.toml").write_text(imported(tmp_path / "0/data"))
    run(config=TABLES)
    assert sorted(host.files()) == ["50-ipu-fabric.toml", "config-v3.toml.tmpl"]
    assert template.read_text() == before["config-v3.toml.tmpl"]


@pytest.mark.parametrize(
    ("tables", "seen"),
    [
        (
            '[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]\ncgroup_writable = true\n',
            "runtimes.runc",
        ),
        ("[debug]\nlevel = '{{ .Level }}'\n", "'{{'"),
    ],
)
def test_what_containerd_would_not_start_with(make, tables, seen):
    host = make()
    with pytest.raises(FabricError) as caught:
        run(config=tables)
    assert seen in caught.value.seen
    assert host.files() == {}


@pytest.mark.parametrize("found", [None, distributions.Found(distributions.KUBEADM, "/etc/kubernetes", "/")])
def test_other_hosts_are_refused(monkeypatch, found):
    monkeypatch.setattr(embedded_containerd, "find_distribution", lambda: found)
    with pytest.raises(FabricError, match="Only k3s and RKE2 carry a containerd"):
        run()

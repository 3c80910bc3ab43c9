import functools
import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import docker, memlock, runtime_restart, systemd
from ansible_collections.ipu.fabric.tests.unit.fixtures import module as fake


@pytest.mark.parametrize(
    ("limit", "size", "shown"),
    [
        ("infinity", None, "infinity"),
        ("65536", 65536, "65536"),
        ("64M", 67108864, "67108864"),
        ("1T", 1 << 40, str(1 << 40)),
    ],
)
def test_limits(limit, size, shown):
    assert memlock.limit_bytes(limit) == size
    assert memlock.shown_limit(size) == shown


@pytest.mark.parametrize("limit", ["", "unlimited", "-1", "64MB", "M"])
def test_what_is_no_limit(limit):
    with pytest.raises(FabricError, match="The limit of locked memory is not valid"):
        memlock.limit_bytes(limit)


def unit(limit="8388608", active="active", load="loaded", **more):
    return {"LimitMEMLOCK": limit, "ActiveState": active, "LoadState": load, **more}


def test_a_unit_that_has_the_limit_needs_no_file():
    files, readers = memlock.wanted_files({"containerd": unit("infinity"), "k3s": unit()}, "infinity", [])
    path = "/etc/systemd/system/k3s.service.d/50-memlock.conf"
    assert files == {path: {"content": "[Service]\nLimitMEMLOCK=infinity\n", "mode": "0644"}}
    assert readers == {"k3s": [path]}


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("[Service]\nLimitMEMLOCK=64G\nLimitNOFILE=1000000\n", True),
        ("# by our Slurm team\n[Service]\nLimitMEMLOCK=64G\n", True),
        ("[Service]\nLimitMEMLOCK=64G\n", False),
    ],
)
def test_a_drop_in_of_others_is_not_replaced(tmp_path, monkeypatch, text, refused):
    path = tmp_path / "50-memlock.conf"
    path.write_text(text)
    monkeypatch.setattr(memlock, "drop_in_path", lambda _unit: str(path))
    if refused:
        with pytest.raises(FabricError, match="it has more in it than LimitMEMLOCK") as failed:
            memlock.wanted_files({"slurmd": unit()}, "infinity", [])
        assert failed.value.code == "not-ours"
    else:
        assert str(path) in memlock.wanted_files({"slurmd": unit()}, "infinity", [])[0]


@pytest.mark.parametrize(
    ("name", "text", "refused"),
    [
        ("zz-low.conf", "[Service]\nLimitMEMLOCK=1M\n", True),
        ("99-site.conf", "[Service]\n LimitMEMLOCK=infinity\nLimitMEMLOCK=1M\n", True),
        ("zz-files.conf", "[Service]\n# LimitMEMLOCK=1M\nLimitNOFILE=1000\n", False),
        ("10-low.conf", "[Service]\nLimitMEMLOCK=1M\n", False),  # ours is read after it
    ],
)
def test_a_drop_in_that_is_read_last_is_named(tmp_path, name, text, refused):
    """Else the role would say that the limit is set, while systemd goes on with the other."""
    (tmp_path / name).write_text(text)
    low = unit("1048576", DropInPaths=f"{tmp_path}/gone.conf {tmp_path / name}")
    if refused:
        with pytest.raises(FabricError, match="systemd reads it last") as failed:
            memlock.wanted_files({"containerd": low}, "infinity", [])
        assert (failed.value.where, failed.value.seen) == (str(tmp_path / name), "LimitMEMLOCK=1M")
    else:
        assert memlock.wanted_files({"containerd": low}, "infinity", [])[0]


def test_docker_reads_two_files(tmp_path, monkeypatch):
    monkeypatch.setattr(docker, "DAEMON", str(tmp_path / "daemon.json"))
    files, readers = memlock.wanted_files({"docker": unit()}, "infinity", [])
    assert len(files) == 2
    assert readers["docker"][1] == docker.DAEMON


def test_docker_with_the_limit_in_its_flags_gets_no_settings(tmp_path, monkeypatch):
    monkeypatch.setattr(docker, "DAEMON", str(tmp_path / "daemon.json"))
    flags = [docker.Flag("default-ulimit", "memlock=-1:-1")]
    assert memlock.wanted_files({"docker": unit("infinity")}, "infinity", flags) == ({}, {})
    other = [*flags, docker.Flag("config-file", str(tmp_path / "other.json"))]
    (tmp_path / "other.json").write_text('{"debug": true}')
    files, _readers = memlock.wanted_files({"docker": unit("infinity")}, "infinity", other)
    assert files == {str(tmp_path / "other.json"): {"content": '{"debug": true}', "mode": "0644"}}


Module = functools.partial(
    fake.Module, limit="infinity", restart=True, restart_docker=False, node_name="", timeout=0, restart_kubernetes=False
)

kept = {}  # what the runtimes had, by their names
judged = []  # what dockerd was asked about


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host with a running containerd, an installed but stopped docker, and no k3s."""
    kept.clear()
    judged.clear()
    units = {"containerd": unit(), "docker": unit(active="inactive"), "k3s": unit(load="not-found")}
    (tmp_path / "daemon.json").write_text('{"log-driver": "journald"}')
    monkeypatch.setattr(docker, "DAEMON", str(tmp_path / "daemon.json"))
    monkeypatch.setattr(docker, "read_flags", lambda module: [])
    monkeypatch.setattr(memlock, "drop_in_path", lambda name: str(tmp_path / f"{name}.conf"))
    monkeypatch.setattr(
        memlock, "show_units", lambda module, names: {n: u for n, u in units.items() if n in names or not names}
    )
    monkeypatch.setattr(memlock, "stale_units", lambda shown, readers: dict.fromkeys(shown, False))
    monkeypatch.setattr(runtime_restart, "node_pods", lambda module: None)
    monkeypatch.setattr(memlock, "keep_former", lambda module, name, files: kept.update({name: files}))
    monkeypatch.setattr(systemd, "FORMER", str(tmp_path / "{}.json"))
    monkeypatch.setattr(memlock, "validate", lambda module, *asked: judged.append(asked))
    return tmp_path


UNITS = ["containerd", "docker", "k3s"]


def test_only_what_runs_is_restarted(host):
    module = Module(units=UNITS)
    result = memlock.set_memlock(module)
    assert result["units"] == ["containerd", "docker"]
    assert result["stale"] == ["containerd"]
    assert module.commands == [["systemctl", "daemon-reload"], ["systemctl", "restart", "containerd.service"]]
    assert module.backups == [str(host / "daemon.json")]
    assert json.loads((host / "daemon.json").read_text())["log-driver"] == "journald"
    assert not (host / "k3s.conf").exists()
    daemon = {"content": '{"log-driver": "journald"}', "mode": "0644"}
    text = (host / "daemon.json").read_text()
    assert judged == [(str(host / "daemon.json"), text, "/sbin/dockerd --validate --config-file %s")]
    assert kept["containerd"] == {str(host / "containerd.conf"): None}
    assert kept["docker"] == {str(host / "docker.conf"): None, str(host / "daemon.json"): daemon}


def test_restart_can_wait(host):
    module = Module(units=UNITS, restart=False)
    result = memlock.set_memlock(module)
    assert result["changed"]
    assert result["stale"] == ["containerd"]
    assert module.commands == [["systemctl", "daemon-reload"]]


@pytest.mark.parametrize(
    ("asked", "live_restore", "restarted"), [(False, False, False), (False, True, True), (True, False, True)]
)
def test_docker_is_restarted_when_its_containers_go_on_or_when_asked(host, monkeypatch, asked, live_restore, restarted):
    monkeypatch.setattr(memlock, "show_units", lambda module, names: {"docker": unit()})
    monkeypatch.setattr(docker, "keeps_containers", lambda module: live_restore)
    module = Module(units=["docker"], restart_docker=asked)
    result = memlock.set_memlock(module)
    assert (["systemctl", "restart", "docker.service"] in module.commands) == restarted
    assert (result["stale"], result["restartable"]) == (["docker"], ["docker"] * restarted)
    assert result["diff"][-1]["after"]["stale"] == ["docker"] * (not restarted)
    assert bool(module.warnings) != restarted


def test_docker_that_waits_for_its_restart_is_no_change(host, monkeypatch):
    monkeypatch.setattr(memlock, "show_units", lambda module, names: {"docker": unit("infinity")})
    monkeypatch.setattr(memlock, "stale_units", lambda shown, readers: {"docker": True})
    (host / "daemon.json").write_text(docker.merge_daemon("{}", None))
    result = memlock.set_memlock(Module(units=["docker"]))
    assert (result["changed"], result["stale"], result["restartable"]) == (False, ["docker"], [])


def test_check_mode_touches_nothing(host):
    module = Module(units=UNITS, check_mode=True)
    assert memlock.set_memlock(module)["changed"]
    assert module.commands == []
    assert [entry.name for entry in host.iterdir()] == ["daemon.json"]


def test_invalid_daemon_json_changes_nothing(host):
    (host / "daemon.json").write_text("{,}")
    module = Module(units=UNITS)
    with pytest.raises(FabricError, match="not valid JSON"):
        memlock.set_memlock(module)
    assert [entry.name for entry in host.iterdir()] == ["daemon.json"]


def test_what_dockerd_would_refuse_is_not_written(host, monkeypatch):
    """Docker before 23 can't tell."""
    monkeypatch.setattr(memlock, "validate", systemd.validate)
    before = (host / "daemon.json").read_text()
    refusing = Module((1, "", "unable to configure the Docker daemon"), units=["docker"])
    with pytest.raises(FabricError, match="would not be valid"):
        memlock.set_memlock(refusing)
    assert ((host / "daemon.json").read_text(), kept) == (before, {})
    memlock.set_memlock(Module((125, "", "unknown flag: --validate"), (0, "", ""), units=["docker"]))
    assert (host / "daemon.json").read_text() != before


@pytest.mark.parametrize("name", ["k3s", "k3s-agent", "rke2-server", "rke2-agent"])
@pytest.mark.parametrize("asked", [False, True])
def test_k3s_and_rke2_are_restarted_only_when_asked(host, monkeypatch, name, asked):
    """A site sees that pods do not have the limit yet, and a second run changes nothing."""
    restarted = []
    monkeypatch.setattr(memlock, "show_units", lambda module, names: {name: unit()})
    monkeypatch.setattr(memlock, "restart_runtimes", lambda module, units, names: restarted.extend(names))
    first = Module(units=[name], restart_kubernetes=asked)
    result = memlock.set_memlock(first)
    assert (host / f"{name}.conf").read_text() == "[Service]\nLimitMEMLOCK=infinity\n"
    assert (result["stale"], result["restartable"], restarted) == ([name], [name] * asked, [name] * asked)
    assert result["server"] is (asked and not name.endswith("-agent"))
    assert [f"{name} still runs with its former limit" in text for text in first.warnings] == [True] * (not asked)
    monkeypatch.setattr(memlock, "stale_units", lambda shown, readers: {name: not asked})
    assert memlock.set_memlock(Module(units=[name], restart_kubernetes=asked))["changed"] is False

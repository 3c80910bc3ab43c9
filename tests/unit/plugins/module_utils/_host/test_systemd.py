import json
import os
import time

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import cri, docker, files, role_files, systemd
from ansible_collections.ipu.fabric.plugins.module_utils._host.files import OWN_MARK
from ansible_collections.ipu.fabric.tests.unit.fixtures.module import Module

SHOW = """\
Id=containerd.service
LoadState=loaded
ActiveState=active
UnitFileState=enabled
NeedDaemonReload=no
ExecMainStartTimestampMonotonic=5000000
DropInPaths=/etc/systemd/system/containerd.service.d/10-kubernetes.conf
LimitMEMLOCK=infinity

Id=crio.service
LoadState=not-found
ActiveState=inactive
UnitFileState=
"""

# containerd 1.6 with its settings in two forms, which excludes its CRI
JOURNAL = """\
time="2026-11-26T09:34:28.734381869Z" level=warning msg="failed to load plugin devmapper" error="not configured"
time="2026-11-26T09:34:28.767908386Z" level=warning msg="failed to load plugin io.containerd.grpc.v1.cri" \
error="invalid plugin config: `mirrors` cannot be set when `config_path` is provided"
time="2026-11-26T09:34:28.767918386Z" level=info msg="containerd successfully booted in 0.4 s"
"""
NO_CRI = cri.Silence("/run/containerd/containerd.sock answers but has no CRI", True)


@pytest.fixture(autouse=True)
def runtime(tmp_path_factory, monkeypatch):
    """Runtimes answer with this, one after another and without more of them well; what is kept is in this folder."""
    folder, answers = tmp_path_factory.mktemp("former"), []
    monkeypatch.setattr(systemd, "FORMER", str(folder / "{}.json"))
    monkeypatch.setattr(cri, "silence", lambda unit: answers.pop(0) if answers else None)
    monkeypatch.setattr(systemd, "run_program", lambda argv, seconds: Done(0, JOURNAL))
    return folder, answers


def test_parse_show():
    units = systemd.parse_show(SHOW)
    assert sorted(units) == ["containerd", "crio"]
    assert units["containerd"]["LimitMEMLOCK"] == "infinity"
    assert units["crio"]["LoadState"] == "not-found"
    assert systemd.parse_show("") == {}


@pytest.mark.parametrize(
    ("changes", "written", "expected"),
    [
        ({}, [], False),
        ({}, [1004.0], False),  # written a second before the start
        ({}, [1004.0, 1006.0], True),  # and one a second after it
        ({"ActiveState": "inactive"}, [1006.0], False),
        ({"ActiveState": "reloading"}, [1006.0], True),
        ({"NeedDaemonReload": "yes"}, [], True),
    ],
)
def test_is_stale(changes, written, expected):
    # Booted at 1000 by the clock on the wall: the process started at 1005.
    unit = {**systemd.parse_show(SHOW)["containerd"], **changes}
    assert systemd.is_stale(unit, written, now=1100.0, monotonic=100.0) is expected


def test_a_unit_that_reads_its_files_again_is_fresh_after_that():
    unit = {**systemd.parse_show(SHOW)["containerd"], "StateChangeTimestampMonotonic": "9000000"}
    assert [systemd.is_stale(unit, [1007.0], 1100.0, 100.0, reloads) for reloads in (False, True)] == [True, False]
    assert systemd.is_stale(unit, [1010.0], 1100.0, 100.0, True)


def state(enabled, started, stale):
    return {"enabled": enabled, "started": started, "stale": stale}


@pytest.mark.parametrize(
    ("seen", "want", "verbs"),
    [
        (state(True, True, False), {}, []),
        (state(False, False, False), {}, ["enable", "start"]),
        (state(True, True, True), {}, ["restart"]),
        (state(False, True, True), {}, ["enable", "restart"]),
        (state(False, False, False), {"started": False}, ["enable"]),
        (state(False, False, False), {"enabled": False}, ["start"]),
        (state(False, True, True), {"enabled": False, "started": False}, ["restart"]),
        (state(True, True, True), {"restart": "never"}, []),
        (state(True, False, False), {"restart": "never"}, ["start"]),
        (state(True, True, False), {"restart": "never"}, []),
    ],
)
def test_steps(seen, want, verbs):
    assert systemd.list_verbs(seen, systemd.wanted_state(seen, want)) == verbs


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ({}, state(False, False, False)),
        ({"UnitFileState": "static", "ActiveState": "activating"}, state(True, True, False)),
        ({"UnitFileState": "disabled", "ActiveState": "failed"}, state(False, False, False)),
    ],
)
def test_unit_state(unit, expected):
    assert systemd.unit_state(unit, False) == expected


def item(path, **values):
    return {
        "path": str(path),
        "content": "",
        "mode": "0644",
        "state": "present",
        "backup": False,
        "validate": "",
        "units": [],
        "settings": {},
        **values,
    }


def test_write_and_read_bytes_as_they_are(tmp_path):
    path = str(tmp_path / "deep" / "key")
    content = b"\x99\x00\r\n\xff".decode("utf-8", "surrogateescape")
    files.write_file(Module(), path, content, "0600")
    assert (tmp_path / "deep" / "key").read_bytes() == b"\x99\x00\r\n\xff"
    assert files.read_file(path) == {"content": content, "mode": "0600"}
    assert [entry.name for entry in (tmp_path / "deep").iterdir()] == ["key"]


def test_files_are_written_once(tmp_path):
    old = tmp_path / "old"
    old.write_text("gone")
    kept = tmp_path / "kept"
    kept.write_text("before")
    items = [item(tmp_path / "a", content="x"), item(old, state="absent"), item(kept, content="after", backup=True)]
    module = Module(files=items, units=[])
    result = systemd.apply_units(module)
    assert result["changed"]
    assert {entry.name for entry in tmp_path.iterdir()} == {"a", "kept"}
    assert module.backups == [str(kept)]
    assert [diff.get("after_header") for diff in result["diff"]] == [str(tmp_path / "a"), str(old), str(kept), None]
    assert not systemd.apply_units(Module(files=items, units=[]))["changed"]


@pytest.mark.parametrize(
    ("there", "stays"),
    [
        ("# 0a1b2c3d\n[Service]\nEnvironmentFile=-/etc/ours\n", False),  # with another mark
        ("[Service]\nEnvironment=HTTP_PROXY=http://site:1\n", True),
        ("# 0a1b2c3d\n[Service]\nEnvironmentFile=-/etc/ours\nEnvironment=A=B\n", True),
    ],
)
def test_a_file_of_others_with_the_name_of_one_that_goes(tmp_path, there, stays):
    path = tmp_path / "20-proxy.conf"
    path.write_text(there)
    items = [item(path, state="absent", content="# ffffffff\n[Service]\nEnvironmentFile=-/etc/ours\n")]
    assert systemd.apply_units(Module(files=items, units=[]))["changed"] != stays
    assert path.exists() == stays


@pytest.mark.parametrize("ours", [True, False])
def test_a_login_leaves_no_copy_and_goes_with_its_mirror(tmp_path, ours):
    """A file of ours is known by its first line, whatever login is in it. Of somebody else's there is a copy."""
    path = tmp_path / "hosts.toml"
    there = f'{OWN_MARK if ours else "# site"}\nauthorization = "Basic b2xk"\n'
    path.write_text(there)
    module = Module(files=[item(path, content=f"{OWN_MARK}\nnew\n", backup=True)], units=[])
    systemd.apply_units(module)
    assert module.backups == ([] if ours else [str(path)])
    path.write_text(there)
    systemd.apply_units(Module(files=[item(path, state="absent", content=f"{OWN_MARK}\n")], units=[]))
    assert path.exists() is not ours


@pytest.mark.parametrize(
    ("there", "stays"), [('HTTP_PROXY="http://a:1"\n', False), ("# site\nHTTP_PROXY=http://a\n", True)]
)
def test_a_file_of_a_known_look_goes_and_no_other(tmp_path, monkeypatch, there, stays):
    path = tmp_path / "proxy.env"
    path.write_text(there)
    monkeypatch.setattr(role_files, "TEXTS", {str(path): role_files.TEXTS["/etc/containerd/proxy.env"]})
    result = systemd.apply_units(Module(files=[item(path, state="absent")], units=[]))
    assert (result["changed"], path.exists()) == (not stays, stays)


def test_a_diff_shows_no_password_of_a_proxy(tmp_path):
    path = tmp_path / "proxy.env"
    path.write_text('HTTP_PROXY="http://me:former@proxy:1"\n')
    new = item(path, content='HTTP_PROXY="http://me:secret@proxy:1"\n')
    shown = str(systemd.apply_units(Module(files=[new], units=[]))["diff"])
    assert "http://(not shown)@proxy:1" in shown
    assert not [word for word in ("former", "secret") if word in shown]


LIVE = {"live-restore": True}


@pytest.mark.parametrize(
    ("settings", "restart", "says", "refused"),
    [
        (LIVE, "reload", "true", False),
        (LIVE, "reload", "false", True),  # dockerd leaves out all settings where it refuses one
        ({"live-restore": False}, "reload", "false", False),  # the site lets containers end
        (LIVE, "never", "false", False),
    ],
)
def test_docker_says_before_a_restart_that_containers_go_on(tmp_path, monkeypatch, settings, restart, says, refused):
    monkeypatch.setattr(docker, "DAEMON", str(tmp_path / "daemon.json"))
    monkeypatch.setattr(docker, "PATIENCE", 0)
    monkeypatch.setattr(systemd, "show_units", lambda module, names: {})
    module = Module(files=[item(docker.DAEMON, settings=settings)], units=[{"name": "docker", "restart": restart}])
    monkeypatch.setattr(module, "run_command", lambda argv, **_options: (0, says if "info" in argv else "", ""))
    if refused:
        with pytest.raises(FabricError, match="A restart of Docker would end all containers"):
            systemd.apply_units(module)
    else:
        assert systemd.apply_units(module)["changed"]
    assert json.loads((tmp_path / "daemon.json").read_text()) == settings


def test_check_mode_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(systemd, "show_units", lambda module, names: systemd.parse_show(SHOW))
    items = [item(tmp_path / "a", content="x", units=["containerd"])]
    result = systemd.apply_units(Module(check_mode=True, files=items, units=[{"name": "containerd"}]))
    assert result["changed"]
    assert result["restarted"] == ["containerd"]
    assert not list(tmp_path.iterdir())


def test_units_of_a_changed_file_are_restarted(tmp_path, monkeypatch):
    monkeypatch.setattr(systemd, "show_units", lambda module, names: systemd.parse_show(SHOW))
    module = Module(files=[item(tmp_path / "a", content="x", units=["containerd"])], units=[{"name": "containerd"}])
    assert systemd.apply_units(module)["restarted"] == ["containerd"]
    assert module.commands == [["systemctl", "restart", "containerd.service"]]


def test_a_unit_of_a_changed_file_may_be_told_to_read_it(tmp_path, monkeypatch):
    monkeypatch.setattr(systemd, "show_units", lambda module, names: systemd.parse_show(SHOW))
    units = [{"name": "containerd", "restart": "reload"}]
    module = Module(files=[item(tmp_path / "a", content="x", units=["containerd"])], units=units)
    result = systemd.apply_units(module)
    assert (result["changed"], result["restarted"]) == (True, [])
    assert module.commands == [["systemctl", "reload", "containerd.service"]]


def test_a_file_that_is_not_valid_is_not_written(tmp_path):
    kept = tmp_path / "a"
    kept.write_text("good")

    class Judge(Module):
        code = 5

        def run_command(self, argv, **_options):
            self.commands.append(argv)
            return self.code, "", f"({argv[2]}: Line 1) Unknown keyword"

    module = Judge(files=[item(kept, content="bad", validate="program --test %s")], units=[])
    with pytest.raises(FabricError) as error:
        systemd.apply_units(module)
    assert error.value.seen == f"({kept}: Line 1) Unknown keyword"
    assert kept.read_text() == "good"
    module.code = 0
    assert systemd.apply_units(module)["changed"]
    assert kept.read_text() == "bad"
    assert [command[:2] for command in module.commands] == [["program", "--test"]] * 2
    assert str(kept) not in module.commands[0]


@pytest.mark.parametrize("check", [False, True])
def test_a_restart_can_be_left_to_a_later_task(tmp_path, monkeypatch, check):
    monkeypatch.setattr(systemd, "show_units", lambda module, names: systemd.parse_show(SHOW))
    items = [item(tmp_path / "a", content="x", units=["containerd"])]
    later = Module(check_mode=check, files=items, units=[{"name": "containerd", "restart": "never"}])
    result = systemd.apply_units(later)
    assert (result["restarted"], result["stale"], later.commands) == ([], ["containerd"], [])
    now = Module(check_mode=check, files=[], units=[{"name": "containerd", "restart": "always"}])
    result = systemd.apply_units(now)
    assert (result["changed"], result["restarted"], result["stale"]) == (True, ["containerd"], [])
    assert now.commands == [["systemctl", "restart", "containerd.service"]] * (not check)


def apply(monkeypatch, paths, restart="stale", shown=SHOW, **contents):
    """The module with these files, whose unit has read none of them yet."""
    monkeypatch.setattr(systemd, "show_units", lambda module, names: systemd.parse_show(shown))
    items = [item(path, content=contents["content"], units=["containerd"]) for path in paths]
    module = Module(files=items, units=[{"name": "containerd", "restart": restart}])
    return module, lambda: systemd.apply_units(module)


def test_a_runtime_that_does_not_work_gets_its_former_files(tmp_path, monkeypatch, runtime):
    """It is active, and its CRI is not there."""
    folder, answers = runtime
    kept, new = tmp_path / "config.toml", tmp_path / "deep" / "conf.toml"
    kept.write_text("imports = []\n")
    answers += [NO_CRI, None]
    module, run = apply(monkeypatch, [kept, new], content='[registry]\nconfig_path = "/x"\nauth = "secret"\n')
    with pytest.raises(FabricError, match="containerd does not work with its new settings") as error:
        run()
    assert (kept.read_text(), new.exists()) == ("imports = []\n", False)
    assert module.commands == [
        ["systemctl", "restart", "containerd.service"],
        ["systemctl", "daemon-reload"],
        ["systemctl", "restart", "containerd.service"],
    ]
    assert "`mirrors` cannot be set when `config_path` is provided" in error.value.seen
    assert "devmapper" not in error.value.seen
    assert "it works with them" in error.value.seen
    assert f"{kept}:2, {new}:2" in error.value.where
    # Somebody may have edited them since.
    assert module.backups[-2:] == [str(kept), str(new)]
    assert f"Copies of the refused files: {kept}~, {new}~" in error.value.seen
    assert "secret" not in str(error.value)
    assert not list(folder.iterdir())


def test_what_a_runtime_had_is_kept_until_a_later_restart(tmp_path, monkeypatch, runtime):
    """Two changes before it: the runtime last worked with what was there before both of them."""
    folder, answers = runtime
    path = tmp_path / "config.toml"
    path.write_text("first")
    path.chmod(0o640)
    for content in ("second", "third"):
        apply(monkeypatch, [path], "never", content=content)[1]()
        [record] = folder.iterdir()
        assert record.stat().st_mode & 0o777 == 0o600
        assert json.loads(record.read_text()) == {str(path): {"content": "first", "mode": "0640"}}
    answers += [NO_CRI, NO_CRI]
    with pytest.raises(FabricError) as error:
        apply(monkeypatch, [], "always", content="")[1]()
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("first", 0o640)
    assert "it does not work with them either" in error.value.seen


def test_what_a_runtime_works_with_is_what_it_gets_back(tmp_path, monkeypatch, runtime):
    """Somebody has restarted it between two changes."""
    folder, _answers = runtime
    path = tmp_path / "config.toml"
    path.write_text("first")
    apply(monkeypatch, [path], "never", content="second")[1]()
    late = SHOW.replace("ExecMainStartTimestampMonotonic=5000000", f"ExecMainStartTimestampMonotonic={10**18}")
    apply(monkeypatch, [path], "never", late, content="third")[1]()
    assert json.loads((folder / "containerd.json").read_text())[str(path)]["content"] == "second"


def test_a_runtime_that_works_needs_nothing_back(tmp_path, monkeypatch, runtime):
    folder, _answers = runtime
    apply(monkeypatch, [tmp_path / "a"], content="x")[1]()
    assert not list(folder.iterdir())


def test_a_runtime_that_does_not_start_gets_its_former_files(tmp_path, monkeypatch):
    monkeypatch.setattr(systemd, "show_units", lambda module, names: systemd.parse_show(SHOW))
    path = tmp_path / "config.toml"
    path.write_text("good")
    ends = [(1, "", "Job failed."), (0, JOURNAL, ""), (0, "", ""), (0, "", "")]
    items = [item(path, content="bad", units=["containerd"])]
    with pytest.raises(FabricError, match="does not work with its new settings") as error:
        systemd.apply_units(Module(*ends, files=items, units=[{"name": "containerd"}]))
    assert (path.read_text(), "Job failed." in error.value.seen) == ("good", True)


def test_a_runtime_that_runs_is_asked_although_nothing_is_to_be_done(tmp_path, monkeypatch, runtime):
    """Its package may have restarted it."""
    _folder, answers = runtime
    monkeypatch.setattr(systemd, "is_stale", lambda *_values: False)
    answers.append(NO_CRI)
    module, run = apply(monkeypatch, [], content="")
    with pytest.raises(FabricError, match="containerd is active but does not work"):
        run()
    assert module.commands == []
    assert run()["changed"] is False


def test_a_date_to_come_makes_no_unit_stale(tmp_path):
    """A clock that was ahead wrote it: the unit would be restarted in each run until then."""
    path, unit = tmp_path / "f", {"ActiveState": "active", "ExecMainStartTimestampMonotonic": "1"}
    path.write_text("")
    assert systemd.stale_units({"u": unit}, {"u": [str(path)]}) == {"u": True}
    os.utime(path, (time.time() + 10**6,) * 2)
    assert systemd.stale_units({"u": unit}, {"u": [str(path)]}) == {"u": False}


def test_a_runtime_may_need_a_while(monkeypatch, runtime):
    _folder, answers = runtime
    monkeypatch.setattr(systemd.time, "sleep", lambda seconds: None)
    answers += [cri.Silence("starting", False)] * 3
    systemd.wait_for_answer("containerd")
    assert answers == []
    monkeypatch.setattr(systemd, "ANSWER_SECONDS", -1)
    answers += [cri.Silence("starting", False)] * 3
    with pytest.raises(FabricError, match="active but does not work"):
        systemd.wait_for_answer("containerd")
    assert len(answers) == 2


@pytest.mark.parametrize(
    ("unit", "kubelet", "starts"),
    [
        ("docker", "/run/cri-dockerd.sock", True),
        ("docker", "/run/containerd/containerd.sock", False),  # Docker beside the runtime of the node
        ("containerd", "/run/containerd/containerd.sock", False),
    ],
)
def test_a_cri_dockerd_that_was_stopped_is_started(monkeypatch, runtime, unit, kubelet, starts):
    _folder, answers = runtime
    answers += [cri.Silence("/run/cri-dockerd.sock does not answer: Connection refused", False)]
    calls = []
    monkeypatch.setattr(systemd.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(cri, "kubelet_socket", lambda: kubelet)
    monkeypatch.setattr(systemd, "run_program", lambda argv, seconds: calls.append(argv))
    systemd.wait_for_answer(unit)
    assert calls == ([["systemctl", "start", "--no-block", "cri-docker.service"]] if starts else [])


@pytest.mark.parametrize(
    ("before", "kubelet", "fails"),
    [(None, "", True), (NO_CRI, "", False), (NO_CRI, "/run/containerd/containerd.sock", True)],
)
def test_a_containerd_that_only_docker_uses_needs_no_cri(monkeypatch, runtime, before, kubelet, fails):
    _folder, answers = runtime
    monkeypatch.setattr(cri, "kubelet_socket", lambda: kubelet)
    answers += ([] if kubelet else [before]) + [NO_CRI]
    done = []
    try:
        systemd.run_runtime(Module(), "containerd", lambda: None, lambda: done.append(1), needed=False)
    except FabricError:
        done.append(2)
    assert done == ([1, 2] if fails else [1])

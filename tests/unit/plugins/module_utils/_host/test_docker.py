"""Docker's default ulimits: in daemon.json, unless its flags set them."""

import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import cri, docker
from ansible_collections.ipu.fabric.tests.unit.fixtures.module import Module

ULIMIT = {"Name": "memlock", "Hard": -1, "Soft": -1}


@pytest.mark.parametrize(
    ("settings", "limit", "expected"),
    [
        ({}, None, {"default-ulimits": {"memlock": ULIMIT}}),
        (
            {"log-driver": "json-file", "default-ulimits": {"nofile": {"Name": "nofile", "Hard": 1, "Soft": 1}}},
            None,
            {
                "log-driver": "json-file",
                "default-ulimits": {"nofile": {"Name": "nofile", "Hard": 1, "Soft": 1}, "memlock": ULIMIT},
            },
        ),
        (
            {"default-ulimits": {"memlock": ULIMIT}},
            65536,
            {"default-ulimits": {"memlock": {"Name": "memlock", "Hard": 65536, "Soft": 65536}}},
        ),
    ],
)
def test_merge_daemon(settings, limit, expected):
    assert json.loads(docker.merge_daemon(json.dumps(settings), limit)) == expected


def test_merge_daemon_keeps_the_text_that_says_so_already():
    text = '{ "default-ulimits" : {"memlock": {"Hard": -1, "Name": "memlock", "Soft": -1}},\n\n"x": 1}'
    assert docker.merge_daemon(text, None) == text


@pytest.mark.parametrize(
    ("text", "what"),
    [('{"storage-driver": "overlay2",\n}', "not valid JSON"), ("[1]", "not a JSON object")],
)
def test_merge_daemon_refuses(text, what):
    with pytest.raises(FabricError, match=what) as caught:
        docker.merge_daemon(text, None)
    assert caught.value.where == "/etc/docker/daemon.json"


OURS = {"exec-opts": ["native.cgroupdriver=systemd"], "live-restore": True, "log-opts": {"max-size": "100m"}}


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ({}, OURS),
        (
            {"log-opts": {"max-size": "1g", "tag": "x"}, "default-ulimits": {"memlock": ULIMIT}, "live-restore": False},
            {**OURS, "log-opts": {"max-size": "100m", "tag": "x"}, "default-ulimits": {"memlock": ULIMIT}},
        ),
        (
            {"exec-opts": ["native.cgroupdriver=cgroupfs", "isolation=default"]},
            {**OURS, "exec-opts": ["isolation=default", "native.cgroupdriver=systemd"]},
        ),
        ({"log-opts": "odd"}, OURS),
    ],
)
def test_settings_are_merged_and_all_else_stays(there, expected):
    merged = docker.merge_settings(json.dumps(there), OURS)
    assert json.loads(merged) == expected
    assert docker.merge_settings(merged, OURS) == merged


LOGS = {"log-driver": "json-file", "log-opts": {"max-size": "100m"}}


@pytest.mark.parametrize(
    ("there", "wanted", "expected"),
    [
        # Options belong to their driver: dockerd exits with "unknown log opt 'gelf-address' for json-file log driver".
        ({"log-driver": "gelf", "log-opts": {"gelf-address": "udp://192.0.2.9:12201"}}, LOGS, LOGS),
        ({"log-driver": "local", "log-opts": {"compress": "true", "max-size": "1m"}}, LOGS, LOGS),
        ({"log-opts": {"tag": "x"}}, LOGS, {**LOGS, "log-opts": {"tag": "x", "max-size": "100m"}}),
        (
            {"log-driver": "json-file", "log-opts": {"max-file": 3}},
            {"log-driver": "journald"},
            {"log-driver": "journald"},
        ),
        (
            {"log-driver": "gelf", "log-opts": {"mode": "x"}},
            {"debug": True},
            {"log-driver": "gelf", "log-opts": {"mode": "x"}, "debug": True},
        ),
        (
            {"storage-driver": "devicemapper", "storage-opts": ["dm.basesize=20G", "overlay2.size=1G"]},
            {"storage-driver": "overlay2"},
            {"storage-driver": "overlay2", "storage-opts": ["overlay2.size=1G"]},
        ),
        ({"storage-opts": ["dm.basesize=20G"]}, {"storage-driver": "btrfs"}, {"storage-driver": "btrfs"}),
        # A runtime has a path or a type, never both.
        (
            {"runtimes": {"x": {"runtimeType": "io.containerd.x.v1"}, "y": {"path": "/y"}}},
            {"runtimes": {"x": {"path": "/x"}}},
            {"runtimes": {"y": {"path": "/y"}, "x": {"path": "/x"}}},
        ),
        ({"authorization-plugins": ["a"]}, {"authorization-plugins": ["b"]}, {"authorization-plugins": ["a", "b"]}),
        (
            {"default-address-pools": [{"base": "172.30.0.0/16", "size": 24}]},
            {"default-address-pools": [{"base": "172.31.0.0/16", "size": 24}]},
            {"default-address-pools": [{"base": "172.31.0.0/16", "size": 24}]},
        ),
    ],
)
def test_parts_of_what_is_replaced_go_with_it(there, wanted, expected):
    merged = docker.merge_settings(json.dumps(there), wanted)
    assert json.loads(merged) == expected
    assert docker.merge_settings(merged, wanted) == merged


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ("--exec-opt native.cgroupdriver=systemd", "exec-opts (flag exec-opt)"),
        ("--live-restore", "live-restore (flag live-restore)"),
        ("--log-opt=max-size=1g", "log-opts (flag log-opt)"),
        # What memlock has written is in the file already, and the vendor's guide names the flag.
        ("--default-ulimit memlock=-1:-1", "default-ulimits (flag default-ulimit)"),
    ],
)
def test_a_setting_that_is_a_flag_too_is_refused(flags, named):
    text = json.dumps({"default-ulimits": {"memlock": ULIMIT}})
    with pytest.raises(FabricError, match="both a flag and in its configuration") as caught:
        docker.merge_settings(text, OURS, docker.parse_flags(flags.split()))
    assert caught.value.seen == named


def test_the_flag_of_the_vendors_guide_goes_with_our_settings():
    flags = docker.parse_flags(FLAG.split())
    assert json.loads(docker.merge_settings("", OURS, flags)) == OURS


def test_what_daemon_json_becomes(tmp_path, monkeypatch):
    """It writes nothing. The file is the one that a flag names."""
    path = tmp_path / "daemon.json"
    monkeypatch.setattr(docker, "DAEMON", str(path))
    place, bare = docker.with_settings(Module((1, "", "No files found")), OURS)
    assert (place, bare["mode"], path.exists()) == (str(path), "0644", False)
    path.write_text(bare["content"])
    path.chmod(0o600)
    assert docker.with_settings(Module((1, "", "")), OURS) == (str(path), {**bare, "mode": "0600"})
    other = f"[Service]\nExecStart=/usr/bin/dockerd --config-file {tmp_path}/other.json\n"
    assert docker.with_settings(Module((0, other, "")), OURS)[0] == f"{tmp_path}/other.json"
    path.write_text("{,}")
    with pytest.raises(FabricError, match="not valid JSON"):
        docker.with_settings(Module((1, "", "")), OURS)


THEIRS = "# /etc/systemd/system/cri-docker.service\n[Service]\nExecStart={program} --container-runtime-endpoint fd://\n"
SILENT = cri.Silence("/run/cri-dockerd.sock does not answer", False)


@pytest.mark.parametrize(
    ("unit", "recorded", "said", "silence", "seen"),
    [
        ("", True, "", None, None),  # our program, and a run that was killed before it wrote the units
        (f"{docker.OWN_MARK}\n{THEIRS}", False, "", SILENT, None),
        (THEIRS, False, "cri-dockerd 0.3.26 (1a2b3c)", None, ("0.3.26", "")),
        (THEIRS, True, "cri-dockerd 0.3.26 (1a2b3c)", None, ("0.3.26", "")),
        (THEIRS, False, "cri-dockerd 0.3.26 (1a2b3c)", SILENT, ("0.3.26", SILENT.seen)),
        (THEIRS, False, "unknown flag", None, ("", "")),
        ("", False, "cri-dockerd 0.3.26 (1a2b3c)", SILENT, ("0.3.26", SILENT.seen)),  # a program without units
    ],
)
def test_whose_cri_dockerd_is_there(tmp_path, monkeypatch, unit, recorded, said, silence, seen):
    program, record = tmp_path / "cri-dockerd", tmp_path / "record"
    program.write_text("theirs")
    if recorded:
        record.write_text("digests")
    monkeypatch.setattr(docker, "CRI_DOCKERD", str(program))
    monkeypatch.setattr(docker, "CRI_DOCKERD_RECORD", str(record))
    monkeypatch.setattr(cri, "silence", lambda unit: silence)
    monkeypatch.setattr(docker, "output_of", lambda *_argv: unit.format(program=program))
    monkeypatch.setattr(docker, "run_program", lambda *_argv: Done(0, said))
    found = docker.read_cri_dockerd()
    assert found["others"] == bool(seen)
    assert (found["release"], found["silence"]) == (seen or ("", ""))
    assert found["program"] == str(program)


FLAG = "--default-ulimit memlock=-1:-1"
UNIT = """# /usr/lib/systemd/system/docker.service
[Service]
EnvironmentFile=-{environment}
Environment=OTHER=1 "OPTIONS=--debug -G docker"
ExecStart=/usr/bin/dockerd -H fd:// \\
  --containerd=/run/containerd/containerd.sock {more}
"""


def flags_of(text):
    return docker.read_flags(Module((0, text, "")))


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ("", []),
        ("--default-ulimit memlock=-1:-1", [("default-ulimit", "memlock=-1:-1")]),
        ("--default-ulimit=nofile=1:2 --live-restore", [("default-ulimit", "nofile=1:2"), ("live-restore", "")]),
        ("$OPTIONS $NONE", [("debug", ""), ("G", "docker")]),
        ("--label ${OTHER}", [("label", "1")]),
        ("$DOCKER_OPTS", [("default-ulimit", "memlock=-1")]),
        # A drop-in that starts anew.
        ("\n# x.conf\n[Service]\nExecStart=\nExecStart=/usr/bin/dockerd -Dlinfo", None),
        ("--label 'half", [("label", "'half")]),
    ],
)
def test_flags(tmp_path, more, found):
    (tmp_path / "docker").write_text('# options\nDOCKER_OPTS="--default-ulimit memlock=-1"\n')
    seen = [tuple(flag) for flag in flags_of(UNIT.format(environment=tmp_path / "docker", more=more))]
    first = [("H", "fd://"), ("containerd", "/run/containerd/containerd.sock")]
    assert seen == ([("D", "linfo")] if found is None else first + found)


def test_a_unit_without_a_command():
    assert flags_of("") == []


def test_the_limit_of_a_flag_is_not_set_again():
    """As the vendor's guide has it: dockerd does not start with it in both places."""
    flags = docker.parse_flags(FLAG.split())
    text = '{"log-driver": "journald"}'
    assert docker.merge_daemon(text, None, flags) == text
    assert docker.merge_daemon("", None, flags) == ""


@pytest.mark.parametrize(
    ("flags", "limit", "seen"),
    [
        ("--default-ulimit nofile=1024", None, "nofile=1024"),
        ("--default-ulimit memlock=65536", None, "memlock=65536"),
        ("--default-ulimit memlock=1:65536", 65536, "memlock=1:65536"),
        (FLAG, 65536, "memlock=-1:-1"),
    ],
)
def test_other_ulimits_in_flags_are_refused(flags, limit, seen):
    with pytest.raises(FabricError, match="lack the limit of locked memory") as caught:
        docker.merge_daemon("{}", limit, docker.parse_flags(flags.split()))
    assert seen in caught.value.seen


@pytest.mark.parametrize(
    ("settings", "flags", "seen"),
    [
        ({"default-ulimits": {}}, FLAG, "default-ulimits (flag default-ulimit)"),
        ({"hosts": []}, "-H fd://", "hosts (flag H)"),
        ({"insecure-registries": []}, "--insecure-registry=x", "insecure-registries (flag insecure-registry)"),
        ({"runtimes": {}}, "--add-runtime x=/x", "runtimes (flag add-runtime)"),
        ({"live-restore": True}, "--live-restore", "live-restore (flag live-restore)"),
    ],
)
def test_a_setting_in_both_places_is_refused(settings, flags, seen):
    with pytest.raises(FabricError, match="both a flag and in its configuration") as caught:
        docker.merge_daemon(json.dumps(settings), None, docker.parse_flags(flags.split()))
    assert caught.value.seen == seen


@pytest.mark.parametrize(("output", "keeps"), [("true\n", True), ("false\n", False), ("", False)])
def test_live_restore(output, keeps):
    assert docker.keeps_containers(Module((0, output, ""))) == keeps
    assert not docker.keeps_containers(Module((0, output, ""), programs=False))

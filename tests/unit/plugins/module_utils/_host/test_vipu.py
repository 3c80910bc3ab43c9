"""What vipu may say, and what becomes of it."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import tempfile
import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import vipu as vipu_cli
from ansible_collections.ipu.fabric.plugins.module_utils._host.vipu import Answer

KEY = "s3cret-k3y"


# ---- pure -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('{"host":"10.5.212.116:8090","version":"1.18.0"}', Answer("10.5.212.116:8090", "1.18.0", "json")),
        ('{"version": "1.18.0", "host": " vipu:8090 ", "more": {"host": 1}}', Answer("vipu:8090", "1.18.0", "json")),
        ('{"host":"[fd00::20]:8090"}', Answer("[fd00::20]:8090", "", "json")),
        ('{"host":"10.5.0.20:8090","version":null}', Answer("10.5.0.20:8090", "", "json")),
        ('warning: old {client}\n{"host":"a:1"}\n', Answer("a:1", "", "json")),
        ('[{"host":"a:1"}]', Answer("a:1", "", "json")),
        ('{"host":""}', None),
        ('{"host":8090}', None),
        ('{"error":"unreachable"}', None),
        ("version: 1.18.0\nhost: a:1", None),
        ('{"host":"a:1"', None),
        ("", None),
    ],
)
def test_parse_json(text, answer):
    assert vipu_cli.parse_json(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("version: 1.18.0\nhost: 10.5.212.116:8090\n", Answer("10.5.212.116:8090", "1.18.0", "text")),
        ("  host : vipu.example.com:8090  \r\n", Answer("vipu.example.com:8090", "", "text")),
        ("host: [fd00::20]:8090", Answer("[fd00::20]:8090", "", "text")),
        ("host:", None),
        ("host: two words", None),
        ("error: no host: 10.5.0.1 unreachable", None),
        ("\x00\x01garbage", None),
        ("", None),
    ],
)
def test_parse_text(text, answer):
    assert vipu_cli.parse_text(text) == answer


@pytest.mark.parametrize(
    ("endpoint", "host", "port"),
    [
        ("10.5.212.116:8090", "10.5.212.116", 8090),
        ("10.5.212.116", "10.5.212.116", 8090),
        ("vipu.example.com:9000", "vipu.example.com", 9000),
        ("vipu-1_a.example.com.", "vipu-1_a.example.com.", 8090),
        ("localhost:8090", "localhost", 8090),
        ("[fd00:5::20]:8090", "fd00:5::20", 8090),
        ("[fd00:5:0::20]", "fd00:5::20", 8090),
        ("fd00:5::20", "fd00:5::20", 8090),
        ("fd00:5::20:8090", "fd00:5::20", 8090),
        ("::1", "::1", 8090),
    ],
)
def test_split_endpoint(endpoint, host, port):
    assert vipu_cli.split_endpoint(endpoint) == (host, port)


def test_split_endpoint_with_another_port():
    assert vipu_cli.split_endpoint("vipu", 9000) == ("vipu", 9000)
    assert vipu_cli.split_endpoint("fd00::20:9000", 9000) == ("fd00::20", 9000)
    assert vipu_cli.split_endpoint("fd00::20:8090", 9000) == ("fd00::20:8090", 9000)


@pytest.mark.parametrize(
    "endpoint",
    [
        "", ":8090", "vipu:", "vipu:port", "vipu:0", "vipu:65536",
        "[10.5.0.1]:8090", "[fd00::20", "a b:8090", "-a:1", "a:b:c", "http://a:1",
    ],
)  # fmt: skip
def test_split_endpoint_refuses(endpoint):
    with pytest.raises(ValueError, match=r".+"):
        vipu_cli.split_endpoint(endpoint)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f'api-access-key="{KEY}"', 'api-access-key=********'),
        (f"--api-access-key {KEY} -H a", "--api-access-key ******** -H a"),
        (f"api_access_key: {KEY}, host: a", "api_access_key: ********, host: a"),
        (f'{{"apiAccessKey": 1, "api-access-key": "{KEY}"}}', '{"apiAccessKey": 1, "api-access-key": ********}'),
        (f"VIPU_CLI_API_ACCESS_KEY={KEY}", "VIPU_CLI_API_ACCESS_KEY=********"),
        (f"bad key {KEY}", "bad key ********"),
        ("no secret", "no secret"),
    ],
)  # fmt: skip
def test_redact(text, shown):
    assert vipu_cli.redact(text, [KEY]) == shown


@pytest.mark.parametrize(
    ("done", "seen"),
    [
        (Done(3, "", "unreachable\n"), "rc 3, stderr 'unreachable'"),
        (Done(0, "garbage", ""), "rc 0, stdout 'garbage'"),
        (Done(0, "", ""), "rc 0, no output"),
        (Done(None, "", " \n"), "timed out, no output"),
        (Done(None, "early", ""), "timed out, stdout 'early'"),
    ],
)
def test_quote(done, seen):
    assert vipu_cli.quote(done) == seen


def test_quote_keeps_the_end_of_much():
    assert len(vipu_cli.quote(Done(1, "x" * 10_000 + "the end", ""))) < 450
    assert vipu_cli.quote(Done(1, "x" * 10_000 + "the end", "")).endswith("the end'")


@pytest.mark.parametrize(
    ("addresses", "address"),
    [
        (["10.5.0.20"], "10.5.0.20"),
        (["127.0.0.1", "10.5.0.20"], "10.5.0.20"),
        (["::1", "127.0.1.1"], ""),
        (["0.0.0.0", "::"], ""),
        (["fe80::1%eth0", "fd00::20"], "fd00::20"),
        ([], ""),
    ],
)
def test_reachable(addresses, address):
    assert vipu_cli.reachable(addresses) == address


# ---- with a vipu command --------------------------------------------------------------------------------------------


@pytest.fixture
def vipu(tmp_path, monkeypatch) -> t.Callable[..., t.Dict[str, t.Any]]:
    """Ask a vipu that is the given shell script; it writes its options into the file asked."""
    program = tmp_path / "vipu"
    monkeypatch.delenv("VIPU_CLI_API_ACCESS_KEY", raising=False)

    def ask(script: str, **options: t.Any) -> t.Dict[str, t.Any]:
        program.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/asked\n{script}\n')
        program.chmod(0o755)
        return vipu_cli.find_controller(executable=str(program), **options)

    return ask


@pytest.fixture
def names(monkeypatch) -> t.Dict[str, t.List[str]]:
    """Host names that resolve, and to what."""
    known: t.Dict[str, t.List[str]] = {}

    def getaddrinfo(host, port, **_options):
        if host in known:
            return [(0, 0, 0, "", (address, port)) for address in known[host]]
        if host.replace(".", "").isdigit() or ":" in host:
            return [(0, 0, 0, "", (host, port))]
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return known


@pytest.fixture(autouse=True)
def nobody_connects(monkeypatch) -> None:
    monkeypatch.delenv("SUDO_USER", raising=False)


@pytest.fixture
def home(monkeypatch) -> t.Iterator[Path]:
    """Of the user who connects, and who becomes root; in its .bashrc is the way to a vipu in bin."""
    if os.geteuid():
        pytest.skip("only root may become somebody else")
    user = pwd.getpwnam("nobody")
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    (folder / "bin").mkdir()
    (folder / ".bash_profile").write_text("echo Welcome, host: 10.9.9.9:1; . ~/.bashrc\n")
    (folder / ".bashrc").write_text(
        "case $- in *i*) ;; *) return;; esac\n"
        f'PATH=$PATH:$HOME/bin; export VIPU_CLI_API_HOST=10.5.0.20 VIPU_CLI_API_ACCESS_KEY="{KEY}"\n'
    )
    folder.chmod(0o755)
    known = pwd.struct_passwd(("nobody", "x", user.pw_uid, user.pw_gid, "", str(folder), "/bin/bash"))
    monkeypatch.setattr(pwd, "getpwnam", {"nobody": known}.__getitem__)
    monkeypatch.setenv("SUDO_USER", "nobody")
    monkeypatch.setenv("USER", "root")
    yield folder
    shutil.rmtree(folder)


def own_vipu(home: Path, script: str) -> None:
    (home / "bin/vipu").write_text(f"#!/bin/sh\n{script}\n")
    (home / "bin/vipu").chmod(0o755)


def test_the_vipu_of_the_user_who_connects_runs_as_that_user(home):
    own_vipu(home, """echo "{\\"host\\":\\"$VIPU_CLI_API_HOST:8090\\",\\"version\\":\\"$(id -u) $(id -G) $HOME\\"}\"""")
    found = vipu_cli.find_controller()
    assert (found["address"], found["port"]) == ("10.5.0.20", 8090)
    user = pwd.getpwnam("nobody")
    assert found["version"] == f"{user.pw_uid} {user.pw_gid} {home}"


def test_what_the_files_of_a_user_print_is_no_answer(home):
    own_vipu(home, "echo 'host: $(reboot)'; id -u >&2; echo $VIPU_CLI_API_ACCESS_KEY >&2")
    with pytest.raises(FabricError) as error:
        vipu_cli.find_controller(executable="vipu")
    assert "must be host:port" in error.value.what
    assert "10.9.9.9" not in error.value.seen


def test_the_access_key_of_a_user_is_in_no_message(home):
    own_vipu(home, "echo denied for $VIPU_CLI_API_ACCESS_KEY >&2; exit 1")
    with pytest.raises(FabricError) as error:
        vipu_cli.find_controller()
    assert "denied for ********" in error.value.seen
    assert KEY not in json.dumps(error.value.as_failure())


def test_root_is_asked_where_the_user_has_no_vipu(home, vipu, tmp_path):
    assert vipu(TEXT)["address"] == "10.5.212.116"
    assert len((tmp_path / "asked").read_text().splitlines()) == 1, "asked by root alone, who alone may read the folder"
    with pytest.raises(FabricError) as error:
        vipu_cli.find_controller(executable="no-such-vipu")
    assert error.value.where == "no-such-vipu on the search path of nobody and root"
    assert "fabric_vipu_hosts" in error.value.next_step


def test_a_login_that_hangs_ends(home, vipu):
    (home / ".bash_profile").write_text("sleep 60\n")
    assert vipu(TEXT, timeout=1)["address"] == "10.5.212.116"


TEXT = "printf 'version: 1.18.0\\nhost: 10.5.212.116:8090\\n'"
ADDRESS = {"host": "10.5.212.116", "port": 8090, "address": "10.5.212.116", "version": "1.18.0"}


@pytest.mark.parametrize(
    ("script", "source"),
    [
        ("""echo '{"host":"10.5.212.116:8090","version":"1.18.0"}'""", "json"),
        (TEXT, "text"),  # --showjson is ignored
        (f'case "$*" in *showjson*) echo unknown flag >&2; exit 1;; esac; {TEXT}', "text"),
        (f'case "$*" in *showjson*) echo "{{}}"; exit 0;; esac; {TEXT}', "text"),
    ],
)
def test_json_first_then_text(vipu, script, source):
    assert vipu(script) == {**ADDRESS, "source": source}


def test_ipv6(vipu):
    found = vipu("""echo '{"host":"[fd00:5::20]:8090"}'""")
    assert (found["host"], found["address"], found["port"]) == ("fd00:5::20", "fd00:5::20", 8090)


def test_host_name(vipu, names):
    names["vipu.example.com"] = ["127.0.1.1", "10.5.0.20", "10.6.0.20"]
    found = vipu("echo 'host: vipu.example.com:8090'")
    assert (found["host"], found["address"]) == ("vipu.example.com", "10.5.0.20")


def test_options_of_the_command(vipu, tmp_path):
    config = tmp_path / "cli.hcl"
    config.write_text('api-host = "10.5.0.20"\n')
    vipu(TEXT, api_host="10.5.0.20", api_port=9000, config=str(config))
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == [f"--api-host 10.5.0.20 --api-port 9000 --config {config} --server-version --showjson"]


@pytest.mark.parametrize(
    ("script", "addresses", "what", "seen"),
    [
        ("echo cannot connect >&2; exit 1", [], "did not say where", "rc 1, stderr 'cannot connect'"),
        ("exit 7", [], "did not say where", "rc 7, no output"),
        ("true", [], "did not say where", "rc 0, no output"),
        ("echo garbage", [], "did not say where", "rc 0, stdout 'garbage'"),
        ("head -c 3000 /dev/zero", [], "did not say where", "rc 0"),
        ("echo 'host: http://10.5.0.20'", [], "must be host:port", "http://10.5.0.20"),
        ("echo 'host: 10.5.0.20:99999'", [], "must be host:port", "99999 is not a port"),
        ("echo 'host: nobody.example.com:8090'", [], "must resolve", "nobody.example.com: "),
        ("echo 'host: localhost:8090'", ["::1", "127.0.0.1"], "other hosts and pods", "::1, 127.0.0.1"),
        ("echo 'host: 127.0.0.1:8090'", [], "other hosts and pods can reach", "127.0.0.1"),
        ("echo 'host: 0.0.0.0:8090'", [], "other hosts and pods can reach", "0.0.0.0"),
        ("echo 'host: [::1]:8090'", [], "other hosts and pods can reach", "::1"),
    ],
)  # fmt: skip
def test_errors_quote_what_was_seen(vipu, names, script, addresses, what, seen):
    if addresses:
        names["localhost"] = addresses
    with pytest.raises(FabricError) as error:
        vipu(script)
    assert what in error.value.what
    assert seen in error.value.seen
    assert "--server-version" in error.value.where
    assert error.value.next_step


def test_the_head_node_itself_is_enough_for_the_plan(vipu, names):
    names["localhost"] = ["::1", "127.0.0.1"]
    assert vipu("echo 'host: localhost:8090'", here=True)["address"] == "::1"
    assert vipu("echo 'host: 127.0.0.1:8090'", here=True)["address"] == "127.0.0.1"
    with pytest.raises(FabricError):
        vipu("echo 'host: 0.0.0.0:8090'", here=True)


@pytest.mark.parametrize(
    "script", ["sleep 60", "sleep 60 & wait", "trap '' TERM; for second in $(seq 60); do sleep 1; done"]
)
def test_a_hanging_vipu_is_killed(vipu, tmp_path, script):
    with pytest.raises(FabricError) as error:
        vipu(f"echo early; {script}; touch {tmp_path}/ended", timeout=1)
    assert not (tmp_path / "ended").exists(), "it was waited for"
    assert error.value.what == "vipu did not answer within 1 s."
    assert "early" in error.value.seen
    assert len((tmp_path / "asked").read_text().splitlines()) == 1, "asked again although its time was up"


def test_both_questions_share_one_time_out(vipu, tmp_path):
    with pytest.raises(FabricError):
        vipu(f"sleep 1; case $* in *showjson*) exit 1;; esac; sleep 60; touch {tmp_path}/ended", timeout=2)
    assert not (tmp_path / "ended").exists(), "it was waited for"


@pytest.mark.parametrize(
    ("options", "what", "seen"),
    [
        ({"executable": "no-such-vipu"}, "vipu command", "no such program"),
        ({"executable": "/etc"}, "vipu command", "no such program"),
        ({"executable": "true", "config": "/no/such/file"}, "configuration file", "cannot be read"),
        ({"executable": "true", "timeout": 0}, "time-out in seconds", "0"),
        ({"executable": "true", "timeout": -5}, "time-out in seconds", "-5"),
    ],
)
def test_bad_input(options, what, seen):
    with pytest.raises(FabricError) as error:
        vipu_cli.find_controller(**options)
    assert what in error.value.what
    assert seen in error.value.seen


@pytest.mark.parametrize("origin", ['api-access-key = "{}"', "api-access-key={}", "api-access-key='{}'", "environment"])
@pytest.mark.parametrize(
    "script",
    [
        f"echo denied for {KEY} >&2; exit 1",
        f'echo \'{{"error": "{KEY}"}}\'',
        f"echo 'host: {KEY}:{KEY}'",
        f"echo {KEY}; sleep 60",
        f"printf %0391d 0; echo {KEY}; exit 1",  # a quote that is cut must not show a part of it
    ],
)
def test_no_message_leaks_the_access_key(vipu, tmp_path, monkeypatch, origin, script):
    options: t.Dict[str, t.Any] = {}
    if origin == "environment":
        monkeypatch.setenv("VIPU_CLI_API_ACCESS_KEY", KEY)
    else:
        config = tmp_path / "cli.hcl"
        config.write_text(origin.format(KEY) + "\n")
        options["config"] = str(config)
    with pytest.raises(FabricError) as error:
        vipu(script, timeout=0.5, **options)
    assert KEY not in json.dumps(error.value.as_failure()) + str(error.value)
    assert "k3y" not in error.value.seen
    assert error.value.__suppress_context__, "a traceback would show it"

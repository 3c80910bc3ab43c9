"""Programs that answer, fail, hang, and leave children behind."""

from __future__ import annotations

import os
import tempfile
import time

from ansible_collections.ipu.fabric.plugins.module_utils._common import command
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done, find_program, run_program


def test_an_answer():
    assert run_program(["sh", "-c", "echo out; echo err >&2; exit 3"]) == Done(3, "out\n", "err\n")


def test_no_such_program():
    done = run_program(["no-such-program-here"])
    assert done.rc == 127
    assert "no-such-program-here" in done.err
    assert find_program("no-such-program-here") == ""


def test_a_program_that_cannot_start(tmp_path):
    bad = tmp_path / "bad"
    bad.write_text("#!/no/such/interpreter\n")
    bad.chmod(0o755)
    assert run_program([str(bad)]).rc == 126


def test_output_that_is_no_text():
    assert run_program(["printf", r"\377ok"]).out == "\ufffdok"


def test_nothing_to_read_from():
    """A program that asks a question must not hang on the terminal."""
    assert run_program(["cat"], timeout=5) == Done(0, "", "")


def test_messages_are_not_translated(monkeypatch):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert run_program(["sh", "-c", "echo $LC_ALL"]).out == "C\n"


def test_system_directories_count_although_path_lacks_them(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert find_program("sh")


def running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stream:
            return stream.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_time_out_kills_the_whole_group(tmp_path):
    pids = tmp_path / "pids"
    began = time.monotonic()
    done = run_program(["sh", "-c", f"echo early; sleep 300 & echo $! $$ >{pids}; wait"], timeout=0.5)
    assert time.monotonic() - began < 20
    assert done == Done(None, "early\n", "")
    deadline = time.monotonic() + 5
    while any(running(int(pid)) for pid in pids.read_text().split()):
        assert time.monotonic() < deadline, "the child is still there"
        time.sleep(0.02)


def test_a_program_may_tidy_up_when_its_time_is_up():
    done = run_program(["sh", "-c", "trap 'echo tidy; exit 1' TERM; sleep 30 & wait"], timeout=0.5)
    assert done == Done(None, "tidy\n", "")


def test_a_program_that_runs_in_vain_is_ended_early(monkeypatch):
    monkeypatch.setattr(command, "ASK", 0.05)
    answers = [False, False, True]
    done = run_program(["sh", "-c", "cat; sleep 30"], timeout=600, data="in", in_vain=lambda: answers.pop(0))
    assert (done.rc, done.out, answers) == (None, "in", [])
    assert run_program(["sh", "-c", "sleep 0.2; cat"], data="in", in_vain=lambda: False) == Done(0, "in", "")


def test_a_program_that_will_not_end_is_killed(monkeypatch):
    monkeypatch.setattr(command, "GRACE", 0.2)
    began = time.monotonic()
    assert run_program(["sh", "-c", "trap '' TERM; sleep 30"], timeout=0.5).rc is None
    assert time.monotonic() - began < 20


def test_input_and_environment_and_files():
    with tempfile.TemporaryFile() as file:
        words = f"cat; echo $COLOUR; echo kept >/dev/fd/{file.fileno()}"
        done = run_program(["sh", "-c", words], data="in\n", env={"COLOUR": "red"}, pass_fds=[file.fileno()])
        assert done == Done(0, "in\nred\n", "")
        file.seek(0)
        assert file.read() == b"kept\n"


def test_a_child_that_left_the_session_is_not_waited_for(tmp_path):
    pid = tmp_path / "pid"
    began = time.monotonic()
    done = run_program(["sh", "-c", f"setsid sh -c 'echo $$ >{pid}; exec sleep 30' & sleep 30"], timeout=0.5)
    assert time.monotonic() - began < 20
    assert done.rc is None
    os.kill(int(pid.read_text()), 9)

import os
import time

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._ipu import job_logs
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_reconcile import prepare_log_directory
from hypothesis import given
from hypothesis import strategies as st


def stamp(number):
    return f"2026-11-21T10:00:{number // 10:02d}.{number % 10}00000000Z"


@given(st.lists(st.integers(0, 50), max_size=30), st.lists(st.integers(0, 30), max_size=4))
def test_a_log_that_is_read_again_gives_each_line_once(numbers, breaks):
    """Whatever the stamps, several lines of one stamp among them, and wherever the stream breaks off."""
    lines = [(stamp(n), f"line {i}") for i, n in enumerate(sorted(numbers))]
    position, seen = job_logs.ReadPosition(), []
    for end in [*breaks, len(lines)]:
        since = job_logs.whole_second(position.last) if position.last else ""
        position.reopen()
        read = [line for line in lines if line[0][:19] >= since[:19]] if since else lines
        there = lines[: max(end, len(seen))]
        for when, text in [line for line in read if line in there]:
            if position.is_new(when):
                seen.append(text)
    assert seen == [text for _stamp, text in lines]


def test_lines_a_little_out_of_order_are_kept():
    position = job_logs.ReadPosition()
    position.reopen()
    assert [position.is_new(stamp(n)) for n in (5, 4, 6)] == [True, True, True]


@given(st.text(alphabet="ab\né", max_size=40), st.integers(1, 7))
def test_lines_of_chunks(text, size):
    raw = text.encode()
    chunks = [raw[i : i + size] for i in range(0, len(raw), size)]
    expected = text.split("\n")
    assert list(job_logs.lines_of(chunks)) == (expected if expected[-1] else expected[:-1])


@pytest.mark.parametrize(
    ("exact", "whole"),
    [
        ("2026-11-21T10:00:01.123456789Z", "2026-11-21T10:00:01Z"),
        ("2026-11-21T10:00:01Z", "2026-11-21T10:00:01Z"),
        ("2026-11-21T10:00:01.5+02:00", "2026-11-21T10:00:01+02:00"),
    ],
)
def test_whole_second(exact, whole):
    assert job_logs.whole_second(exact) == whole


def test_a_file_gets_its_name_at_the_end_and_is_rewritten_only_when_it_differs(tmp_path):
    def write(*lines):
        log = job_logs.ContainerLog("p.c", str(tmp_path), 2)
        for number, line in enumerate(lines):
            log.add(f"{stamp(number)} {line}")
        assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == before
        return log, log.close()

    before = []
    log, path = write("one", "two", "three  ")
    assert path == str(tmp_path / "p.c.log")
    assert list(log.lines) == ["two", "three  "]
    assert (tmp_path / "p.c.log").read_text() == "one\ntwo\nthree  \n"
    inode, before = (tmp_path / "p.c.log").stat().st_ino, ["p.c.log"]
    write("one", "two", "three  ")
    assert (tmp_path / "p.c.log").stat().st_ino == inode
    assert write()[1] == ""
    write("other")
    assert (tmp_path / "p.c.log").read_text() == "other\n"
    assert len(list(tmp_path.iterdir())) == 1


def test_nobody_can_lay_a_link_in_the_way_of_a_log(tmp_path):
    """The folder may be one where every user may write: the name of the unfinished file is not to be guessed."""
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / f".p.c.log.{os.getpid()}").symlink_to(tmp_path / "victim")
    (tmp_path / "logs" / f".probe.{os.getpid()}").symlink_to(tmp_path / "victim")
    (tmp_path / "logs" / "p.c.log").symlink_to(tmp_path / "victim")
    prepare_log_directory(str(tmp_path / "logs"))
    log = job_logs.ContainerLog("p.c", str(tmp_path / "logs"), 2)
    log.add(f"{stamp(0)} line")
    log.close()
    assert (tmp_path / "victim").read_text() == "precious"
    assert not (tmp_path / "logs" / "p.c.log").is_symlink()


class Answer:
    def __init__(self, chunks):
        self.chunks = chunks

    def stream(self, **_options):
        for chunk in self.chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk

    def close(self):
        pass


class Client:
    """Gives one prepared answer after the other, then empty ones."""

    def __init__(self, *answers):
        self.answers, self.queries = list(answers), []

    def request(self, _verb, _path, query_params, **_options):
        self.queries.append(dict(query_params))
        if self.answers and isinstance(self.answers[0], Exception):
            raise self.answers.pop(0)
        return self.answers.pop(0) if self.answers else Answer([])


class Cluster:
    def __init__(self, *answers):
        self.client = Client(*answers)


def pod(phase, uid="u1"):
    containers = [{"name": "c"}]
    return {
        "metadata": {"name": "p", "uid": uid},
        "spec": {"nodeName": "w", "containers": containers},
        "status": {"phase": phase},
    }


def test_a_connection_that_breaks_loses_nothing(monkeypatch):
    monkeypatch.setattr(job_logs, "PAUSE", 0.01)
    monkeypatch.setattr(job_logs.LogFollower, "pause", 0.01)
    first = Answer([f"{stamp(1)} one\n{stamp(2)} two\n{stamp(3)} half".encode(), OSError("reset")])
    second = Answer([f"{stamp(1)} one\n{stamp(2)} two\n{stamp(3)} half a line\n".encode()])
    cluster = Cluster(first, second)
    keeper = job_logs.JobLogs(cluster, "n", "", 10)
    keeper.follow([pod("Running")])
    deadline = time.monotonic() + 10
    while cluster.client.answers and time.monotonic() < deadline:
        time.sleep(0.01)
    keeper.follow([pod("Succeeded")])
    assert keeper.close() == [{"name": "p.c", "file": "", "tail": ["one", "two", "half a line"], "error": ""}]
    assert cluster.client.queries[1]["sinceTime"] == "2026-11-21T10:00:00Z"
    assert cluster.client.queries[-1]["follow"] == "false"
    assert keeper.close() is keeper.close()


def test_a_pod_without_a_node_has_no_log():
    keeper = job_logs.JobLogs(Cluster(), "n", "", 10)
    waiting = pod("Pending")
    del waiting["spec"]["nodeName"]
    keeper.follow([waiting])
    assert keeper.close() == []


def test_a_pod_that_comes_again_has_a_log_of_its_own():
    keeper = job_logs.JobLogs(Cluster(), "n", "", 10)
    keeper.follow([pod("Failed")])
    keeper.follow([pod("Running", "u2")])
    assert keeper.followers["u1", "c"].ended.is_set()
    assert [log["name"] for log in keeper.close()] == ["p.c", "p.c.2"]

"""What a run says of itself, from recorded events, on a terminal 80 wide and in a log."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.text import HUNG, HUNG_STEP
from ansible_collections.ipu.fabric.plugins.plugin_utils._steps import (
    Counts,
    Line,
    Play,
    Run,
    Task,
    cells,
    columns,
    cut,
    describe,
    duration,
    recap,
    rows,
    shown,
    would_change,
    wrap,
)

HOSTS = ("w1", "w2", "w3")
PLAY = Play("Build the cluster", HOSTS, whole=False)
FABRIC_ERROR = {
    "msg": "The package must be there. Where: w2. Seen: nothing. Next: add it.",
    "error": {
        "code": "not-found",
        "what": "The package must be there.",
        "where": "https://mirror/deb",
        "seen": "nothing",
        "next_step": "Add it to the mirror.",
        "transient": False,
    },
}


def task(name="Install the packages", step="Kubernetes", **more):
    return Task(f"{step}/{name}", step, name, **more)


def begun(play=PLAY, first=None, **options):
    run = Run(0, **options)
    run.play_starts(play, 0)
    run.task_starts(first or task(), 0)
    return run


def text(lines, width=0):
    return [row for line in lines for row in rows(line, width)]


def finished(run, now=12.0):
    return text(run.play_starts(PLAY, now))


def test_a_step_without_changes_is_one_line():
    run = begun()
    for host in HOSTS:
        run.ok(task(), host)
    same_step = run.task_starts(task("Start the kubelet"), 5)
    assert same_step == []
    for host in HOSTS:
        run.ok(task("Start the kubelet"), host)
    (line,) = text(run.task_starts(task(step="Networks"), 12))
    assert line == "Kubernetes                            3/3  ok                              12 s"
    assert len(line) == 79


def test_changes_are_counted_and_named():
    run = begun()
    run.ok(task(), "w1", changed=True)
    run.ok(task(), "w2")
    run.ok(task(), "w3")
    run.task_starts(task("Write config.toml"), 5)
    for host in HOSTS:
        run.ok(task("Write config.toml"), host, changed=True)
    assert finished(run) == [
        "Kubernetes                            3/3  4 changed                       12 s",
        "    changed: Install the packages (w1), Write config.toml",
    ]


def test_check_mode_says_so():
    run = Run(0, check=True)
    assert text(run.start()) == ["Check mode: nothing is changed."]
    run.play_starts(PLAY, 0)
    run.task_starts(task(), 0)
    run.ok(task(), "w1", changed=True)
    assert text(run.end({"w1": Counts(ok=1, changed=1)}, 12)) == [
        "Kubernetes                            1/1  would change 1                  12 s",
        "    would change: Install the packages",
        "",
        "hosts                                    ok    changed   unreachable     failed",
        "w1                                        1          1             0          0",
        "",
        "Would change, by step:",
        "  w1: Kubernetes 1",
        "Checked in 12 s: 1 change would be made.",
    ]


def test_check_mode_ends_with_what_would_change_on_each_host():
    run = Run(0, check=True)
    run.play_starts(PLAY, 0)
    for step, hosts in (("Kubernetes", ("w1", "w2", "w3")), ("Locked memory", ("w1", "w3"))):
        for number in range(2):
            run.task_starts(task(f"{step} {number}", step=step), 0)
            for host in hosts:
                run.ok(task(f"{step} {number}", step=step), host, changed=number == 0 or host != "w2")
    run.ok(task("Look"), "w4")
    assert text(would_change(run.digest)) == [
        "",
        "Would change, by step:",
        "  w1, w3: Kubernetes 2, Locked memory 2",
        "  w2: Kubernetes 1",
    ]


def test_a_real_run_has_no_digest():
    run = Run(0)
    run.play_starts(PLAY, 0)
    run.task_starts(task(), 0)
    run.ok(task(), "w1", changed=True)
    assert run.digest == {}


@pytest.mark.parametrize("skipped", [True, False])
def test_what_only_prints_or_was_skipped_has_no_line(skipped):
    run = begun(first=task(quiet=not skipped))
    for host in HOSTS:
        (run.skipped if skipped else run.ok)(task(quiet=not skipped), host)
    assert finished(run) == []


def test_a_quiet_step_that_changes_something_has_a_line():
    run = begun(first=task(quiet=True))
    run.ok(task(quiet=True), "w1", changed=True)
    assert len(finished(run)) == 2


def test_a_failure_is_shown_at_once_and_once():
    run = begun()
    assert text(run.failed(task(), "w2", FABRIC_ERROR), 80) == [
        "",
        "FAILED  Kubernetes: Install the packages",
        "  host   w2",
        "  what   The package must be there.",
        "  where  https://mirror/deb",
        "  seen   nothing",
        "  next   Add it to the mirror.",
        "",
    ]
    assert run.failed(task(), "w3", FABRIC_ERROR) == []
    run.ok(task(), "w1")
    assert finished(run) == [
        "  The same on w3.",
        "",
        "Kubernetes                            1/3  2 failed                        12 s",
    ]


def test_a_failure_is_where_the_task_ran():
    assert "  host   localhost, for w1" in text(begun().failed(task(delegate="localhost"), "w1", {"msg": "m"}))
    assert "  host   w1" in text(begun().failed(task(delegate="{{ item }}"), "w1", {"msg": "m"}))


def test_another_failure_of_the_task_is_shown_too():
    run = begun()
    run.failed(task(), "w2", FABRIC_ERROR)
    assert text(run.failed(task(), "w3", {"msg": "other"}))[1:4] == [
        "FAILED  Kubernetes: Install the packages",
        "  host   w3",
        "  what   other",
    ]


@pytest.mark.parametrize(("how", "word"), [({"rescued": True}, "1 rescued"), ({"ignored": True}, "1 ignored")])
def test_failures_that_do_not_count_are_only_counted(how, word):
    run = begun()
    assert run.failed(task(), "w2", FABRIC_ERROR, **how) == []
    assert word in finished(run)[0]
    assert run.gone == set()


def test_unreachable_hosts():
    run = begun()
    run.ok(task(), "w1")
    assert text(run.unreachable(task(), "w2", {"msg": "Task failed: no route to host"}))[1:4] == [
        "UNREACHABLE  Kubernetes: Install the packages",
        "  host   w2",
        "  seen   no route to host",
    ]
    assert run.unreachable(task(), "w3", {"msg": "x"}, ignored=True) == []
    assert "2/3  1 unreachable" in finished(run)[0]


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"msg": "It broke"}, (("what", "It broke"),)),
        ({}, (("what", "It failed, and did not say why."),)),
        ({"msg": "Task failed: Module failed: x"}, (("what", "x"),)),
        (
            {
                "msg": "Task failed: Finalization of task args for 'ipu.fabric.wish' failed: Error while resolving"
                " value for 'seen': The filter plugin 'ipu.fabric.observations' failed: x"
            },
            (("what", "x"),),
        ),
        (
            {"msg": "A host must be named. Where: -e. Seen: a, b. Next: name one."},
            (("what", "A host must be named."), ("where", "-e"), ("seen", "a, b"), ("next", "name one.")),
        ),
        (
            {"msg": "The cluster is old. Seen: 1.30. Next: run it again."},
            (("what", "The cluster is old."), ("seen", "1.30"), ("next", "run it again.")),
        ),
        (
            {"msg": "non-zero return code", "rc": 2, "cmd": ["ls", "a b"], "stderr": "no\nsuch\nfile\n"},
            (("what", "non-zero return code"), ("ran", "ls 'a b'"), ("seen", "exit code 2:\nno\nsuch\nfile")),
        ),
        (
            {"msg": "m", "rc": 1, "stderr": "\n".join("abcdefg")},
            (("what", "m"), ("seen", "exit code 1:\nc\nd\ne\nf\ng")),
        ),
        ({"msg": "m", "rc": 1, "stdout": "out", "stderr": ""}, (("what", "m"), ("seen", "exit code 1, out"))),
        (
            {"msg": "Assertion failed", "assertion": "a == b", "evaluated_to": False},
            (("what", "Assertion failed"), ("seen", "a == b is not true")),
        ),
        (
            {"msg": "Task failed: Timed out after 180 second(s).", "timedout": {"frame": "", "period": 180}},
            (("what", HUNG), ("seen", "nothing within 180 s"), ("next", HUNG_STEP)),
        ),
        ({"msg": "red \x1b[31m!\x07"}, (("what", "red !"),)),
        ({"msg": "undefined\n\nThe error appears to be in 'x.yml'\n\n  ^ here"}, (("what", "undefined"),)),
        (
            {"censored": "hidden", "msg": "secret"},
            (("what", "Hidden: the task has no_log, since it handles secrets."),),
        ),
        (
            {
                "results": [
                    {"item": "a", "failed": True, "msg": "bad"},
                    {"item": "b", "failed": False, "msg": "good"},
                    {"item": {"k": "v"}, "_ansible_item_label": "c", "failed": True, "msg": "bad"},
                    {"item": "hush", "_ansible_no_log": True, "failed": True, "msg": "secret"},
                ]
            },
            (
                ("item", "a, c"),
                ("what", "bad"),
                ("item", "(hidden by no_log)"),
                ("what", "Hidden: the task has no_log, since it handles secrets."),
            ),
        ),
    ],
)
def test_what_a_failure_says(result, expected):
    assert describe(result) == expected


def test_tries_are_part_of_a_failure():
    assert "FAILED  Kubernetes: Install the packages (after 30 tries)" in text(
        begun().failed(task(), "w1", {"msg": "m", "attempts": 30})
    )


def test_what_hosts_say_alike_is_said_once():
    run = begun()
    for host in HOSTS:
        assert run.says(task(), host, ["hello"]) == []
    assert text(run.task_starts(task("next"), 1)) == ["w1, w2, w3: hello"]
    run.says(task(), "w1", ["HOST  STATE", "w1    ok"])
    run.says(task(), "w2", ["other"])
    assert text(run.task_starts(task("last"), 2)) == ["", "w1:", "  HOST  STATE", "  w1    ok", "", "w2: other"]


def test_a_table_is_printed_at_once_and_as_it_is():
    run = begun(first=task(once=True))
    table = ["HOST  STATE", "w1    ok"]
    assert text(run.says(task(once=True), "w1", table), 80) == ["", *table, ""]


def diff_rows(line, width):
    run = begun()
    run.says(task(), "w1", ["Kubernetes: Write", "+short", line], diff=True)
    return text(run.task_starts(task("next"), 1), width)[2:-1]


def test_a_long_line_of_a_diff_is_wrapped_and_each_row_has_its_mark():
    line = '-            "content": "' + "kind: Policy\\n" * 9 + "omitStages: [RequestReceived] " * 4 + '"'
    assert diff_rows(line, 0) == ["+short", line]  # a log has it as it is
    short, *found = diff_rows(line, 80)
    assert short == "+short"
    assert len(found) > 2
    assert all(cells(row) <= 80 and row.startswith("-    ") for row in found)
    assert "".join(row[1:].strip() for row in found).replace(" ", "") == line[1:].replace(" ", "")


def test_texts_in_a_diff_have_their_own_lines_and_the_colour():
    body, green, plain = '    "a": "Types: deb\\nURIs: http://mirror.site/apt\\n"', "\x1b[0;32m", "\x1b[0m"
    assert diff_rows(f"{green}{plain}{green}+{body}{plain}", 40)[1:] == [  # as Ansible colours it
        f"{green}{plain}{green}+{row}{plain}"
        for row in ('    "a": "Types: deb\\n', "    URIs: http://mirror.site/apt\\n", '    "')
    ]


def test_a_line_of_a_diff_that_takes_a_screen_is_cut_and_says_so():
    found = diff_rows("+" + "x" * 4000, 80)
    assert len(found) < 30
    assert "".join(found).count("x") == 2000
    assert found[-1] == "+    ... and 2,000 more characters, which | cat shows"


def test_a_command_can_be_copied():
    run = begun(first=task(once=True))
    command = f'  ansible-playbook {"/long" * 20}/training.yml -e \'{{"rdma_resource": ""}}\''
    assert command in text(run.says(task(once=True), "w1", ["Next:", command]), 80)


def test_the_live_line_says_what_is_waited_for():
    run = begun()
    assert run.live(0, 80) == "Kubernetes  0/3  Install the packages                                     0 s"
    run.ok(task(), "w1")
    run.ok(task(), "w3")
    assert run.live(9.6, 80) == "Kubernetes  2/3  Install the packages                                    10 s"
    assert "Install the packages, waits for w2" in run.live(12, 80)
    run.retries(3, 31)
    assert run.live(130, 80) == "Kubernetes  2/3  Install the packages (try 4 of 31), waits for w2  2 min 10 s"


@pytest.mark.parametrize("width", [80, 60, 40, 20, 200])
def test_the_live_line_fits(width):
    run = begun(first=task("Wait for all the nodes of the cluster, " * 4, step="A step with a name " * 3))
    run.ok(run.task, "w1")
    for now in (0, 30, 4000, 400_000):
        assert len(run.live(now, width)) < width
    run.retries(3, 31)
    if width >= 80:
        assert "... (try 4 of 31), waits for w2, w3" in run.live(30, width)


def test_a_task_that_runs_once_counts_one_host():
    run = begun(first=task(once=True))
    assert "  0/1  " in run.live(0, 80)
    run.ok(task(once=True), "w1")
    assert "  1/1  " in run.live(0, 80)


def test_hosts_that_failed_are_waited_for_no_more():
    run = begun()
    run.failed(task(), "w2", {"msg": "m"})
    run.task_starts(task("next"), 1)
    assert "  0/2  " in run.live(1, 80)


def test_a_log_says_once_a_minute_that_it_goes_on():
    run = begun()
    run.ok(task(), "w1")
    assert run.goes_on(59) == []
    assert text(run.goes_on(61)) == ["    Kubernetes: Install the packages, waits for w2, w3, 1/3 hosts, 61 s so far"]
    assert run.goes_on(100) == []
    assert run.goes_on(122) != []


def test_a_terminal_is_left_alone_while_ssh_may_ask():
    """It asks on the terminal whether a host's key is right."""
    run = begun(terminal=True)
    assert run.first_contact() == 3
    run.skipped(task(), "w1")
    run.ok(task(), "w2")
    assert run.first_contact() == 1
    assert text(run.goes_on(16)) == ["    Kubernetes: Install the packages, waits for w3, 2/3 hosts, 16 s so far"]
    run.ok(task(), "w3")
    assert run.first_contact() == 0
    run.task_starts(task("next"), 20)
    assert run.first_contact() == 1  # w1 was never asked
    run.task_starts(task("local", delegate="localhost"), 20)
    assert run.first_contact() == 0


def test_a_play_of_its_own_pace_is_one_step():
    run = begun(Play("Free", HOSTS, whole=True))
    run.ok(task(), "w1")
    assert run.task_starts(task("x", step="Other"), 3) == []
    run.ok(task(), "w2")
    assert finished(run)[0].startswith("Free     ")


def test_a_run_that_was_interrupted_says_where_what_was_changed_and_how_to_continue():
    run = begun()
    run.ok(task(), "w1", changed=True)
    assert text(run.interrupted(12)) == [
        "Kubernetes                            1/1  interrupted, 1 changed          12 s",
        "    changed: Install the packages",
        "",
        "Interrupted after 12 s: 1 change was made. 'Install the packages' may still be",
        "running on w2, w3. Run the same command again to continue.",
    ]


@pytest.mark.parametrize(
    ("options", "running", "said"),
    [
        (
            {"check": True},
            {},
            "Interrupted after 12 s: check mode changes nothing. Run the same command again to continue.",
        ),
        (
            {},
            {"quiet": True},
            "Interrupted after 12 s: no task reported a change. Run the same command again to continue.",
        ),
    ],
)
def test_an_interrupted_run_names_no_task_that_changes_nothing(options, running, said):
    run = begun(**options)
    run.task_starts(task("other", **running), 3)
    run.ok(task("other", **running), "w1", changed=bool(options))
    assert " ".join(text(run.interrupted(12))).endswith(said)


def test_a_run_that_ended_before_it_began_is_not_to_be_repeated():
    """As with an inventory that is no YAML: Ansible has printed its error."""
    assert text(Run(0).interrupted(1)) == ["", "Ended before the first task: the error above says why."]


def test_a_play_without_hosts():
    run = begun(Play("Reset the cluster", (), whole=False))
    assert text(run.no_hosts(1)) == []
    run = begun(Play("Reset the cluster", (), whole=False, partial=True))
    assert text(run.no_hosts(1)) == ["Reset the cluster: left out, none of its hosts is in this run."]


def test_the_end():
    run = begun(slowest=2)
    for number, step in enumerate(("Kubernetes", "Networks", "Prove", "Networks")):
        run.task_starts(task(step=step), number * 10)
        run.ok(task(step=step), "w1")
    counts = {"w10": Counts(ok=7, changed=2), "w9": Counts(ok=7)}
    assert text(run.end(counts, 41))[-5:] == [
        "hosts                                    ok    changed   unreachable     failed",
        "w9                                        7          0             0          0",
        "w10                                       7          2             0          0",
        "Slowest: Networks 21 s, Kubernetes 10 s",
        "Done in 41 s: 2 changes.",
    ]


@pytest.mark.parametrize(
    ("counts", "check", "verdict"),
    [
        (Counts(ok=1), False, "Done in 5.0 s: nothing changed."),
        (Counts(failed=1, changed=3), False, "Failed after 5.0 s: 1 host failed; 3 changes were made."),
        (Counts(failed=1, changed=1), False, "Failed after 5.0 s: 1 host failed; 1 change was made."),
        (Counts(failed=1, changed=3), True, "Failed after 5.0 s: 1 host failed; 3 changes would be made."),
        (Counts(unreachable=1), False, "Failed after 5.0 s: 1 host unreachable; no task reported a change."),
    ],
)
def test_verdicts(counts, check, verdict):
    """What was changed is counted: no message can know what came before it."""
    assert text(Run(0, check).end({"w1": counts}, 5))[-1] == verdict


def test_many_hosts_that_are_alike_share_a_row():
    counts = {f"w{number}": Counts(ok=40 + number % 3) for number in range(1, 201)}
    counts["w7"] = Counts(ok=3, failed=1)
    counts["w90"] = Counts(ok=40, changed=2)
    assert text(recap(counts)) == [
        "hosts                                    ok    changed   unreachable     failed",
        "198 hosts: w1, w2 and 196 more        40-42          0             0          0",
        "w7                                        3          0             0          1",
        "w90                                      40          2             0          0",
    ]


def test_names_of_hosts_are_cut_where_they_are_too_long():
    counts = {f"{'x' * 50}{number}": Counts() for number in range(8)}
    assert {len(row) for row in text(recap(counts))} == {79}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("one\ntwo", ["one", "two"]),
        ("", [""]),
        (["HOST  STATE", "w1    ok"], ["HOST  STATE", "w1    ok"]),
        ({"name": "text"}, ["name: text"]),
        ({"name": {"a": [1, 2]}}, ["name:", "  a:", "  - 1", "  - 2"]),
        ([1, {"a": None}], ["- 1", "- a: null"]),
        (5, ["5"]),
    ],
)
def test_messages(value, expected):
    assert shown(value) == expected


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.04, "0.0 s"),
        (9.9, "9.9 s"),
        (10.2, "10 s"),
        (119.4, "119 s"),
        (120, "2 min 00 s"),
        (3661, "1 h 01 min"),
    ],
)
def test_durations(seconds, said):
    assert duration(seconds) == said


@pytest.mark.parametrize("width", [20, 40, 79])
@pytest.mark.parametrize(
    "line",
    [
        "",
        "short",
        "word " * 40,
        "    indented " + "word " * 40,
        "x" * 300,
        "a  " + "x" * 90,
        "日本語の名前 " * 20,
        "  a   b   c",
    ],
)
def test_rows_fit_and_lose_nothing(line, width):
    found = wrap(line, width, 4)
    assert all(cells(row) <= width for row in found)
    assert "".join("".join(found).split()) == "".join(line.split())
    if cells(line) <= width:
        assert found == [line.rstrip()]


@pytest.mark.parametrize("whole", [True, False])
def test_a_command_stays_whole(whole):
    command = "`kubectl label namespace jobs pod-security.kubernetes.io/enforce=privileged --overwrite`."
    assert wrap(f"  next  Run {command} Then run it again.", 30, 2, whole)[1:2] == [f"    {command}"]


LONG = "Check which cluster the kubeconfig of this controller leads to, and whose it is"


def long_run():
    """Whatever the callback says of a run, with names and texts that are too long."""
    play = Play(f"A play with a name: {LONG}", HOSTS, whole=False)
    run = begun(play, first=task(LONG, LONG), slowest=9)
    lines = run.start() + run.goes_on(61)
    for number in range(4):
        now = task(f"{LONG} {number}", f"{number} {LONG}")
        lines += run.task_starts(now, number * 1000)
        for host in HOSTS:
            run.ok(now, host, changed=host != HOSTS[number % 3])
    lines += run.goes_on(9000)
    stop = task(LONG, LONG, once=True, stops=True)
    run.task_starts(stop, 9000)
    message = " ".join([f"{LONG}."] * 3) + f" Where: {'a/b, ' * 40}. Seen: {LONG}. Next: {'do this, ' * 40}"
    for how in (stop, now):
        lines += run.failed(how, "w1", {"msg": message})
    lines += run.unreachable(now, "w2", {"msg": message})
    run.digest = {host: {f"{LONG} {host}": number for number in range(3)} for host in HOSTS}
    lines += run.end(dict.fromkeys(HOSTS, Counts(ok=1000, changed=100, failed=1)), 90000)
    return lines + begun(play, first=task(LONG)).interrupted(70) + begun(play).no_hosts(3)


@pytest.mark.parametrize("width", [80, 0])
def test_every_line_fits_80_columns_on_a_terminal_and_in_a_log(width):
    found = text(long_run(), width)
    assert max(map(cells, found)) <= 79
    said = " ".join(" ".join(found).split())
    for word in ("Slowest:", "changed:", "FAILED", "STOPPED", "UNREACHABLE", "what", "next", "Would change, by step:"):
        assert word in said
    assert f", 3 {LONG} 1 h 40 min, " in said  # nothing of a list is lost


def test_what_a_log_has_as_it_is():
    path = "/" + "folder/" * 20
    assert rows(Line(f"Files in {path}"), 0) == ["Files in", path]
    assert rows(Line("word " * 40, message=True), 0) == ["word " * 40]
    run = begun(first=task(once=True))
    assert text(run.says(task(once=True), "w1", ["word " * 40])) == ["word " * 40]


def test_a_playbook_that_stops_has_not_failed():
    """A listing that asks for -e fabric_reset=fabric ended as 1 host failed."""
    stop = task("Stop unless it was asked for", "Reset", once=True, stops=True, quiet=True)
    run = begun(first=stop)
    assert text(run.failed(stop, "w1", {"msg": "Not confirmed. Seen: nothing. Next: confirm it."})) == [
        "",
        "STOPPED  Reset",
        "  what   Not confirmed.",
        "  seen   nothing",
        "  next   confirm it.",
        "",
    ]
    assert text(run.end({"w1": Counts(ok=3, failed=1), "w2": Counts(ok=2)}, 12)) == [
        "Reset                                 1/1  stopped                         12 s",
        "",
        "hosts                                    ok    changed   unreachable     failed",
        "w1                                        3          0             0          0",
        "w2                                        2          0             0          0",
        "Stopped after 12 s for the reason above: no task reported a change.",
    ]


def test_a_run_that_stops_after_a_failure_has_failed():
    run = begun()
    run.failed(task(), "w2", FABRIC_ERROR)
    run.failed(task("Stop", once=True, stops=True), "w1", {"msg": "See above."})
    counts = {"w1": Counts(failed=1), "w2": Counts(failed=1)}
    assert text(run.end(counts, 12))[-1] == "Failed after 12 s: 1 host failed; no task reported a change."


def test_cut():
    assert (cut("abcdef", 6), cut("abcdefg", 6), cut("日本語", 5), cut("abc", 0)) == ("abcdef", "abc...", "日...", "")


def test_columns_never_exceed_their_width():
    assert len(columns("x" * 99, "1000/1000", "10 failed, 100 unreachable, 2 changed", "59 min 59 s")) == 79


def test_a_long_name_of_a_step_is_shown_where_there_is_room():
    name = "Check which cluster the kubeconfig leads to"
    assert columns(name, "3/3", "ok", "1.3 s") == (
        "Check which cluster the kubeconfig leads to       3/3  ok                 1.3 s"
    )
    assert columns(name, "3/3", "2 failed, 14 unreachable", "1.3 s").startswith("Check which cluster the kubec...")


def test_a_narrow_terminal_has_no_columns():
    run = begun()
    run.ok(task(), "w1")
    assert text(run.end({"w1": Counts(ok=1)}, 12), 40) == [
        "Kubernetes  1/1  ok  12 s",
        "",
        "hosts  ok  changed  unreachable  failed",
        "w1  1  0  0  0",
        "Done in 12 s: nothing changed.",
    ]

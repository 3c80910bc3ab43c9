"""The callback under ansible-playbook: on a terminal, in a log, and where it leaves the output to Ansible's own."""

import re

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures import site
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play
from ansible_collections.ipu.fabric.tests.unit.fixtures.terminal import seen

HOSTS = {"machines": ["w1", "w2", "w3"]}
CALLBACK = {"ANSIBLE_STDOUT_CALLBACK": "ipu.fabric.steps", "ANSIBLE_DEPRECATION_WARNINGS": "false"}
TIME = re.compile(r" +\d+(?:\.\d)? s\b")
RECAP = "hosts                                    ok    changed   unreachable     failed"


def run(folder, tasks, *arguments, columns=0, environment=(), handlers=(), **keywords):
    """A play with these tasks, and what it printed without times and without the spaces before them."""
    plays = [
        {
            "name": "A play",
            "hosts": "all",
            "gather_facts": False,
            "tasks": tasks,
            "handlers": list(handlers),
            **keywords,
        }
    ]
    environment = {**CALLBACK, **dict(environment)}
    done = play(folder, plays, HOSTS, {}, *arguments, environment=environment, columns=columns)
    return done, [TIME.sub(" TIME", row) for row in (seen(done.text, columns) if columns else done.text.splitlines())]


def command(words, name="Run it", **more):
    """Without a Python of its own, but for asynchronous ones."""
    module = "command" if "async" in more else "raw"
    return {"name": name, f"ansible.builtin.{module}": words, "changed_when": False, **more}


def fails(name="Fail", **more):
    return {"name": name, "ansible.builtin.fail": {"msg": "It broke. Seen: x. Next: fix it."}, **more}


FAILURE = ["  what   It broke.", "  seen   x", "  next   fix it."]


def test_a_play_in_check_mode_changes_nothing(tmp_path):
    """As the play of `drift` does, whose check mode depends on a variable."""
    work = [{"name": "Write", "ansible.builtin.copy": {"content": "a", "dest": f"{tmp_path}/made"}, "run_once": True}]
    words = "{{ tried | default(ansible_check_mode) }}"
    done, rows = run(tmp_path, work, check_mode=words, vars={"tried": True}, connection="local")
    assert not (tmp_path / "made").exists()
    assert rows[:2] == ["A play                                1/1  would change 1 TIME", "    would change: Write"]
    assert "w1                                        1          0             0          0" in rows
    assert re.fullmatch(r"Done in TIME: nothing changed; 1 change would be made\.", rows[-1]), done.text
    done, rows = run(tmp_path, work, check_mode=words, connection="local")
    assert rows[0] == "A play                                1/1  1 changed TIME", done.text


def test_a_log_has_plain_lines(tmp_path):
    done, rows = run(tmp_path, [command("true"), command("true", "Again", changed_when="inventory_hostname == 'w2'")])
    assert done.code == 0
    assert "\r" not in done.text
    assert "\x1b" not in done.text
    assert rows == [
        "A play                                3/3  1 changed TIME",
        "    changed: Again (w2)",
        "",
        RECAP,
        "w1                                        2          0             0          0",
        "w2                                        2          1             0          0",
        "w3                                        2          0             0          0",
        *[row for row in rows if row.startswith("Slowest")],
        "Done in TIME: 1 change.",
    ]


def test_a_terminal_is_left_with_whole_lines(tmp_path):
    tasks = [
        command("true"),
        command("sh -c 'echo hello; echo warned >&2; sleep 2'", "A name that is far too long for the line " * 3),
        {"name": "Say", "ansible.builtin.debug": {"msg": "a long message " * 12}, "run_once": True},
    ]
    done, rows = run(tmp_path, tasks, columns=80)
    assert done.code == 0
    assert done.text.count("\r\x1b[K") > 3
    assert rows[0] == "Asking 3 hosts for the first time ..."
    message = next(at for at, row in enumerate(rows) if row.startswith("a long message"))
    assert " ".join(" ".join(rows[message : message + 3]).split()) == ("a long message " * 12).strip()
    assert rows[message + 3] == "A play                                3/3  ok TIME"
    assert rows[-2].startswith("Done in TIME")


def test_failures(tmp_path):
    tasks = [
        {"name": "Try", "block": [fails("Rescued")], "rescue": [command("true", "Heal")]},
        fails("Ignored", ignore_errors=True),
        command("sh -c 'echo one >&2; exit 3'", "Loop", loop=["a", "b"], when="inventory_hostname == 'w1'"),
        command("sh -c 'echo sesame; exit 1'", "Secret", no_log=True, when="inventory_hostname == 'w2'"),
        {"name": "Late", "block": [command("true")], "rescue": [command("true")], "always": [fails("In always")]},
    ]
    done, rows = run(tmp_path, tasks)
    assert done.code == 2
    assert "Rescued" not in done.text
    assert "Ignored" not in done.text
    assert "sesame" not in done.text
    assert "Traceback" not in done.text
    at = rows.index("FAILED  A play: Loop")
    assert rows[at + 1 : at + 3] == ["  host   w1", "  item   a, b"]
    assert "non-zero return code" in rows[at + 3]
    assert "  seen   exit code 3, one" in rows
    at = rows.index("FAILED  A play: Secret")
    assert rows[at + 1 : at + 3] == ["  host   w2", "  what   Hidden: the task has no_log, since it handles secrets."]
    at = rows.index("FAILED  A play: In always")
    assert rows[at + 1 : at + 5] == ["  host   w3", *FAILURE]
    assert rows[-1] == "Failed after TIME: 3 hosts failed; no task reported a change."


def test_a_playbook_that_stops_itself(tmp_path):
    """Not within a rescue: there something has failed."""
    done, rows = run(tmp_path, [command("true"), fails("Stop", run_once=True)])
    assert done.code == 2
    assert [row for row in rows if row.startswith("STOPPED")] == ["STOPPED  A play"]
    assert rows[-1] == "Stopped after TIME for the reason above: no task reported a change."
    rescued = {"block": [command("false")], "rescue": [fails("Say why", run_once=True)]}
    _done, rows = run(tmp_path, [rescued])
    assert [row for row in rows if row.startswith("FAILED")] == ["FAILED  A play: Say why"]


def test_a_rescue_around_an_include(tmp_path):
    (tmp_path / "included.yml").write_text("- ansible.builtin.fail: {msg: of the include}\n")
    include = {"name": "Deep", "ansible.builtin.include_tasks": str(tmp_path / "included.yml")}
    static = {"name": "Static", "ansible.builtin.import_tasks": str(tmp_path / "included.yml")}
    tasks = [{"block": [one], "rescue": [command("true", "Heal")]} for one in (include, static)]
    tasks.append({"block": [fails("First")], "rescue": [include]})
    done, rows = run(tmp_path, tasks)
    assert done.code == 2
    assert [row for row in rows if row.startswith("FAILED")] == ["FAILED  Deep: fail"]
    assert [row for row in rows if re.fullmatch(r"  The same on w\d, w\d\.", row)]


def test_parts_that_one_include_loops_over_are_steps(tmp_path):
    (tmp_path / "included.yml").write_text("- ansible.builtin.command: 'true'\n")
    parts = [{"title": "Clocks"}, {"title": "Kubernetes"}]
    loop = {"loop": parts, "loop_control": {"loop_var": "part", "label": "{{ part.title }}"}}
    include = {"name": "Before all", "ansible.builtin.include_tasks": str(tmp_path / "included.yml"), **loop}
    done, rows = run(tmp_path, [include])
    assert done.code == 0
    assert [row.split("  ")[0] for row in rows if "3/3" in row] == ["Clocks", "Kubernetes"]


def test_an_unreachable_host(tmp_path):
    nowhere = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 9}
    tasks = [command("true", vars=nowhere, when="inventory_hostname == 'w1'"), command("true")]
    _done, rows = run(tmp_path, tasks)
    assert rows[:2] == ["UNREACHABLE  A play: Run it", "  host   w1"]
    assert "Connection refused" in rows[2] + rows[3]
    assert rows[-1] == "Failed after TIME: 1 host unreachable; no task reported a change."


def test_handlers_async_tasks_tries_and_once(tmp_path):
    tasks = [
        command("true", changed_when=True, notify="Handle", run_once=True),
        command("sleep 1", "Async", run_once=True, **{"async": 30, "poll": 1}),
        command("true", "Try", register="tried", until="tried.attempts > 1", retries=3, delay=0),
        command("true", "Elsewhere", delegate_to="localhost"),
        {"name": "Flush", "ansible.builtin.meta": "flush_handlers"},
        {"name": "Say", "ansible.builtin.debug": {"msg": "{{ inventory_hostname[:1] }}"}},
        {"name": "End", "ansible.builtin.meta": "end_play"},
    ]
    handle = command("true", "Handle", changed_when=True)
    done, rows = run(tmp_path, tasks, handlers=[handle])
    assert done.code == 0
    assert rows[:3] == [
        "w1, w2, w3: w",
        "A play                                3/3  2 changed TIME",
        "    changed: Run it (w1), Handle (w1)",
    ]


@pytest.mark.parametrize("strategy", ["free", "host_pinned"])
def test_hosts_at_their_own_pace(tmp_path, strategy):
    _done, rows = run(tmp_path, [command("true"), command("true", "Again")], strategy=strategy)
    assert rows[0] == "A play                                3/3  ok TIME"


def test_batches_are_named(tmp_path):
    _done, rows = run(tmp_path, [command("true")], serial=2)
    assert [row for row in rows if row.startswith("A play")] == [
        "A play (w1, w2)                       2/2  ok TIME",
        "A play (w3)                           1/1  ok TIME",
    ]


def test_limit(tmp_path):
    _done, rows = run(tmp_path, [command("true")], "--limit", "w2")
    assert rows[0] == "A play                                1/1  ok TIME"


def test_check_and_diff(tmp_path):
    write = {
        "name": "Write",
        "ansible.builtin.copy": {"content": "new\n", "dest": str(tmp_path / "{{ inventory_hostname }}")},
    }
    _done, rows = run(tmp_path, [write], "--check", "--diff", "--limit", "w1")
    assert rows[0] == "Check mode: nothing is changed."
    assert rows[2] == "A play: Write, on w1"
    assert "+new" in rows
    assert "    would change: Write" in rows
    assert rows[-1] == "Checked in TIME: 1 change would be made."
    assert not (tmp_path / "w1").exists()


def test_warnings_are_shown_and_leave_no_trace_of_the_line(tmp_path):
    warn = {"name": "Warn", "ansible.builtin.group_by": {"key": "a-b"}}
    _done, rows = run(tmp_path, [command("true"), warn, command("sleep 1")], columns=80)
    at = next(at for at, row in enumerate(rows) if row.startswith("[WARNING]"))
    assert "[WARNING]: Invalid characters were found in group names" in " ".join(rows[at : at + 2])
    assert rows[0] == "Asking 3 hosts for the first time ..."


@pytest.mark.parametrize("how", [(("-v",), {}), ((), {"ANSIBLE_VERBOSITY": "1"})])
def test_more_words_are_those_of_ansible(tmp_path, how):
    arguments, environment = how
    done, _rows = run(tmp_path, [command("true"), fails()], *arguments, environment=environment)
    for words in (
        "PLAY [A play] ***",
        "TASK [Run it] ***",
        "ok: [w1] => ",
        "fatal: [w1]: FAILED! => ",
        "PLAY RECAP ***",
    ):
        assert words in done.text
    assert "FAILED  A play" not in done.text


def test_colours_only_where_they_are_wanted(tmp_path):
    plain, _rows = run(tmp_path, [command("true")], columns=80, environment={"ANSIBLE_NOCOLOR": "", "NO_COLOR": "1"})
    assert set(re.findall(r"\x1b\[[^A-Za-z]*[A-Za-z]", plain.text)) == {"\x1b[K"}
    coloured, _rows = run(tmp_path, [command("true")], columns=80, environment={"ANSIBLE_NOCOLOR": "false"})
    assert "\x1b[0;32m" in coloured.text


def test_a_terminal_that_cannot_rewrite_gets_plain_lines(tmp_path):
    done, _rows = run(tmp_path, [command("true")], columns=80, environment={"TERM": "dumb"})
    assert "\x1b[K" not in done.text


def test_an_interrupted_run_says_where_it_was(tmp_path):
    plays = [
        {
            "name": "A play",
            "hosts": "w1",
            "gather_facts": False,
            "tasks": [command("true"), command("sleep 600", "Wait")],
        }
    ]
    done = play(tmp_path, plays, HOSTS, {}, environment=CALLBACK, columns=80, interrupt_at="1  Wait ")
    rows = [TIME.sub(" TIME", row) for row in seen(done.text, 80)]
    assert done.code == 99, f"the run wrote:\n{done.text}"
    assert "User interrupted execution" in done.text
    at = rows.index("A play                                1/1  interrupted TIME")
    assert " ".join(rows[at + 1 :]).strip() == (
        "Interrupted after TIME: no task reported a change. 'Wait' may still be running on w1."
        " Run the same command again to continue."
    )


@pytest.mark.parametrize("columns", [80, 0])
def test_the_plan_of_three_hosts(tmp_path, columns):
    """The real playbook, on hosts whose modules answer from a table."""
    hosts = site.site()
    answers = {
        "host_info": site.observed(hosts),
    }
    groups = {"kube_control_plane": ["cp1"], "kube_node": ["w1", "w2"]}
    done = play(
        tmp_path,
        "ipu.fabric.plan",
        groups,
        answers,
        environment=CALLBACK,
        columns=columns,
        fabric_probe_ports=False,
        fabric_cni="none",
    )
    assert done.code == 0, done.text
    rows = seen(done.text, 80) if columns else done.text.splitlines()
    assert max(len(row) for row in rows if str(tmp_path) not in row) <= 80  # a path is as long as it is
    steps = [TIME.sub(" TIME", row) for row in rows if re.search(r" \d/\d  ", row)]
    assert steps == [
        "Observe the hosts                     3/3  ok TIME",
        "Plan                                  1/1  ok TIME",
    ]
    table = done.read("artifacts/plan.json")
    assert {name for name in table["hosts"] if any(row.startswith(f"{name} ") for row in rows)} == {"cp1", "w1", "w2"}
    assert [row.split()[:2] for row in rows if row.startswith("  HOST")] == [["HOST", "ADDRESS"]]
    assert any(row.startswith("Done in ") for row in rows)

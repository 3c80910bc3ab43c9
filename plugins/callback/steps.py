# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress that a person can read."""

from __future__ import annotations

DOCUMENTATION = r"""
name: steps
type: stdout
short_description: Show one line for each step instead of one for each task
version_added: 0.1.0
author: ipu.fabric contributors (@ipu-fabric)
description:
  - Shows a run as one line for each step, with hosts, changes and time, instead of a header for each task.
  - A step is what a table of contents would list, a task that calls a role or includes tasks. For a role that a play
    lists under C(roles), it is such a task in that role's C(tasks/main.yml), or else the role itself. If the task is a
    loop whose items have a C(title), each of them is a step. The other tasks of a play form one step with the name of
    the play. Role names would hide why a role is called, and whole plays are too long.
  - With the strategies C(free) and C(host_pinned), a play is one step, since its hosts run different tasks at a time.
  - Steps that only print, compare or keep facts have no line. Steps that changed something have a second line with the
    names of the tasks that did.
  - On a terminal, the line of the running step is updated in place. It shows which task runs, on how many hosts it has
    ended, the number of the try, and after a while which hosts it waits for. A log or a pipe gets plain lines, and one
    a minute during a long task. What tasks print, and long words such as paths, are not wrapped there.
  - What P(ansible.builtin.debug#module) prints, diffs, warnings and deprecations are shown in full. A failure shows the
    host, what failed, what was seen and what to do next. Rescued and ignored failures are only counted.
  - A playbook stops for a reason of its own, such as an open question, with a task P(ansible.builtin.fail#module) that
    has C(run_once). This is shown as STOPPED, without a host, and no host counts as failed.
  - With C(-v) and more, and in C(ansible) and C(ansible-console), the output is that of
    P(ansible.builtin.default#callback). AWX and C(ansible-runner) set their own callback, so nothing changes there.
requirements:
  - Set it as C(stdout_callback) in the configuration.
extends_documentation_fragment:
  - default_callback
  - result_format_callback
options:
  show_slowest:
    description: How many of the slowest steps to list at the end. V(0) lists none.
    type: int
    default: 5
    env:
      - name: IPU_FABRIC_SHOW_SLOWEST
    ini:
      - section: callback_steps
        key: show_slowest
"""

EXAMPLES = r"""
ansible.cfg: |
  [defaults]
  stdout_callback = ipu.fabric.steps

  [callback_steps]
  show_slowest = 3
"""

import atexit
import os
import sys
import threading
import time
import typing as t

from ansible import constants, context
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.callback.default import CallbackModule as Default
from ansible.template import Templar

from ..module_utils._common.text import shorten_list
from ..plugin_utils import _steps

TICK = 1  # seconds
ERASE = "\r\x1b[K"
QUIET = {
    *(
        "add_host",
        "assert",
        "debug",
        "fail",
        "group_by",
        "import_role",
        "import_tasks",
        "include_role",
        "include_tasks",
    ),
    *("include_vars", "meta", "set_fact", "set_stats", "validate_argument_spec", "ipu.fabric.wish"),
}
COLORS = {
    "ok": constants.COLOR_OK,
    "changed": constants.COLOR_CHANGED,
    "failed": constants.COLOR_ERROR,
    "unreachable": constants.COLOR_UNREACHABLE,
    "skipped": constants.COLOR_SKIP,
}


def _runs_in_check_mode(play: t.Any) -> bool:
    """Whether the play itself sets check mode. Ansible does not template that setting before a task runs."""
    variables = {**play.vars, "ansible_check_mode": bool(context.CLIARGS.get("check"))}
    return boolean(Templar(play.get_loader(), variables=variables).template(play.check_mode), strict=False)


def _short(action: str) -> str:
    """The name of a module, without the prefix if it is one of Ansible's own."""
    for prefix in ("ansible.builtin.", "ansible.legacy."):
        if action.startswith(prefix):
            return action[len(prefix) :]
    return action


def _ancestors(task: t.Any) -> t.List[t.Any]:
    """The task, and the blocks and includes that it is in, up to the play."""
    found = []
    while task is not None:
        found.append(task)
        task = getattr(task, "_parent", None)
    return found


def include_name(node: t.Any) -> str:
    """The name of an include: the title of the part that its loop is at, or its own without what is templated."""
    variables = getattr(node, "vars", None) or {}
    part = variables.get(str(variables.get("ansible_loop_var")))
    if isinstance(part, dict) and "title" in part:
        return str(part["title"])
    return str(node.name or "").partition("{{")[0].strip(" :,-")  # only the task itself is templated


def step_of(task: t.Any, play: str) -> str:
    """The name of the step that a task belongs to: see the documentation."""
    for node in reversed(_ancestors(task)):
        if _short(getattr(node, "action", None) or "") in (
            "include_role",
            "import_role",
            "include_tasks",
            "import_tasks",
        ):
            name = include_name(node)
            if name:
                return name
    role = getattr(task, "_role", None)
    return str(role.get_name()).rpartition(".")[2] if role else play


def is_rescued(task: t.Any) -> bool:
    """Whether a block around the task has a rescue, and the task is neither in that nor in its `always`."""
    below: t.Set[str] = set()
    for node in _ancestors(task):
        ends = [*(getattr(node, "rescue", None) or []), *(getattr(node, "always", None) or [])]
        if getattr(node, "rescue", None) and not below & {one._uuid for one in ends}:
            return True
        below.add(node._uuid)
    return False


def is_rescue(task: t.Any) -> bool:
    """Whether the task is in a rescue: something has failed before it."""
    below: t.Set[str] = set()
    for node in _ancestors(task):
        if below & {one._uuid for one in getattr(node, "rescue", None) or []}:
            return True
        below.add(node._uuid)
    return False


class _Parts(t.NamedTuple):
    host: str
    task: t.Any
    result: t.Dict[str, t.Any]


def _parts(result: t.Any) -> _Parts:
    """Read a task's result by the attribute names of ansible-core 2.19 and later, or by those of 2.18."""
    if hasattr(result, "task"):
        return _Parts(result.host.get_name(), result.task, result.result)
    return _Parts(result._host.get_name(), result._task, result._result)


class CallbackModule(Default):
    """See the documentation above."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "ipu.fabric.steps"

    def __init__(self) -> None:
        super().__init__()
        self._run: t.Optional[_steps.Run] = None  # None: the default callback writes the output
        self._steps_play = _steps.NO_PLAY
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._terminal = False
        self._line = ""  # what the terminal's last row shows
        self._aside = 0  # how many others are writing or asking
        self._greeted = False
        self._failed_items: t.Dict[t.Tuple[str, str], t.List[t.Dict[str, t.Any]]] = {}  # by host and task
        self._blank = True  # whether the last line written was blank
        self._plain_display = self._display.display

    # Writing

    def _start(self) -> None:
        self._terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        check, slowest = bool(context.CLIARGS.get("check")), self.get_option("show_slowest")
        self._run = _steps.Run(time.monotonic(), check, slowest, self._terminal)
        if self._terminal:
            # Warnings and questions go to the same terminal: the live line makes way for them.
            for name in ("display", "prompt_until", "do_var_prompt"):
                setattr(self._display, name, self._make_way(getattr(self._display, name)))
        atexit.register(self._stop)
        threading.Thread(target=self._watch, daemon=True).start()

    def _make_way(self, method: t.Callable[..., t.Any]) -> t.Callable[..., t.Any]:
        def call(*args: t.Any, **options: t.Any) -> t.Any:
            if os.getpid() != self._process:  # a worker sends its output to this process
                return method(*args, **options)
            with self._lock:
                self._aside += 1
                self._show("")
            try:
                return method(*args, **options)
            finally:
                with self._lock:
                    self._aside -= 1
                    self._draw()

        return call

    def _watch(self) -> None:
        """Update the time while nothing happens. Ansible may fork meanwhile, so this must not import anything."""
        while self._run is not None:
            time.sleep(TICK)
            with self._lock:
                if self._run is None:
                    return
                if not self._terminal or self._run.first_contact():
                    self._write(self._run.goes_on(time.monotonic()))
                self._draw()

    def _width(self) -> int:
        try:
            return os.get_terminal_size(sys.stdout.fileno()).columns or 80
        except (OSError, ValueError):
            return 80

    def _show(self, line: str) -> None:
        if line != self._line and self._process == os.getpid():
            data = (ERASE if self._line else "") + line
            self._line = line
            os.write(sys.stdout.fileno(), data.encode(sys.stdout.encoding or "utf-8", "replace"))

    def _draw(self) -> None:
        if not self._terminal or self._run is None or self._aside:
            return
        new = self._run.first_contact()
        if new and not self._greeted:
            self._greeted = True
            self._write([_steps.Line(f"Asking {_steps.count(new, 'host')} for the first time ...")])
        self._show("" if new else self._run.live(time.monotonic(), self._width()))

    def _write(self, lines: t.Sequence[_steps.Line]) -> None:
        with self._lock:
            if lines:
                self._show("")
                width = self._width() if self._terminal else 0
                for line in lines:
                    if self._blank and not line.text:
                        continue
                    self._blank = not line.text
                    bad = line.tone in ("failed", "unreachable") and self.get_option("display_failed_stderr")
                    for row in _steps.rows(line, width):
                        self._plain_display(row, color=COLORS.get(line.tone) if row else None, stderr=bad)
                sys.stdout.flush()
                self._draw()

    def _stop(self) -> None:
        """At exit, say that the run was interrupted, unless it ended with a summary."""
        if os.getpid() != self._process:
            return
        with self._lock:
            run, self._run = self._run, None
            if run is not None:
                self._show("")
                for line in run.interrupted(time.monotonic()):
                    for row in _steps.rows(line, self._width() if self._terminal else 0):
                        self._plain_display(row, color=COLORS.get(line.tone))
                sys.stdout.flush()

    def _task(self, task: t.Any) -> _steps.Task:
        action = _short(task.action)
        quiet = action in QUIET
        delegate = str(task.delegate_to or "")  # in a loop it may differ from item to item: then it is a template here
        name, once = str(task.name or action).strip(), bool(task.run_once)
        stops = once and action == "fail" and not is_rescue(task)
        return _steps.Task(task._uuid, step_of(task, self._steps_play.name), name, once, quiet, stops, delegate)

    # Events of the run

    def v2_playbook_on_start(self, playbook: t.Any) -> None:
        if self._display.verbosity > 0:
            super().v2_playbook_on_start(playbook)
            return
        self._start()
        if self._run:
            self._write(self._run.start())

    def v2_playbook_on_play_start(self, play: t.Any) -> None:
        if self._run is None:
            super().v2_playbook_on_play_start(play)
            return
        self._play = play  # the default's methods read it
        hosts = play.get_variable_manager()._inventory.get_hosts
        batch, everyone = [one.get_name() for one in hosts(play.hosts)], hosts(play.hosts, ignore_restrictions=True)
        name = play.get_name().strip()
        partial = len(batch) < len(everyone)
        if partial and batch:
            name += f" ({shorten_list(batch, _steps.NAMED)})"
        whole = _short(play.strategy) in ("free", "host_pinned")
        self._steps_play = _steps.Play(name, tuple(batch), whole, partial, _runs_in_check_mode(play))
        if _short(play.strategy) == "debug":
            self._terminal = False  # its prompt would be overwritten
        with self._lock:
            self._write(self._run.play_starts(self._steps_play, time.monotonic()))

    def v2_playbook_on_task_start(self, task: t.Any, is_conditional: bool) -> None:
        if self._run is None:
            super().v2_playbook_on_task_start(task, is_conditional)
        else:
            self._begin(task)

    def v2_playbook_on_handler_task_start(self, task: t.Any) -> None:
        if self._run is None:
            super().v2_playbook_on_handler_task_start(task)
        else:
            self._begin(task)

    def _begin(self, task: t.Any) -> None:
        with self._lock:
            if self._run:
                self._write(self._run.task_starts(self._task(task), time.monotonic()))
                self._draw()

    def v2_playbook_on_no_hosts_matched(self) -> None:
        if self._run is None:
            super().v2_playbook_on_no_hosts_matched()
        else:
            self._write(self._run.no_hosts(time.monotonic()))

    def v2_playbook_on_no_hosts_remaining(self) -> None:
        if self._run is None:
            super().v2_playbook_on_no_hosts_remaining()

    def v2_playbook_on_include(self, included_file: t.Any) -> None:
        if self._run is None:
            super().v2_playbook_on_include(included_file)

    def v2_playbook_on_stats(self, stats: t.Any) -> None:
        if self._run is None:
            super().v2_playbook_on_stats(stats)
            return
        counts = {}
        for host in stats.processed:
            found = stats.summarize(host)
            counts[host] = _steps.Counts(
                *(found[name] for name in ("ok", "changed", "unreachable", "failures", "rescued", "ignored"))
            )
        with self._lock:
            run, self._run = self._run, None
            lines = run.end(counts, time.monotonic())
            if stats.custom and self.get_option("show_custom_stats"):
                lines[-1:-1] = [
                    _steps.Line(f"{key}: {self._dump_results(value)}") for key, value in stats.custom.items()
                ]
            self._write(lines)

    # Events of a task on a host

    def v2_runner_on_ok(self, result: t.Any) -> None:
        if self._run is None:
            super().v2_runner_on_ok(result)
            return
        host, task, found = _parts(result)
        self._handle_warnings(found)
        with self._lock:
            self._run.ok(self._task(task), host, bool(found.get("changed")))
            if "results" not in found or not task.loop:
                self._say(host, task, found)
            self._draw()

    def v2_runner_item_on_ok(self, result: t.Any) -> None:
        if self._run is None:
            super().v2_runner_item_on_ok(result)
            return
        host, task, found = _parts(result)
        self._handle_warnings(found)
        self._say(host, task, found, f"{self._get_item_label(found)}:")

    def _say(self, host: str, task: t.Any, found: t.Dict[str, t.Any], *before: str) -> None:
        """What a debug task prints: its message, or a variable by its name."""
        if _short(task.action) != "debug" or self._run is None:
            return
        if "censored" in found or found.get("_ansible_no_log"):
            return
        self._clean_results(found, task.action)
        lines = [*before]
        for key, value in found.items():
            if not key.startswith(("_", "ansible_loop")) and key not in ("item", "changed", "attempts"):
                lines += _steps.shown(value if key == "msg" else {key: value})
        self._write(self._run.says(self._task(task), host, lines))

    def v2_runner_on_skipped(self, result: t.Any) -> None:
        if self._run is None:
            super().v2_runner_on_skipped(result)
            return
        host, task, found = _parts(result)
        self._handle_warnings(found)
        with self._lock:
            self._run.skipped(self._task(task), host)
            self._draw()

    def v2_runner_item_on_skipped(self, result: t.Any) -> None:
        if self._run is None:
            super().v2_runner_item_on_skipped(result)
        else:
            self._handle_warnings(_parts(result).result)

    def v2_runner_on_failed(self, result: t.Any, ignore_errors: bool = False) -> None:
        if self._run is None:
            super().v2_runner_on_failed(result, ignore_errors)
            return
        host, task, found = _parts(result)
        self._handle_warnings(found)
        items = self._failed_items.pop((host, task._uuid), [])
        if items:  # from ansible-core 2.21 on, the result itself lacks them
            found["results"] = items
        self._write(self._run.failed(self._task(task), host, found, is_rescued(task), ignore_errors))

    def v2_runner_item_on_failed(self, result: t.Any) -> None:
        if self._run is None:
            super().v2_runner_item_on_failed(result)
        else:
            host, task, found = _parts(result)
            self._handle_warnings(found)
            self._failed_items.setdefault((host, task._uuid), []).append({**found, "failed": True})

    def v2_runner_on_unreachable(self, result: t.Any) -> None:
        if self._run is None:
            super().v2_runner_on_unreachable(result)
            return
        host, task, found = _parts(result)
        self._handle_warnings(found)
        self._write(self._run.unreachable(self._task(task), host, found, bool(task.ignore_unreachable)))

    def v2_runner_retry(self, result: t.Any) -> None:
        if self._run is None:
            super().v2_runner_retry(result)
            return
        found = _parts(result).result
        with self._lock:
            self._run.retries(found["attempts"], found["retries"])
            self._draw()

    def v2_runner_on_start(self, host: t.Any, task: t.Any) -> None:
        if self._run is None:
            super().v2_runner_on_start(host, task)

    def v2_runner_on_async_poll(self, result: t.Any) -> None:
        if self._run is None:
            super().v2_runner_on_async_poll(result)

    def v2_runner_on_async_ok(self, result: t.Any) -> None:
        if self._run is None:
            super().v2_runner_on_async_ok(result)

    def v2_runner_on_async_failed(self, result: t.Any) -> None:
        if self._run is None:
            super().v2_runner_on_async_failed(result)

    def v2_on_file_diff(self, result: t.Any) -> None:
        if self._run is None:
            super().v2_on_file_diff(result)
            return
        host, task, found = _parts(result)
        results = found["results"] if task.loop and "results" in found else [found]
        for one in results:
            if one.get("changed") and one.get("diff"):
                self._diff(host, task, self._get_diff(one["diff"]))

    def _diff(self, host: str, task: t.Any, text: str) -> None:
        if text and self._run:
            known = self._task(task)
            self._write(self._run.says(known, host, [f"{known.step}: {known.name}", *text.splitlines()], diff=True))

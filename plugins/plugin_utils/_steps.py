# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run of playbooks, in one line per step. Events go in, lines come out: nothing here writes, or reads a clock."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import typing as t
import unicodedata

import yaml

from ..module_utils._common.text import HUNG, HUNG_STEP, natural, printable, shorten_list
from ._messages import message_of, text_of

Result = t.Mapping[str, object]
Rows = t.Tuple[t.Tuple[str, str], ...]  # of a failure: what, seen, next, each with its text

WIDTH = 79  # of a step's line: the last column is left free, since some terminals wrap there
NUMBERS = 47  # columns right of a step's name
ECHO = 3  # columns right of the live line, for the ^C that a terminal shows
AFTER = 10  # seconds after which a task's line says which hosts it waits for
EVERY = 60  # seconds between lines in a log that say what is waited for
EVERY_AT_FIRST = 15  # the same on a terminal that may show a question
NAMED = 3  # hosts, tasks or items that are named before "and 7 more"
DIFF_CELLS = 2000  # of one line of a diff on a terminal
UNREACHABLE_STEP = (
    "Make the host reachable by SSH (ansible_host, ansible_port, ansible_user), then run the same command again. It"
    " continues where this run ended."
)
TAIL = 5  # last lines of what a program said


# Colour, mark, text, end of the colour.
DIFF = re.compile(r"((?:\x1b\[[\d;]*m)*)([+ -]?)(.*?)((?:\x1b\[0m)*)", re.DOTALL)
# Commands are for copying: left to the terminal to wrap, which puts no spaces into them.
COMMAND = re.compile(r"\s+(?:ansible-playbook|kubectl|ssh|curl|sudo) ")


class Line(t.NamedTuple):
    """A line to be written, which `rows` cuts to the width of the terminal, or to that of a page in a log."""

    text: str
    tone: str = ""  # ok, changed, failed, unreachable or nothing: what it is coloured by
    indent: int = 0  # of the rows after its first
    diff: bool = False  # of a file or an object: each of its rows begins with its mark
    aligned: bool = False  # WIDTH columns, which lose their spaces on a narrower terminal
    message: bool = False  # what a task prints, which a log has as it is


class Play(t.NamedTuple):
    name: str
    hosts: t.Tuple[str, ...]  # of this batch
    whole: bool  # hosts go through it each at its own pace, so the play is the step
    partial: bool = False  # some of its hosts are not in this batch, or not in this run
    check: bool = False  # it runs in check mode, whether or not the whole run does


NO_PLAY = Play("", (), whole=False)


class Task(t.NamedTuple):
    uuid: str
    step: str
    name: str
    once: bool = False
    quiet: bool = False  # only prints, compares, includes or keeps a fact: no reason for a line
    stops: bool = False  # ends the run for all hosts, by a condition of its playbook: nothing has failed
    delegate: str = ""  # the host that does it instead


class Counts(t.NamedTuple):
    """What Ansible counted for a host."""

    ok: int = 0
    changed: int = 0
    unreachable: int = 0
    failed: int = 0
    rescued: int = 0
    ignored: int = 0


@dataclasses.dataclass
class Step:
    name: str
    begun: float
    hosts: t.Set[str] = dataclasses.field(default_factory=set)
    failed: t.Set[str] = dataclasses.field(default_factory=set)
    unreachable: t.Set[str] = dataclasses.field(default_factory=set)
    stopped: bool = False
    changed: t.Dict[str, t.List[str]] = dataclasses.field(default_factory=dict)  # hosts by task
    rescued: int = 0
    ignored: int = 0
    worth_a_line: bool = False


# Text


def cells(text: str) -> int:
    """How many columns a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def cut(text: str, width: int) -> str:
    """The text in at most this many columns."""
    if cells(text) <= width:
        return text
    dots = "..."[: max(width, 0)]
    kept = ""
    for character in text:
        if cells(kept + character) > width - len(dots):
            break
        kept += character
    return kept.rstrip() + dots


def pad(text: str, width: int) -> str:
    return text + " " * (width - cells(text))


def named(hosts: t.Iterable[str], most: int = NAMED) -> str:
    return shorten_list(sorted(hosts, key=natural), most)


def duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def wrap(text: str, width: int, indent: int = 0, whole_words: bool = False) -> t.List[str]:
    """A line as rows of at most `width` columns, broken between words; those after the first are indented further.

    whole_words: longer words, such as paths, are not broken. URLs and commands in backticks never are, so that they can
    be copied.
    """
    hanging = " " * min(len(text) - len(text.lstrip(" ")) + indent, width // 2)
    found, row = [], ""
    for word in re.findall(r"\s*(?:`[^`]+`|\S)+", text):
        if row and cells(row + word) > width:
            found.append(row)
            row = hanging
            word = word.lstrip()
        row += word
        while cells(row) > width and not whole_words and "://" not in word and "`" not in word:
            whole = len(row)
            while cells(row[:whole]) > width:
                whole -= 1
            found.append(row[:whole])
            row = hanging + row[whole:]
    return [*found, row]


def wrap_diff(text: str, width: int) -> t.List[str]:
    """A line of a diff as rows that all have its mark and colour. Lines of a text within JSON get rows of their own."""
    before, mark, body, after = DIFF.fullmatch(text).groups()  # type: ignore[union-attr]  # it matches anything
    if cells(mark + body) <= width:
        return [text]
    first, *others = re.split(r"(?<=\\n)", body[:DIFF_CELLS])
    room = width - len(mark)
    found = [*wrap(first, room, 4), *(row for other in others if other for row in wrap(f"    {other}", room, 4))]
    rest = len(body) - DIFF_CELLS
    more = [f"    ... and {rest:,} more characters, which | cat shows"] if rest > 0 else []
    return [f"{before}{mark}{row}{after}" for row in [*found, *more]]


def rows(line: Line, width: int) -> t.List[str]:
    """A line as it is written. width: of the terminal; 0 in a log, where messages and long words are not broken."""
    parts = line.text.splitlines() or [""]
    if COMMAND.match(line.text) or (line.message and not width):
        return parts
    if not width:
        return [row for part in parts for row in wrap(part, WIDTH, line.indent, whole_words=True)]
    width = max(width - 1, 1)
    if line.diff:
        return [row for part in parts for row in wrap_diff(part, width)]
    if line.aligned and width < WIDTH:
        parts = [re.sub(r"(?<=\S) {2,}", "  ", part) for part in parts]
    return [row for part in parts for row in wrap(part, width, line.indent)]


# Failures

PARTS = re.compile(
    r"(?P<what>.*?)(?:\s+Where: (?P<where>.*?)\.?)?(?:\s+Seen: (?P<seen>.*?)\.?)?(?:\s+Next: (?P<next>.*))?", re.DOTALL
)


def _last_lines(*texts: object) -> str:
    """The end of the first text that is not empty."""
    said = next((text_of(text) for text in texts if isinstance(text, str) and text.strip()), "")
    return "\n".join(said.splitlines()[-TAIL:])


def _of_message(text: str) -> Rows:
    """Split `What. Where: a. Seen: b. Next: c.` into its parts; any other message is the first part."""
    found = PARTS.fullmatch(text)
    parts = found.groupdict() if found else {"what": text}
    return tuple((name, value) for name, value in parts.items() if value)


def _of_program(result: Result) -> Rows:
    command = result.get("cmd", "")
    words = shlex.join(map(str, command)) if isinstance(command, list) else str(command)
    said = _last_lines(
        result.get("stderr"), result.get("stdout"), result.get("module_stderr"), result.get("module_stdout")
    )
    seen = ", ".join(filter(None, [f"exit code {result['rc']}" if "rc" in result else "", said]))
    return (("ran", cut(text_of(words), 200)), ("seen", seen.replace(", ", ":\n", 1) if "\n" in seen else seen))


def _failed_items(result: Result) -> t.List[Result]:
    items = result.get("results")
    return [one for one in items if isinstance(one, dict) and one.get("failed")] if isinstance(items, list) else []


def describe(result: Result) -> Rows:
    """What a person must know about a failed result, and nothing else."""
    if "censored" in result or result.get("_ansible_no_log"):
        return (("what", "Hidden: the task has no_log, since it handles secrets."),)
    items = _failed_items(result)
    if items:
        return _of_items(items)
    error = result.get("error")
    if isinstance(error, dict) and error.get("seen"):  # of a FabricError
        names = {"what": "what", "where": "where", "seen": "seen", "next_step": "next"}
        return tuple((short, text_of(error[key])) for key, short in names.items() if error.get(key))
    limit = result.get("timedout")
    if isinstance(limit, dict):
        return (("what", HUNG), ("seen", f"nothing within {limit.get('period')} s"), ("next", HUNG_STEP))
    message = _of_message(message_of(result) or "It failed, and did not say why.")
    if "assertion" in result and len(message) == 1:
        message += (("seen", f"{text_of(result['assertion'])} is not true"),)
    if "rc" in result or "module_stderr" in result:
        message += tuple((name, text) for name, text in _of_program(result) if text)
    return message


def _of_items(items: t.Sequence[Result]) -> Rows:
    alike: t.Dict[Rows, t.List[str]] = {}
    for item in items:
        hidden = "censored" in item or item.get("_ansible_no_log")
        label = "(hidden by no_log)" if hidden else cut(text_of(item.get("_ansible_item_label", item.get("item"))), 200)
        alike.setdefault(describe(item), []).append(label)
    found: t.List[t.Tuple[str, str]] = []
    for same, labels in list(alike.items())[:TAIL]:
        found += [("item", shorten_list(labels, TAIL)), *same]
    if len(alike) > TAIL:
        found.append(("item", f"and {len(alike) - TAIL} more that failed in other ways"))
    return tuple(found)


# Messages


def shown(value: object) -> t.List[str]:
    """A message of a debug task as lines: text as it is, a list of texts line by line, anything else as YAML."""
    if isinstance(value, str):
        return [printable(line).rstrip() for line in value.splitlines()] or [""]
    if isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value):
        return [line for part in value for line in shown(part)]
    plain = json.loads(json.dumps(value, default=str))
    return shown(
        yaml.safe_dump(plain, allow_unicode=True, default_flow_style=False, sort_keys=False, width=WIDTH).replace(
            "\n...\n", "\n"
        )
    )


# The run


@dataclasses.dataclass
class Run:
    """What has happened so far. Each event returns the lines that are due."""

    begun: float
    check: bool = False
    slowest: int = 5
    terminal: bool = False
    play: Play = NO_PLAY
    step: t.Optional[Step] = None
    task: t.Optional[Task] = None
    task_begun: float = 0
    answered: t.Set[str] = dataclasses.field(default_factory=set)  # hosts that the task has ended on
    tries: str = ""
    told: float = 0  # when a log was last told that the run goes on
    known: t.Set[str] = dataclasses.field(default_factory=lambda: {"localhost", "127.0.0.1"})
    gone: t.Set[str] = dataclasses.field(default_factory=set)  # failed or unreachable
    messages: t.Dict[t.Tuple[str, ...], t.List[str]] = dataclasses.field(default_factory=dict)
    failures: t.Dict[t.Tuple[str, Rows], t.List[str]] = dataclasses.field(default_factory=dict)
    ended: t.Dict[str, float] = dataclasses.field(default_factory=dict)  # seconds by step
    would: t.Dict[str, int] = dataclasses.field(default_factory=dict)  # by host: changes of plays in check mode
    stopped: t.Set[str] = dataclasses.field(default_factory=set)  # counted as failed, but their playbook ended the run
    digest: t.Dict[str, t.Dict[str, int]] = dataclasses.field(default_factory=dict)  # in check mode, by host and step
    changes: int = 0  # made so far

    def start(self) -> t.List[Line]:
        return [Line("Check mode: nothing is changed.", "changed")] if self.check else []

    def play_starts(self, play: Play, now: float) -> t.List[Line]:
        lines = self._close_step(now)
        self.play, self.task = play, None
        return lines

    def no_hosts(self, now: float) -> t.List[Line]:
        """Say nothing about a play without hosts in the inventory: another play is meant, or Ansible warns."""
        left_out = Line(f"{self.play.name}: left out, none of its hosts is in this run.", "skipped")
        return [*self._close_step(now), *([left_out] if self.play.partial else [])]

    def task_starts(self, task: Task, now: float) -> t.List[Line]:
        name = self.play.name if self.play.whole else task.step
        lines = self._close_step(now) if self.step and self.step.name != name else self._close_task()
        self.step = self.step or Step(name, now)
        self.task, self.task_begun, self.told, self.answered, self.tries = task, now, now, set(), ""
        return lines

    def retries(self, attempt: int, most: int) -> None:
        self.tries = f" (try {attempt + 1} of {most})"

    def _ends_on(self, task: Task, host: str, skipped: bool = False) -> Step:
        if self.step is None:  # a result before any task: not seen yet, and no reason to stop
            self.step = Step(task.step, self.begun)
        if self.task and self.task.uuid == task.uuid:
            self.answered.add(host)
        if not skipped:
            self.step.hosts.add(host)
            self.step.worth_a_line |= not task.quiet
            if not task.delegate and not task.quiet:
                self.known.add(host)
        return self.step

    def ok(self, task: Task, host: str, changed: bool = False) -> None:
        step = self._ends_on(task, host)
        if changed:
            step.changed.setdefault(task.name, []).append(host)
            step.worth_a_line = True
            self.changes += not (self.check or self.play.check)
            if self.play.check and not self.check:
                self.would[host] = self.would.get(host, 0) + 1
            if self.check:
                mine = self.digest.setdefault(host, {})
                mine[step.name] = mine.get(step.name, 0) + 1

    def skipped(self, task: Task, host: str) -> None:
        self._ends_on(task, host, skipped=True)

    def failed(
        self, task: Task, host: str, result: Result, rescued: bool = False, ignored: bool = False
    ) -> t.List[Line]:
        step = self._ends_on(task, host)
        if rescued or ignored:
            step.worth_a_line = True
            step.rescued += bool(rescued)
            step.ignored += bool(ignored and not rescued)
            return []
        if task.stops:
            step.stopped = True
            self.stopped.add(host)
            return self._fails("STOPPED", task, host, describe(result))
        step.failed.add(host)
        tries = result.get("attempts", 1)
        return self._fails("FAILED", task, host, describe(result), f" (after {tries} tries)" if tries != 1 else "")

    def unreachable(self, task: Task, host: str, result: Result, ignored: bool = False) -> t.List[Line]:
        step = self._ends_on(task, host)
        if ignored:
            step.worth_a_line = True
            step.ignored += 1
            return []
        step.unreachable.add(host)
        return self._fails(
            "UNREACHABLE", task, host, (("seen", message_of(result) or "no answer"), ("next", UNREACHABLE_STEP))
        )

    def _fails(self, how: str, task: Task, host: str, found: Rows, after: str = "") -> t.List[Line]:
        """Show a failure at once, but only once: other hosts that fail in the same way are named when the task ends."""
        self.gone.add(host)
        if self.step:
            self.step.worth_a_line = True
        others = self.failures.setdefault((how + task.uuid, found), [])
        others.append(host)
        if len(others) > 1:
            return []
        where = self.step.name if self.step else task.name
        if where != task.name and not task.stops:  # the message of a stop says what it is for
            where += f": {task.name}"
        tone = "changed" if task.stops else how.lower()
        head = [Line(""), Line(f"{how}  {where}{after}", tone, 4)]
        elsewhere = task.delegate not in ("", host) and "{{" not in task.delegate
        place = f"{task.delegate}, for {host}" if elsewhere else host
        body = [] if task.stops else [Line(f"  host   {place}", tone, 9)]
        for name, text in found:
            first, *more = text.splitlines() or [""]
            body += [
                Line(f"  {name:<6} {first}", tone, 7),
                *(Line(f"         {line}", tone, message=True) for line in more),
            ]
        return [*head, *body, Line("")]

    def says(self, task: Task, host: str, lines: t.Sequence[str], diff: bool = False) -> t.List[Line]:
        """A message or a diff. The same one from several hosts is shown once."""
        self.messages.setdefault(("diff" if diff else "", *lines), []).append(host)
        return self._told() if task.once or len(self.play.hosts) == 1 else []

    def _told(self) -> t.List[Line]:
        found = []
        one = len(self.play.hosts) == 1 or (self.task is not None and self.task.once)
        for (diff, *texts), hosts in self.messages.items():
            who = named(hosts)
            if diff:
                texts[0] += f", on {who}"
            elif not one and len(texts) == 1:
                texts[0] = f"{who}: {texts[0]}"
            elif not one:
                texts = [f"{who}:", *(f"  {text}" for text in texts)]
            around = [Line("")] if len(texts) > 1 else []
            heads, diffs = (texts[:1], texts[1:]) if diff else (texts, [])
            found += [
                *around,
                *(Line(text, "", 2, message=True) for text in heads),
                *(Line(text, diff=True, message=True) for text in diffs),
                *around,
            ]
        self.messages = {}
        return found

    def _close_task(self) -> t.List[Line]:
        lines = self._told()
        for hosts in self.failures.values():
            if len(hosts) > 1:
                lines += [Line(f"  The same on {named(hosts[1:], 2 * NAMED)}.", "failed", 2), Line("")]
        self.failures = {}
        return lines

    def _close_step(self, now: float, state: str = "") -> t.List[Line]:
        lines = self._close_task()
        step, self.step = self.step, None
        if step is None:
            return lines
        self.ended[step.name] = self.ended.get(step.name, 0) + now - step.begun
        if not step.worth_a_line and not state:
            return lines
        return [*lines, *self._line(step, now, state)]

    def _line(self, step: Step, now: float, state: str) -> t.List[Line]:
        changes, check = sum(map(len, step.changed.values())), self.check or self.play.check
        bad = len(step.failed), len(step.unreachable)
        words = [
            state or ("stopped" if step.stopped else ""),
            f"{bad[0]} failed" if bad[0] else "",
            f"{bad[1]} unreachable" if bad[1] else "",
            (f"would change {changes}" if check else f"{changes} changed") if changes else "",
            f"{step.rescued} rescued" if step.rescued and not any(bad) else "",
            f"{step.ignored} ignored" if step.ignored and not any(bad) else "",
        ]
        tone = "failed" if any(bad) or state else "changed" if changes or step.stopped else "ok"
        text = ", ".join(filter(None, words)) or "ok"
        done = f"{len(step.hosts - step.failed - step.unreachable)}/{len(step.hosts)}"
        lines = [Line(columns(step.name, done, text, duration(now - step.begun)), tone, 4, aligned=True)]
        if step.changed.keys() - {step.name}:
            lines.append(Line(f"    {'would change' if check else 'changed'}: {_changes(step)}", tone, 4))
        return lines

    # Progress

    def _due(self) -> t.Set[str]:
        """Hosts that the task has not ended on."""
        if self.task and self.task.once:
            return set() if self.answered else {"one host"}
        return set(self.play.hosts) - self.gone - self.answered

    def first_contact(self) -> int:
        """How many hosts are contacted for the first time: ssh may ask about them on the terminal."""
        if not self.task or self.task.quiet or self.task.delegate:
            return 0
        if self.task.once:
            return 0 if self.answered or self.known & set(self.play.hosts) else 1
        return len(self._due() - self.known)

    def _at(self, now: float) -> t.Tuple[str, str, str]:
        """Progress by hosts, the task, and what it waits for."""
        due = self._due()
        total = len(self.answered) + len(due)
        waits = now - self.task_begun >= AFTER and 0 < len(due) <= NAMED and total > 1
        return (
            f"{len(self.answered)}/{total}",
            self.task.name if self.task else "",
            self.tries + (f", waits for {named(due)}" if waits else ""),
        )

    def live(self, now: float, width: int) -> str:
        """The line that a terminal shows while a step runs."""
        if not self.step or not self.task:
            return ""
        hosts, task, waits = self._at(now)
        seconds = now - self.step.begun
        took = f"{seconds:.0f} s" if seconds < 10 else duration(seconds)
        name = cut(self.step.name, max(width // 3, 10))
        left = f"{name}  " if self.play.whole else f"{name}  {hosts}  "
        room = width - ECHO - cells(left) - max(len(took), 5) - 2
        middle = cut(task, max(room - cells(waits), 0)) + waits
        return cut(pad(left + middle, cells(left) + room) + "  " + took.rjust(5), width - ECHO)

    def goes_on(self, now: float) -> t.List[Line]:
        """What a log, or a terminal without a live line, shows once a minute during a long task."""
        every = EVERY_AT_FIRST if self.terminal and self.first_contact() else EVERY
        if not self.step or not self.task or now - self.told < every:
            return []
        self.told = now
        hosts, task, waits = self._at(now)
        return [Line(f"    {self.step.name}: {task}{waits}, {hosts} hosts, {duration(now - self.task_begun)} so far")]

    # The end

    def interrupted(self, now: float) -> t.List[Line]:
        """What was changed, what may still be running, and that the same command continues the run."""
        if not (self.step or self.ended):  # Ansible has said why, as for a file that is no YAML
            return [Line(""), Line("Ended before the first task: the error above says why.", "failed")]
        task, due = self.task, self._due()
        said = "check mode changes nothing" if self.check else _made(self.changes)
        may = task and due and not task.delegate and not (task.quiet or self.check or self.play.check)
        runs = f" '{task.name}' may still be running on {named(due)}." if task and may else ""
        took = duration(now - self.begun)
        verdict = f"Interrupted after {took}: {said}.{runs} Run the same command again to continue."
        return [*self._close_step(now, "interrupted"), Line(""), Line(verdict, "failed")]

    def end(self, counts: t.Mapping[str, Counts], now: float) -> t.List[Line]:
        lines = self._close_step(now)
        counts = {
            host: one._replace(
                changed=one.changed - self.would.get(host, 0), failed=one.failed - (host in self.stopped)
            )
            for host, one in counts.items()
        }
        lines += [Line(""), *recap(counts), *would_change(self.digest)]
        slow = sorted(((name, took) for name, took in self.ended.items() if took >= 1), key=lambda one: -one[1])
        if len(self.ended) > 1 and slow[: self.slowest]:
            told = ", ".join(f"{name} {duration(took)}" for name, took in slow[: self.slowest])
            lines.append(Line(f"Slowest: {told}", "", 2))
        return [*lines, self._verdict(counts, duration(now - self.begun))]

    def _verdict(self, counts: t.Mapping[str, Counts], took: str) -> Line:
        changes = sum(one.changed for one in counts.values())
        failed = sum(1 for one in counts.values() if one.failed)
        unreachable = sum(1 for one in counts.values() if one.unreachable)
        said = f"{count(changes, 'change')} would be made" if self.check and changes else _made(changes)
        if failed or unreachable:
            bad = [f"{count(failed, 'host')} failed"] if failed else []
            bad += [f"{count(unreachable, 'host')} unreachable"] if unreachable else []
            return Line(f"Failed after {took}: {', '.join(bad)}; {said}.", "failed")
        if self.stopped:
            return Line(f"Stopped after {took} for the reason above: {said}.", "changed")
        tone = "changed" if changes else "ok"
        if self.check:
            would = f"{count(changes, 'change')} would be made" if changes else "nothing would change"
            return Line(f"Checked in {took}: {would}.", tone)
        tried = sum(self.would.values())
        planned = f"; {count(tried, 'change')} would be made" if tried else ""
        return Line(f"Done in {took}: {count(changes, 'change') if changes else 'nothing changed'}{planned}.", tone)


def _made(changes: int) -> str:
    """Counts reported changes only: a task that failed or was interrupted may have made more."""
    if not changes:
        return "no task reported a change"
    return f"{count(changes, 'change')} {'were' if changes > 1 else 'was'} made"


def columns(name: str, hosts: str, text: str, took: str) -> str:
    """The line of a step that has ended. A long name takes the space that the other columns do not need."""
    text = cut(text, 24)
    room = WIDTH - NUMBERS
    more = min(max(cells(name) + 1 - room, 0), 24 - len(text))
    return f"{pad(cut(name, room + more), room + more)}{hosts:>9}  {text:<{24 - more}}{took:>12}"


def _changes(step: Step) -> str:
    """Which tasks changed something, and on which hosts unless it was all of them."""
    tasks = [task if set(hosts) >= step.hosts else f"{task} ({named(hosts)})" for task, hosts in step.changed.items()]
    return shorten_list(tasks, NAMED)


def recap(counts: t.Mapping[str, Counts]) -> t.List[Line]:
    """A row for each host. With many hosts, those that differ only in how many tasks were ok share a row."""
    if not counts:
        return []
    alike: t.Dict[t.Tuple[object, ...], t.List[str]] = {}
    for host in sorted(counts, key=natural):
        alike.setdefault(counts[host][1:4] if len(counts) > TAIL else (host,), []).append(host)
    found = [Line(_recap_row("hosts", "ok", "changed", "unreachable", "failed"), aligned=True)]
    for hosts in alike.values():
        one = counts[hosts[0]]
        ok = sorted({counts[host].ok for host in hosts})
        span = str(ok[0]) if len(ok) == 1 else f"{ok[0]}-{ok[-1]}"
        tone = "unreachable" if one.unreachable else "failed" if one.failed else "changed" if one.changed else "ok"
        name = _names(hosts, WIDTH - NUMBERS)
        found.append(Line(_recap_row(name, span, one.changed, one.unreachable, one.failed), tone, aligned=True))
    return found


def would_change(digest: t.Mapping[str, t.Mapping[str, int]]) -> t.List[Line]:
    """What a run in check mode would change, by step; hosts with the same share a line."""
    alike: t.Dict[t.Tuple[t.Tuple[str, int], ...], t.List[str]] = {}
    for host in sorted(digest, key=natural):
        alike.setdefault(tuple(digest[host].items()), []).append(host)
    lines = []
    for steps, hosts in alike.items():
        told = ", ".join(f"{name} {number}" for name, number in steps)
        lines.append(Line(f"  {named(hosts)}: {told}", "changed", 4))
    return [Line(""), Line("Would change, by step:"), *lines] if lines else []


def _recap_row(name: str, ok: str, changed: object, unreachable: object, failed: object) -> str:
    return f"{pad(name, WIDTH - NUMBERS)}{ok:>11}{changed:>11}{unreachable:>14}{failed:>11}"


def _names(hosts: t.Sequence[str], width: int) -> str:
    """All of these hosts, or their number and as many names as fit."""
    if cells(", ".join(hosts)) < width:
        return ", ".join(hosts)
    for most in range(TAIL, 0, -1):
        name = f"{count(len(hosts), 'host')}: {shorten_list(hosts, most)}"
        if cells(name) < width:
            return name
    return cut(hosts[0] if len(hosts) == 1 else count(len(hosts), "host"), width - 1)

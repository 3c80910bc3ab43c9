# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How every module ends: with an outcome, or with one kind of error."""

from __future__ import annotations

import copy
import importlib
import typing as t

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from .._model.failure import KINDS, Code, Failure
from . import secrets
from .text import printable

if t.TYPE_CHECKING:
    from .command import Done

# What to do about a failure that only has a message.
STEPS: t.Dict[Code, str] = {
    "invalid-input": "Correct the options that the message names.",
    "missing-requirement": "Install it for the Python that the message names.",
}


class FabricError(Exception):
    """Something that a person has to act on.

    what: what was looked for or tried; where: host, file, URL or object; seen: what was found instead;
    next_step: what to do now; code: its kind; transient: where this one differs from its kind;
    facts: what else the result has.
    """

    def __init__(
        self,
        what: str,
        where: str,
        seen: str,
        next_step: str,
        *,
        code: Code = "failed",
        transient: t.Optional[bool] = None,
        facts: t.Optional[t.Mapping[str, t.Any]] = None,
    ) -> None:
        self.what, self.where, self.seen, self.next_step = map(printable, (what, where, seen, next_step))
        self.code, self.facts = code, dict(facts or {})
        self.transient = KINDS[code].transient if transient is None else transient
        super().__init__(f"{self.what} Where: {self.where}. Seen: {self.seen}. Next: {self.next_step}")

    def as_failure(self) -> Failure:
        return {
            "code": self.code,
            "what": self.what,
            "where": self.where,
            "seen": self.seen,
            "next_step": self.next_step,
            "transient": self.transient,
        }

    def result(self) -> t.Dict[str, t.Any]:
        """What a module returns that ends with it."""
        return {**self.facts, "msg": str(self), "error": self.as_failure()}


def printed_by(done: Done, seconds: float, what: str, where: str, next_step: str) -> str:
    """What a program has printed that had to succeed within so many seconds; a FabricError where it has not."""
    if done.rc == 0:
        return done.out
    said = (done.err or done.out).strip()[-800:]
    if done.rc is None:
        said = f"no end within {seconds} s" + (f": {said}" if said else "")
    raise FabricError(what, where, said or f"rc {done.rc}", next_step, code=done.code)


def plain_failure(message: str, where: str, code: Code) -> Failure:
    """The part `error` of a result whose message is all that is known."""
    step = STEPS.get(code, "Run it again with -vvv, which shows more.")
    return {"code": code, "what": message, "where": where, "seen": "", "next_step": step, "transient": False}


class Module(AnsibleModule):
    """Whatever it fails with, Ansible's own checks included, the result has the part `error`."""

    code: Code = "invalid-input"  # of a failure that does not say it: first, options are checked

    def fail_json(self, msg: str, **more: t.Any) -> None:
        super().fail_json(msg, **{"error": plain_failure(str(msg), f"the module {self._name}", self.code), **more})


def fail_without(module: AnsibleModule, library: str) -> None:
    """Fail because a Python package is missing."""
    message = missing_required_lib(library)
    module.fail_json(msg=message, error=plain_failure(message, "Python packages", "missing-requirement"))


class Runner(t.Protocol):
    """How a module is run: as a process of its own by run_module, or within Ansible's by an action."""

    def __call__(
        self,
        argument_spec: t.Dict[str, t.Any],
        body: t.Callable[[AnsibleModule], t.Dict[str, t.Any]],
        libraries: t.Sequence[str] = (),
        hidden: t.Sequence[str] = (),
        **options: t.Any,
    ) -> None: ...


def outcome(before: t.Any, after: t.Any, **facts: t.Any) -> t.Dict[str, t.Any]:
    """The result of a module that makes `before` into `after`: changed and diff are those two, and nothing else."""
    return {"changed": before != after, "diff": {"before": before, "after": after}, **facts}


def run_module(
    argument_spec: t.Dict[str, t.Any],
    body: t.Callable[[AnsibleModule], t.Dict[str, t.Any]],
    libraries: t.Sequence[str] = (),
    hidden: t.Sequence[str] = (),
    **options: t.Any,
) -> None:
    """Build the AnsibleModule, end with what `body` returns, and fail with a FabricError's message and parts.

    libraries: Python packages that `body` needs and that the host may lack.
    hidden: options that may have secrets in them. Neither the host's log nor the result has them.
    """
    module = Module(argument_spec=conceal(argument_spec, hidden), supports_check_mode=True, **options)
    module.code = "failed"
    uncensor(module, hidden)
    for library in libraries:
        try:
            importlib.import_module(library)
        except ImportError:
            fail_without(module, library)
    shown = invocation(module, hidden) if concealed(module, hidden) else {}  # else Ansible says all of them
    try:
        module.exit_json(**body(module), **shown)
    except FabricError as error:
        module.fail_json(**error.result(), **shown)


def conceal(argument_spec: t.Dict[str, t.Any], hidden: t.Sequence[str]) -> t.Dict[str, t.Any]:
    """The spec, of which neither the host's log nor Ansible's output shows the hidden options.

    It is a copy: Ansible puts the defaults of suboptions into the default that it was given, which modules share.
    """
    spec = copy.deepcopy(argument_spec)
    for name in hidden:
        spec[name]["no_log"] = True
    return spec


def concealed(module: AnsibleModule, hidden: t.Sequence[str]) -> t.List[str]:
    """The hidden options, and a kubeconfig that is given as data."""
    return [*hidden, *(["kubeconfig"] if isinstance(module.params.get("kubeconfig"), dict) else [])]


def uncensor(module: AnsibleModule, hidden: t.Sequence[str]) -> None:
    """Ansible would replace each text of these options, such as `true` or `8090`, in everything that the module says.

    Only those that are called secrets are left to it: an error of helm or of the API may repeat them.
    """
    # kubernetes.core hides the option whole; only the data of a kubeconfig is secret, its path is not.
    if isinstance(module.params.get("kubeconfig"), str):
        module.no_log_values.discard(module.params["kubeconfig"])
    names = concealed(module, hidden)
    for name in names:
        module.no_log_values.difference_update(secrets.texts(module.params[name]))
    for name in names:
        module.no_log_values.update(secrets.secrets_in(module.params[name]))


def invocation(module: AnsibleModule, hidden: t.Sequence[str]) -> t.Dict[str, t.Any]:
    """What the result says of the module's options, shown with -vvv."""
    instead = {name: secrets.IN_INVOCATION for name in concealed(module, hidden) if module.params[name]}
    return {"invocation": {"module_args": {**module.params, **instead}}}

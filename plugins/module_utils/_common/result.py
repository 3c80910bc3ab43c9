# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How every module ends: with an outcome, or with an error of one kind."""

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

# The next step for a failure that only has a message.
STEPS: t.Dict[Code, str] = {
    "invalid-input": "Correct the options that the message names.",
    "missing-requirement": "Install it for the Python that the message names.",
}


class FabricError(Exception):
    """Something on which a person must act.

    what: what was expected or tried; where: host, file, URL or object; seen: what was found instead;
    next_step: what to do now; code: its kind; transient: overrides that of its kind;
    facts: additional fields of the result.
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
        """The result of a module that ends with this error."""
        return {**self.facts, "msg": str(self), "error": self.as_failure()}


def printed_by(done: Done, seconds: float, what: str, where: str, next_step: str) -> str:
    """The output of a program that must succeed within `seconds`; FabricError if it does not."""
    if done.rc == 0:
        return done.out
    said = (done.err or done.out).strip()[-800:]
    if done.rc is None:
        said = f"timed out after {seconds} s" + (f": {said}" if said else "")
    raise FabricError(what, where, said or f"rc {done.rc}", next_step, code=done.code)


def plain_failure(message: str, where: str, code: Code) -> Failure:
    """The part `error` of a result when only a message is known."""
    step = STEPS.get(code, "Run it again with -vvv, which shows more.")
    return {"code": code, "what": message, "where": where, "seen": "", "next_step": step, "transient": False}


class Module(AnsibleModule):
    """An AnsibleModule whose result has the part `error` on every failure, including Ansible's own checks."""

    code: Code = "invalid-input"  # of a failure without a code: at first, options are checked

    def fail_json(self, msg: str, **more: t.Any) -> None:
        super().fail_json(msg, **{"error": plain_failure(str(msg), f"the module {self._name}", self.code), **more})


def fail_without(module: AnsibleModule, library: str) -> None:
    """Fail because a Python package is missing."""
    message = missing_required_lib(library)
    module.fail_json(msg=message, error=plain_failure(message, "Python packages", "missing-requirement"))


class Runner(t.Protocol):
    """How a module is run: as its own process by run_module, or within Ansible's by an action."""

    def __call__(
        self,
        argument_spec: t.Dict[str, t.Any],
        body: t.Callable[[AnsibleModule], t.Dict[str, t.Any]],
        libraries: t.Sequence[str] = (),
        hidden: t.Sequence[str] = (),
        **options: t.Any,
    ) -> None: ...


def outcome(before: t.Any, after: t.Any, **facts: t.Any) -> t.Dict[str, t.Any]:
    """The result of a module that turns `before` into `after`: only these two decide on changed and diff."""
    return {"changed": before != after, "diff": {"before": before, "after": after}, **facts}


def run_module(
    argument_spec: t.Dict[str, t.Any],
    body: t.Callable[[AnsibleModule], t.Dict[str, t.Any]],
    libraries: t.Sequence[str] = (),
    hidden: t.Sequence[str] = (),
    **options: t.Any,
) -> None:
    """Build the AnsibleModule, exit with the result of `body`, or fail with the parts of a FabricError.

    libraries: Python packages that `body` needs and that the host may lack.
    hidden: options that may contain secrets. They appear neither in the host's log nor in the result.
    """
    module = Module(argument_spec=conceal(argument_spec, hidden), supports_check_mode=True, **options)
    module.code = "failed"
    uncensor(module, hidden)
    for library in libraries:
        try:
            importlib.import_module(library)
        except ImportError:
            fail_without(module, library)
    shown = invocation(module, hidden) if concealed(module, hidden) else {}  # otherwise Ansible shows them all
    try:
        module.exit_json(**body(module), **shown)
    except FabricError as error:
        module.fail_json(**error.result(), **shown)


def conceal(argument_spec: t.Dict[str, t.Any], hidden: t.Sequence[str]) -> t.Dict[str, t.Any]:
    """The argument spec, with hidden options kept out of the host's log and of Ansible's output.

    It is a copy: Ansible adds defaults of suboptions to the given default, which modules share.
    """
    spec = copy.deepcopy(argument_spec)
    for name in hidden:
        spec[name]["no_log"] = True
    return spec


def concealed(module: AnsibleModule, hidden: t.Sequence[str]) -> t.List[str]:
    """The hidden options, and a kubeconfig that was given as data."""
    return [*hidden, *(["kubeconfig"] if isinstance(module.params.get("kubeconfig"), dict) else [])]


def uncensor(module: AnsibleModule, hidden: t.Sequence[str]) -> None:
    """Keep Ansible from replacing every text in these options, such as `true` or `8090`, in all output of the module.

    It still replaces texts under the names of secrets: errors of helm or of the API may repeat them.
    """
    # kubernetes.core hides the whole option, but the path of a kubeconfig is not secret, only its data is.
    if isinstance(module.params.get("kubeconfig"), str):
        module.no_log_values.discard(module.params["kubeconfig"])
    names = concealed(module, hidden)
    for name in names:
        module.no_log_values.difference_update(secrets.texts(module.params[name]))
    for name in names:
        module.no_log_values.update(secrets.secrets_in(module.params[name]))


def invocation(module: AnsibleModule, hidden: t.Sequence[str]) -> t.Dict[str, t.Any]:
    """The module's options in the result, shown with -vvv."""
    instead = {name: secrets.IN_INVOCATION for name in concealed(module, hidden) if module.params[name]}
    return {"invocation": {"module_args": {**module.params, **instead}}}

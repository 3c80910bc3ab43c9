# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the wanted IPU operator release with installed ones, for the plan and for its role. Pure."""

from __future__ import annotations

import typing as t

from .._common.text import shorten_list
from .._model.operators import Operator

SHOWN = 8  # names in a message
Found = t.TypeVar("Found", bound=Operator)


class Refusal(t.NamedTuple):
    """Why an operator can't be installed or upgraded."""

    what: str
    seen: str
    next_step: str


def place(operator: Operator) -> str:
    return f"{operator['namespace']}/{operator['name']}"


def is_before_1_2(release: str) -> bool:
    """Whether jobs of the chart create the certificate, and the chart lacks the definition."""
    return tuple(int(part) for part in release.lstrip("v").split(".")[:2]) < (1, 2)


def release_key(version: str) -> t.List[int]:
    return [int(part) if part.isdigit() else 0 for part in version.split(".")] if version else []


def of_release(operators: t.Sequence[Found], namespace: str, release: str) -> t.List[Found]:
    return [each for each in operators if (each["namespace"], each["release"]) == (namespace, release)]


def second_operator(operators: t.Sequence[Operator], namespace: str, release: str) -> t.Optional[Refusal]:
    """Refuse if an operator other than this release is installed, and say how to go on with it."""
    ours = of_release(operators, namespace, release)
    others = [each for each in operators if each not in ours]
    if not others:
        return None
    told = [f"{place(each)}, release {each['release'] or '(no Helm)'} {each['version']}".rstrip() for each in others]
    step = "Remove it, or leave IPUs to those who installed it (fabric_ipu: false)."
    if len(operators) == 1 and others[0]["release"]:
        name, home = others[0]["release"], others[0]["namespace"]
        step = f"To keep it, set ipu_operator_release_name: {name} and ipu_operator_namespace: {home}. {step}"
    return Refusal(
        "The cluster has an IPU operator already, and two of them would serve the same IPUJobs.",
        shorten_list(told, SHOWN, "; "),
        step,
    )


def downgrade(operators: t.Sequence[Operator], namespace: str, release: str, version: str) -> t.Optional[Refusal]:
    installed = next((each["version"] for each in of_release(operators, namespace, release)), "")
    if release_key(installed) <= release_key(version):
        return None
    return Refusal(
        "Downgrades of the IPU operator are not supported.",
        f"IPU operator {installed} is installed, and {version} is older",
        f"Keep {installed}, or uninstall with ipu_operator_state=absent and install again.",
    )


def missing_definition(version: str, crd_url: str, definition: bool) -> t.Optional[Refusal]:
    """Refuse if the definition is missing: the chart of 1.1.0 lacks it. An existing definition stays."""
    if not is_before_1_2(version) or crd_url or definition:
        return None
    return Refusal(
        f"The chart of IPU operator {version} does not include the IPUJob definition.",
        "the cluster has none, and ipu_operator_crd_url is empty",
        "Set ipu_operator_crd_url to the graphcore_ai_ipujobs_*.yaml asset of that release, or to a copy of it.",
    )

# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a module tells a machine why it failed. docs/errors.md is the page for people."""

from __future__ import annotations

import typing as t

Code = t.Literal[
    "api-denied",
    "api-refused",
    "api-unreachable",
    "busy",
    "command-failed",
    "conflict",
    "download-failed",
    "expired",
    "failed",
    "invalid-input",
    "missing-requirement",
    "not-found",
    "not-ours",
    "not-ready",
    "other-cluster",
    "timeout",
    "unsafe",
    "unusable-file",
    "wrong-content",
    "wrong-state",
]


class Kind(t.NamedTuple):
    """What all failures with one code have in common."""

    meaning: str
    transient: bool = False  # unless the failure itself says otherwise


KINDS: t.Dict[Code, Kind] = {
    "api-denied": Kind("the API server does not know this user, or forbids what was asked"),
    "api-refused": Kind("the API server, or a webhook behind it, refused an object or a request"),
    "api-unreachable": Kind("the Kubernetes API or etcd does not answer", True),
    "busy": Kind("another program or another run holds a lock or a file", True),
    "command-failed": Kind("a program on the host, or its kernel, did not do what it was asked"),
    "conflict": Kind("something else changed the same object at the same time", True),
    "download-failed": Kind("a file, a chart or an image could not be fetched", True),
    "expired": Kind("a certificate has ended, or is about to"),
    "failed": Kind("anything that has no code of its own"),
    "invalid-input": Kind("the value of an option or a variable can't be used, alone or with the others"),
    "missing-requirement": Kind("a program, a Python package or a kernel module is not installed"),
    "not-found": Kind("something that was named does not exist"),
    "not-ours": Kind("something that somebody else created conflicts; it was left alone"),
    "not-ready": Kind("a service, a pod or a job did not come up, or failed"),
    "other-cluster": Kind("the kubeconfig or the host belongs to another cluster"),
    "timeout": Kind("something was not done when the time for it was over", True),
    "unsafe": Kind("it was not done, because jobs, data, pods or the work of others would be lost"),
    "unusable-file": Kind("a file can't be read, written or understood"),
    "wrong-content": Kind("a file, a chart, a key or an archive is not the expected one, or damaged"),
    "wrong-state": Kind("the host, the cluster or the object is not in a state in which this can be done"),
}


class Failure(t.TypedDict):
    """The `error` part of a failed result."""

    code: Code
    what: str  # what was looked for or tried
    where: str  # host, file, URL or object
    seen: str  # what was found instead; empty if the message says it all
    next_step: str
    transient: bool  # whether the same call may well succeed a little later

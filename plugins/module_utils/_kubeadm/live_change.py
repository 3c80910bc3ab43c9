# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change of a running control plane: files are kept, replaced, and restored if it does not come up again.

The kept files exist exactly as long as it is uncertain whether the control plane runs with the new ones.
"""

from __future__ import annotations

import functools
import glob
import json
import os
import shutil
import time
import typing as t

from .._common.result import FabricError
from .._common.text import printable
from .._host.files import File, Files, read_file, write_part
from . import paths
from .bootstrap import kubectl
from .membership import host_name
from .static_pods import MARGIN, Process, end_process, local_api, processes

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

PAUSE = 1.0  # seconds between two checks
STEADY = 5.0  # seconds that a process must run: one with a wrong argument ends at once
LIST = "files.json"
LOGS = "/var/log/pods"
API_SERVER = "kube-apiserver"


class NotUpError(Exception):
    """A static pod or the API server did not come up in time."""


def manifest(name: str) -> str:
    return f"{paths.MANIFESTS}/{name}.yaml"


def last_words(name: str) -> str:
    """The end of the log of a static pod's newest container; empty without a log."""
    logs = glob.glob(f"{LOGS}/kube-system_{name}-*/{name}/*.log")
    if not logs:
        return ""
    with open(max(logs, key=os.path.getmtime), "rb") as file:
        file.seek(max(0, os.path.getsize(file.name) - 2000))
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
    return printable(lines[-1][-300:]) if lines else ""


def put(path: str, content: str, mode: str) -> None:
    """Replace a file atomically. The temporary file is outside of the manifests: the kubelet runs all files there."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    part = f"{paths.KUBERNETES}/.{os.path.basename(path)}.part"
    write_part(part, content, mode)
    os.replace(part, path)


def write(files: Files) -> None:
    """Write other files before manifests: a static pod starts as soon as its manifest exists."""
    for path in sorted(files, key=lambda path: (path.startswith(paths.MANIFESTS), path)):
        file = files[path]
        if file is not None:
            put(path, file["content"], file["mode"])
        elif os.path.exists(path):
            os.remove(path)


def keep(files: t.Iterable[str]) -> None:
    """Keep copies of files, for root only, all of them or none."""
    part = f"{paths.EARLIER}.part"
    shutil.rmtree(part, ignore_errors=True)
    os.makedirs(part, mode=0o700)
    descriptor = os.open(os.path.join(part, LIST), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        json.dump({path: read_file(path) for path in files}, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(part, paths.EARLIER)


def kept() -> t.Optional[Files]:
    """The files that an unfinished change kept; None if there is none."""
    try:
        with open(os.path.join(paths.EARLIER, LIST), encoding="utf-8") as file:
            found: t.Dict[str, t.Optional[File]] = json.load(file)
            return found
    except FileNotFoundError:
        return None


def changed_pods(files: t.Container[str]) -> t.List[str]:
    """Static pods with a manifest among the files."""
    return [name for name in (API_SERVER, "kube-controller-manager", "kube-scheduler") if manifest(name) in files]


def forget() -> None:
    shutil.rmtree(paths.EARLIER, ignore_errors=True)


def newer_files(name: str, files: t.Iterable[str]) -> bool:
    """Whether a static pod started before its files were written, and so has the old ones in memory."""
    written = [os.path.getmtime(path) for path in files if os.path.exists(path)]
    moment = max((each for each in written if each <= time.time()), default=0.0)
    return any(process.started + MARGIN < moment for process in processes(name))


class LiveChange:
    """Files of this control plane, replaced while it is running."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.seconds: int = module.params["ready_timeout"]
        self.give_up = 0.0

    def until(self, seen: t.Callable[[], str]) -> None:
        """Wait until `seen` reports no problem any more."""
        while True:
            problem = seen()
            if not problem:
                return
            if time.monotonic() > self.give_up:
                raise NotUpError(problem)
            time.sleep(PAUSE)

    def not_steady(self, name: str, old: t.Sequence[Process]) -> str:
        """Why a static pod does not count as restarted and stable; empty if it does."""
        running = processes(name)
        said = last_words(name)
        if set(running) & set(old):
            return f"the old process of {name} has not ended yet"
        if not running or time.time() - max(process.started for process in running) < STEADY:
            return f"{name} does not keep running" + (f": {said}" if said else "")
        return ""

    def not_ready(self) -> str:
        arguments = ("--server", local_api(), "--tls-server-name", "kubernetes", "get", "--raw", "/readyz")
        if kubectl(*arguments):
            return ""
        said = last_words(API_SERVER)
        return f"{local_api()}/readyz does not say ok" + (f"; {said}" if said else "")

    def wait(self, old: t.Mapping[str, t.Sequence[Process]]) -> None:
        self.give_up = time.monotonic() + self.seconds
        for name, before in old.items():
            self.until(functools.partial(self.not_steady, name, before))
        self.until(self.not_ready)

    def apply(self, files: Files, restarted: t.Sequence[str]) -> None:
        """Replace files, and restart static pods: by their manifests if these change, else by ending processes."""
        keep(files)
        try:
            self.replace(files, restarted)
        except NotUpError as error:
            self.put_back(str(error))
        forget()

    def replace(self, files: Files, restarted: t.Sequence[str]) -> None:
        old = {name: processes(name) for name in restarted}
        write(files)
        for name in restarted:
            if manifest(name) not in files:
                for process in old[name]:
                    end_process(process)
        self.wait(old)

    def put_back(self, seen: str) -> t.NoReturn:
        """Restore the former state, and fail."""
        back = "The earlier files are back, and the control plane runs as before"
        try:
            self.restore()
        except NotUpError as error:
            back = f"The earlier files are back, but it does not come up with them either ({error})"
        raise FabricError(
            "The control plane did not come up with its new settings.",
            host_name(),
            f"{seen}. {back}",
            "See crictl ps --all, and /var/log/pods/kube-system_*; correct what it names, then run again.",
            code="not-ready",
        )

    def restore(self) -> None:
        """Put back the kept files. They are kept until the control plane is up."""
        files = kept() or {}
        names = changed_pods(files)
        write(files)
        if not names:  # no manifests, only its files: the API server reads them when it starts
            for process in processes(API_SERVER):
                end_process(process)
        self.give_up = time.monotonic() + self.seconds
        self.until(self.not_ready)
        forget()

    def restart_stale(self, files: Files) -> None:
        """Restart the API server if it started before its files were written."""
        if newer_files(API_SERVER, [path for path in files if not path.startswith(paths.MANIFESTS)]):
            old = processes(API_SERVER)
            for process in old:
                end_process(process)
            self.wait({API_SERVER: old})

    def settle(self) -> str:
        """Finish a change that was interrupted, and return nothing, completed, or restored."""
        files = kept()
        if files is None:
            return "nothing"
        try:
            self.wait(dict.fromkeys(changed_pods(files), ()))
            self.restart_stale(files)
        except NotUpError as error:
            seen = str(error)
        else:
            forget()
            return "completed"
        try:
            self.restore()
        except NotUpError:
            self.put_back(seen)
        return "restored"

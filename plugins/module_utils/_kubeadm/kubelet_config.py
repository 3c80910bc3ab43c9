# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet's configuration on a host: written, tried, and rolled back if the kubelet does not come up with it.

The earlier file is kept until the kubelet has come up. If a killed run left it behind, it shows that work is unfinished
and what to roll back to.
"""

from __future__ import annotations

import calendar
import os
import stat
import sys
import time
import typing as t

from .._common.command import output_of, run_program
from .._common.result import FabricError, outcome, printed_by
from .._host.certificates import KUBELET_CONF, KUBELET_SERVING, SERVING, has_expired, read_certificate
from .._host.files import Files, file_diffs, read_file, read_text, write_file
from . import paths
from .lock import hold_lock
from .membership import NodeCondition, find_node, host_name

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

CONFIG = "var/lib/kubelet/config.yaml"
MODE = 0o600
# Files that define how the kubelet runs, with which rights. The package brings the unit and rewrites it in upgrades.
PRIVATE = (
    KUBELET_CONF,
    CONFIG,
    "usr/lib/systemd/system/kubelet.service",
    "usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf",
    "lib/systemd/system/kubelet.service",
    "lib/systemd/system/kubelet.service.d/10-kubeadm.conf",
    "etc/systemd/system/kubelet.service.d/10-kubeadm.conf",
)
RESTART_SECONDS = 120
SETTLE = 12.0  # seconds that its process must last: if it refuses its configuration, it ends within the first few
CRASHES = 4  # restarts by systemd, one every 10 s, after which a kubelet won't come up
PAUSE = 2.0  # seconds between two checks
JOURNAL = ["journalctl", "-u", "kubelet", "-n", "15", "--no-pager", "-o", "cat"]


class State(t.TypedDict):
    """The state that is compared before and after."""

    restart: bool  # the kubelet has not yet come up with the present configuration
    modes: t.Dict[str, str]  # of files that should be for root only


def private_modes(root: str) -> t.Dict[str, int]:
    """The modes of the existing files, each once."""
    found: t.Dict[str, int] = {}
    for path in (os.path.join(root, each) for each in PRIVATE):
        if os.path.isfile(path):
            real = os.path.realpath(path)
            found[real] = stat.S_IMODE(os.stat(real).st_mode)
    return found


def narrowed(mode: int) -> int:
    """A mode without rights of others than root. A narrower mode stays as it is."""
    return mode & MODE


def heartbeat(condition: NodeCondition) -> float:
    """When the kubelet reported the condition, in seconds since 1970."""
    return calendar.timegm(time.strptime(condition["lastHeartbeatTime"], "%Y-%m-%dT%H:%M:%SZ"))


def has_certificate(root: str, now: float) -> bool:
    """Whether the kubelet has a valid serving certificate of the cluster."""
    path = os.path.join(root, SERVING[0])
    if not os.path.exists(path):
        return False
    certificate = read_certificate(KUBELET_SERVING, path, "kubelet")
    return not certificate["error"] and not has_expired(certificate, now)


class Process(t.NamedTuple):
    """The kubelet's process."""

    pid: str  # empty: it is not active
    restarts: int  # by systemd, since somebody last started it


def read_process() -> Process:
    shown = output_of("systemctl", "show", "--property", "ActiveState,MainPID,NRestarts", "kubelet.service")
    values = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    pid = values.get("MainPID", "") if values.get("ActiveState") == "active" else ""
    return Process(pid, int(values.get("NRestarts") or 0))


class KubeletConfig:
    """The kubelet's configuration on one host."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.node: str = module.params["node_name"] or host_name()
        self.path = os.path.join(paths.ROOT, CONFIG)

    def apply(self) -> t.Dict[str, object]:
        before = read_file(self.path)
        if before is None:  # not a node yet: kubeadm will write it
            return outcome(None, None, needed=False, serves=False, content="")
        content = self.module.params["content"] or before["content"]
        unfinished = os.path.exists(paths.EARLIER_KUBELET_CONFIG)
        modes = private_modes(paths.ROOT)
        changes = content != before["content"] or unfinished
        was: State = {"restart": unfinished, "modes": {path: f"{mode:04o}" for path, mode in modes.items()}}
        becomes: State = {
            "restart": False,
            "modes": {path: f"{narrowed(mode):04o}" for path, mode in modes.items()},
        }
        if not self.module.check_mode:
            if changes:
                with hold_lock(self.module.params["lock_timeout"]):
                    self.change(before["content"], content)
            for path, mode in modes.items():
                if narrowed(mode) != mode:
                    os.chmod(path, narrowed(mode))
        result = outcome(
            {"content": before["content"], **was},
            {"content": content, **becomes},
            needed=changes or was != becomes,
            serves=has_certificate(paths.ROOT, time.time()),
            content=content,
        )
        wanted: Files = {self.path: {"content": content, "mode": before["mode"]}}
        diffs = file_diffs({self.path: before}, wanted)
        return {**result, "diff": [*diffs, {"before": was, "after": becomes}]}

    def change(self, before: str, content: str) -> None:
        ready = self.read_ready()  # first: without an answer, nothing could show whether the kubelet comes up
        if not os.path.exists(paths.EARLIER_KUBELET_CONFIG):
            write_file(self.module, paths.EARLIER_KUBELET_CONFIG, before, "0600")
        if content != before:
            write_file(self.module, self.path, content, "0600")
        try:
            self.restart(ready["status"] == "True")
        except FabricError as error:
            self.put_back(error)
        os.remove(paths.EARLIER_KUBELET_CONFIG)

    def put_back(self, error: FabricError) -> t.NoReturn:
        """Restore the configuration with which the kubelet ran before, and fail."""
        journal = run_program(JOURNAL).out.strip()
        write_file(self.module, self.path, read_text(paths.EARLIER_KUBELET_CONFIG), "0600")
        try:
            self.restart(False)
            end = "The earlier configuration is back, and the kubelet runs with it"
            os.remove(paths.EARLIER_KUBELET_CONFIG)
        except FabricError as again:
            end = f"The earlier configuration is back, but the kubelet does not come up with it either: {again.seen}"
        raise FabricError(
            "The kubelet did not come up with its new configuration.",
            f"{host_name()}: {self.path}",
            f"{error.seen}\n{journal}\n{end}",
            "Correct the settings that the journal names (kubernetes_kubelet_config). Then run again.",
            code="not-ready",
        ) from error

    def read_ready(self) -> NodeCondition:
        lookup = find_node(self.node)
        conditions = (lookup.node or {}).get("status", {}).get("conditions", [])
        ready = next((each for each in conditions if each["type"] == "Ready"), None)
        if ready is None:
            raise FabricError(
                "The kubelet's configuration is changed only if its node can be read, to see whether it comes up.",
                host_name(),
                lookup.error or f"the cluster has no node {self.node} that has reported",
                "Start the API server (see crictl ps on its host), then run again.",
                code="api-unreachable" if lookup.error else "not-found",
            )
        return ready

    def restart(self, ready: bool) -> None:
        """Restart the kubelet; wait until it keeps running and has reported and, if `ready`, its node is Ready."""
        since = int(time.time())
        done = run_program(["systemctl", "restart", "kubelet"], RESTART_SECONDS)
        what, step = "The kubelet could not be restarted.", "See journalctl -u kubelet."
        printed_by(done, RESTART_SECONDS, what, host_name(), step)
        give_up = time.monotonic() + self.module.params["ready_timeout"]
        pid, started, least = "", time.monotonic(), sys.maxsize
        while True:
            now, restarts = read_process()
            least = min(least, restarts)  # systemd may still count those from before its restart
            if now != pid:
                pid, started = now, time.monotonic()
            problem = self.problem(pid, time.monotonic() - started, since, ready)
            if not problem:
                return
            if time.monotonic() > give_up or restarts - least >= CRASHES:
                raise FabricError(
                    "The kubelet does not come up.",
                    host_name(),
                    problem,
                    "See journalctl -u kubelet.",
                    code="not-ready",
                )
            time.sleep(PAUSE)

    def problem(self, pid: str, lasted: float, since: int, ready: bool) -> str:
        """Why the kubelet does not count as up; empty if it does."""
        if not pid:
            return "the kubelet is not running"
        if lasted < SETTLE:
            return "the kubelet keeps restarting"
        try:
            condition = self.read_ready()
        except FabricError as error:
            return error.seen
        if heartbeat(condition) < since:
            return f"the kubelet has not reported since {condition['lastHeartbeatTime']}"
        if ready and condition["status"] != "True":
            return f"the node was Ready before, but is not now (status {condition['status']})"
        return ""

# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renewal of a node's certificates, using only what is on the host: an API with expired certificates can't be asked."""

from __future__ import annotations

import functools
import os
import time
import typing as t

from .._common.command import run_program
from .._common.result import FabricError, outcome, printed_by
from .._host.certificates import (
    AUTHORITIES,
    DAY,
    KUBELET_CLIENT,
    KUBELET_CONF,
    KUBELET_SERVING,
    SERVING,
    describe_end,
    ends_soon,
    has_expired,
    read_certificates,
    seconds_left,
)
from .._host.files import read_text, write_file
from .._model.observation import Certificate
from . import paths
from .bootstrap import kubectl
from .kubelet_client import client_pem, install_client, sign_client
from .lock import hold_lock
from .membership import ask_for_node, host_name
from .program import Kubeadm
from .static_pods import Process, end_process, local_api, processes, stale_pods, static_pods

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

RENEW, RESTART = "renew", "restart"  # what a killed run may have left to do
RESTART_SECONDS = 120
PAUSE = 2.0  # seconds between two checks
AGAIN = "See crictl ps --all and journalctl -u kubelet. Then run again: it continues where it stopped."
# The CA that signs a certificate. All others are signed by the cluster's CA.
SIGNERS = {
    "front-proxy-client": "front-proxy-ca",
    "apiserver-etcd-client": "etcd-ca",
    "etcd-server": "etcd-ca",
    "etcd-peer": "etcd-ca",
    "etcd-healthcheck-client": "etcd-ca",
}


class State(t.TypedDict):
    """The state that is compared before and after."""

    certificates: t.Dict[str, str]  # expiry by name
    outdated: t.List[str]  # static pods that still have old ones in memory


class Work(t.NamedTuple):
    """The work to do on a host."""

    leaves: t.List[str]  # certificates of kubeadm, which renews all or none
    client: bool  # the kubelet's client certificate
    serving: bool  # the serving certificate that the kubelet created itself
    signed: bool  # the one that the cluster signed: renewal needs an approval, which is not done here
    stale: t.List[str]  # static pods that still have old certificates in memory
    unfinished: str  # what an earlier run did not get to

    @property
    def renewed(self) -> t.List[str]:
        kubelet = [KUBELET_CLIENT] * self.client + [KUBELET_SERVING] * self.serving
        return self.leaves + kubelet

    @property
    def any(self) -> bool:
        return bool(self.renewed or self.stale or self.unfinished)


def plan_work(found: t.Sequence[Certificate], now: float, days: float, force: bool, unfinished: str) -> Work:
    """Plan the work; kubeadm renews all of its certificates as soon as one of them is about to expire."""
    leaves = [each for each in found if each["renewed_by"] == "kubeadm"]
    due = [each["name"] for each in found if ends_soon(each, now, days)]
    all_of_them = force or unfinished == RENEW or any(each["name"] in due for each in leaves)
    own = {each["name"]: each["path"] for each in found}.get(KUBELET_SERVING, "")
    return Work(
        leaves=[each["name"] for each in leaves] if all_of_them else [],
        client=KUBELET_CLIENT in due and os.path.exists(os.path.join(paths.ROOT, KUBELET_CONF)),
        serving=(KUBELET_SERVING in due and own.endswith(SERVING[-1])) or half_a_pair(),
        signed=KUBELET_SERVING in due and own.endswith(SERVING[0]),
        stale=stale_pods(),
        unfinished=unfinished,
    )


def serving_pair() -> t.Tuple[str, str]:
    """Certificate and key that the kubelet created itself."""
    certificate = os.path.join(paths.ROOT, SERVING[-1])
    return certificate, f"{certificate[: -len('.crt')]}.key"


def half_a_pair() -> bool:
    """Whether a run was killed between moving the two: the kubelet does not start with only one of them."""
    certificate, key = serving_pair()
    return os.path.exists(certificate) != os.path.exists(key)


def key_path(authority: str) -> str:
    return os.path.join(paths.ROOT, f"{AUTHORITIES[authority][: -len('.crt')]}.key")


def check_authorities(work: Work, found: t.Sequence[Certificate], now: float) -> None:
    """Check that kubeadm can sign on this host, before anything is changed."""
    for name in sorted({SIGNERS.get(leaf, "ca") for leaf in work.leaves}):
        authority = next((each for each in found if each["name"] == name), None)
        if authority is None or has_expired(authority, now):
            raise FabricError(
                "Certificates can't be renewed without the CA that signs them.",
                f"{host_name()}: {os.path.join(paths.ROOT, AUTHORITIES[name])}",
                describe_end(authority) if authority else "no such file",
                "Replace the CA by hand: https://kubernetes.io/docs/tasks/tls/manual-rotation-of-ca-certificates/.",
                code="expired" if authority else "not-found",
            )
        if not os.path.exists(key_path(name)):
            raise FabricError(
                "Certificates can't be renewed without the key of the CA that signs them.",
                host_name(),
                f"there is no {key_path(name)}",
                "If the CA is your own, have it sign new certificates (kubeadm certs generate-csr).",
                code="not-found",
            )


def table(found: t.Sequence[Certificate], work: Work, now: float) -> t.List[str]:
    """A line for each certificate: its expiry, and what is done about it."""
    actions = {
        **dict.fromkeys(work.leaves, "kubeadm certs renew all"),
        **({KUBELET_CLIENT: "signed by the CA on a control plane"} if work.client else {}),
        **({KUBELET_SERVING: "the kubelet makes a new one"} if work.serving else {}),
        **({KUBELET_SERVING: "signed by the cluster when the kubelet's request is approved"} if work.signed else {}),
    }
    lines = []
    for each in found:
        end = f"{each['not_after'][:10]} {int(seconds_left(each, now) // DAY):>5} days" if each["not_after"] else ""
        lines.append(f"{each['name']:<26}{end or each['error']:<22}  {actions.get(each['name'], '')}".rstrip())
    return [*lines, *(f"{name:<26}restart: its certificates are newer than the process" for name in work.stale)]


def state(found: t.Sequence[Certificate], stale: t.Sequence[str]) -> State:
    return {"certificates": {each["name"]: each["not_after"] for each in found}, "outdated": list(stale)}


def not_new(name: str, old: t.Sequence[Process]) -> str:
    """Why a static pod does not count as restarted; empty if it does."""
    running = processes(name)
    if set(running) & set(old):
        return "its process has not ended yet"
    return "" if running else "no such process"


class Renewal:
    """The renewal of one host."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.wait: bool = module.params["wait"]
        self.node: str = module.params["node_name"] or host_name()
        self.give_up = 0.0

    def look(self) -> t.Tuple[t.List[Certificate], Work]:
        found, params = read_certificates(paths.ROOT), self.module.params
        unfinished = read_text(paths.RENEWAL).strip()
        return found, plan_work(found, time.time(), params["days"], params["force"], unfinished)

    def apply(self) -> t.Dict[str, object]:
        found, work = self.look()
        if work.any and not self.module.check_mode:
            with hold_lock(self.module.params["lock_timeout"]) as lock:
                found, work = self.look()  # another run may have changed something
                now = time.time()
                check_authorities(work, found, now)
                before = state(found, work.stale)
                self.carry_out(Kubeadm(self.module, lock), work)
                after = state(self.look_again(), stale_pods() if self.wait else [])
        else:
            now = time.time()
            check_authorities(work, found, now)
            before, changes = state(found, work.stale), dict.fromkeys(work.renewed, "renewed")
            after = {"certificates": {**before["certificates"], **changes}, "outdated": []}
        return outcome(
            before,
            after,
            node=self.node,
            needed=work.any,
            signed=any(each["path"].endswith(SERVING[0]) for each in found),
            requested=work.signed,
            interrupted=bool(work.unfinished),
            renewed=work.renewed,
            restarted=static_pods() if work.leaves else work.stale,
            expired=[each["name"] for each in found if each["renewed_by"] == "kubeadm" and has_expired(each, now)],
            table=table(found, work, now),
        )

    def look_again(self) -> t.List[Certificate]:
        """The certificates after the renewal. kubeadm reports those that it could not renew only in its output."""
        after, now = read_certificates(paths.ROOT), time.time()
        left = [
            each
            for each in after
            if each["renewed_by"] == "kubeadm" and ends_soon(each, now, self.module.params["days"])
        ]
        if left:
            raise FabricError(
                "Certificates were not renewed.",
                host_name(),
                ", ".join(map(describe_end, left)),
                "See what kubeadm certs renew all prints on this host.",
                code="command-failed",
            )
        return after

    def carry_out(self, kubeadm: Kubeadm, work: Work) -> None:
        pem = self.client(kubeadm) if work.client else ""  # first, since it may be refused
        if work.leaves:
            write_file(self.module, paths.RENEWAL, RENEW)
            kubeadm.run("certs", "renew", "all", next_step="Fix what kubeadm reports. Then run again: it starts over.")
        write_file(self.module, paths.RENEWAL, RESTART)
        if pem:
            install_client(self.module, pem)
        if work.serving:
            self.set_serving_aside()
        self.give_up = time.monotonic() + self.module.params["ready_timeout"]
        if work.renewed or work.unfinished:
            self.restart_kubelet()
        self.restart_pods(static_pods() if work.leaves else stale_pods())
        if self.wait:
            self.wait_until_ready()
            os.remove(paths.RENEWAL)

    def client(self, kubeadm: Kubeadm) -> str:
        """A client certificate for this host's kubelet: the given one, or one signed here. The result is secret."""
        if self.module.params["client"]:
            return client_pem(self.module.params["client"])
        if not os.path.exists(key_path("ca")):
            raise FabricError(
                "The kubelet's client certificate has to be signed on a control plane.",
                host_name(),
                f"the certificate has ended or is about to, and there is no {key_path('ca')} here",
                "Have ipu.fabric.kubeadm sign one there (command: client), and pass it in the option client.",
                code="expired",
            )
        return client_pem(sign_client(kubeadm, self.node))

    def set_serving_aside(self) -> None:
        """Rename the old pair: if there is none, the kubelet creates a new one when it starts."""
        for path in serving_pair():
            if os.path.exists(path):
                os.replace(path, f"{path}.old")

    def restart_kubelet(self) -> None:
        done = run_program(["systemctl", "restart", "kubelet"], RESTART_SECONDS)
        printed_by(done, RESTART_SECONDS, "The kubelet could not be restarted.", host_name(), AGAIN)

    def until(self, what: str, seen: t.Callable[[], str]) -> None:
        """Wait until `seen` reports no problem any more."""
        while True:
            problem = seen()
            if not problem:
                return
            if time.monotonic() > self.give_up:
                raise FabricError(what, host_name(), problem, AGAIN, code="not-ready")
            time.sleep(PAUSE)

    def restart_pods(self, names: t.Sequence[str]) -> None:
        """Restart them one by one; without waiting if the API needs other control planes to restart too."""
        for name in names:
            old = processes(name)
            for process in old:
                end_process(process)
            if self.wait:
                self.until(f"{name} did not start again.", functools.partial(not_new, name, old))

    def wait_until_ready(self) -> None:
        if static_pods():
            self.until("The API server of this control plane is not ready.", self.not_ready)
        if os.path.exists(os.path.join(paths.ROOT, KUBELET_CONF)):
            self.until("The kubelet's node can't be read with its certificate.", self.not_answered)

    def not_ready(self) -> str:
        arguments = ("--server", local_api(), "--tls-server-name", "kubernetes", "get", "--raw", "/readyz")
        return "" if kubectl(*arguments) else f"{local_api()}/readyz does not say ok"

    def not_answered(self) -> str:
        lookup = ask_for_node(paths.KUBELET, self.node)
        return "" if lookup.node else lookup.error or f"the cluster has no node {self.node}"

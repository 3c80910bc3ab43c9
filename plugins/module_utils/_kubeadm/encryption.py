# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Encryption of Secrets in etcd: the file with its keys, and the order in which keys are added and removed.

All control planes have the same keys. A key is used for writing only when all can read with it, and it is removed only
when nothing in etcd is encrypted with it any more. The files and etcd show the progress, so the next run continues
after a killed one.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
import typing as t

from .._common.result import FabricError, outcome
from .._host.control_plane import read_arguments
from .._host.files import Files, read_file, read_text
from .._host.kubectl import run_kubectl
from . import etcd_api, paths
from .live_change import API_SERVER, LiveChange, newer_files, put
from .lock import hold_lock
from .membership import host_name

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

IDENTITY = "identity"  # the provider that does not encrypt, and reads what is not encrypted
PREFIX = "key"
KEY_BYTES = 32  # for secretbox
REGISTRY = "/registry/secrets/"
PAGE = 200  # Secrets at a time
TRIES = 5  # attempts: Secrets that change in the meantime are written again
FLAG = "encryption-provider-config"
MODE = "0600"
HEAD = """\
# Keys of Secrets in etcd, the same on all control planes. ipu.fabric.rotate_encryption_key changes them.
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
  - resources:
      - secrets
    providers:
"""
KEY = """\
      - secretbox:
          keys:
            - name: {name}
              secret: {secret}
"""
PLAIN = "      - identity: {}\n"

SECRET_PART = re.compile(r"(?<=secret: ).+|[A-Za-z0-9+/=]{20,}")

Order = t.List[str]  # names of keys and `identity`; the first one writes, all can read
Keys = t.Dict[str, str]  # name -> secret in base64


class Steps(t.TypedDict):
    """Orders that every control plane goes through in sequence. Between the two lists, all Secrets are rewritten."""

    before: t.List[Order]
    after: t.List[Order]
    new: str  # name of the key used for writing at the end; empty: nothing is encrypted


def render(order: t.Sequence[str], keys: t.Mapping[str, str]) -> str:
    """An EncryptionConfiguration. The result is secret."""
    parts = [PLAIN if name == IDENTITY else KEY.format(name=name, secret=keys[name]) for name in order]
    return HEAD + "".join(parts)


def parse(text: str) -> t.Tuple[Order, Keys]:
    """Order and keys of a file that we wrote. The result is secret."""
    order: Order = []
    keys: Keys = {}
    for name, secret, plain in re.findall(r"- name: (\S+)\n\s+secret: (\S+)|(- identity: \{\})", text):
        order.append(IDENTITY if plain else name)
        if not plain:
            keys[name] = secret
    return order, keys


def foreign_lines(text: str) -> t.List[str]:
    """Lines of a file that were not written here and that the next step would lose, with keys redacted."""
    order, keys = parse(text)
    ours, lines = (
        [line.strip() for line in part.splitlines() if line.strip() and not line.strip().startswith("#")]
        for part in (render(order, keys), text)
    )
    if not lines or lines == ours:
        return []
    found = [line for line in lines if line not in ours] or ["its parts are in another order"]
    return [SECRET_PART.sub("...", line) for line in found]


def refuse_foreign(planes: t.Mapping[str, t.Sequence[str]]) -> None:
    """Refuse other resources and providers: data written with them could no longer be read."""
    found = {name: lines for name, lines in planes.items() if lines}
    if found:
        raise FabricError(
            "A file with keys of Secrets must be as this collection writes it, or what somebody added would be lost.",
            f"{paths.ENCRYPTION} on {', '.join(sorted(found))}",
            "; ".join(f"{name}: {', '.join(lines)}" for name, lines in sorted(found.items())),
            "Take these lines out on all control planes, once nothing in etcd needs them. Or keep them, and change keys"
            " by hand.",
            code="wrong-state",
        )


def find_source(planes: t.Mapping[str, t.Mapping[str, str]]) -> str:
    """The first control plane that has all keys, in whatever order. planes: digest by key name, by control plane."""
    names = {name for digests in planes.values() for name in digests}
    for plane, digests in planes.items():
        if names <= set(digests):
            return plane
    if not planes:
        return ""
    raise FabricError(
        "One control plane must have all keys of Secrets, so that the others can get them.",
        f"{paths.ENCRYPTION} on {', '.join(sorted(planes))}",
        "; ".join(f"{plane}: {', '.join(sorted(digests)) or 'none'}" for plane, digests in sorted(planes.items())),
        "Put the missing keys into the file of one of them, after the keys that it has.",
        code="wrong-state",
    )


def digest(secret: str) -> str:
    """Identifies a key without revealing anything about it."""
    return hashlib.sha256(secret.encode()).hexdigest()[:16]


def number(name: str) -> int:
    found = re.fullmatch(rf"{PREFIX}(\d+)", name)
    return int(found.group(1)) if found else 0


def unique(names: t.Iterable[str]) -> Order:
    return list(dict.fromkeys(names))


def plan_steps(orders: t.Mapping[str, Order], wanted: bool, rotate: bool) -> Steps:
    """The steps that bring all control planes to one key. Key names are numbered: the highest is the newest.

    orders: of each control plane, empty if it has no file. wanted: whether Secrets should be encrypted.
    """
    numbers = sorted({number(name) for order in orders.values() for name in order if number(name)})
    if not numbers and not wanted:
        return {"before": [], "after": [], "new": ""}
    if not numbers:
        numbers = [1]
    elif rotate and len(numbers) == 1 and all(order[:1] == [f"{PREFIX}{numbers[0]}"] for order in orders.values()):
        numbers = [numbers[0], numbers[0] + 1]
    new, old = f"{PREFIX}{numbers[-1]}", [f"{PREFIX}{each}" for each in numbers[:-1]]
    if all(order == [new, IDENTITY] for order in orders.values()):
        return {"before": [], "after": [], "new": new}
    former = old or [IDENTITY]
    before = [unique([*former, new, IDENTITY]), unique([new, *old, IDENTITY])]
    return {"before": before, "after": [[new, IDENTITY]] if old else [], "new": new}


def target(current: t.Sequence[str], steps: t.Sequence[Order], step: int) -> Order:
    """The order of a control plane after a step: one that is further ahead stays there."""
    passed = [index for index, order in enumerate(steps) if order == list(current)]
    return list(steps[max([step, *passed])])


def check_same(planes: t.Mapping[str, t.Mapping[str, str]]) -> None:
    """Refuse different keys with the same name. planes: digest by key name, by control plane."""
    for name in sorted({name for digests in planes.values() for name in digests}):
        found = {digests[name]: plane for plane, digests in planes.items() if name in digests}
        if len(found) > 1:
            raise FabricError(
                "Control planes have different keys under one name, so one can't read what another has written.",
                f"{paths.ENCRYPTION} on {', '.join(sorted(found.values()))}",
                f"two keys {name}",
                "Find out which one etcd has been written with, and copy that file to the others.",
                code="wrong-state",
            )


def generate() -> str:
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def count_stale(values: t.Iterable[str], key: str) -> int:
    """How many values of etcd were not written with a key. They are in base64, and none of them is kept."""
    prefix = f"k8s:enc:secretbox:v1:{key}:".encode()
    return sum(not base64.b64decode(value).startswith(prefix) for value in values)


def stale_secrets(key: str) -> int:
    """The number of Secrets in etcd that were not written with a key."""
    start, stale = REGISTRY, 0
    while True:
        end = REGISTRY[:-1] + "0"
        answer = etcd_api.ask("/v3/kv/range", {"key": encode(start), "range_end": encode(end), "limit": PAGE})
        found = answer.get("kvs") or []
        stale += count_stale((each.get("value", "") for each in found), key)
        if not answer.get("more") or not found:
            return stale
        start = base64.b64decode(found[-1]["key"]).decode() + "\0"


class Encryption:
    """The encryption file of this control plane."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module

    def read(self) -> t.Dict[str, object]:
        text = read_text(paths.ENCRYPTION)
        order, keys = parse(text)
        asked = self.module.params.get("secrets")  # ipu.fabric.control_plane never asks for them
        if asked:  # for the other control planes, whose files would lack foreign lines
            refuse_foreign({host_name(): foreign_lines(text)})
        found: t.Dict[str, object] = {
            "changed": False,
            "order": order,
            "digests": {name: digest(secret) for name, secret in keys.items()},
            "foreign": foreign_lines(text),
            "used": self.is_used(),
        }
        return {**found, "keys": keys} if asked else found

    def is_used(self) -> bool:
        """Whether the API server of this host uses the file."""
        return read_arguments(paths.ROOT).get(API_SERVER, {}).get(FLAG) == paths.ENCRYPTION

    def present(self) -> t.Dict[str, object]:
        if self.module.check_mode:
            order, _keys = parse(read_text(paths.ENCRYPTION))
            wanted = target(order, self.module.params["steps"], self.module.params["step"])
            return outcome({"order": order}, {"order": wanted})
        with hold_lock(self.module.params["lock_timeout"]):
            former = read_text(paths.ENCRYPTION)
            order, keys = parse(former)
            wanted = target(order, self.module.params["steps"], self.module.params["step"])
            if order != wanted:
                refuse_foreign({host_name(): foreign_lines(former)})
            stale = self.is_used() and newer_files(API_SERVER, [paths.ENCRYPTION])
            if order != wanted or stale:
                text = render(wanted, self.complete(wanted, keys))
                if self.is_used():
                    LiveChange(self.module).settle()
                    files: Files = {paths.ENCRYPTION: {"content": text, "mode": MODE}} if order != wanted else {}
                    LiveChange(self.module).apply(files, [API_SERVER])
                else:
                    put(paths.ENCRYPTION, text, MODE)
        return outcome({"order": order, "restart": stale}, {"order": wanted, "restart": False})

    def complete(self, wanted: t.Sequence[str], own: Keys) -> Keys:
        """The named keys: this host's, the given ones, or new ones."""
        given: Keys = self.module.params["keys"] or {}
        sources = {host_name(): own, "the control plane whose keys were given": given}
        check_same({place: {name: digest(key) for name, key in found.items()} for place, found in sources.items()})
        keys = {**given, **own}
        for name in wanted:
            if name != IDENTITY and name not in keys:
                if not self.module.params["generate"]:
                    raise FabricError(
                        "A control plane lacks a key that the others have.",
                        f"{host_name()}: {paths.ENCRYPTION}",
                        f"no {name}, and none was given",
                        "Run again with all control planes, without --limit.",
                        code="invalid-input",
                    )
                keys[name] = generate()
        return keys

    def copied(self) -> t.Dict[str, object]:
        """Copy another control plane's file, before this host becomes a control plane."""
        given: Keys = self.module.params["keys"] or {}
        steps: t.List[Order] = self.module.params["steps"]
        before = read_file(paths.ENCRYPTION)
        order, keys = parse(before["content"] if before else "")
        wanted = steps[0] if steps else []
        same = order == wanted and keys == given
        if not same and wanted and before:
            refuse_foreign({host_name(): foreign_lines(before["content"])})
        if not same and wanted and not self.module.check_mode:
            put(paths.ENCRYPTION, render(wanted, given), MODE)
        return {"changed": bool(wanted) and not same}

    def rewritten(self) -> t.Dict[str, object]:
        """Rewrite all Secrets with the first key, until etcd has no others."""
        key: str = self.module.params["key"]
        before = after = stale_secrets(key)
        for _try in range(TRIES):
            if not after or self.module.check_mode:
                break
            self.rewrite()
            after = stale_secrets(key)
        if after and not self.module.check_mode:
            raise FabricError(
                "Some Secrets could not be written with the new key.",
                f"etcd of {host_name()}, {REGISTRY}",
                f"{after} of them are left after {TRIES} attempts",
                "See why with kubectl get secrets --all-namespaces; a webhook may refuse to update them. Then run"
                " again: all keys are still there.",
                code="command-failed",
            )
        return outcome({"not_written_with_it": before}, {"not_written_with_it": 0})

    def rewrite(self) -> None:
        """Update every Secret with its own content. One that somebody changes or deletes meanwhile is not touched."""
        go_on = ""
        while True:
            page = self.kubectl("get", "--raw", f"/api/v1/secrets?limit={PAGE}{go_on}")
            listed = json.loads(page)
            items = [{"apiVersion": "v1", "kind": "Secret", **item} for item in listed.get("items") or []]
            if items:
                self.kubectl(
                    "replace", "-f", "-", data=json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
                )
            token = listed.get("metadata", {}).get("continue")
            if not token:
                return
            go_on = f"&continue={token}"

    def kubectl(self, *arguments: str, data: str = "") -> str:
        timeout = self.module.params["timeout"]
        done = run_kubectl(paths.ADMIN, *arguments, request_timeout="60s", timeout=timeout, data=data)
        # A Secret may have changed or been deleted since: the count in etcd shows what is left.
        if done.rc != 0 and not data:
            raise FabricError(
                "Secrets can't be read, so they can't be written with the new key.",
                host_name(),
                (done.err.strip().splitlines() or ["timed out"])[-1],
                "Start the API server, then run again: all keys are still there.",
                code=done.code,
            )
        return done.out


def run(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.secrets_encryption)."""
    encryption = Encryption(module)
    bodies = {
        "read": encryption.read,
        "present": encryption.present,
        "copied": encryption.copied,
        "rewritten": encryption.rewritten,
    }
    return bodies[module.params["state"]]()

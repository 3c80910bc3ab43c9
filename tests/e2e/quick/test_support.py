"""The archive of a finished cluster: what is in it, what it shows, and none of the secrets that this cluster has."""

from __future__ import annotations

import base64
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import Bed


def archives(bed: Bed) -> set[Path]:
    return set(bed.artifacts.glob("support-*"))


@pytest.fixture
def secrets(finished: Bed) -> Iterator[dict[str, str]]:
    """A line of each key, and the second half of a token for hosts that join."""
    token = finished.on("cp1", "kubeadm token create --ttl 15m").strip()
    name = token.partition(".")[0]
    admin = re.search(r"client-key-data: (\S+)", finished.on("cp1", "cat /etc/kubernetes/admin.conf"))
    stored = finished.kubectl(f"-n kube-system get secret bootstrap-token-{name}")["data"]["token-secret"]
    assert admin
    try:
        yield {
            "service accounts": finished.on("cp1", "cat /etc/kubernetes/pki/sa.key").splitlines()[1],
            "administrator": base64.b64decode(admin[1]).decode().splitlines()[1],
            "administrator, in base64": admin[1][40:100],  # behind the words that all keys begin with
            "token": base64.b64decode(stored).decode(),
        }
    finally:
        finished.on("cp1", f"kubeadm token delete {name}")


def test_check_mode_writes_no_archive(finished: Bed) -> None:
    before = archives(finished)
    result = finished.play("support", "--check")
    assert (result.code, result.changed()) == (0, {"cp1": 1})  # it says what would be written
    assert "This would write " in result.text
    assert archives(finished) == before


def test_an_archive_of_a_finished_cluster(finished: Bed, secrets: dict[str, str]) -> None:
    before, state = archives(finished), finished.state()
    result = finished.play("support", "-vvv")
    assert (result.code, result.changed()) == (0, {"cp1": 1})
    assert "Everything was collected" in result.text
    assert finished.state() == state
    [path] = archives(finished) - before
    assert path.stat().st_mode & 0o777 == 0o600
    with tarfile.open(path) as archive:
        files = {each.name.partition("/")[2]: archive.extractfile(each) for each in archive if each.isfile()}
        texts = {name: file.read().decode() for name, file in files.items() if file}
    assert set(texts) >= {
        *("about.json", "plan.json", "report.json", "probe.json", "observations.json", "cluster/objects.json"),
        *(f"hosts/{host}/{unit}.log" for host in ("cp1", "w1") for unit in ("kubelet", "containerd")),
    }
    for whose, secret in secrets.items():
        found = [name for name, text in {**texts, "the output": result.text}.items() if secret in text]
        assert found == [], f"the secret of: {whose}"

    judged = finished.play("support", fabric_support_bundle=str(path))
    assert (judged.code, judged.changed()) == (0, {})
    assert set(judged.recap) == {"localhost"}
    assert re.findall(r"(?:ERROR|UNPROVEN) \w+, .*", judged.text) == []
    for finding in finished.plan()["findings"]:
        assert f"{finding['level'].upper()} plan, {finding['check']}: " in judged.text

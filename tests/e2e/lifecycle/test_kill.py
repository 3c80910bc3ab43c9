"""Runs that are killed, one after another on the same hosts, each further on than the one before.

The run after them ends as an unbroken one. The process group on the controller gets SIGKILL, so nothing is tidied up,
and what runs on a host at that moment goes on there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import Bed


def running(bed: Bed, host: str, pattern: str) -> Callable[[str], bool]:
    """A program runs on a host. It may be over in a second, so the host itself looks out for it."""
    lookout = bed.start_on(host, f"timeout 600 sh -c 'until pgrep -f \"{pattern}\"; do sleep 0.05; done'")
    return lambda _output: lookout.poll() is not None


def reached(role: str) -> Callable[[str], bool]:
    """The first task of a role that has a result: the role is at work."""
    return lambda output: "\nchanged: " in output.partition(f"TASK [ipu.fabric.{role} : ")[2]


MOMENTS: dict[str, Callable[[Bed], Callable[[str], bool]]] = {
    "packages": lambda bed: running(bed, "w1", "[d]pkg .*--unpack|[d]pkg .*--configure"),
    "kubeadm init": lambda bed: running(bed, "cp1", "[k]ubeadm init"),
    "kubeadm join": lambda bed: running(bed, "w1", "[k]ubeadm join"),
    "network operator": lambda _bed: reached("network_operator"),
    "IPU operator": lambda _bed: reached("ipu_operator"),
}


@pytest.fixture(scope="module")
def broken(bed: Bed, unbroken: dict[str, Any]) -> Bed:
    """Fresh hosts, after the state of an unbroken run was taken."""
    bed.testbed("reset")
    return bed


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed(broken: Bed, moment: str) -> None:
    output = broken.play_until("site", MOMENTS[moment](broken))
    assert "PLAY RECAP" not in output


def test_next_run_ends_like_an_unbroken_one(broken: Bed, unbroken: dict[str, Any]) -> None:
    assert broken.play("site").code == 0
    state = broken.state()
    assert sorted(state) == sorted(unbroken)
    for name, part in unbroken.items():
        assert state[name] == part, name


def test_run_after_that_changes_nothing(broken: Bed) -> None:
    result = broken.play("site")
    assert result.code == 0
    assert result.changed() == {}

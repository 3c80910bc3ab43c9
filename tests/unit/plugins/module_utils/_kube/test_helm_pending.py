"""Releases that a helm was working on: one that was killed, or one that runs right now on somebody's machine."""

import base64
import datetime
import gzip
import json
import types

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.helm_record import RENDER_LABEL
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube import helm
from ansible_collections.ipu.fabric.plugins.module_utils._kube.helm_storage import NO_RENDER

NOW = datetime.datetime(2026, 11, 22, 12, 0, 0, tzinfo=datetime.timezone.utc)
TIMEOUT = 300


def revision(number, status, age, values=None):
    """A Secret as helm stores it, `age` seconds ago."""
    body = {
        "version": number,
        "info": {"status": status},
        "chart": {"metadata": {"name": "little", "version": "1.0.0"}},
        "config": values or {},
    }
    packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(body).encode()))).decode()
    stored = (NOW - datetime.timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata = {"name": f"v{number}", "creationTimestamp": stored, "labels": {RENDER_LABEL: NO_RENDER}}
    return {"metadata": metadata, "data": {"release": packed}}


class World:
    """A cluster with the revisions of a release, and a clock; `later` says what they become at a time."""

    def __init__(self, *revisions, later=None):
        self.revisions, self.later = list(revisions), later or {}
        self.seconds, self.deleted, self.upgraded, self.removed = 0.0, [], 0, 0

    def sleep(self, seconds):
        self.seconds += seconds
        for moment in sorted(self.later):
            if self.seconds >= moment:
                self.revisions = self.later[moment]

    def items(self, _path, **_query):
        return self.revisions

    def get(self, _path):
        return None

    def delete(self, path):
        self.deleted.append(path.rpartition("/")[2])


@pytest.fixture
def manage(monkeypatch):
    def run(world, check=False, state="present"):
        class Helm:
            def __init__(self, _module, _cluster):
                pass

            def __enter__(self):
                return self

            def __exit__(self, *error):
                pass

            def check_release(self):
                pass

            def pull(self):
                return ""

            def upgrade(self, _chart, _render):
                world.upgraded += 1

            def uninstall(self):
                world.removed += 1

        clock = types.SimpleNamespace(sleep=world.sleep, monotonic=lambda: world.seconds)
        monkeypatch.setattr(helm, "time", clock, raising=False)
        monkeypatch.setattr(helm, "utc_now", lambda: NOW + datetime.timedelta(seconds=world.seconds), raising=False)
        monkeypatch.setattr(helm, "connect", lambda _module: world)
        monkeypatch.setattr(helm, "Helm", Helm)
        monkeypatch.setattr(helm, "apply_object", lambda *_: ({}, {}))
        params = {
            "name": "little", "namespace": "ns", "namespace_labels": {}, "chart": "x/little", "chart_repo_url": "x",
            "chart_version": "1.0.0", "values": {}, "images": {}, "tolerations": [], "crds": False,
            "chart_sha256": "", "image_digests": {}, "renew": None, "timeout": TIMEOUT, "state": state,
        }  # fmt: skip
        return helm.manage_release(types.SimpleNamespace(params=params, check_mode=check))

    return run


def test_what_a_killed_run_left_long_ago_is_removed_at_once(manage):
    world = World(revision(1, "deployed", 9000, {"a": 1}), revision(2, "pending-upgrade", 8000))
    assert manage(world)["upgraded"]
    assert (world.seconds, world.deleted, world.upgraded) == (0, ["v2"], 1)


def test_a_helm_that_runs_now_is_waited_for_and_has_done_the_work(manage):
    young = [revision(1, "deployed", 9000, {"a": 1}), revision(2, "pending-upgrade", 10)]
    done = [revision(1, "superseded", 9000, {"a": 1}), revision(2, "deployed", 10)]
    world = World(*young, later={60: done})
    assert not manage(world)["upgraded"]
    assert 60 <= world.seconds < 90
    assert (world.deleted, world.upgraded) == ([], 0)


@pytest.mark.parametrize("state", ["present", "absent"])
def test_one_that_was_just_killed_is_taken_up_when_no_helm_can_be_at_work_any_more(manage, state):
    world = World(revision(1, "pending-install", 10))
    manage(world, state=state)
    assert TIMEOUT - 10 <= world.seconds <= TIMEOUT + 2 * helm.MARGIN
    assert (world.upgraded, world.removed) == ((1, 0) if state == "present" else (0, 1))


def test_a_clock_that_is_behind_the_servers_does_not_wait_for_ever(manage):
    world = World(revision(1, "pending-install", -86400))
    assert manage(world)["upgraded"]
    assert world.seconds <= TIMEOUT + 2 * helm.MARGIN


def test_somebody_who_begins_again_and_again_is_not_waited_for_without_an_end(manage):
    later = {number * 100: [revision(number + 1, "pending-upgrade", -number * 100)] for number in range(1, 20)}
    world = World(revision(1, "pending-upgrade", 0), later=later)
    with pytest.raises(FabricError, match="Another helm is at work") as caught:
        manage(world)
    assert "pending-upgrade" in caught.value.seen
    assert world.deleted == []


def test_check_mode_waits_for_nobody(manage):
    world = World(revision(1, "deployed", 9000), revision(2, "pending-upgrade", 10))
    assert manage(world, check=True)["diff"]["before"]["unfinished"] == ["revision 2 is pending-upgrade"]
    assert (world.seconds, world.deleted) == (0, [])

"""Recorded observations: what is one, and what a plan makes of hosts that it lacks."""

import gzip
import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.redaction import redact
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._plan.observation_cache import update_cache
from ansible_collections.ipu.fabric.plugins.module_utils._plan.recording import parse_recording, recorded
from ansible_collections.ipu.fabric.plugins.module_utils._support.archive import pack
from ansible_collections.ipu.fabric.plugins.plugin_utils._recording import read_recording
from ansible_collections.ipu.fabric.tests.unit.fixtures import recorded as sites
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import change, errors, finished, plan, site

TIME = "2026-11-23T09:30:00+00:00"


def bare(hosts):
    """What the inventory says of them."""
    return {name: {"groups": seen["groups"], "address": "", "errors": []} for name, seen in hosts.items()}


def recording_of(hosts):
    return parse_recording(json.dumps(update_cache(hosts, {}, TIME)), "seen.json")


@pytest.mark.parametrize("make", [site, finished])
def test_hosts_are_planned_as_they_were(make):
    hosts = make()
    recording = recording_of(hosts)
    assert recording.time == TIME
    assert plan(recorded(bare(hosts), recording)) == plan(hosts)


def test_a_host_without_a_recording_is_an_error():
    hosts = site()
    recording = recording_of(hosts)
    del recording.hosts["w2"]
    found = errors(plan(recorded(bare(hosts), recording)))["unobserved"]
    assert (found["hosts"], found["what"]) == (["w2"], "Every host must be in the recording.")
    assert "seen.json" in found["seen"]
    assert "remove the host from the inventory" in found["next"]


def test_a_host_that_was_down_is_planned_from_its_last_answer():
    hosts = site()
    recording = recording_of(hosts)
    recording.hosts["w2"]["when"] = "2026-11-20T09:30:00+00:00"
    planned = plan(recorded(bare(hosts), recording))
    assert "did not answer when the others were recorded" in errors(planned)["unobserved"]["seen"]
    assert planned["hosts"] == plan(hosts)["hosts"]


def test_a_recording_of_other_hosts():
    with pytest.raises(FabricError, match="the recording is of cp1, w1, w2"):
        recorded({"x1": {"groups": [], "address": "", "errors": []}}, recording_of(site()))


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        (("host", "cpus"), "8", 'w1: host.cpus is "8", not a whole number'),
        (("host", "swap"), {}, "w1: host.swap is {}, not a list"),
        (("host", "disk_mb"), [], "w1: host.disk_mb is [], not an object"),
        (("host", "kubelet"), {"present": False}, "w1: host.kubelet.cluster is missing"),
        (("rdma", "links"), [[]], "w1: rdma.links.0 is [], not an object"),
        (("rdma", "links", 1, "rate_gbps"), "fast", 'w1: rdma.links.1.rate_gbps is "fast", not a number'),
        (("host",), {}, "w1: host.architecture is missing"),
    ],
)
def test_a_recording_that_lacks_what_is_planned_from(where, value, said):
    kept = update_cache(site(), {}, TIME)
    change(where, value)(kept, ["w1"])
    with pytest.raises(FabricError) as error:
        parse_recording(json.dumps(kept), "seen.json")
    assert error.value.seen == said
    assert "observations.json" in error.value.next_step


@pytest.mark.parametrize("text", ["[]", "{}", '{"w1": 1}', '{"w1": {"when": "2026"}}'])
def test_what_is_no_recording(text):
    with pytest.raises(FabricError, match=r"seen\.json"):
        parse_recording(text, "seen.json")


def test_an_archive_of_support_has_one(tmp_path):
    """Cleaned of what might be a secret."""
    hosts = site()
    kept = redact({"observations.json": update_cache(hosts, {}, TIME)})
    path = tmp_path / "support.tar.gz"
    path.write_bytes(pack("support", {"observations.json": json.dumps(kept["observations.json"])}, 0))
    planned = plan(recorded(bare(hosts), read_recording(str(path))))
    assert planned["findings"] == []
    assert planned["networks"] == plan(hosts)["networks"]


@pytest.mark.parametrize("data", [b"", b"\x1f\x8b\x08\x00", b"text"])
def test_a_file_that_is_not_compressed(tmp_path, data):
    path = tmp_path / "seen.json.gz"
    path.write_bytes(data)
    with pytest.raises(FabricError, match="fabric_observations: "):
        read_recording(str(path))


def test_recorded_sites_are_those_of_the_fixture():
    """As Git has them: hack/recorded_sites.py writes them."""
    folder = ROOT / "inventories/recorded"
    there = {path.name: json.loads(gzip.decompress(path.read_bytes())) for path in folder.glob("*.gz")}
    assert there == json.loads(json.dumps(sites.files())), "run: make docs"

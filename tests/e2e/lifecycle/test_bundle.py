"""A site without the internet: a bundle is made where there is a mirror, and hosts without it install from that."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import HOSTS, Bed

# Between each other and with the controller, which comes first; of everything else each packet is counted.
OFFLINE = """
table inet offline {{
  set own {{ type ipv4_addr; flags interval; elements = {{ {own} }} }}
  chain output {{
    type filter hook output priority 0; policy drop;
    oifname "lo" accept
    ct state established,related accept
    ip daddr @own accept
    oifname {{ "cni*", "cali*", "flannel*", "vxlan*", "veth*" }} accept
    meta l4proto ipv6-icmp accept
    counter reject
  }}
}}
"""


def cut_off(bed: Bed) -> None:
    """Hosts reach themselves, the controller, pods, services and the fabric, and not the mirror."""
    number = 70 + int(bed.number)
    own = ["127.0.0.0/8", f"10.{number}.0.1", f"10.{number}.0.11-10.{number}.0.16", "10.5.0.0/24", "10.244.0.0/16"]
    rules = OFFLINE.format(own=", ".join([*own, "10.96.0.0/12", "224.0.0.0/4"]))
    for host in HOSTS:
        name = f"ipu-fabric-{bed.number}-{host}"
        subprocess.run(["podman", "exec", "--interactive", name, "nft", "-f", "-"], input=rules, text=True, check=True)
        refused = bed.on(host, f"timeout 5 bash -c ': < /dev/tcp/10.{number}.0.2/80' && echo open || echo refused")
        assert refused.strip() == "refused"


@pytest.fixture(scope="module")
def bundle(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A bundle of this plan, made from the mirror. The hosts that were cut off from it are not left to others."""
    directory = tmp_path_factory.mktemp("media") / "bundle"
    bed.fresh()
    assert bed.play("plan").code == 0
    made = bed.play("bundle", fabric_bundle=str(directory))
    assert made.code == 0
    yield directory
    bed.testbed("reset")


def test_the_second_run_fetches_nothing(bed: Bed, bundle: Path) -> None:
    for arguments in ((), ("--check",)):
        again = bed.play("bundle", *arguments, fabric_bundle=str(bundle))
        assert (again.code, again.changed()) == (0, {})
    sums = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=bundle, check=False)
    assert sums.returncode == 0


def test_a_damaged_file_is_named_and_fetched_again(bed: Bed, bundle: Path) -> None:
    chart = next((bundle / "charts").glob("network-operator-*.tgz"))
    chart.write_bytes(b"damaged")
    refused = bed.play("plan", fabric_bundle=str(bundle))
    assert refused.code != 0
    assert [finding["check"] for finding in bed.errors()] == ["bundle"]
    assert chart.name in bed.errors()[0]["seen"]
    assert bed.play("plan").code == 0
    assert bed.play("bundle", fabric_bundle=str(bundle)).code == 0
    assert chart.stat().st_size > 100


def test_other_releases_are_refused(bed: Bed, bundle: Path) -> None:
    refused = bed.play("site", fabric_bundle=str(bundle), fabric_network_operator_version="26.1.2")
    assert refused.code != 0
    assert "instead of 26.1.2" in " ".join(refused.text.split())
    assert refused.changed().keys() <= {"cp1"}  # the plan itself


def test_site_without_any_other_source(bed: Bed, bundle: Path) -> None:
    bed.testbed("reset")
    cut_off(bed)
    before = bed.fingerprint()
    assert bed.play("site", "--check", fabric_bundle=str(bundle)).code == 0
    assert bed.fingerprint() == before
    assert bed.play("site", fabric_bundle=str(bundle)).code == 0
    again = bed.play("site", fabric_bundle=str(bundle))
    assert (again.code, again.changed()) == (0, {})
    listed = json.loads((bundle / "bundle.json").read_text())
    for host in HOSTS:
        images = bed.on(host, "ctr --namespace k8s.io images list")
        wanted = [image["name"] for image in listed["images"] if host == "cp1" or not image["control_plane"]]
        lines = {line.split()[0]: line for line in images.splitlines()}
        assert [name for name in wanted if "io.cri-containerd.pinned=pinned" not in lines.get(name, "")] == []
        assert "mirror" not in bed.on(host, "cat /etc/apt/sources.list.d/*.sources")

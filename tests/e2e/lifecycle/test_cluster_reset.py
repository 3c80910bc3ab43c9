"""The whole cluster is taken away, what others made on its hosts stays, and site builds it again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import HOSTS, Bed

# What a site has made beside the cluster: rules, a link, data, and files in directories that the roles write to.
MAKE = """
set -e
iptables -N SITE-ACCESS
iptables -A SITE-ACCESS -p tcp --dport 4242 -j ACCEPT
iptables -I INPUT -m comment --comment "site, not KUBE-FORWARD" -j SITE-ACCESS
iptables -t nat -A POSTROUTING -s 198.51.100.0/24 -j MASQUERADE
ip link add br-site type bridge
ip address add 198.51.100.1/24 dev br-site
mkdir -p /etc/site /srv/data
echo own >/etc/site/site.conf
echo own >/srv/data/results
echo net.ipv4.tcp_keepalive_time=600 >/etc/sysctl.d/50-site.conf
echo own >/etc/kubernetes/site-policy.yaml
"""
SHOW = """
iptables-save | grep -E 'SITE-|198.51.100.0'
ip -o link show br-site | grep -o 'br-site:'
ip -o address show br-site | grep -o '198.51.100.1/24'
sha256sum /etc/site/site.conf /srv/data/results /etc/sysctl.d/50-site.conf /etc/kubernetes/site-policy.yaml
ip -o link show eth1 | grep -o 'mtu [0-9]*'
"""
UNMAKE = """
iptables -D INPUT -m comment --comment "site, not KUBE-FORWARD" -j SITE-ACCESS
iptables -F SITE-ACCESS
iptables -X SITE-ACCESS
iptables -t nat -D POSTROUTING -s 198.51.100.0/24 -j MASQUERADE
ip link delete br-site
rm -rf /etc/site /srv/data /etc/sysctl.d/50-site.conf /etc/kubernetes/site-policy.yaml
"""
PACKAGES = "kubelet kubeadm kubectl kubernetes-cni containerd.io"
PATHS = """
    /etc/kubernetes/*.conf /etc/kubernetes/pki /etc/kubernetes/manifests /var/lib/etcd/member /var/lib/kubelet/pki
    /etc/cni /etc/containerd/conf.d /etc/containerd/certs.d /etc/systemd/system/containerd.service.d /etc/crictl.yaml
    /etc/modules-load.d/kubernetes.conf /etc/sysctl.d/99-z-kubernetes.conf /var/lib/ipu-fabric
    /etc/apt/sources.list.d/kubernetes.sources /etc/apt/sources.list.d/containerd.sources /etc/apt/keyrings/kubernetes*
"""
LEFT = f"""
dpkg-query -W -f '${{Package}} ${{Status}}\\n' {PACKAGES} 2>/dev/null | grep 'ok installed'
iptables-save | grep -v SITE-ACCESS | grep -E 'KUBE-|FLANNEL-'
ip -o link show | grep -E ': (cni0|flannel|veth)'
ls -d {" ".join(PATHS.split())} 2>/dev/null
apt-mark showhold
pgrep -l 'kubelet|containerd|etcd|kube-'
ls /run/netns 2>/dev/null | grep '^cni-'
true
"""


@pytest.fixture(scope="module")
def furnished(bed: Bed, unbroken: dict[str, Any]) -> Iterator[Bed]:
    """A finished cluster on hosts on which a site has made things of its own."""
    if bed.hosts != "finished":  # they may have another runtime
        bed.fresh()
    bed.finish()
    for host in HOSTS:
        bed.on(host, MAKE)
    yield bed
    for host in HOSTS:
        bed.on(host, UNMAKE, check=False)
    bed.hosts = "used"


def name_of(bed: Bed) -> str:
    """The name that the playbook asks for."""
    result = bed.play("reset", fabric_reset="cluster")
    assert result.code != 0
    found = re.search(r"-e fabric_reset_name=([^\s\"']+?)\.(?=[\s\"'])", result.shown)
    assert found, result.tail()
    return found.group(1)


def test_it_asks_for_the_name(furnished: Bed) -> None:
    before = furnished.state()
    listing = furnished.play("reset", fabric_reset="cluster")
    assert listing.code != 0
    shown = " ".join(listing.shown.split())
    for part in ("cni0", "flannel.1", "kubelet", "/var/lib/etcd", "KUBE-"):
        assert part in shown, part
    for part in ("SITE-", "br-site", "site-policy"):
        assert part not in shown, part
    wrong = furnished.play("reset", fabric_reset="cluster", fabric_reset_name="kubernetes")
    assert wrong.code != 0
    assert furnished.state() == before


def test_check_mode(furnished: Bed) -> None:
    before = furnished.state()
    checked = furnished.play("reset", "--check", fabric_reset="cluster", fabric_reset_name=name_of(furnished))
    assert checked.code == 0
    assert checked.changed() == {"cp1": 2, "w1": 1}  # the hosts, and the files of the proof on the controller
    assert furnished.state() == before


def test_it_takes_away_what_was_installed_and_nothing_else(furnished: Bed) -> None:
    theirs = [furnished.on(host, SHOW) for host in HOSTS]
    name = name_of(furnished)
    result = furnished.play("reset", fabric_reset="cluster", fabric_reset_name=name)
    assert result.code == 0
    assert [furnished.on(host, SHOW) for host in HOSTS] == theirs
    assert [furnished.on(host, LEFT) for host in HOSTS] == ["", ""]
    again = furnished.play("reset", fabric_reset="cluster", fabric_reset_name=name)
    assert (again.code, again.changed()) == (0, {})


def test_a_mirror_without_the_images_is_noticed_before_a_host_is_changed(furnished: Bed) -> None:
    """The testbed's has Calico's manifests, and its images only when they are asked for."""
    for arguments in (["--check"], []):
        result = furnished.play("site", *arguments, fabric_cni="calico")
        assert result.code != 0
        shown = " ".join(result.shown.split())
        assert (
            "A source does not have quay.io/calico/node:v" in shown or "A source does not have quay.io/tigera" in shown
        ), result.tail()
        assert "(fabric_mirror.registry)" in shown
        assert [furnished.on(host, LEFT) for host in HOSTS] == ["", ""]


def test_site_works_right_after(furnished: Bed, unbroken: dict[str, Any]) -> None:
    assert furnished.play("site").code == 0
    again = furnished.play("site")
    assert (again.code, again.changed()) == (0, {})
    state = furnished.state()
    for name in unbroken:
        if name not in HOSTS:
            assert state[name] == unbroken[name], name


def test_a_killed_reset_is_finished_by_the_next(furnished: Bed) -> None:
    name = name_of(furnished)
    given = {"fabric_reset": "cluster", "fabric_reset_name": name}
    furnished.variables.update(given)
    try:
        furnished.play_until("reset", lambda output: "\nchanged: [w1]" in output)
    finally:
        for key in given:
            del furnished.variables[key]
    assert furnished.play("reset", **given).code == 0
    assert [furnished.on(host, LEFT) for host in HOSTS] == ["", ""]

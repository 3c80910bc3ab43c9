"""Bars of addresses: their parts are the whole subnet, and each can be seen."""

import ipaddress

import pytest
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.address_bars import LEAST, bars, figure, widths
from ansible_collections.ipu.fabric.tests.unit.fixtures import pages, site
from hypothesis import given
from hypothesis import strategies as st


@given(st.lists(st.integers(0, 2**64), min_size=4, max_size=4).filter(any))
def test_widths_fill_the_bar_and_nothing_vanishes(counts):
    found = widths(counts)
    assert sum(found) == pytest.approx(100)
    for number, width in zip(counts, found):
        assert width == 0 if number == 0 else width > LEAST / 2


@pytest.mark.parametrize("size", pages.PLANS)
def test_the_parts_of_a_bar_are_the_subnet(size):
    plan = pages.PLANS[size]()
    found = bars(plan)
    assert [one.cidr for one in found] == [subnet["cidr"] for n in plan["networks"] for subnet in n["subnets"]]
    for one in found:
        assert one.size == ipaddress.ip_network(one.cidr).num_addresses
        assert all(part.number >= 0 for part in one.parts)
        assert one.parts[-1].start + one.parts[-1].width == pytest.approx(100)


def test_what_each_address_is_for():
    """A /24: two hosts and a gateway in the lower half, four reserved addresses in the upper one."""
    networks = [{"name": "rdma-net", "gateway": "10.5.0.1", "reserved": ["10.5.0.200-10.5.0.203"]}]
    (one,) = bars(site.plan(site.site(), networks=networks, ipam="whereabouts"))
    assert {part.kind: part.number for part in one.parts} == {"hosts": 2, "kept": 131, "pods": 16, "free": 107}
    assert one.alternative == (
        "rdma-net, 10.5.0.0/24: 256 addresses: 2 hosts, 131 never for pods, 16 planned pods, 107 free"
    )


def test_an_ipv6_subnet_has_its_bar():
    hosts = site.site()
    for number, observed in enumerate(hosts.values(), 11):
        observed["rdma"]["links"][1]["addresses"] = [{"address": f"fd00:5::{number:x}", "prefix": 64}]
        observed["rdma"]["routes"], observed["vipu"] = {}, {}
    (one,) = bars(site.plan(hosts, ipu=False, ipam="whereabouts"))
    assert one.size == 2**64
    assert "1.8 · 10¹⁹ addresses" in one.alternative


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (65536, "65,536"), (2**64, "1.8 · 10¹⁹")])
def test_figures_are_short(number, text):
    assert figure(number) == text

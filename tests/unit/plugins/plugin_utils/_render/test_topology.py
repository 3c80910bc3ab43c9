"""The drawing of a plan: nothing overlaps, text fits, and each host is in it once."""

import itertools

import pytest
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.topology import (
    ALONE,
    CHARACTER,
    GPUS,
    LINE,
    PADDING,
    ROWS,
    Cell,
    Column,
    Line,
    Row,
    alike,
    common_domain,
    draw,
    rows,
    shorten,
    span,
    topology,
)
from ansible_collections.ipu.fabric.tests.unit.fixtures import pages, site
from hypothesis import given, settings
from hypothesis import strategies as st

PLANS = {size: make() for size, make in pages.PLANS.items()}
texts = st.text("abcdefghijklmnopqrstuvwxyz0123456789.-", max_size=60)
cells = st.builds(Cell, st.lists(st.builds(Line, texts), min_size=1, max_size=6), texts)
keys = ["", "a", "b", "c"]
grids = st.tuples(
    st.lists(cells, min_size=1, max_size=4).map(lambda heads: [Column(*each) for each in zip(keys, heads)]),
    st.lists(
        st.tuples(st.sampled_from(["x", "y"]), cells, st.lists(cells, max_size=1), st.booleans()),
        min_size=1,
        max_size=6,
    ).map(
        lambda found: [
            Row(section, "host", label, dict(zip(keys, mine)), dict(zip(keys, mine if gpus else ())))
            for section, label, mine, gpus in found
        ]
    ),
)


def apart(a, b):
    return a.x + a.width <= b.x or b.x + b.width <= a.x or a.y + a.height <= b.y or b.y + b.height <= a.y


def assert_sound(drawing):
    for a, b in itertools.combinations(drawing.boxes, 2):
        assert apart(a, b), (a, b)
    for box in drawing.boxes:
        assert box.x >= 0
        assert box.y >= 0
        assert box.x + box.width <= drawing.width
        assert box.y + box.height <= drawing.height
        assert len(box.lines) * LINE <= box.height
        assert all(len(line.text) * CHARACTER <= box.width - 2 * PADDING for line in box.lines)
    for heading in drawing.headings:
        assert not any(box.x == 0 and box.y < heading.y < box.y + box.height for box in drawing.boxes)


@pytest.mark.parametrize("size", PLANS)
def test_nothing_overlaps_and_text_fits(size):
    assert_sound(topology(PLANS[size]))


@settings(max_examples=60, deadline=None)
@given(grids)
def test_whatever_is_drawn_is_sound(grid):
    assert_sound(draw(*grid, "a drawing"))


@pytest.mark.parametrize("size", PLANS)
def test_each_host_is_in_one_row(size):
    named = [name for group in alike(PLANS[size]) for name, _host in group]
    assert sorted(named) == sorted(PLANS[size]["hosts"])


def test_few_hosts_have_a_row_each_and_many_share_one():
    assert [len(group) for group in alike(PLANS["16 hosts"])] == [1] * 16
    groups = alike(PLANS["200 hosts"])
    assert [len(group) for group in groups] == [3, 195, 1, 1]
    assert [group[0][0] for group in groups[2:]] == ["h0005", "h0042"]  # more GPUs, and a slower port


def test_hosts_that_all_differ_do_not_make_an_endless_drawing():
    many = {f"w{n}": site.host(n, ["kube_node"]) for n in range(12, 12 + ROWS + ALONE)}
    for number, observed in enumerate(many.values()):
        observed["rdma"]["links"][1]["device"] = f"mlx5_{number}"
    plan = site.plan({"cp1": site.host(11, ["kube_control_plane"]), **many})
    drawn = [row for row in rows(plan) if row.kind == "host"]
    assert len(drawn) == ROWS
    assert drawn[-1].label.lines[0].text == f"{1 + len(many) - (ROWS - 1)} more hosts"


def test_without_a_network_the_hosts_own_nics_have_a_column():
    drawing = topology(site.plan(site.site(), networks=[]))
    assert_sound(drawing)
    assert "RDMA of the host" in [line.text for box in drawing.boxes for line in box.lines]


def test_controllers_stand_on_the_network_of_their_address():
    controller = rows(PLANS["16 hosts"])[-1]
    assert controller.section == "V-IPU controllers"
    assert {key: cell.lines[0].text for key, cell in controller.cells.items()} == {"rail0": "10.16.9.9:8090"}
    assert controller.label.lines[1].text == "serves 13 hosts"


def test_gpus_stand_below_the_nic_that_is_nearest():
    drawing = topology(PLANS["16 hosts"])
    nics = [box for box in drawing.boxes if box.kind == "nic host" and "mlx5_3" in box.lines[0].text]
    gpus = [box for box in drawing.boxes if box.kind == "gpu" and box.lines[0].text == "GPU 3 4b:00.0"]
    assert len(nics) == len(gpus) == 13
    for nic, gpu in zip(nics, gpus):
        assert (gpu.x, gpu.width) == (nic.x, nic.width)
        assert 0 < gpu.y - nic.y - nic.height < LINE
        assert gpu.title == "GPU 3 0000:4b:00.0 10de:2330"
    labels = {row.label.lines[0].text: [line.text for line in row.label.lines] for row in rows(PLANS["16 hosts"])}
    assert "2 GPUs near no fabric NIC" in labels["h0005"]
    assert "106 GPUs" in drawing.alternative


@pytest.mark.parametrize(
    ("number", "shown"),
    [(2, ["GPU 0 10:00.0", "GPU 1 11:00.0"]), (GPUS + 1, [f"{GPUS + 1} GPUs, 0 to {GPUS}"])],
)
def test_many_gpus_at_one_nic_are_counted(number, shown):
    """Also on a host with another NIC that is as near to all of them."""
    seen = site.host(11, ["kube_control_plane", "kube_node"])
    seen["rdma"]["gpus"] = [
        {"pci": f"0000:1{each}:00.0", "path": "pci0000:80/gpu", "numa_node": 0} for each in range(number)
    ]
    networks = [{"name": name, "select": {"name": "ens1f0"}} for name in ("a", "b")]
    found = [box for box in topology(site.plan({"w1": seen}, networks=networks)).boxes if box.kind == "gpu"]
    assert [[line.text for line in box.lines] for box in found] == [shown] * 2


def test_a_host_with_errors_says_so():
    labels = {row.label.lines[0].text: row.label.lines[-1] for row in rows(PLANS["16 hosts"])}
    assert labels["h0007"] == Line("has errors", "error")
    assert labels["h0011"] == Line("has warnings", "warning")


@pytest.mark.parametrize(
    ("addresses", "shown"),
    [
        ([], []),
        (["10.0.0.9"], ["10.0.0.9"]),
        (["10.0.0.10", "10.0.0.9", "10.0.0.9"], ["10.0.0.9", "to 10.0.0.10"]),
        (["fd00::2", "fd00::1"], ["fd00::1", "to fd00::2"]),
        (["w2.site", "w1.site"], ["w1.site", "to w2.site"]),
    ],
)
def test_addresses_are_told_from_first_to_last(addresses, shown):
    assert span(addresses) == shown


@pytest.mark.parametrize(
    ("names", "domain"),
    [
        (["w1.rack.site", "w2.rack.site"], ".rack.site"),
        (["w1.rack.site", "w2.site"], ""),
        (["w1", "w2"], ""),
        (["w1.rack.site"], ""),
    ],
)
def test_a_domain_that_all_hosts_have_is_left_out(names, domain):
    assert common_domain(names) == domain


@given(texts, st.integers(3, 70))
def test_what_is_too_long_keeps_its_ends(text, most):
    short = shorten(text, most)
    assert len(short) == min(len(text), most)
    assert (short[0], short[-1]) == (text[0], text[-1]) if text else short == ""

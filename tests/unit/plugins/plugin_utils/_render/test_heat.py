"""Heat maps: the colour of a figure says how far it is from the usual one, and nothing that is unproven is green."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import FAILED, PASSED, result, unproven
from ansible_collections.ipu.fabric.plugins.module_utils._verify.matrix import matrices
from ansible_collections.ipu.fabric.plugins.plugin_utils._render import heat


def write(a, b, value=97.8, good=True):
    place = {"pair": (a, b), "network": "rail0", "value": value, "unit": "Gb/s"}
    return result("write_bandwidth", good, "", f"{value} Gb/s", **place)


def ring(*bad):
    """All pairs of five nodes, of which those of the bad ones are slow."""
    nodes = ["w1", "w2", "w3", "w4", "w5"]
    slow = set(bad)
    return [write(a, b, 31.5 if slow & {a, b} else 97.8, not slow & {a, b}) for a in nodes for b in nodes if a != b]


@pytest.mark.parametrize(
    ("value", "more_is_better", "style"),
    [
        (100, True, "heat0"),
        (120, True, "heat0"),  # better than usual
        (95, True, "heat0"),
        (94, True, "heat1"),
        (89, True, "heat2"),
        (79, True, "heat3"),
        (0, True, "heat3"),
        (90, False, "heat0"),
        (106, False, "heat1"),
        (119, False, "heat2"),
        (300, False, "heat3"),
    ],
)
def test_a_colour_is_how_much_worse_a_figure_is(value, more_is_better, style):
    assert heat.shade(value, 100, more_is_better) == style


def test_every_style_is_explained():
    assert [style for style, _text in heat.KEY] == [f"heat{n}" for n in range(len(heat.STEPS) + 1)] + ["bad", "open"]


@pytest.mark.parametrize("status", ["unproven", "accepted"])
def test_what_is_unproven_is_never_green(status):
    place = {"pair": ("a", "b"), "network": "n", "value": 97.8, "unit": "Gb/s"}
    check = unproven("write_bandwidth", "97.8 Gb/s", "x", **place)._replace(status=status)
    assert heat.cell(check, "write_bandwidth", 97.8)[:3] == ("97.8", "open", status)
    assert heat.cell_of_node([check, write("a", "c")], "write_bandwidth", 97.8).style == "open"


def test_a_cell_tells_its_status_in_a_word():
    assert heat.cell(write("a", "b", 31.5, good=False), "write_bandwidth", 97.8) == ("31.5", "bad", FAILED, "31.5 Gb/s")
    assert heat.cell(write("a", "b"), "write_bandwidth", 97.8) == ("97.8", "heat0", "", "")
    ping = result("full_size", True, "", "", pair=("a", "b"), network="n")
    assert heat.cell(ping, "full_size", 0).text == "yes"
    assert heat.cell(ping._replace(status=FAILED), "full_size", 0).text == "no"
    assert heat.cell(None, "ping", 0) == heat.EMPTY


def test_the_map_of_pairs_has_a_cell_for_each():
    found = heat.of_pairs(matrices(ring("w3"))[0])
    assert [len(cells) for _name, cells in found.rows] == [5] * 5
    styles = {name: [cell.style for cell in cells] for name, cells in found.rows}
    assert styles["w1"] == ["self", "heat0", "bad", "heat0", "heat0"]
    assert styles["w3"] == ["bad", "bad", "self", "bad", "bad"]


def test_of_two_nodes_that_failed_the_worse_is_first():
    """w1 has one good pair of two, w3 none of four: the middle of both is coloured alike."""
    pairs = [("w1", "w3"), ("w1", "w2"), ("w2", "w3"), ("w3", "w4"), ("w4", "w3")]
    (found,) = heat.of_nodes(matrices([write(a, b, good="w3" not in (a, b)) for a, b in pairs]))
    assert next(name for name, _cells in found.rows) == "w3"


def test_a_slow_node_is_first_and_its_peers_are_not_blamed():
    (found,) = heat.of_nodes(matrices(ring("w3")))
    assert [(name, cells[0].text, cells[0].style) for name, cells in found.rows[:2]] == [
        ("w3", "31.5", "bad"),
        ("w1", "97.8", "some"),
    ]
    assert found.rows[1][1][0].note == "2 of 8 failed"


def test_a_summary_has_the_figures():
    assert heat.summary(matrices(ring())[0]) == "20 pairs, none failed, 97.8"
    assert heat.summary(matrices(ring("w3"))[0]) == "20 pairs, 8 failed, 31.5 to 97.8, median 97.8"
    assert {check.status for check in ring()} == {PASSED}

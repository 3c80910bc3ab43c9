import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import Findings
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._common.text import natural, printable, shorten_list


@pytest.mark.parametrize(
    ("names", "most", "text"),
    [
        ([], 2, ""),
        (["a"], 2, "a"),
        (["a", "b"], 2, "a, b"),
        (["a", "b", "c"], 2, "a, b and 1 more"),
        (iter("abcde"), 2, "a, b and 3 more"),
    ],
)
def test_shorten_list(names, most, text):
    assert shorten_list(names, most) == text


def test_names_are_ordered_as_a_person_does():
    names = ["w10", "10.0.0.10", "cp1", "w9", "w1-gpu", "10", "w", "9a", "10.0.0.9"]
    assert sorted(names, key=natural) == ["9a", "10", "10.0.0.9", "10.0.0.10", "cp1", "w", "w1-gpu", "w9", "w10"]


def test_another_separator():
    assert shorten_list("abc", 2, "; ") == "a; b and 1 more"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("error: no route\n\tto 10.5.0.1 → ü", "error: no route\n\tto 10.5.0.1 → ü"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[Hall fine", "all fine"),  # clears the screen
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]52;c;cm0gLXJm\x1b\\text", "text"),  # writes the clipboard
        ("\x1b(Btext\x1b7", "text"),
        ("50%\r100%\x08", "50%100%"),
        ("a\u202eb\x00", "ab"),  # right to left
        ("\x1b", ""),
        ("\x1b]0;no end", "0;no end"),
        ("", ""),
    ],
)
def test_nothing_that_hosts_say_controls_a_terminal(said, shown):
    assert printable(said) == shown
    assert printable(shown) == shown


def test_errors_and_findings_are_printable():
    red = "\x1b[31mred\x1b[0m"
    assert str(FabricError(red, red, red, red)) == "red Where: red. Seen: red. Next: red"
    findings = Findings()
    findings.error("swap", ["w1"], red, red, red)
    assert "\x1b" not in str(findings.as_list()) + findings.as_list()[0]["seen"]

"""docs/requirements.md says what the tables of the plan say."""

import re

from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import CHECKS
from ansible_collections.ipu.fabric.plugins.module_utils._plan.host_sizes import KINDS, ROLES, SIZES, due_sizes
from ansible_collections.ipu.fabric.plugins.module_utils._plan.port_table import TABLE
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

PAGE = (ROOT / "docs/requirements.md").read_text(encoding="utf-8")


def rows(heading):
    """The cells of the first table below a heading."""
    part = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = re.findall(r"(?:^\|.*\|\n)+", part, re.MULTILINE)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_ports():
    expected = [[line.component, " ".join(map(str, line.port)), line.way, line.needed] for line in TABLE]
    assert rows("Ports between hosts") == expected


def test_the_sizes():
    seen = set()
    for role, cluster, cpus, memory, disk, less, _source in rows("Sizes"):
        [name] = [key for key, words in ROLES.items() if words == role]
        most = int(re.findall(r"\d+", cluster)[0]) if re.search(r"\d", cluster) else 10**6
        level = less.split()[-1]
        due = {size.kind: size for size in due_sizes(SIZES, [name], most) if size.level == level}
        said = dict(zip(KINDS, (cpus, memory, disk)))
        assert {kind: f"{size.least:g}" for kind, size in due.items()} == {
            key: text for key, text in said.items() if text
        }
        seen |= set(due.values())
    assert seen == set(SIZES)


def test_the_checks_that_it_names():
    named = set(re.findall(r"(?:error|[Cc]hecks?:|warns of|,) `([a-z]+-?[a-z]+)`", PAGE))
    assert {"host-ports", "cpus", "memory", "disk", "time", "ntp", "ntp-setup"} <= named | set(
        re.findall(r"`([a-z-]+)`", PAGE)
    )
    assert {"rail-nics", "pcie-link", "fabric-mtu", "host-ports", "ntp", "ntp-setup", "time"} <= set(CHECKS)

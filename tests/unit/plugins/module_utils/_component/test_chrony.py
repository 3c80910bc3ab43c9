"""What the role chrony writes, and which configuration of chrony would not read it."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component.chrony import Seen, decide, missing_lines
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults

# As the packages of Debian 12 and 13 and of Ubuntu 22.04 and 24.04 have them.
DEBIAN = """# Include configuration files found in /etc/chrony/conf.d.
confdir /etc/chrony/conf.d
pool 2.debian.pool.ntp.org iburst
sourcedir /run/chrony-dhcp
sourcedir /etc/chrony/sources.d
makestep 1 3
"""
CONFDIR, SOURCEDIR = "confdir /etc/chrony/conf.d", "sourcedir /etc/chrony/sources.d"


@pytest.mark.parametrize(
    ("conf", "missing"),
    [
        (DEBIAN, []),
        ("confdir /srv/x /etc/chrony/conf.d/\n\tsourcedir\t/etc/chrony/sources.d  # ours\n", []),
        ("confdir /etc/chrony/conf.d2\nsourcedir /etc/chrony/sources.d", [CONFDIR]),
        ("! confdir /etc/chrony/conf.d\nsourcedir /etc/chrony/sources.d", [CONFDIR]),
    ],
)
def test_lines_that_chrony_has_to_have(conf: str, missing: t.List[str]) -> None:
    assert missing_lines(conf) == missing


@pytest.mark.parametrize(
    ("conf", "seen"),
    [
        ("server ntp.old\n", f"no line {CONFDIR}, nor {SOURCEDIR}"),
        (DEBIAN.replace("sourcedir /etc", "#sourcedir /etc"), f"no line {SOURCEDIR}"),
        (None, f"no such file, and no line {CONFDIR}"),
    ],
)
def test_a_configuration_that_reads_no_directories_is_refused(conf: t.Optional[str], seen: str) -> None:
    with pytest.raises(FabricError, match=f"chrony.conf on w1. Seen: {seen}"):
        decide(defaults("chrony", servers=["ntp1.site"]), Seen("w1", conf, to_come=False))


@pytest.mark.parametrize(("conf", "to_come"), [(DEBIAN, False), (DEBIAN, True), (None, True)])
def test_the_servers_are_in_a_file_of_their_own(conf: t.Optional[str], to_come: bool) -> None:
    conf_file, sources = decide(defaults("chrony", servers=["ntp1.site", "fd00::123"]), Seen("w1", conf, to_come)).files
    assert conf_file.path == "/etc/chrony/conf.d/ipu-fabric.conf"
    assert conf_file.content.splitlines()[1:] == ["makestep 1 3", "rtcsync"]
    assert sources.path == "/etc/chrony/sources.d/ipu-fabric.sources"
    assert sources.content.splitlines()[1:] == ["server ntp1.site iburst prefer", "server fd00::123 iburst prefer"]

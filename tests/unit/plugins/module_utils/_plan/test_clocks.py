"""What the plan says of clocks, with NTP servers of the site and without."""

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures import site as sites

CHECKS = ("time", "ntp", "ntp-setup")


def of(clock, **settings):
    """What a plan and a preflight find about the clock of w1, by level and check."""
    hosts = sites.site()
    hosts["w1"]["host"]["time"].update(clock)
    made = [sites.plan(hosts, **settings), sites.preflight(hosts, **settings)]
    found = [[each for each in one["findings"] if each["check"] in CHECKS] for one in made]
    assert found[0] == found[1]
    assert all(each["hosts"] in ([], ["w1"]) for each in found[0])
    return {(each["level"], each["check"]): each for each in found[0]}


OFF, LOOSE = {"offset": -400, "synchronized": False}, {"synchronized": False}
CHRONY, NTP = {"services": ["chrony"]}, {"ntp": ["ntp1.site", "10.0.0.2"]}


@pytest.mark.parametrize(
    ("clock", "settings", "expected", "step"),
    [
        ({}, {}, None, ""),
        ({"offset": 30}, {}, None, ""),
        ({"synchronized": None}, {}, None, ""),
        (OFF, {}, ("error", "time"), "Name the site's NTP servers in fabric_ntp"),
        (LOOSE, {}, ("warning", "time"), "Name the site's NTP servers in fabric_ntp"),
        # What site is about to repair does not stop it.
        (OFF, NTP, ("warning", "time"), "Nothing: site sets up chrony"),
        ({**OFF, "services": ["systemd-timesyncd"]}, NTP, ("warning", "time"), "Nothing: site sets up chrony"),
        (LOOSE, NTP, ("warning", "time"), "Nothing: site sets up chrony with fabric_ntp before Kubernetes."),
        (
            LOOSE,
            {**NTP, "manage_kubernetes": False},
            ("warning", "time"),
            "Nothing: site sets up chrony with fabric_ntp on this host, also where others manage the cluster.",
        ),
        ({**LOOSE, **CHRONY}, NTP, ("warning", "time"), "Look at `chronyc -n sources`"),
        ({"offset": 60, **CHRONY}, NTP, ("error", "time"), "Check the controller's clock"),
    ],
)
def test_a_clock_that_is_wrong_names_the_variable(clock, settings, expected, step):
    found = of(clock, **settings)
    assert set(found) == ({expected} if expected else set())
    assert all(each["next"].startswith(step) for each in found.values())


@pytest.mark.parametrize(
    ("services", "seen"),
    [
        (["chrony"], None),
        (["systemd-timesyncd"], None),
        (["ntpsec"], "ntpsec runs"),
        (["chrony", "ntp", "phc2sys"], "ntp, phc2sys run"),
    ],
)
def test_another_time_service_is_not_taken_away(services, seen):
    assert of({"services": services}) == {}
    found = of({"services": services}, **NTP)
    assert [each["seen"] for each in found.values()] == ([seen] if seen else [])
    assert set(found) <= {("error", "ntp-setup")}


@pytest.mark.parametrize(
    ("servers", "level", "seen"),
    [
        ({"ntp1.site": True, "10.0.0.2": True}, None, ""),
        ({"ntp1.site": False, "10.0.0.2": True}, "warning", "no answer from ntp1.site"),
        ({"ntp1.site": False, "10.0.0.2": False}, "error", "no answer from ntp1.site, 10.0.0.2"),
        ({}, None, ""),  # observed before the variable was set
    ],
)
def test_servers_that_do_not_answer_a_host(servers, level, seen):
    found = of({"servers": servers}, **NTP)
    assert {key: each["seen"] for key, each in found.items()} == ({(level, "ntp"): seen} if level else {})


@pytest.mark.parametrize("name", ["", "ntp1 iburst", "server ntp1", "ntp1\nallow all", "-x", "a..b", "10.0.0.0/24"])
def test_what_is_no_server_is_not_written_anywhere(name):
    (finding,) = of({}, ntp=["ntp1.site", name]).values()
    assert (finding["check"], finding["level"]) == ("ntp-setup", "error")


@pytest.mark.parametrize("name", ["ntp1", "ntp1.example.org", "ntp1.example.org.", "10.0.0.2", "fd00::1", "0.pool"])
def test_names_and_addresses_are_servers(name):
    assert of({}, ntp=[name]) == {}


def test_an_observation_of_an_earlier_release_has_no_services():
    assert "services" not in sites.site()["w1"]["host"]["time"]
    assert of(LOOSE, **NTP).keys() == {("warning", "time")}

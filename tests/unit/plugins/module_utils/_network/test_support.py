import datetime
import re

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import Findings
from ansible_collections.ipu.fabric.plugins.module_utils._model.stacks import STACKS
from ansible_collections.ipu.fabric.plugins.module_utils._network import releases as tables
from ansible_collections.ipu.fabric.plugins.module_utils._network import support
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import SETTINGS, TODAY, plan, site

SCHEMAS = ROOT.parent / "shared/schemas"


def states(today=TODAY, **settings):
    return {each["component"]: each["state"] for each in plan(site(), today=today, **settings)["support"]}


@pytest.mark.parametrize(
    ("version", "today", "state"),
    [
        ("1.34.4", "2026-10-27", "supported"),
        ("1.34.4", "2026-10-28", "ended"),
        ("1.36.4", "2027-06-28", "supported"),
        ("1.36.4", "2027-06-29", "ended"),
    ],
)
def test_kubernetes_ends_on_a_day(version, today, state):
    assert states(today, kubernetes_version=version)["Kubernetes"] == state


@pytest.mark.parametrize(
    ("settings", "component", "today", "state"),
    [
        # As the newest line moves, the older ones move with it.
        ({"network_operator_version": "26.7.1"}, "network operator", "2026-11-21", "supported"),
        ({"network_operator_version": "26.7.1"}, "network operator", "2026-11-22", "deprecated"),
        ({"network_operator_version": "26.4.2"}, "network operator", "2026-11-21", "deprecated"),
        ({"network_operator_version": "26.4.2"}, "network operator", "2026-11-22", "ended"),
        ({"network_operator_version": "25.7.0"}, "network operator", "2026-11-22", "ended"),
        ({"gpu": True, "gpu_operator_version": "26.7.0"}, "GPU operator", TODAY, "supported"),
        ({"gpu": True, "gpu_operator_version": "26.3.3"}, "GPU operator", TODAY, "deprecated"),
        ({"gpu": True, "gpu_operator_version": "25.10.1"}, "GPU operator", TODAY, "ended"),
        ({"calico_version": "3.32.1"}, "Calico", TODAY, "supported"),
        ({"calico_version": "3.31.7"}, "Calico", "2026-09-30", "supported"),
        ({"calico_version": "3.31.7"}, "Calico", "2026-10-01", "ended"),
        # Nobody has read the lines that came since; what had ended stays so.
        ({"network_operator_version": "26.7.1"}, "network operator", "2027-11-22", "unknown"),
        ({"network_operator_version": "26.4.2"}, "network operator", "2027-11-22", "ended"),
        ({"cni": "flannel"}, "flannel", TODAY, "unknown"),
        ({"stack": "spiderpool"}, "Spiderpool", TODAY, "unknown"),
    ],
)
def test_makers_speak_of_their_newest_lines(settings, component, today, state):
    assert states(today, **settings)[component] == state


@pytest.mark.parametrize(
    ("component", "line", "state"),
    [("network operator", (26, 10), "unknown"), ("Calico", (3, 33), "supported"), ("Calico", (3, 34), "unknown")],
)
def test_a_line_without_a_range_counts_as_not_known(component, line, state):
    assert support.line_state(component, line, support.READ) == state


@pytest.mark.parametrize(("days", "stale"), [(0, False), (150, False), (151, True), (400, True)])
def test_tables_that_nobody_has_read_for_long_say_so(days, stale):
    today = (datetime.date.fromisoformat(support.READ) + datetime.timedelta(days=days)).isoformat()
    found = [each for each in plan(site(), today)["findings"] if each["check"] == "release-table"]
    assert [each["seen"] for each in found] == (
        [f"its tables are {days} days old, from {support.READ}"] if stale else []
    )


def test_a_release_that_has_ended_is_a_warning():
    planned = plan(site(), network_operator_version="26.1.2")
    [finding] = [each for each in planned["findings"] if each["check"] == "release-ended"]
    assert "26.10 is supported, 26.7 is deprecated, older ones have ended" in finding["seen"]
    assert finding["next"] == "Set fabric_network_operator_version to a release of 26.7 when you can upgrade."


@pytest.mark.parametrize(
    ("managed", "step"),
    [
        (True, "Upgrade with ipu.fabric.upgrade, one minor release at a time."),
        (False, "Upgrade it with what manages it, such as kubespray, k3s or RKE2, one minor release at a time; "),
    ],
)
def test_kubernetes_is_upgraded_by_those_who_manage_it(managed, step):
    findings = Findings([])
    support.check_support(plan(site(), "2027-07-01")["support"], managed, findings, TODAY)
    [finding] = [each for each in findings.as_list() if each["what"].startswith("Kubernetes")]
    assert finding["next"].startswith(step)
    assert ("Upgrade with ipu.fabric.upgrade" in finding["next"]) == managed


def test_what_is_not_installed_is_not_named():
    assert "Spiderpool" not in states()
    assert "GPU operator" not in states()


def test_one_line_for_a_person():
    said = support.describe_support(plan(site())["support"])
    assert said == (
        "Kubernetes until 2027-06-28, Calico supported, network operator deprecated (26.10 is out;"
        f" ipu.fabric knows up to 26.7), IPU operator unknown; tables read on {support.READ}"
    )


def test_what_nobody_says_is_a_list():
    unknown = [{"component": name, "state": support.UNKNOWN, "until": ""} for name in ("Kubernetes", "flannel")]
    assert support.describe_support(unknown) == f"Kubernetes unknown, flannel unknown; tables read on {support.READ}"


def test_the_defaults_are_supported():
    """When this fails, a newer release is due: see CONTRIBUTING.md, A release."""
    findings = Findings([])
    defaults = (ROOT / "roles/fabric/defaults/main.yml").read_text()
    given = dict(re.findall(r"^fabric_((?:\w+_)version): (\S+)$", defaults, re.MULTILINE))
    assert given
    planned = plan(site(), **{name: value for name, value in given.items() if name in SETTINGS})
    support.check_support(planned["support"], True, findings, support.READ)
    assert findings.as_list() == []


def test_every_kubernetes_that_can_be_installed_has_its_end():
    (major, first), (_major, last) = tables.KUBERNETES
    assert sorted(support.KUBERNETES_ENDS) == [(major, minor) for minor in range(first, last + 1)]
    assert all(datetime.date.fromisoformat(end) for end in support.KUBERNETES_ENDS.values())


def newest(directory):
    releases = (tables.parse(path.name) for path in (SCHEMAS / directory).iterdir())
    return max(release for release in releases if release)


@pytest.mark.skipif(not SCHEMAS.is_dir(), reason="no ../shared/schemas")
@pytest.mark.parametrize(
    ("directory", "known"),
    [
        ("network-operator", [operator.newest for operator in tables.NETWORK_OPERATORS.values()]),
        ("ipu-operator", tables.IPU_OPERATORS),
        ("spiderpool", STACKS["spiderpool"].charts),
        ("whereabouts", [tables.WHEREABOUTS]),
    ],
)
def test_no_table_is_older_than_the_schemas(directory, known):
    assert max(tables.parse(release) for release in known) >= newest(directory)

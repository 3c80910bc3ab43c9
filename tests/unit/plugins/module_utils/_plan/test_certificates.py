"""Certificates of the existing cluster: what the plan says of those that end, and of those that have ended."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._plan import certificates
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import certificate, errors, finished, plan, running

VALID = [certificate(300), certificate(3600, "ca", 3650, ca=True, renewed_by="nobody")]


def cluster(*found, host="cp1", **changes):
    hosts = finished()
    hosts[host]["host"]["certificates"] = [*found]
    hosts["cp1"]["host"]["cluster"] = running(**changes)
    return hosts


def test_certificates_that_are_valid():
    planned = plan(cluster(*VALID))
    assert planned["findings"] == []
    expected = {"node": "node11", "first": "apiserver", "ends": "1970-10-28T00:00:00Z", "ending": [], "expired": []}
    assert planned["certificates"] == [expected]


@pytest.mark.parametrize(("days", "said"), [(30, True), (10, False)])
def test_certificates_that_are_about_to_end(days, said):
    planned = plan(cluster(*VALID, certificate(20, "admin.conf")), renew_days=days)
    assert errors(planned) == {}
    warnings = errors(planned, "warning")
    assert set(warnings) == ({"certificates"} if said else set())
    if said:
        warning = warnings["certificates"]
        assert (warning["hosts"], warning["seen"]) == (["cp1"], "admin.conf (1970-01-21)")
        assert warning["next"] == certificates.RENEW
        assert planned["certificates"][0]["ending"] == ["admin.conf"]


def test_a_ca_that_is_about_to_end_takes_more():
    planned = plan(cluster(certificate(20, "ca", 3650, ca=True, renewed_by="nobody")))
    warning = errors(planned, "warning")["certificates"]
    assert (warning["what"], warning["next"]) == ("A CA expires within 30 days.", certificates.AUTHORITY)


@pytest.mark.parametrize("manage", [True, False])
@pytest.mark.parametrize(
    "error",
    [
        "Unable to connect to the server: tls: failed to verify certificate: x509: certificate has expired",
        "error: You must be logged in to the server (Unauthorized)",
        "dial tcp 10.88.0.11:6443: connect: connection refused",
    ],
)
def test_a_cluster_that_has_expired_is_reported_as_that(manage, error):
    """Not as one that is down, and nothing speaks of a reset but to say that it is not needed."""
    silent = {"answered": False, "error": error, "version": "", "pod_networks": []}
    hosts = cluster(certificate(-1), certificate(20, "admin.conf"), **silent)
    planned = plan(hosts, manage_kubernetes=manage)
    assert {finding["check"] for finding in planned["findings"]} == {"certificates"}
    finding = errors(planned, "error" if manage else "warning")["certificates"]
    if manage:
        assert "no host has to be reset" in finding["what"]
        assert finding["seen"] == "apiserver (1969-12-31)"
        assert finding["next"].startswith("Run the playbook ipu.fabric.renew_certificates.")
    assert not any("kubeadm reset" in finding["next"] for finding in planned["findings"])
    assert planned["certificates"][0]["expired"] == ["apiserver"]


def test_another_api_server_that_has_expired():
    """The endpoint may lead to a control plane that is not looked at."""
    error = "x509: certificate has expired or is not yet valid"
    finding = errors(plan(cluster(*VALID, answered=False, error=error, version="")))["cluster-unread"]
    assert finding["next"].startswith(certificates.RENEW)


def test_a_worker_whose_kubelet_was_off_for_too_long():
    planned = plan(cluster(certificate(-1, "kubelet-client", renewed_by="kubelet"), host="w1"))
    finding = errors(planned)["certificates"]
    assert (finding["hosts"], finding["seen"]) == (["w1"], "kubelet-client (1969-12-31)")
    assert errors(plan(cluster(certificate(-1, "kubelet-client"), host="w1"), allow=["certificates"])) == {}


def test_what_a_kubelet_shows_is_no_error():
    planned = plan(cluster(certificate(-1, "kubelet-serving", renewed_by="kubelet"), host="w1"))
    assert errors(planned) == {}
    assert errors(planned, "warning")["certificates"]["hosts"] == ["w1"]
    assert planned["certificates"][0]["expired"] == ["kubelet-serving"]


def test_what_a_host_said_in_an_earlier_run_says_nothing_of_today():
    hosts = cluster(certificate(-1))
    hosts["cp1"]["recalled"] = "2026-11-22T10:00:00+00:00"
    assert "certificates" not in errors(plan(hosts))
    del hosts["cp1"]["host"]["certificates"]  # as an earlier release of this collection wrote it
    assert plan(hosts)["certificates"] == []

# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the plan says of the control plane's hardening, and of control planes that differ."""

from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._plan.report import as_text
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import finished, plan, site


def running(level, **changes):
    """A cluster whose control plane runs at a level."""
    arguments = {pod: {} for pod in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")}
    for setting in plan(site(), hardening=level)["hardening"]["settings"]:
        arguments[setting["component"]].update(setting["arguments"])
    hosts = finished()
    hosts["cp1"]["host"]["control_plane"] = {
        "arguments": arguments,
        "open_files": [],
        "super_admin": level != "cis",
        **changes,
    }
    return hosts


def test_a_new_cluster_has_nothing_to_change():
    planned = plan(site())["hardening"]
    assert planned["level"] == "baseline"
    assert planned["due"] == []
    assert {setting["name"] for setting in planned["settings"]} == {"profiling", "tls", "audit"}


def test_a_cluster_of_others_is_left_alone():
    assert plan(site(), manage_kubernetes=False)["hardening"] is None


@pytest.mark.parametrize("level", ["none", "baseline", "cis"])
def test_a_control_plane_that_runs_so_is_not_due(level):
    assert plan(running(level), hardening=level)["hardening"]["due"] == []


def test_what_changes_is_said_by_control_plane():
    planned = plan(running("baseline", open_files=["/etc/kubernetes/admin.conf"]), hardening="cis")
    (due,) = planned["hardening"]["due"]
    assert due["host"] == "cp1"
    assert "kube-controller-manager: terminated-pod-gc-threshold" in due["changes"]
    assert "super-admin.conf" in due["changes"]
    assert "files: /etc/kubernetes/admin.conf" in due["changes"]
    text = " ".join(as_text(planned).split())
    assert "Hardening cis:" in text
    assert "changes on cp1: kube-apiserver:" in text


def test_what_the_site_has_set_is_said_too():
    hosts = running("baseline")
    hosts["cp1"]["host"]["control_plane"]["arguments"]["kube-apiserver"]["profiling"] = "true"
    planned = plan(hosts)
    assert planned["hardening"]["due"][0]["changes"] == []
    assert "stays on cp1, set by the site: profiling" in " ".join(as_text(planned).split())

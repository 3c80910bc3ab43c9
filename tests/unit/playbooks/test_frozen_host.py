"""A host that accepts a connection and then never answers is a finding of the plan, and the others are planned."""

import configparser
import time

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import make_stage, play

GROUPS = {"kube_control_plane": ["cp1"], "kube_node": ["w1", "w2"]}
SLEEPS = 600  # seconds; a test that waits for it fails by its own limit


@pytest.mark.parametrize("arguments", [[], ["--limit", "cp1:w2"]], ids=["in the play", "outside the limit"])
def test_it_is_a_finding(tmp_path, arguments):
    """Its Python is a program that sleeps; the others are this machine."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexec sleep {SLEEPS}\n")
    python.chmod(0o755)
    host_vars = {"w1": {"ansible_python_interpreter": str(python)}}
    make_stage(tmp_path, GROUPS, {}, {}, host_vars=host_vars)
    (tmp_path / "collections/ansible_collections/ipu/fabric/plugins/action/host_info.py").unlink()
    begun = time.monotonic()
    done = play(
        tmp_path,
        "ipu.fabric.plan",
        GROUPS,
        {},
        *arguments,
        host_vars=host_vars,
        environment={"ANSIBLE_PIPELINING": "true"},
        one_process=False,
        fabric_observe_timeout=20,
        fabric_probe_ports=False,
    )
    assert time.monotonic() - begun < SLEEPS / 4
    plan = done.read("artifacts/plan.json")
    (finding,) = [each for each in plan["findings"] if each["check"] == "unobserved"]
    assert (finding["level"], finding["hosts"]) == ("error", ["w1"])
    assert finding["what"] == "The host accepts a connection, and then does not answer."
    assert "nothing within 20 s" in finding["seen"]
    assert "fabric_observe_timeout" in finding["next"]
    assert [name for name, host in plan["hosts"].items() if host["platform"]] == ["cp1", "w2"]


@pytest.mark.parametrize("path", sorted(ROOT.glob("inventories/*/ansible.cfg")), ids=lambda path: path.parent.name)
def test_a_connection_to_a_frozen_kernel_ends(path):
    config = configparser.ConfigParser()
    config.read(path)
    arguments = config["ssh_connection"]["ssh_args"].split()
    options = dict(one.split("=") for one in arguments if "=" in one)
    assert int(options["ServerAliveInterval"]) * int(options["ServerAliveCountMax"]) <= 60
    assert options["ControlMaster"] == "auto"

"""Ports between hosts, their sizes and their clocks, from the variables of a site to modules, plan and roles."""

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures import site
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play

GROUPS = {"kube_control_plane": ["cp1"], "kube_node": ["w1", "w2"]}
LISTENER = {"name": "x", "tcp": [5473, 6443, 10250], "udp": [4789], "ip": []}
BLOCKED = {"host": "cp1", "address": "10.88.0.11", "protocol": "TCP", "port": 5473, "seen": "filtered"}


@pytest.fixture
def run(tmp_path):
    """A playbook on three bare hosts, on which all ports of LISTENER are free."""

    def once(playbook, *arguments, probes=(), lost=None, **variables):
        hosts = site.site()
        answers = {
            "host_info": site.observed(hosts),
            "port_probe": {
                **{name: {"listener": LISTENER, "listened": "x", "probes": []} for name in hosts},
                "w1": {"listener": LISTENER, "listened": "x", "probes": list(probes)},
                **(lost or {}),
            },
            "apt_packages": {"*": {"failed": True, "msg": "enough"}},
        }
        return play(tmp_path, playbook, GROUPS, answers, *arguments, **variables)

    return once


def of_step(run, step):
    return {
        call.host: call.options for call in run.calls if call.module == "port_probe" and call.options["step"] == step
    }


def findings(run, check):
    return [one for one in run.read("artifacts/plan.json")["findings"] if one["check"] == check]


def test_hosts_listen_connect_and_stop_once_each(run):
    done = run("ipu.fabric.plan", probes=[BLOCKED])
    steps = [(call.options["step"], call.host) for call in done.calls if call.module == "port_probe"]
    assert sorted(steps) == sorted(
        (step, host) for step in ("listen", "connect", "stop") for host in ("cp1", "w1", "w2")
    )
    assert [step for step, host in steps if host == "w1"] == ["listen", "connect", "stop"]
    listen = of_step(done, "listen")
    assert listen["cp1"]["tcp"] == [5473, 6443]
    assert listen["w1"] == {"step": "listen", "tcp": [5473, 10250], "udp": [4789], "ip": []}
    targets = {target["host"]: target for target in of_step(done, "connect")["w1"]["targets"]}
    assert (targets["cp1"]["tcp"], targets["cp1"]["udp"]) == ([6443, 5473], [4789])
    assert targets["w2"]["tcp"] == [5473]
    (finding,) = findings(done, "host-ports")
    assert finding["what"] == "w1 cannot reach TCP 5473 (Calico's Typha) of cp1."


@pytest.mark.parametrize("step", ["listen", "connect", "stop"])
def test_a_host_that_is_lost_meanwhile_is_a_finding(run, step):
    lost = {"unreachable": True, "msg": "Connection timed out"}
    listening = {"listener": LISTENER, "listened": "x", "probes": []}
    answers = {f"w2 {name}": listening for name in ("listen", "connect", "stop")}
    done = run("ipu.fabric.plan", lost={**answers, f"w2 {step}": lost})
    (finding,) = findings(done, "unobserved")
    assert (finding["level"], finding["hosts"]) == ("error", ["w2"])
    assert "Connection timed out" in finding["seen"]
    assert sorted(of_step(done, "connect")) == ["cp1", "w1", "w2"]
    assert {"cp1", "w1"} <= set(of_step(done, "stop"))


def test_settings_of_the_pod_network_decide_which_ports(run):
    installation = {"calicoNetwork": {"bgp": "Enabled"}}
    done = run("ipu.fabric.plan", kubernetes_calico_installation=installation)
    assert of_step(done, "listen")["w1"]["tcp"] == [179, 5473, 10250]


def test_v_ipu_that_the_site_names_is_tried(run):
    done = run("ipu.fabric.plan", fabric_vipu_hosts=["10.5.0.20:8090"])
    outside = [target for target in of_step(done, "connect")["w1"]["targets"] if target["host"] not in ("cp1", "w2")]
    assert [(one["host"], one["address"], one["tcp"]) for one in outside] == [
        ("V-IPU (10.5.0.20)", "10.5.0.20", [8090])
    ]


@pytest.mark.parametrize("limit", [(), ("--limit", "w1")])
def test_every_host_tries_the_time_servers(run, limit):
    done = run("ipu.fabric.plan", *limit, fabric_ntp=["ntp1.site"])
    assert sorted(done.where("host_info", ntp=["ntp1.site"])) == ["cp1", "w1", "w2"]


def test_a_site_says_what_its_hosts_need(run):
    done = run("ipu.fabric.plan", fabric_host_sizes={"worker": {"memory_gb": 64}}, fabric_ntp=["ntp 1"])
    (finding,) = findings(done, "memory")
    assert (finding["level"], finding["hosts"]) == ("error", ["w1", "w2"])
    assert len(findings(done, "ntp-setup")) == 1


def test_clocks_are_set_before_anything_else_is_installed(run):
    done = run("ipu.fabric.site", fabric_ntp=["ntp1.site"], fabric_cni="none")
    assert "enough" in done.text
    changing = [call for call in done.calls if call.module in ("apt_packages", "rdma_host", "kernel_settings")]
    assert {call.module for call in changing} == {"apt_packages"}
    assert {call.host for call in changing} == {"cp1", "w1", "w2"}
    assert all(call.options["packages"] == [{"name": "chrony", "hold": False}] for call in changing)
    assert all(call.become for call in changing)


def test_without_time_servers_clocks_are_left_alone(run):
    done = run("ipu.fabric.site", fabric_cni="none")
    assert done.where("rdma_host")  # what comes after the clocks
    packages = [call.options["packages"] for call in done.calls if call.module == "apt_packages"]
    assert all(package["name"] != "chrony" for listed in packages for package in listed)


def test_the_plan_says_where_files_land(run, tmp_path):
    done = run("ipu.fabric.plan")
    assert f"Files in {tmp_path}/artifacts:" in done.text
    assert "admin.conf, with all rights on the cluster, comes from site" in done.text
    assert "Files in" not in run("ipu.fabric.plan", "--check").text

"""Only for this scenario: network namespaces that stand for hosts and pods, probed and checked by what verify uses.

A pod is a namespace with a macvlan net1 on its host's NIC, an rxe device on it, and an eth0 with the default route and
a way to the other pod. The network's gateway is an address of the switch. The script, parsers and checks are the
product's; only the way into a pod is another: `ip netns exec`, not the API.
"""

from __future__ import annotations

import typing as t
from concurrent.futures import ThreadPoolExecutor

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import run_program
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.planned_ranges import planned_ranges
from ansible_collections.ipu.fabric.plugins.module_utils._kube.pod_exec import Output
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Expect
from ansible_collections.ipu.fabric.plugins.module_utils._model.plan import Plan, PlannedNetwork
from ansible_collections.ipu.fabric.plugins.module_utils._model.probe import Probe
from ansible_collections.ipu.fabric.plugins.module_utils._verify import checks as verify_checks
from ansible_collections.ipu.fabric.plugins.module_utils._verify import probe as prober
from ansible_collections.ipu.fabric.plugins.module_utils._verify import rdma_checks, traffic_checks
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import FAILED, PASSED
from ansible_collections.ipu.fabric.plugins.module_utils._verify.pods import Options, Pods

Facts = t.Dict[str, t.Any]
NETWORK = "rdma-net"
SWITCH = """
ip link add fabric type bridge mcast_snooping 0
ip address add 10.6.0.1/24 dev fabric
ip link set fabric up
ip link add cluster type bridge mcast_snooping 0
ip link set cluster up
"""
HOST = """
ip netns add h{n}
ip netns add p{n}
ip link add port{n} type veth peer name fabric0 netns h{n}
ip link set port{n} master fabric up
ip -n h{n} link set fabric0 up
ip -n h{n} address add {host} dev fabric0
ip -n h{n} link add net1 link fabric0 netns p{n} type macvlan mode bridge
ip -n p{n} link set lo up
ip link add pod{n} type veth peer name eth0 netns p{n}
ip link set pod{n} master cluster up
ip -n p{n} address add 10.244.0.{n}/24 dev eth0
ip -n p{n} link set eth0 up
ip -n p{n} route add default via 10.244.0.254 dev eth0
ip -n p{n} link set net1 up
{first}
ip -n p{n} address add {pod} dev net1
ip netns exec p{n} rdma link add rxp{n} type rxe netdev net1
{then}
"""
# Takes a place in one pod's GID table, so that the index of the planned address differs from pod to pod. Not for long:
# Open MPI would start its connections from this address.
OTHER_GID = "ip -n p2 address {} 169.254.0.2/16 dev net1"


def pod_addresses(subnet: Facts) -> t.Iterator[str]:
    """The addresses of the plan, as an IPAM gives them out."""
    planned = next(planned_ranges(t.cast(PlannedNetwork, {"subnets": [subnet], "pools": []})))
    for address in planned.bounds:
        if not any(address in excluded for excluded in planned.excluded):
            yield str(address)


def plan_for(subnet: Facts, hosts: t.Mapping[str, str]) -> Plan:
    """What the checks read of a plan, as fabric_plan has it, for hosts with their addresses."""
    network = {
        "name": NETWORK,
        "namespace": "default",
        "master": "fabric0",
        "mtu": 1500,
        "rdma": True,
        "resource": "rdma/soft",
        "ipam": {},
        "subnet": subnet,
        "subnets": [subnet],
        "pools": [],
    }
    link = {"netdev": "fabric0", "rdma_netdevs": ["fabric0"], "prefix": 24, "mtu": 1500}
    plan = {
        "networks": [network],
        "vipu": {"controllers": []},
        "hosts": {
            name: {
                "node": name,
                "roles": ["worker"],
                "links": {
                    NETWORK: {
                        **link,
                        "address": address,
                        "addresses": [{"address": address, "prefix": 24}],
                        "device": name.replace("h", "rxp"),
                    }
                },
            }
            for name, address in hosts.items()
        },
    }
    return t.cast(Plan, plan)


def run_in(run: prober.Run, pod: str, container: str, command: t.Sequence[str], timeout: int) -> Output:
    """In place of the API's exec."""
    user = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"] if container == "user" else []
    done = run_program(["ip", "netns", "exec", pod, *user, "sh", "-c", run.options.script, "pod.sh", *command], timeout)
    return Output(done.out + done.err, f"timed out after {timeout} s" if done.rc is None else "")


def make_pods(module: AnsibleModule, subnet: Facts, hosts: t.Mapping[str, str]) -> None:
    addresses, script = pod_addresses(subnet), SWITCH
    for n, address in enumerate(hosts.values(), 1):
        first, then = (OTHER_GID.format("add"), OTHER_GID.format("delete")) if n == 2 else ("", "")
        script += HOST.format(n=n, host=f"{address}/24", pod=f"{next(addresses)}/24", first=first, then=then)
    module.run_command(["sh", "-euxc", script], check_rc=True)


def main() -> None:
    module = AnsibleModule(
        {
            "subnet": {"type": "dict", "required": True},
            "script": {"type": "str", "required": True},
            "broken": {"type": "bool", "default": False},
        }
    )
    subnet, broken = module.params["subnet"], module.params["broken"]
    hosts = {"h1": "10.6.0.11", "h2": "10.6.0.12"}
    if broken:
        module.run_command(["ip", "netns", "exec", "p2", "rdma", "link", "delete", "rxp2"], check_rc=True)
    else:
        make_pods(module, subnet, hosts)

    plan = plan_for(subnet, hosts)
    pods: Pods = {
        name: {"host": name, "pod": name.replace("h", "p"), "networks": [NETWORK], "state": "running", "reason": ""}
        for name in hosts
    }
    options = Options(
        script=module.params["script"],
        namespace="",
        image="the VM",
        rdma_image="",
        timeout=60,
        command_timeout=60,
        max_pairs=12,
        rdma_seconds=300,
        forks=4,
        ipu=False,
        ipu_partition="",
        ipu_device=0,
    )
    prober.run_in = run_in
    facts: Probe = {"nodes": {}, "host_traffic": [], "rdma_image": "the VM", "pods": pods, "pairs": [], "traffic": []}
    with ThreadPoolExecutor(4) as pool:
        run = prober.Run(t.cast(t.Any, None), plan, options, pool)
        prober.ask_pods(run, pods)
        if not broken:
            facts["pairs"], facts["traffic"] = prober.ping_pairs(run, pods), prober.measure_pairs(run, pods)
    expect = Expect(ipu=False)
    checks = [
        *verify_checks.check_pods(plan, facts),
        *traffic_checks.check_pings(plan, facts),
        *rdma_checks.check_rdma(plan, facts),
        *traffic_checks.check_traffic(plan, facts, expect),
        verify_checks.unique_check(plan, plan["networks"][0], pods),
    ]
    # No kubelet here that would count resources.
    checks = [check for check in checks if check.check != "rdma_resource"]
    rows = [f"{c.status:8} {c.check:16} {c.node or '-'.join(c.pair):6} {c.seen}" for c in checks]
    module.exit_json(
        text="\n".join(rows),
        failed_checks=sorted(f"{c.node} {c.check}" for c in checks if c.status == FAILED),
        passed_checks=sorted({c.check for c in checks if c.status == PASSED}),
        indexes=[c.seen for c in checks if c.check == "gid"],
    )


if __name__ == "__main__":
    main()

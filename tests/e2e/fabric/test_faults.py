"""Faults of tests/faults.md in a real cluster: each is named with its host and what to do, and is gone when healed.

Faults that do not hide each other are put in together: a verify takes half a minute.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import json
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from ansible_collections.ipu.fabric.tests.e2e.bed import HOSTS, KUBECTL, Bed, Result
from ansible_collections.ipu.fabric.tests.unit.fixtures.certificates import certificate

fault = pytest.mark.fault
Checks = list[dict[str, Any]]

OPERATOR = "nvidia-network-operator"
NETWORK = {"name": "rdma-net", "select": {"name": "eth1"}}
ALLOW = ["cgroup-v2"]  # as the testbed's inventory: variables of the command line replace it
PULL = "docker.io/nicolaka/netshoot:v0.14"  # the image of probe pods, which every node has
QUICK = {"fabric_probe_ports": False}  # test_bad_input blocks ports
WORKER_ADDRESS = "10.5.0.12"


# -- what is said of a fault


def plan_findings(bed: Bed, **variables: Any) -> Checks:
    """The findings of a plan with errors."""
    assert bed.play("plan", **QUICK, **variables).code != 0
    return bed.plan()["findings"]


def prove(bed: Bed, **variables: Any) -> Result:
    """The proof of site's own plan; with variables a new plan of them comes first."""
    if variables:
        (bed.artifacts / "report.json").unlink(missing_ok=True)
        return bed.play("verify", **QUICK, **variables)
    return bed.prove(json.loads((bed.artifacts / "site.json").read_text()))


def failures(bed: Bed, **variables: Any) -> Checks:
    """The failed checks of a proof; each says what was seen and what to do."""
    result = prove(bed, **variables)
    assert result.code != 0
    assert "Traceback" not in result.text
    found = [check for check in report(bed) if check["status"] == "failed"]
    for check in found:
        print(check["check"], check["node"], check["network"], check["pair"], check["subject"], "--", check["seen"])
        assert check["seen"]
        assert check["next"]
        assert check["title"].split()[0] in result.text
    return found


def report(bed: Bed) -> Checks:
    return json.loads((bed.artifacts / "report.json").read_text())["checks"]


def named(found: Checks, check: str, seen: str = "", **place: Any) -> None:
    """That one of them is this check, at this place, with these words."""
    mine = [each for each in found if each["check"] == check]
    for each in mine:
        if seen in each["seen"] and all(each[key] == value for key, value in place.items()):
            return
    pytest.fail(f"{check} {place} {seen!r} is not among {json.dumps(mine, indent=2)}")


def planned(found: Checks, check: str, host: str, words: str) -> None:
    """That a finding has this check, this host and these words."""
    for each in found:
        if each["check"] == check and host in each["hosts"] and words in f"{each['what']} {each['seen']}":
            assert each["next"]
            return
    pytest.fail(f"{check} {host} {words!r} is not among {json.dumps(found, indent=2)}")


# -- what is put in, and taken out again


@pytest.fixture
def heal(finished: Bed) -> Iterator[contextlib.ExitStack]:
    """Commands that run at the end of the test, the last first."""
    kept = finished.artifacts / "site.json"
    if not kept.exists():
        kept.write_text(json.dumps(finished.plan()))
    with contextlib.ExitStack() as stack:
        yield stack


def apply(bed: Bed, *objects: dict[str, Any]) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    bed.on("cp1", f"{KUBECTL} apply -f - <<'EOF'\n{text}\nEOF")


def change(bed: Bed, heal: contextlib.ExitStack, where: str, part: str, value: Any) -> None:
    """Another value of a part of an object (a JSON pointer), until the test ends."""
    keys = part.strip("/").split("/")
    before: Any = bed.kubectl(f"get {where}")
    for key in keys:
        before = before.get(key) if before else None

    def put(operation: str, value: Any) -> None:
        patch = json.dumps([{"op": operation, "path": part, "value": value}])
        bed.on("cp1", f"{KUBECTL} patch {where} --type json --patch-file /dev/stdin <<'EOF'\n{patch}\nEOF")

    heal.callback(put, "add" if before is not None else "remove", before)
    put("add", value)


def namespace(bed: Bed, heal: contextlib.ExitStack, name: str) -> None:
    apply(bed, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    heal.callback(bed.on, "cp1", f"{KUBECTL} delete namespace {name} --timeout 120s")


def daemonset(place: str, name: str, image: str) -> dict[str, Any]:
    """One that no node runs: what counts is that somebody has installed it."""
    labels = {"name": name}
    container = {"name": name, "image": f"registry.example.org/{image}"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": place},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "nodeSelector": {"no": "node"}},
            },
        },
    }


def pod(node: str, name: str, place: str = "default") -> dict[str, Any]:
    """A workload on the fabric network."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": place,
            "annotations": {"k8s.v1.cni.cncf.io/networks": "default/rdma-net"},
        },
        "spec": {
            "nodeName": node,
            "tolerations": [{"operator": "Exists"}],
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "sleep", "image": PULL, "command": ["sleep", "3600"]}],
        },
    }


def run_pods(bed: Bed, heal: contextlib.ExitStack, *pods: dict[str, Any]) -> None:
    names = " ".join(each["metadata"]["name"] for each in pods)
    heal.callback(bed.on, "cp1", f"{KUBECTL} delete pod {names} --ignore-not-found --timeout 120s")
    apply(bed, *pods)
    bed.on("cp1", f"{KUBECTL} wait --for condition=Ready --timeout 120s pod {names}")


def multus_pods(bed: Bed) -> dict[str, str]:
    """The nodes that have a pod of multus, with its name."""
    items = bed.kubectl(f"-n {OPERATOR} get pods -l name=multus")["items"]
    return {item["spec"].get("nodeName", ""): item["metadata"]["name"] for item in items}


def wait_until(what: str, true: Any, seconds: float = 180) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"{what}: not in {seconds} s"
        time.sleep(1)


def machine(*words: str) -> str:
    """What a command prints on the machine that all hosts run on: it is their switch."""
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout


def switch_port(bed: Bed, host: str) -> str:
    """The port of a host's eth1 on the bridge that stands for the switch."""
    number = int(bed.on(host, "cat /sys/class/net/eth1/iflink"))
    return next(link["ifname"] for link in json.loads(machine("ip", "-j", "link")) if link["ifindex"] == number)


# -- found by the plan


@fault("V-IPU is on a node's own master", "the gateway is on a node's own master", "the RDMA link is down")
def test_plan_with_addresses_on_masters_and_a_nic_that_is_down(finished: Bed, heal: contextlib.ExitStack) -> None:
    for host in ("cp1", "w1"):
        before = finished.on(host, "cat /etc/vipu-standin/address").strip()
        heal.callback(finished.on, host, f"echo {before} > /etc/vipu-standin/address")
        finished.on(host, f"echo {WORKER_ADDRESS} > /etc/vipu-standin/address")
    heal.callback(finished.on, "cp1", "ip link set eth1 up")
    finished.on("cp1", "ip link set eth1 down")
    network = {**NETWORK, "gateway": WORKER_ADDRESS, "mtu": 9000}
    found = plan_findings(finished, fabric_networks=[network])
    planned(found, "on-master", "w1", "V-IPU")
    planned(found, "on-master", "w1", "gateway")
    planned(found, "fabric-nic", "cp1", "eth1 is down")
    planned(found, "fabric-mtu", "w1", "9000")


# -- found by the proof


@fault(
    "multus is installed twice",
    "Node Feature Discovery is installed twice",
    "somebody else's network gives out addresses of the same subnet",
    "the certificate of the IPU operator's webhook is about to end",
    "locked memory is limited for uid 1000, whatever IPC_LOCK says",
    "locked memory is limited for root",
    "a switch port's MTU is below the master's",
    "V-IPU cannot be reached",
)
def test_what_others_have_installed_and_set(finished: Bed, heal: contextlib.ExitStack) -> None:
    namespace(finished, heal, "lab")
    ipam = {"type": "host-local", "subnet": "10.5.0.0/24", "rangeStart": "10.5.0.128", "rangeEnd": "10.5.0.200"}
    config = json.dumps({"cniVersion": "1.0.0", "type": "macvlan", "master": "eth1", "ipam": ipam})
    apply(
        finished,
        daemonset("lab", "multus", "multus-cni:v4.2.2"),
        daemonset("lab", "nfd-worker", "node-feature-discovery:v0.17.3"),
        daemonset("lab", "another-nfd-worker", "node-feature-discovery:v0.17.3"),
        {
            "apiVersion": "k8s.cni.cncf.io/v1",
            "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": "lab-net", "namespace": "lab"},
            "spec": {"config": config},
        },
    )
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=10)
    text = base64.b64encode(certificate(soon)).decode()
    change(finished, heal, "-n ipu-operator secret ipu-operator-admission", "/data/cert", text)
    folder = "/etc/systemd/system/containerd.service.d"
    restart = "systemctl daemon-reload && systemctl restart containerd"
    heal.callback(finished.on, "w1", f"rm {folder}/zz-low.conf && {restart}")
    finished.on("w1", f"printf '[Service]\\nLimitMEMLOCK=1M\\n' > {folder}/zz-low.conf && {restart}")
    port = switch_port(finished, "w1")
    heal.callback(machine, "ip", "link", "set", port, "mtu", "1500")
    machine("ip", "link", "set", port, "mtu", "1400")
    vipu = "10.5.0.20/24 dev eth0"
    heal.callback(finished.on, "fabric", f"ip address replace {vipu}")
    finished.on("fabric", f"ip address del {vipu}")

    found = failures(finished)
    named(found, "multus_once", "lab/multus")
    named(found, "nfd", "lab/another-nfd-worker")
    named(found, "pool_overlap", "lab/lab-net", network="rdma-net")
    named(found, "ipu_certificate", "days, until")
    named(found, "memlock_root", "1 MiB", node="w1")
    named(found, "memlock_user", "1 MiB", node="w1")
    named(found, "full_size", "0 of", network="rdma-net")
    for host in ("cp1", "w1"):
        named(found, "vipu", node=host, subject="10.5.0.20:8090")
    named(found, "vipu_proxy")
    assert {check["node"] for check in found if check["check"].startswith("memlock")} == {"w1"}
    assert not [check for check in found if check["check"] == "ping"]


@fault("a network was renamed, and its former pool is still there")
def test_a_renamed_network(finished: Bed, heal: contextlib.ExitStack) -> None:
    found = failures(finished, fabric_networks=[{**NETWORK, "name": "renamed"}])
    named(found, "pool_overlap", "left over", network="renamed")


@fault("multus has no pod on a control-plane node", "MTU above the master's")
def test_taints_that_multus_does_not_tolerate_and_an_mtu_above_the_masters(
    finished: Bed, heal: contextlib.ExitStack
) -> None:
    heal.callback(wait_until, "multus is back on cp1", lambda: set(multus_pods(finished)) == {"cp1", "w1"})
    # The testbed's control plane runs pods, so it has no taint.
    taint = f"{KUBECTL} taint node cp1 node-role.kubernetes.io/control-plane:NoSchedule"
    heal.callback(finished.on, "cp1", f"{taint}-")
    finished.on("cp1", taint)
    change(finished, heal, "nicclusterpolicy nic-cluster-policy", "/spec/tolerations", [])
    wait_until("multus is gone from cp1", lambda: set(multus_pods(finished)) == {"w1"})
    finished.on("cp1", f"{KUBECTL} -n {OPERATOR} rollout status ds/kube-multus-ds --timeout 180s")
    heal.callback(finished.on, "w1", "ip link set eth1 mtu 1500")
    finished.on("w1", "ip link set eth1 mtu 1400")
    network = {**NETWORK, "mtu": 1500}
    planned(plan_findings(finished, fabric_networks=[network]), "fabric-mtu", "w1", "1500")
    found = failures(finished, fabric_networks=[network], fabric_allow=[*ALLOW, "fabric-mtu"])
    named(found, "multus_node", "no ready pod on this node", node="cp1")
    named(found, "multus", node="cp1", network="rdma-net")
    named(found, "pod", "MTU", node="w1")


@fault("a pod starts while multus restarts, and lacks its network")
def test_pods_that_start_while_multus_is_away(finished: Bed, heal: contextlib.ExitStack) -> None:
    """Multus takes its configuration away when it stops. This is the moment before it is back."""
    # Nobody gives back the address of a sandbox that ends without multus; the stand-in of nv-ipam never tidies up.
    heal.callback(finished.on, "w1", "rm -f /var/lib/cni/nv-ipam/store")

    def starts_on_the_fabric() -> bool:
        """The test before has just brought multus back; containerd sees that a moment after its file is there."""
        finished.on("cp1", f"{KUBECTL} delete pod trainer --ignore-not-found --timeout 120s")
        run_pods(finished, heal, pod("w1", "trainer"))
        return "net1" in {entry.get("interface") for entry in status_of(finished, "trainer")}

    wait_until("a pod gets its network", starts_on_the_fabric)
    # Written, not moved: containerd does not look at a file that is only moved into the directory.
    back = "cat /root/00-multus.conf > /etc/cni/net.d/00-multus.conf && rm /root/00-multus.conf"
    heal.callback(finished.on, "w1", back)
    finished.on("w1", "mv /etc/cni/net.d/00-multus.conf /root/00-multus.conf")
    time.sleep(6)  # containerd reads the directory again when it changes
    before = address_of(finished, "trainer")
    for container in containers_of(finished, "w1", "trainer"):
        finished.on("w1", f"ctr -n k8s.io tasks kill -s SIGKILL {container}", check=False)
    wait_until("the pod has another sandbox", lambda: address_of(finished, "trainer") not in ("", before))
    finished.on("cp1", f"{KUBECTL} wait --for condition=Ready --timeout 120s pod trainer")
    found = failures(finished)
    named(found, "multus", "no network status", node="w1", network="rdma-net")
    named(found, "workloads", "default/trainer on w1: its network was recreated", network="rdma-net")
    assert not [check for check in found if check["check"] == "multus" and check["node"] != "w1"]


@fault("loading a driver renames the NIC")
def test_a_nic_that_was_renamed(finished: Bed, heal: contextlib.ExitStack) -> None:
    rename = "ip link set {0} down && ip link set {0} name {1} && ip link set {1} up"
    heal.callback(finished.on, "w1", rename.format("ens1np0", "eth1"))
    finished.on("w1", rename.format("eth1", "ens1np0"))
    planned(plan_findings(finished), "fabric-nic", "w1", "ens1np0")
    found = failures(finished, fabric_networks=[{"name": "rdma-net", "select": {"subnet": "10.5.0.0/24"}}])
    named(found, "attachment", "master is 'eth1'", network="rdma-net")
    named(found, "pod", "Link not found", node="w1")


@fault("the network takes the default route", "two pods have one address")
def test_an_ipam_that_somebody_has_written(finished: Bed, heal: contextlib.ExitStack) -> None:
    """host-local knows nothing of other nodes: each gives out the same addresses."""
    ranges = [[{"subnet": "10.5.0.0/24", "rangeStart": "10.5.0.130", "rangeEnd": "10.5.0.150"}]]
    ipam = {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0", "gw": "10.5.0.1"}]}
    heal.callback(wait_for_ipam, finished, "nv-ipam")  # the operator's work, after the change is taken back
    change(finished, heal, "macvlannetwork rdma-net", "/spec/ipam", json.dumps(ipam))
    wait_for_ipam(finished, "host-local")
    run_pods(finished, heal, pod("cp1", "one"), pod("w1", "two"))
    found = failures(finished)
    named(found, "attachment", "host-local", network="rdma-net")
    named(found, "default_route", "net1", node="cp1")
    named(found, "default_route", "net1", node="w1")
    named(found, "ip_pool", "default/one, default/two", network="rdma-net")
    named(found, "unique", "10.5.0.13", network="rdma-net")


@fault("a MacvlanNetwork says ready with a broken IPAM", "an exclude covers the whole range")
def test_a_broken_ipam_and_a_pool_that_excludes_everything(finished: Bed, heal: contextlib.ExitStack) -> None:
    heal.callback(wait_for_blocks, finished, "cp1", "w1")
    heal.callback(wait_for_ipam, finished, "nv-ipam")
    everything = [{"startIP": "10.5.0.1", "endIP": "10.5.0.254"}]
    change(finished, heal, f"-n {OPERATOR} ippools.nv-ipam.nvidia.com rdma-net", "/spec/exclusions", everything)
    change(finished, heal, "macvlannetwork rdma-net", "/spec/ipam", '{"type": "nv-ipam", "poolName"')
    wait_until("the NAD is broken", lambda: not is_json(attached(finished)))
    found = failures(finished)
    named(found, "attachment", "no CNI configuration", network="rdma-net")
    named(found, "ip_pool", "no block for cp1, w1", network="rdma-net")
    networks = finished.kubectl("get macvlannetwork rdma-net")
    assert networks["status"]["state"] == "ready"


@fault("the pool is exhausted", "nv-ipam has no block for a node")
def test_a_node_without_a_block_and_one_whose_block_is_used_up(finished: Bed, heal: contextlib.ExitStack) -> None:
    heal.callback(wait_for_blocks, finished, "cp1", "w1")
    pool = f"-n {OPERATOR} ippools.nv-ipam.nvidia.com rdma-net"
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["w1"]}]}]
    change(finished, heal, pool, "/spec/nodeSelector", {"nodeSelectorTerms": terms})
    change(finished, heal, pool, "/spec/perNodeBlockSize", 1)
    wait_for_blocks(finished, "w1")
    run_pods(finished, heal, pod("w1", "taker"))
    found = failures(finished)
    named(found, "ip_pool", "exhausted on w1; no block for cp1", network="rdma-net")
    named(found, "pod", "no free addresses", node="w1")
    named(found, "pod", "not found", node="cp1")


def alone(bed: Bed, role: str, **variables: Any) -> Result:
    """A role by itself, as a site's own playbook has it."""
    given = {f"{role}_{name}": value for name, value in variables.items()}
    block = [{"ansible.builtin.import_role": {"name": f"ipu.fabric.{role}"}}]
    tasks = [{"delegate_to": "localhost", "run_once": True, "become": False, "block": block}]
    play = {"hosts": "cp1", "gather_facts": False, "tasks": tasks, "vars": given}
    playbook = bed.artifacts / "alone.yml"
    playbook.write_text(json.dumps([play]))
    return bed.play(str(playbook))


def test_a_role_alone_ends_with_pods_that_start(finished: Bed, heal: contextlib.ExitStack) -> None:
    kubeconfig = str(finished.artifacts / "admin.conf")
    networks = json.loads((finished.artifacts / "site.json").read_text())["networks"]  # plan.json may be a fault's
    helm, site = next((finished.artifacts / "bin").glob("helm-v*64")), yaml.safe_load(finished.inventory.read_text())
    repository = site["all"]["vars"]["fabric_mirror"]["charts"]["whereabouts"]
    options = {"kubeconfig": kubeconfig, "helm": str(helm), "chart_repo_url": repository}
    for state in ("present", "absent"):
        assert alone(finished, "whereabouts", state=state, **options).code == 0
    assert alone(finished, "macvlan", kubeconfig=kubeconfig, networks=networks).code == 0
    for host in HOSTS:
        finished.on(host, "mv /opt/cni/bin/macvlan /opt/cni/bin/macvlan.away")
        heal.callback(finished.on, host, "mv /opt/cni/bin/macvlan.away /opt/cni/bin/macvlan")
    broken = alone(finished, "macvlan", kubeconfig=kubeconfig, networks=networks, timeout=45)
    assert broken.code != 0
    assert 'failed to find plugin \\"macvlan\\"' in broken.text


WHEREABOUTS = {"fabric_ipam": "whereabouts", "fabric_prune_networks": True}


def test_a_node_that_lost_its_pods(finished: Bed, heal: contextlib.ExitStack) -> None:
    """What was on its disk is gone, and whereabouts did not see it go: nobody gives the addresses of its pods back."""
    heal.callback(finished.play, "plan fabric", fabric_prune_networks=True)
    assert finished.play("plan fabric", **WHEREABOUTS).code == 0
    run_pods(finished, heal, pod("w1", "lost"))
    lost = next(entry for entry in status_of(finished, "lost") if entry["interface"] == "net1")["ips"][0]
    pods = finished.kubectl("get pods -A -l name=whereabouts --field-selector spec.nodeName=w1")["items"]
    watcher = containers_of(finished, "w1", pods[0]["metadata"]["name"])
    finished.on("w1", "systemctl stop kubelet")
    for container in [*watcher, *containers_of(finished, "w1", "lost")]:
        finished.on("w1", f"ctr -n k8s.io tasks kill -s SIGKILL {container}", check=False)
        gone = f"ctr -n k8s.io tasks delete --force {container}; ctr -n k8s.io containers delete {container}"
        finished.on("w1", gone, check=False)
    assert containers_of(finished, "w1", "lost") == []
    finished.on("cp1", f"{KUBECTL} delete pod lost --force --grace-period 0")
    finished.on("w1", "systemctl restart containerd && systemctl start kubelet")
    finished.on("cp1", f"{KUBECTL} wait --for condition=Ready --timeout 120s node w1")
    found = failures(finished, **WHEREABOUTS)
    named(found, "ip_pool", f"leaked: {lost} (no such pod runs: default/lost)", network="rdma-net")
    assert {check["check"] for check in found} == {"ip_pool"}


def containers_of(bed: Bed, host: str, name: str) -> list[str]:
    """The containers of a pod on its host, its sandbox too."""
    return bed.on(host, f"ctr -n k8s.io containers ls -q labels.io.kubernetes.pod.name=={name}").split()


def address_of(bed: Bed, name: str) -> str:
    return str(bed.kubectl(f"get pod {name}")["status"].get("podIP", ""))


def status_of(bed: Bed, name: str) -> list[dict[str, Any]]:
    """What multus wrote on a pod; nothing on one that started without it."""
    annotations = bed.kubectl(f"get pod {name}")["metadata"]["annotations"]
    return json.loads(annotations.get("k8s.v1.cni.cncf.io/network-status", "[]"))


def attached(bed: Bed) -> str:
    return str(bed.kubectl("get network-attachment-definitions rdma-net")["spec"]["config"])


def is_json(text: str) -> bool:
    try:
        return bool(json.loads(text))
    except ValueError:
        return False


def wait_for_ipam(bed: Bed, name: str) -> None:
    wait_until(f"the NAD says {name}", lambda: f'"{name}"' in attached(bed))


def wait_for_blocks(bed: Bed, *nodes: str) -> None:
    def names() -> list[str]:
        pool = bed.kubectl(f"-n {OPERATOR} get ippools.nv-ipam.nvidia.com rdma-net")
        return [block["nodeName"] for block in (pool.get("status") or {}).get("allocations") or []]

    wait_until(f"blocks of {' and '.join(nodes)}", lambda: names() == list(nodes))


# -- disturbances, and the proof after them


def green(bed: Bed, **variables: Any) -> None:
    result = prove(bed, **variables)
    assert result.code == 0, [check for check in report(bed) if check["status"] == "failed"]


def test_all_of_it_is_healed(finished: Bed) -> None:
    assert finished.play("verify").code == 0


def test_services_are_restarted(finished: Bed, heal: contextlib.ExitStack) -> None:
    for host in ("cp1", "w1"):
        finished.on(host, "systemctl restart containerd kubelet")
    wait_until(
        "the API server answers", lambda: "ok" in finished.on("cp1", f"{KUBECTL} get --raw /readyz", check=False)
    )
    finished.on("cp1", f"{KUBECTL} -n {OPERATOR} delete pod -l name=multus --timeout 120s")
    finished.on("cp1", f"{KUBECTL} -n {OPERATOR} rollout status ds/kube-multus-ds --timeout 180s")
    finished.on("cp1", f"{KUBECTL} wait --for condition=Ready --timeout 180s node cp1 w1")
    green(finished)


def test_a_host_reboots(finished: Bed, heal: contextlib.ExitStack) -> None:
    """Its pods may start before multus does; then they are named, and once they are recreated the fabric is whole."""
    run_pods(finished, heal, pod("w1", "trainer"))
    before = finished.on("w1", "systemctl show kubelet -p ActiveEnterTimestampMonotonic")
    machine("podman", "--runtime", "runc", "restart", "--time", "10", f"ipu-fabric-{finished.number}-w1")
    finished.testbed("up")
    wait_until(
        "the kubelet runs",
        lambda: (
            finished.on("w1", "systemctl is-active kubelet", check=False).strip() == "active"
            and finished.on("w1", "systemctl show kubelet -p ActiveEnterTimestampMonotonic") != before
        ),
    )
    time.sleep(15)  # the node stays Ready for a while, whatever has become of its pods
    finished.on("cp1", f"{KUBECTL} wait --for condition=Ready --timeout 180s node/w1 pod/trainer")
    for place in (OPERATOR, "ipu-operator"):
        finished.on("cp1", f"{KUBECTL} -n {place} wait --for condition=Ready --timeout 300s pod --all")
    has = "net1" in finished.on("cp1", f"{KUBECTL} exec trainer -- ip link")
    result = prove(finished)
    failed = [check for check in report(finished) if check["status"] == "failed"]
    assert (result.code == 0) == has, failed
    if not has:
        assert {check["check"] for check in failed} == {"workloads"}
    finished.on("cp1", f"{KUBECTL} delete pod trainer --timeout 120s")
    run_pods(finished, heal, pod("w1", "trainer"))
    green(finished)

from __future__ import annotations

import re
import subprocess
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.plugin_utils._render import mpijob

JOB = {
    "name": "allreduce",
    "image": "osu:7",
    "transport": "roce",
    "command": ["osu_allreduce", "-i", "10"],
    "network": "rdma-net",
    "rdma_resource": "rdma/a",
}


def job(**settings):
    return mpijob.mpi_job({**JOB, **settings})


def pods(**settings):
    replicas = job(**settings)["spec"]["mpiReplicaSpecs"]
    return [replicas[part]["template"]["spec"] for part in ("Launcher", "Worker")]


def start(**settings):
    return pods(**settings)[0]["containers"][0]["command"]


def values(**settings):
    """The variables that are the same in each rank."""
    command = start(**settings)
    words = command[command.index("rank") + 4 : command.index("--")]
    return dict(word.split("=", 1) for word in words)


def test_shape():
    found = job(workers=4, slots_per_worker=2, ttl=60, clean_pod_policy="All", namespace="hpc")
    assert found["apiVersion"] == "kubeflow.org/v2beta1"
    assert found["metadata"] == {"name": "allreduce", "namespace": "hpc"}
    spec = found["spec"]
    assert (spec["slotsPerWorker"], spec["mpiReplicaSpecs"]["Worker"]["replicas"]) == (2, 4)
    assert spec["runPolicy"] == {
        "cleanPodPolicy": "All",
        "backoffLimit": 0,
        "suspend": False,
        "ttlSecondsAfterFinished": 60,
    }
    # The operator warns of a policy in the pod's template.
    for replica in spec["mpiReplicaSpecs"].values():
        assert replica["restartPolicy"] == "Never"
        assert "restartPolicy" not in replica["template"]["spec"]


def test_roce():
    launcher, worker = pods(workers=2, slots_per_worker=3)
    command = launcher["containers"][0]["command"]
    assert command[:4] == ["mpirun", "--allow-run-as-root", "-n", "6"]
    at = command.index("sh")
    assert command[at : at + 7] == ["sh", "-c", mpijob.RANK_SCRIPT, "rank", "pod", "net1", ",,"]
    assert command[-4:] == ["--", *JOB["command"]]
    assert worker["containers"][0]["resources"]["limits"] == {"rdma/a": "1"}
    assert worker["containers"][0]["securityContext"]["capabilities"] == {"add": ["IPC_LOCK"]}
    assert worker["initContainers"][0]["name"] == "memlock"
    assert "resources" not in launcher["containers"][0]
    assert "initContainers" not in launcher


def test_a_record_is_asked_for():
    assert job(record=True)["metadata"]["annotations"] == {"fabric.ipu/record": "true"}


def test_numbers_may_be_text():
    found = job(workers="4", slots_per_worker="2", user="0", ttl="60", vipu={"host": "10.5.0.2", "port": "8091"})
    assert found == job(workers=4, slots_per_worker=2, user=0, ttl=60, vipu={"host": "10.5.0.2", "port": 8091})
    assert start(workers="4", slots_per_worker="2", user="0")[:4] == ["mpirun", "--allow-run-as-root", "-n", "8"]


def test_two_workers_with_a_rank_each_are_the_default():
    replicas = job()["spec"]["mpiReplicaSpecs"]
    assert {name: part["replicas"] for name, part in replicas.items()} == {"Launcher": 1, "Worker": 2}
    assert job()["spec"]["slotsPerWorker"] == 1
    assert start()[start().index("-n") + 1] == "2"


def test_the_launcher_has_its_own_resources():
    launcher, worker = pods(launcher_resources={"limits": {"cpu": 1}}, resources={"limits": {"cpu": 8}})
    assert launcher["containers"][0]["resources"] == {"limits": {"cpu": "1"}}
    assert worker["containers"][0]["resources"]["limits"] == {"cpu": "8", "rdma/a": "1"}


def test_tcp_needs_no_device():
    launcher, worker = pods(transport="tcp")
    command = launcher["containers"][0]["command"]
    assert command[command.index("rank") + 1] == "none"
    assert values(transport="tcp")["UCX_NET_DEVICES"] == "net1"
    assert "resources" not in worker["containers"][0]
    assert "capabilities" not in worker["containers"][0]["securityContext"]
    assert "initContainers" not in worker


@pytest.mark.parametrize("transport", ["roce", "tcp"])
def test_both_are_on_the_network(transport):
    replicas = job(transport=transport)["spec"]["mpiReplicaSpecs"]
    for part in replicas.values():
        assert part["template"]["metadata"]["annotations"] == {"k8s.v1.cni.cncf.io/networks": "rdma-net"}


def test_only_the_transport_differs():
    roce, tcp = start(), start(transport="tcp")
    at = roce.index("sh")
    assert roce[:at] == tcp[:at]


def test_as_a_normal_user():
    spec = job(user=1000)["spec"]
    assert spec["sshAuthMountPath"] == "/home/mpiuser/.ssh"
    launcher, worker = pods(user=1000)
    assert worker["containers"][0]["command"] == mpijob.USER_SSHD
    assert worker["containers"][0]["securityContext"]["capabilities"] == {
        "drop": ["ALL"],
        "add": ["IPC_LOCK", "NET_BIND_SERVICE"],
    }
    assert "--allow-run-as-root" not in launcher["containers"][0]["command"]


def test_every_open_mpi_finds_the_workers():
    launcher, worker = pods(env={"EPOCHS": 3})
    found = {one["name"]: one["value"] for one in launcher["containers"][0]["env"]}
    assert found == {**mpijob.OPEN_MPI_5, "EPOCHS": "3"}
    assert worker["containers"][0]["env"] == [{"name": "EPOCHS", "value": "3"}]
    own = pods(env={"PRTE_MCA_prte_default_hostfile": "/own"})[0]["containers"][0]["env"]
    assert {"name": "PRTE_MCA_prte_default_hostfile", "value": "/own"} in own


@pytest.mark.parametrize("transport", ["roce", "tcp"])
def test_open_mpi_takes_ucx_for_any_transport(transport):
    command = start(transport=transport)
    for option, value in (("pml", "ucx"), ("opal_common_ucx_tls", "any"), ("opal_common_ucx_devices", "any")):
        at = command.index(option)
        assert command[at - 1 : at + 2] == ["--mca", option, value]


def test_ranks_have_the_variables_of_the_job():
    vipu = {"host": "10.5.0.2", "partition": "training"}
    command = start(env={"EPOCHS": 3}, vipu=vipu)
    names = [command[at + 1] for at, word in enumerate(command) if word == "-x"]
    assert names == ["IPUOF_VIPU_API_HOST", "IPUOF_VIPU_API_PORT", "IPUOF_VIPU_API_PARTITION_ID", "EPOCHS"]
    launcher = {one["name"] for one in pods(env={"EPOCHS": 3}, vipu=vipu)[0]["containers"][0]["env"]}
    assert set(names) <= launcher
    assert "-x" not in start()


def test_own_options_of_mpirun_come_before_the_program():
    command = start(mpirun_options=["--map-by", "slot", "-x", "LD_LIBRARY_PATH"])
    assert command.index("--map-by") < command.index("sh")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"transport": "ib"}, "Use roce, or tcp"),
        ({"command": []}, "Give the program"),
        ({"clean_pod_policy": "Workers"}, "Use one of Running, All, None"),
        ({"name": "a" * 51}, "at most 50"),
        ({"pml": "cm"}, "Use ucx, or ob1"),
        ({"privileged": True, "network": ""}, "Set interfaces to those of the nodes"),
        ({"network": "[{]"}, "a JSON list of objects"),
        ({"network": '["rdma-net"]'}, "a JSON list of objects"),
    ],
)
def test_what_is_refused(settings, message):
    with pytest.raises(FabricError, match=message):
        job(**settings)


@pytest.mark.parametrize(
    ("rdma", "settings", "refused"),
    [
        ([False], {}, True),
        ([False], {"rdma_resource": "", "check_memlock": False}, True),
        ([False], {"transport": "tcp"}, False),
        ([False], {"privileged": True}, False),
        ([False, True], {}, False),
        ([], {}, False),
    ],
)
def test_roce_where_the_plan_has_no_rdma(rdma, settings, refused):
    plan = {"networks": [{"name": "rdma-net", "rdma": each} for each in rdma]}
    if refused:
        with pytest.raises(FabricError, match="planned without RDMA: rdma-net") as error:
            job(plan=plan, **settings)
        assert '"example_transports": ["tcp"]' in error.value.next_step
    else:
        assert job(plan=plan, **settings) == job(**settings)


# Transports


def test_variables_of_each_transport():
    # The figures of NCCL and Horovod are those of the vendor's guide for RoCE and for TCP.
    common = {"NCCL_SOCKET_IFNAME": "=net1"}
    roce = {"NCCL_IB_DISABLE": "0", "HOROVOD_MPI_THREADS_DISABLE": "1", "UCX_TLS": "rc,sm,self"}
    tcp = {"NCCL_IB_DISABLE": "1", "HOROVOD_MPI_THREADS_DISABLE": "0", "UCX_TLS": "tcp,sm,self"}
    assert values() == {**common, **roce}
    assert values(transport="tcp") == {**common, **tcp, "UCX_NET_DEVICES": "net1"}


def test_several_rails():
    settings = {"network": "rail-a,rail-b", "rdma_resource": "rdma/a,rdma/b"}
    command = start(**settings)
    assert command[command.index("rank") + 1 :][:2] == ["pod", "net1,net2"]
    found = values(**settings)
    assert found["NCCL_SOCKET_IFNAME"] == "=net1,net2"
    assert (found["UCX_IB_ROCE_LOCAL_SUBNET"], found["UCX_MAX_RNDV_RAILS"]) == ("y", "2")
    tcp = values(**settings, transport="tcp")
    assert tcp["UCX_NET_DEVICES"] == "net1,net2"
    assert "UCX_MAX_RNDV_RAILS" not in tcp
    worker = pods(**settings)[1]["containers"][0]
    assert worker["resources"] == {part: {"rdma/a": "1", "rdma/b": "1"} for part in ("requests", "limits")}


@pytest.mark.parametrize(
    ("settings", "rails"),
    [
        ({"network": "a"}, "net1"),
        ({"network": "jobs/a@rail0, b , c@rail2"}, "rail0,net2,rail2"),
        ({"network": '[{"name": "a"}, {"name": "b", "interface": "rail1"}]'}, "net1,rail1"),
        ({"network": "a,b,c", "interfaces": ["net1", "net3"]}, "net1,net3"),
        # Networks that Spiderpool gives are not in the annotation.
        ({"network": ""}, "net1"),
        ({"network": "", "interfaces": ["net1", "net2"]}, "net1,net2"),
    ],
)
def test_interfaces_of_the_rails(settings, rails):
    command = start(**settings)
    assert command[command.index("rank") + 2] == rails
    assert values(**settings)["NCCL_SOCKET_IFNAME"] == f"={rails}"


@pytest.mark.parametrize("transport", ["roce", "tcp"])
def test_ob1_sends_the_messages_of_mpi_over_tcp(transport):
    command = start(pml="ob1", transport=transport, network="a,b")
    options = command[: command.index("sh")]
    given = {options[at + 1]: options[at + 2] for at, word in enumerate(options) if word == "--mca"}
    assert given == {"pml": "ob1", "osc": "^ucx", "btl": "^openib", "btl_tcp_if_include": "net1,net2"}
    # NCCL has the transport still.
    assert values(pml="ob1", transport=transport)["NCCL_IB_DISABLE"] == ("0" if transport == "roce" else "1")


def test_privileged_workers_have_the_device_files_of_the_node():
    settings = {"privileged": True, "network": "", "rdma_resource": "", "interfaces": ["ens224"]}
    launcher, worker = pods(**settings)
    container = worker["containers"][0]
    assert container["securityContext"] == {"runAsUser": 0, "privileged": True}
    assert worker["initContainers"][0]["securityContext"]["privileged"]
    assert {"name": "infiniband", "mountPath": "/dev/infiniband"} in container["volumeMounts"]
    assert {"name": "infiniband", "hostPath": {"path": "/dev/infiniband", "type": "Directory"}} in worker["volumes"]
    assert "privileged" not in launcher["containers"][0]["securityContext"]
    assert "volumes" not in launcher
    # The pod has only the cluster's network, and the GIDs are those of the node.
    command = start(**settings)
    assert command[command.index("rank") + 1 :][:2] == ["node", "ens224"]
    assert values(**settings)["NCCL_SOCKET_IFNAME"] == "=eth0"
    assert pods(**settings, user=1000)[1]["containers"][0]["securityContext"] == {
        "runAsUser": 1000,
        "privileged": True,
        "runAsGroup": 1000,
        "runAsNonRoot": True,
    }


def test_workers_on_nodes_of_their_own():
    launcher, worker = pods(one_per_node=True)
    (term,) = worker["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    labels = term["labelSelector"]["matchLabels"]
    assert labels == {"training.kubeflow.org/job-name": "allreduce", "training.kubeflow.org/job-role": "worker"}
    assert "affinity" not in launcher
    assert "affinity" not in pods()[1]


def test_a_privileged_job_on_a_network_uses_the_pods_gids():
    command = start(privileged=True)
    assert command[command.index("rank") + 1] == "pod"


def test_tcp_is_never_privileged():
    for each in pods(privileged=True, transport="tcp", network=""):
        assert "privileged" not in each["containers"][0]["securityContext"]
        assert "volumes" not in each
    assert values(privileged=True, transport="tcp", network="")["UCX_NET_DEVICES"] == "eth0"


@pytest.mark.parametrize(
    ("settings", "flags"),
    [({}, ",,"), ({"show_environment": True}, ",show,"), ({"show_environment": True, "count": True}, ",show,count,")],
)
def test_what_a_rank_prints_of_itself(settings, flags):
    command = start(**settings)
    assert command[command.index("rank") + 3] == flags


# The script in a pod with the addresses 10.5.0.130 (0a05:0082) and 10.6.0.130 on its rails. Another pod of the node has
# 10.5.0.13, the node 10.5.0.11, and their GIDs are seen here too. A route to the node is no address of the pod.
TRIE = """\
Main:
  +-- 0.0.0.0/0 3 0 5
           |-- 10.5.0.11
              /32 universe UNICAST
Local:
  +-- 0.0.0.0/0 3 0 5
           |-- 10.5.0.128
              /25 link UNICAST
           |-- 10.5.0.130
              /32 host LOCAL
           |-- 10.6.0.130
              /32 host LOCAL
"""
# /proc/net/if_inet6 of such a pod, as Linux 6.18 has it: an address that a router gave it, its own ones, and fe80.
INET6 = """\
20010db800070001d4e95bfffecbd30f 02 40 00 00     net1
00000000000000000000000000000001 01 80 10 80       lo
fe80000000000000d4e95bfffecbd30f 02 40 20 80     net1
fd000005000000000000000000000082 02 40 00 80     net1
fd000006000000000000000000000082 03 40 00 80     net2
"""
SIX, SIX2 = (f"fd00:{net}:0000:0000:0000:0000:0000:0082" for net in ("0005", "0006"))
SIX_NODE, SLAAC = "fd00:0005:0000:0000:0000:0000:0000:000b", "2001:0db8:0007:0001:d4e9:5bff:fecb:d30f"
MAPPED = "0000:0000:0000:0000:0000:ffff:"
LINK_LOCAL = "fe80:0000:0000:0000:0000:0000:0000:0001"
OWN, OWN2 = f"{MAPPED}0a05:0082", f"{MAPPED}0a06:0082"
OTHER, NODE, NODE2 = f"{MAPPED}0a05:000d", f"{MAPPED}0a05:000b", f"{MAPPED}0a06:000b"
V1, V2 = "IB/RoCE v1", "RoCE v2"


class Entry(t.NamedTuple):
    """An entry of a GID table."""

    device: str
    index: str
    gid: str
    interface: str = "net1"
    kind: str = V2
    port: str = "1"


def sysfs(root, entries):
    (root / "fib_trie").write_text(TRIE)
    (root / "if_inet6").write_text(INET6)
    for entry in entries:
        port = root / "class/infiniband" / entry.device / "ports" / entry.port
        texts = {"gids": entry.gid, "gid_attrs/types": entry.kind, "gid_attrs/ndevs": entry.interface}
        for folder, text in texts.items():
            (port / folder).mkdir(parents=True, exist_ok=True)
            if text:  # else it can't be read, as in some kernels
                (port / folder / entry.index).write_text(f"{text}\n")


class Rank(t.NamedTuple):
    code: int
    out: str
    errors: str

    def variables(self):
        """What the program sees, of the variables that the script may set."""
        lines = (line for line in self.out.splitlines() if re.match("(NCCL|UCX|HOROVOD)_", line))
        return dict(line.split("=", 1) for line in lines)


def run(root, shell, *words, program=("env",), **environment):
    script = mpijob.RANK_SCRIPT.replace("sysfs=/sys/class", f"sysfs={root}/class")
    for file in ("fib_trie", "if_inet6"):
        script = script.replace(f"/proc/net/{file}", f"{root}/{file}")
    command = [shell, "-c", script, "rank", *words, "--", *program]
    given = {"PATH": f"{root}/bin:/usr/bin:/bin", **environment}
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
    return Rank(done.returncode, done.stdout, done.stderr)


def rails(devices, index=None, family="AF_INET"):
    """Variables of rails whose GIDs have one index, or None where NCCL and UCX choose."""
    chosen = {"NCCL_IB_ADDR_FAMILY": family, "NCCL_IB_ROCE_VERSION_NUM": "2", "UCX_IB_GID_INDEX": "auto"}
    same = {"NCCL_IB_GID_INDEX": index, "UCX_IB_GID_INDEX": index}
    return {"NCCL_IB_HCA": f"={devices}", "UCX_NET_DEVICES": devices, **(same if index else chosen)}


SHELLS = ["dash", "bash"]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("entries", "wanted", "seen"),
    [
        ([Entry("mlx5_0", "3", OWN)], "net1", rails("mlx5_0:1", "3")),
        (
            [
                Entry("mlx5_0", "0", LINK_LOCAL),
                Entry("mlx5_0", "1", OTHER),
                Entry("mlx5_0", "3", NODE, "ens1"),
                Entry("mlx5_1", "10", OWN, kind=V1, port="2"),
                Entry("mlx5_1", "11", OWN, port="2"),
            ],
            "net1",
            rails("mlx5_1:2", "11"),
        ),
        # A kernel that does not name the interface.
        ([Entry("mlx5_0", "3", OWN, "")], "net1", rails("mlx5_0:1", "3")),
        # Of two entries of one address the first; by number, not by name.
        ([Entry("mlx5_0", "10", OWN), Entry("mlx5_0", "9", OWN)], "net1", rails("mlx5_0:1", "9")),
        # The order is that of the rails, and a rail that was not asked for is left out.
        ([Entry("mlx5_0", "3", OWN2, "net2"), Entry("mlx5_1", "3", OWN)], "net1", rails("mlx5_1:1", "3")),
        (
            [Entry("mlx5_0", "3", OWN2, "net2"), Entry("mlx5_1", "3", OWN)],
            "net1,net2",
            rails("mlx5_1:1,mlx5_0:1", "3"),
        ),
        # Other indexes, but each is the first that NCCL and UCX take by themselves.
        (
            [Entry("mlx5_0", "3", OWN), Entry("mlx5_1", "4", OWN2, "net2", V1), Entry("mlx5_1", "5", OWN2, "net2")],
            "net1,net2",
            rails("mlx5_0:1,mlx5_1:1"),
        ),
        # One index for both, though neither would be chosen.
        (
            [
                Entry("mlx5_0", "3", NODE, "ens1"),
                Entry("mlx5_0", "7", OWN),
                Entry("mlx5_1", "3", NODE2, "ens2"),
                Entry("mlx5_1", "7", OWN2, "net2"),
            ],
            "net1,net2",
            rails("mlx5_0:1,mlx5_1:1", "7"),
        ),
        # IPv6 alone: neither a link-local address nor that of the node, nor one that a router gave.
        (
            [
                Entry("mlx5_0", "1", LINK_LOCAL),
                Entry("mlx5_0", "3", SIX_NODE, "ens1"),
                Entry("mlx5_0", "5", SLAAC),
                Entry("mlx5_0", "6", SIX, kind=V1),
                Entry("mlx5_0", "7", SIX),
            ],
            "net1",
            rails("mlx5_0:1", "7"),
        ),
        ([Entry("mlx5_0", "5", SIX, ""), Entry("mlx5_0", "1", LINK_LOCAL, "")], "net1", rails("mlx5_0:1", "5")),
        # Of both families IPv4, as IPv6 may be the pods' alone; and the rails may have one each.
        ([Entry("mlx5_0", "3", SIX), Entry("mlx5_0", "5", OWN)], "net1", rails("mlx5_0:1", "5")),
        (
            [Entry("mlx5_0", "3", OWN), Entry("mlx5_1", "3", SIX2, "net2")],
            "net1,net2",
            rails("mlx5_0:1,mlx5_1:1", "3"),
        ),
    ],
)
def test_rank_finds_the_pods_own_gids(tmp_path, shell, entries, wanted, seen):
    sysfs(tmp_path, entries)
    done = run(tmp_path, shell, "pod", wanted, ",,")
    assert (done.code, done.errors) == (0, "")
    assert done.variables() == seen


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("entries", "wanted", "said"),
    [
        ([Entry("mlx5_0", "1", OWN, kind=V1)], "net1", "holds an address of this pod on net1"),
        ([Entry("mlx5_0", "1", OTHER)], "net1", "holds an address of this pod on net1"),
        # The node's address is on a route of the pod, and the interface has the same name.
        ([Entry("mlx5_0", "1", NODE)], "net1", "holds an address of this pod on net1"),
        ([Entry("mlx5_0", "1", OWN, "eth0")], "net1", "holds an address of this pod on net1"),
        ([Entry("mlx5_0", "3", OWN)], "net1,net2", "on net2. Next: check net2"),
        # Which rail a GID is of can't be told.
        ([Entry("mlx5_0", "3", OWN, ""), Entry("mlx5_1", "3", OWN2, "")], "net1,net2", "on net1"),
        # NCCL would take the node's on mlx5_1, and can't take 3 and 7.
        (
            [
                Entry("mlx5_0", "3", OWN),
                Entry("mlx5_1", "5", NODE2, "ens2"),
                Entry("mlx5_1", "7", OWN2, "net2"),
            ],
            "net1,net2",
            "different GID indexes (net1:3, net2:7)",
        ),
        ([Entry("mlx5_0", "3", OWN), Entry("mlx5_0", "5", OWN2, "net2")], "net1,net2", "two rails are on mlx5_0:1"),
        ([], "net1", "no RoCE v2 GID holds an address of this pod"),
        ([Entry("mlx5_0", "1", LINK_LOCAL)], "net1", "holds an address of this pod on net1"),
        ([Entry("mlx5_0", "3", SIX_NODE)], "net1", "holds an address of this pod on net1"),
        ([Entry("mlx5_0", "3", SLAAC)], "net1", "holds an address of this pod on net1"),
        # Each is the first that NCCL takes; UCX takes fe80, and no family serves one of IPv4 and one of IPv6.
        (
            [
                Entry("mlx5_0", "1", LINK_LOCAL),
                Entry("mlx5_0", "3", SIX),
                Entry("mlx5_1", "1", LINK_LOCAL, "net2"),
                Entry("mlx5_1", "5", SIX2, "net2"),
            ],
            "net1,net2",
            "different GID indexes (net1:3, net2:5)",
        ),
        (
            [Entry("mlx5_0", "3", OWN), Entry("mlx5_1", "5", SIX2, "net2")],
            "net1,net2",
            "different GID indexes (net1:3, net2:5)",
        ),
    ],
)
def test_rank_that_can_not_use_its_rails_ends(tmp_path, shell, entries, wanted, said):
    sysfs(tmp_path, entries)
    done = run(tmp_path, shell, "pod", wanted, ",,")
    assert done.code == 1
    assert said in done.errors
    assert len(done.errors.splitlines()) == 1
    assert " Next: " in done.errors
    assert done.out == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_nccl_chooses_by_itself_of_ipv6_too(tmp_path, shell):
    node = Entry("mlx5_1", "3", NODE2, "ens2")
    sysfs(tmp_path, [Entry("mlx5_0", "3", SIX), node, Entry("mlx5_1", "5", SIX2, "net2")])
    done = run(tmp_path, shell, "pod", "net1,net2", ",,", UCX_IB_GID_INDEX="3")
    assert done.variables() == {**rails("mlx5_0:1,mlx5_1:1", family="AF_INET6"), "UCX_IB_GID_INDEX": "3"}


@pytest.mark.parametrize("shell", SHELLS)
def test_rank_on_a_kernel_without_ipv6(tmp_path, shell):
    sysfs(tmp_path, [Entry("mlx5_0", "3", OWN)])
    (tmp_path / "if_inet6").unlink()
    done = run(tmp_path, shell, "pod", "net1", ",,")
    assert (done.code, done.errors, done.variables()) == (0, "", rails("mlx5_0:1", "3"))


@pytest.mark.parametrize("shell", SHELLS)
def test_rank_without_a_network_uses_the_nodes_gid(tmp_path, shell):
    sysfs(tmp_path, [Entry("vmw_pvrdma0", "1", OTHER), Entry("vmw_pvrdma0", "3", NODE, "ens224")])
    assert run(tmp_path, shell, "node", "ens224", ",,").variables() == rails("vmw_pvrdma0:1", "3")
    sysfs(tmp_path, [Entry("mlx5_0", "3", SIX_NODE, "ens226")])
    assert run(tmp_path, shell, "node", "ens226", ",,").variables() == rails("mlx5_0:1", "3")
    done = run(tmp_path, shell, "node", "ens225", ",,")
    assert (done.code, "no RoCE v2 GID belongs to ens225 of the node" in done.errors) == (1, True)


@pytest.mark.parametrize("shell", SHELLS)
def test_what_the_job_sets_stays(tmp_path, shell):
    sysfs(tmp_path, [Entry("mlx5_0", "3", OWN)])
    words = ["pod", "net1", ",,", "NCCL_SOCKET_IFNAME==net1", "UCX_TLS=rc,sm,self"]
    done = run(tmp_path, shell, *words, UCX_TLS="all", NCCL_IB_GID_INDEX="7", UCX_IB_GID_INDEX="")
    assert done.variables() == {
        "NCCL_SOCKET_IFNAME": "=net1",
        "UCX_TLS": "all",
        "NCCL_IB_HCA": "=mlx5_0:1",
        "NCCL_IB_GID_INDEX": "7",
        "UCX_NET_DEVICES": "mlx5_0:1",
        "UCX_IB_GID_INDEX": "",
    }


@pytest.mark.parametrize("shell", SHELLS)
def test_tcp_looks_for_no_device(tmp_path, shell):
    done = run(tmp_path, shell, "none", "net1", ",,", "NCCL_IB_DISABLE=1")
    assert (done.code, done.errors, done.variables()) == (0, "", {"NCCL_IB_DISABLE": "1"})


@pytest.mark.parametrize("shell", SHELLS)
def test_the_program_gets_its_words_and_ends_the_rank(tmp_path, shell):
    program = ["sh", "-c", 'printf "<%s>" "$@"; exit 3', "x", "a b", "--", "*"]
    for flags in (",,", ",count,"):
        done = run(tmp_path, shell, "none", "net1", flags, program=program)
        assert (done.code, done.out) == (3, "<a b><--><*>")


@pytest.mark.parametrize("shell", SHELLS)
def test_environment_that_is_shown(tmp_path, shell):
    sysfs(tmp_path, [Entry("mlx5_0", "3", OWN)])
    done = run(tmp_path, shell, "pod", "net1", ",show,", "NCCL_IB_DISABLE=0", OMPI_COMM_WORLD_RANK="1", OTHER="x")
    lines = [re.sub(r"^@@ rank 1 on \S+: ", "", line) for line in done.errors.splitlines()]
    assert lines == [
        "NCCL_IB_DISABLE=0",
        "NCCL_IB_GID_INDEX=3",
        "NCCL_IB_HCA==mlx5_0:1",
        "UCX_IB_GID_INDEX=3",
        "UCX_NET_DEVICES=mlx5_0:1",
    ]


@pytest.mark.parametrize("shell", SHELLS)
def test_counters_that_grew(tmp_path, shell):
    port, net = tmp_path / "class/infiniband/mlx5_0/ports/1", tmp_path / "class/net/net1/statistics"
    for folder in (port / "counters", port / "hw_counters", net, tmp_path / "bin"):
        folder.mkdir(parents=True)
    (port / "counters/port_xmit_data").write_text("100\n")
    (port / "counters/port_rcv_data").write_text("100\n")
    (port / "hw_counters/rx_write_requests").write_text("7\n")
    (port / "hw_counters/lifespan").write_text("7\n")
    (net / "tx_bytes").write_text("4294967296\n")
    statistic = tmp_path / "bin/rdma"
    told = '[{"ifname":"mlx5_0","port":1,"port_xmit_data":300},{"ifname":"rxp1","port":1,"sent_pkts":%s,"lifespan":1}]'
    statistic.write_text(f"#!/bin/sh\n[ \"$*\" = '-j statistic' ] && printf '{told}\\n' $(cat {tmp_path}/sent)\n")
    statistic.chmod(0o755)
    (tmp_path / "sent").write_text("5\n")
    move = f"cd {tmp_path}; echo 300 >{port}/counters/port_xmit_data; echo 8 >{port}/hw_counters/lifespan;"
    move += f"echo 4294967396 >{net}/tx_bytes; echo 25 >sent; echo done"
    done = run(tmp_path, shell, "none", "", ",count,", program=["sh", "-c", move], OMPI_COMM_WORLD_RANK="0")
    lines = [re.sub(r"^@@ rank 0 on \S+: ", "", line) for line in done.out.splitlines()]
    assert lines == ["done", "mlx5_0 1 port_xmit_data 200", "net1 - tx_bytes 100", "rxp1 1 sent_pkts 20"]
    assert done.errors == ""

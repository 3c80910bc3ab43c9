"""docs/documents.md by value: objects and values of the documents beside those that are made here, field by field.

What a field has here and not in the document, or otherwise, is listed with its value and the reason. Listings 8.1 to
8.7 are in test_documents_examples.py, the MPIJob is in test_documents_rendered_mpi.py.
"""

import functools
import json
import re

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._component import (
    gpu_operator,
    ipu_operator,
    network_operator,
    spiderpool,
)
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_request import check_request
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_spec import build_job
from ansible_collections.ipu.fabric.plugins.module_utils._network.macvlan_objects import network_object
from ansible_collections.ipu.fabric.plugins.module_utils._verify.pod_manifests import pod_manifest
from ansible_collections.ipu.fabric.plugins.module_utils._verify.pods import Options, targets
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults
from ansible_collections.ipu.fabric.tests.unit.fixtures.jobs import request, restart, volume
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import errors, link, plan, site

ABSENT = "(not there)"
RAILS = range(1, 9)
SEEDS = ROOT.parent / "shared/seeds"  # the documents, which are not in this repository


# ---- Graphcore: IPUs from pods over MACVLAN -------------------------------------------------------------------------

ROLES = [{"key": f"node-role.kubernetes.io/{role}", "operator": "DoesNotExist"} for role in ("master", "control-plane")]
PREFERENCE = {"weight": 1, "preference": {"matchExpressions": ROLES}}
AFFINITY = {"preferredDuringSchedulingIgnoredDuringExecution": [PREFERENCE]}


@functools.lru_cache(maxsize=None)
def gcore():
    """A site on the document's subnet, with its release of the network operator."""
    hosts = site()
    for number, seen in enumerate(hosts.values(), 11):
        nic = seen["rdma"]["links"][1]
        nic.update(mtu=1500, addresses=[{"address": f"10.247.208.{number}", "prefix": 24}])
        seen["rdma"]["routes"] = {"10.247.208.5": {"dev": "ens1f0", "source": "", "gateway": ""}}
        seen["vipu"].update(host="10.247.208.5", address="10.247.208.5")
    network = {"name": "rdma-net", "reserved": ["10.247.208.0/25"]}
    releases = {"kubernetes_version": "1.25.4", "network_operator_version": "1.4.0", "manage_kubernetes": False}
    planned = plan(hosts, networks=[network], **releases)
    assert errors(planned) == {}
    return planned


def nic_cluster_policy():
    resources, chosen = gcore()["rdma_resources"], gcore()["releases"]
    settings = defaults("network_operator", version=chosen["network_operator"], ipam=chosen["ipam"],
                        rdma_resources=resources, node_affinity=AFFINITY)  # fmt: skip
    spec = network_operator.nic_cluster_policy(settings)["spec"]
    values = network_operator.chart_values(settings, True)
    return {"nfd": values["nfd"], "deployCR": values["deployCR"], **without(spec, "image", "repository", "version")}


def without(value, *names):
    """The same without these fields: the chart of each release has other images."""
    if not isinstance(value, dict):
        return value
    return {key: without(inner, *names) or "deployed" for key, inner in value.items() if key not in names}


POLICY = {
    "nfd": {"enabled": True},
    "deployCR": True,
    "rdmaSharedDevicePlugin": {
        "config": {"configList": [{"resourceName": "rdma_shared_device_a", "selectors": {"drivers": ["mlx5_core"]}}]}
    },
    "secondaryNetwork": {"cniPlugins": "deployed", "multus": "deployed", "ipamPlugin": "deployed"},
    "nodeAffinity": AFFINITY,
}
MACVLAN = {
    "apiVersion": "mellanox.com/v1alpha1",
    "kind": "MacvlanNetwork",
    "metadata": {"name": "rdma-net"},
    "spec": {
        "networkNamespace": "default",
        "master": "ens1f0",
        "mode": "bridge",
        "mtu": 1500,
        "ipam": {
            "type": "whereabouts",
            "datastore": "kubernetes",
            "kubernetes": {"kubeconfig": "/etc/cni/net.d/whereabouts.d/whereabouts.kubeconfig"},
            "log_file": "/var/log/whereabouts.log",
            "log_level": "info",
            "range": "10.247.208.0/24",
            "exclude": ["10.247.208.0/25"],
        },
    },
}


def listed_pod():
    """Listing 6.1, but for its program."""
    found = probe_pod(gcore())
    container = found["spec"]["containers"][-1]
    asks = {"securityContext": container["securityContext"], "resources": container["resources"]}
    return {"annotations": found["metadata"]["annotations"], **asks}


AMOUNT = "amounts are text"
ONE = {"rdma/rdma_shared_device_a": 1}
PLUGIN, IPAM = "rdmaSharedDevicePlugin.config", "spec.ipam"
OWN_FILE = "whereabouts.conf beside its kubeconfig has it"


# ---- Graphcore: V-IPU guide -----------------------------------------------------------------------------------------

PROGRAM = (
    "mpirun --allow-run-as-root --bind-to none -np 1 python3 "
    "/public_examples/applications/tensorflow/cnns/training/train.py --dataset=cifar-10 --synthetic-data "
    "--model-size=8 --batch-size=1 --batches-per-step=10 --gradient-accumulation-count=10 --no-validation "
    "--no-stochastic-rounding --iterations=20"
)
INFERENCE_IMAGE = "artifactory-systems.eng.graphcore.ai/vipu-k8s-docker-dev-local/resnet-poplar-2.1:operator"
NAMESPACE = {"metadata.namespace": ("default", "it is named")}


def pods(label="resnet-launcher", replicas=1, volumes=None, **container):
    env = [{"name": "IPUOF_LOG_LEVEL", "value": "INFO"}, {"name": "POPLAR_LOG_LEVEL", "value": "INFO"}]
    container = {"name": "resnet", "image": "resnet:latest", **({"env": env} if replicas else {}), **container}
    spec = {"containers": [container], **({"volumes": volumes} if volumes else {})}
    template = {"metadata": {"labels": {"app": label}}, "spec": spec}
    return {**({"replicas": replicas} if replicas else {}), "template": template}


def ipujob(name, workers, namespace=None, **spec):
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    spec = {"jobInstances": 1, "ipusPerJobInstance": "1", "workers": workers, **spec}
    return {"apiVersion": "graphcore.ai/v1alpha1", "kind": "IPUJob", "metadata": metadata, "spec": spec}


def made(name, workers, **options):
    asked = request(name=name, workers={"replicas": None, **workers}, job_instances=1,
                    **{"ipus_per_job_instance": 1, **options})  # fmt: skip
    check_request(asked)
    return build_job(asked)


SERVED = {"imagePullPolicy": "IfNotPresent", "image": INFERENCE_IMAGE, "command": ["/bin/bash", "-c", "--"],
          "args": ["while true; do sleep 30000; done;"]}  # fmt: skip
SERVING = pods("inference-job", 0, **SERVED)
LAUNCHER = {"command": PROGRAM.split()}
OPTIONS = {"launcher": {**LAUNCHER, "env": None}}
CLAIMED = pods(
    volumes=[{"name": "mypvc", "persistentVolumeClaim": {"claimName": "nfs-pvc"}}],
    volumeMounts=[{"name": "mypvc", "mountPath": "/mnt/sample"}],
)
TEMPLATE = "spec.workers.template.spec"


# ---- Spiderpool -----------------------------------------------------------------------------------------------------


def rack_networks(injected):
    return [
        {
            "name": f"gpu{rail}-{'sriov' if injected else 'macvlan'}",
            "namespace": "spiderpool",
            "select": {"name": f"enp{10 + rail}s0f0np0"},
            "gateway": f"172.16.{10 + rail}.254",
            "share": f"172.16.{10 + rail}.1-172.16.{10 + rail}.200",
            "pool": f"gpu{rail}-net{10 + rail}",
            "rdma_resource": f"spidernet.io/gpu{rail}rdma" if injected else f"spidernet.io/shared_cx5_gpu{rail}",
            "rdma_hca_max": 100,
        }
        for rail in RAILS
    ]


@functools.lru_cache(maxsize=None)
def rack(injected=False):
    """Two nodes with the document's eight rails, whose NICs have addresses of its /16."""
    hosts = site()
    for number, seen in enumerate(hosts.values(), 201):
        seen["rdma"]["links"][1:] = [
            link(f"enp{10 + rail}s0f0np0", f"172.16.{10 + rail}.{number}", 16, mtu=1500) for rail in RAILS
        ]
    planned = plan(hosts, networks=rack_networks(injected), stack="spiderpool", ipu=False)
    assert errors(planned) == {}
    assert set(errors(planned, "warning")) == {"fabric-mtu", "rdma-resource", "subnet"}
    return planned


def test_the_guide_has_the_first_rail_of_the_rack():
    page = (ROOT / "docs/guides/rails.md").read_text("utf-8")
    (block,) = [text for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "spidernet.io" in text]
    assert yaml.safe_load(block) == {"fabric_stack": "spiderpool", "fabric_networks": rack_networks(False)[:1]}


def rail(number, injected=False):
    planned, inject = rack(injected), {"inject": True, "inject_value": "rdma-network"} if injected else {}
    settings = defaults("spiderpool", networks=planned["networks"], rdma_resources=planned["rdma_resources"],
                        metrics=True, dashboards=True, **inject)  # fmt: skip
    network = planned["networks"][number - 1]
    values = spiderpool.chart_values(settings, False)
    resource = values["rdma"]["rdmaSharedDevicePlugin"]["deviceConfig"]["configList"][number - 1]
    pool, config = spiderpool.pool_object(network), spiderpool.network_object(network, settings)
    return {"resource": resource, "pool": pool, "config": config}


def rail_document(number, kind="macvlan", annotations=None, **macvlan):
    api, net = {"apiVersion": "spiderpool.spidernet.io/v2beta1"}, 10 + number
    master, pool, annotated = f"enp{net}s0f0np0", f"gpu{number}-net{net}", {"annotations": annotations}
    return {
        "resource": {
            "resourcePrefix": "spidernet.io",
            "resourceName": f"shared_cx5_gpu{number}",
            "rdmaHcaMax": 100,
            "selectors": {"ifNames": [master]},
        },
        "pool": {
            **api,
            "kind": "SpiderIPPool",
            "metadata": {"name": pool},
            "spec": {
                "gateway": f"172.16.{net}.254",
                "subnet": f"172.16.{net}.0/16",
                "ips": [f"172.16.{net}.1-172.16.{net}.200"],
            },
        },
        "config": {
            **api,
            "kind": "SpiderMultusConfig",
            "metadata": {
                "name": f"gpu{number}-{kind}",
                "namespace": "spiderpool",
                **(annotated if annotations else {}),
            },
            "spec": {"cniType": "macvlan", "macvlan": {"master": [master], "ippools": {"ipv4": [pool]}, **macvlan}},
        },
    }


WRITTEN = "Spiderpool's default, written out"
RAIL = {
    "pool.spec.subnet": ("172.16.0.0/16", "the network's own address, of which the document's is one"),
    "pool.spec.ipVersion": (4, WRITTEN),
    "pool.spec.excludeIPs": ([], "the document's range has no address that is taken"),
    "config.spec.enableCoordinator": (True, WRITTEN),
    "config.spec.coordinator.mode": ("auto", WRITTEN),
    "config.spec.coordinator.tunePodRoutes": (True, WRITTEN),
    "config.spec.macvlan.mtu": (1500, "that of the NIC"),
    "config.spec.macvlan.vlanID": (0, WRITTEN),
}
INJECT = "the document's other listing has it; only the injection reads it"


IPU = {"global": {"vipuControllers": "<VIPU_SERVER_ADDRESS>:ipunode=true"}, "worker": {"hostNetwork": False}}
CHART = {
    "rdma": {"rdmaSharedDevicePlugin": {"install": True}},
    "spiderpoolAgent": {"prometheus": {"enabled": True, "enabledRdmaMetric": True}},
    "grafanaDashboard": {"install": True},
    "spiderpoolController": {"podResourceInject": {"enabled": True}},
}
GPUS = {"driver": {"rdma": {"enabled": True, "useHostMofed": True}}, "gdrcopy": {"enabled": True}}
NAMED = {f"resources.requests.spidernet.io/shared_cx5_gpu{number}": ("1", AMOUNT) for number in RAILS}


def probe_pod(planned):
    """The pod that verify starts on the first node."""
    amounts = dict.fromkeys([network["resource"] for network in planned["networks"]], "9")
    options = Options("", "probe", "i", "", 60, 1, 1, 1, 1, ipu=False, ipu_partition="", ipu_device=0)
    return pod_manifest(targets(planned)[0], planned, {"status": {"allocatable": amounts}}, options)


def pod_on_all_rails():
    """As the document's DaemonSet asks for rails."""
    found = probe_pod(rack())
    attached = found["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"].split(",")
    networks = [dict(zip(("namespace", "name"), each.split("/"))) for each in attached]
    return {"networks": networks, "resources": {"requests": found["spec"]["containers"][-1]["resources"]["requests"]}}


# ---- the map --------------------------------------------------------------------------------------------------------


def values_of(component, role, document, **settings):
    """The chart's values as far as the document sets them."""
    return picked(component.chart_values(defaults(role, **settings), False), document)


def picked(values, document):
    if not isinstance(document, dict):
        return values
    return {key: picked(values.get(key, {}), inner) for key, inner in document.items()}


# What is made, what the document has, and the fields that differ: their value here, and why.
CASES = {
    "000, 5.1": (
        nic_cluster_policy,
        POLICY,
        {
            "deployCR": (False, "the role applies the policy itself, also in releases whose chart has none"),
            f"{PLUGIN}.configList.0.resourcePrefix": ("rdma", "the plugin's default, written out"),
            f"{PLUGIN}.configList.0.rdmaHcaMax": (63, "as many as the GID table has room for"),
            f"{PLUGIN}.configList.0.selectors.drivers.0": (ABSENT, "that takes every NIC of the driver"),
            f"{PLUGIN}.configList.0.selectors.ifNames.0": ("ens1f0", "the NICs of this network alone"),
            f"{PLUGIN}.periodicUpdateInterval": (300, "devices may appear later"),
        },
    ),
    "000, 5.2": (
        lambda: network_object(gcore()["networks"][0]),
        MACVLAN,
        {
            f"{IPAM}.range_start": ("10.247.208.128", "old releases walk through an excluded half"),
            f"{IPAM}.range_end": ("10.247.208.254", "likewise"),
            **{f"{IPAM}.{name}": (ABSENT, OWN_FILE) for name in ("datastore", "kubernetes.kubeconfig")},
            **{f"{IPAM}.{name}": (ABSENT, "it logs nothing by default") for name in ("log_file", "log_level")},
        },
    ),
    "000, 6.1": (
        listed_pod,
        {
            "annotations": {"k8s.v1.cni.cncf.io/networks": "rdma-net"},
            "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
            "resources": {"limits": ONE, "requests": ONE},
        },
        {
            "annotations.k8s.v1.cni.cncf.io/networks": ("default/rdma-net", "the pod has a namespace of its own"),
            "securityContext.runAsUser": (0, "it is named"),
            "securityContext.allowPrivilegeEscalation": (False, "it needs no more rights"),
            **{f"resources.{part}.rdma/rdma_shared_device_a": ("1", AMOUNT) for part in ("limits", "requests")},
        },
    ),
    "000, 8.5": (
        lambda: values_of(ipu_operator, "ipu_operator", IPU, vipu_controllers=gcore()["vipu"]["controllers"]),
        IPU,
        {"global.vipuControllers": ("10.247.208.5:8090:ipunode=true", "this site's address in its place")},
    ),
    "001, 6.6": (
        lambda: made("ipujob-sample", pods(), workers_per_job_instance=1, model_replicas_per_worker=1, **OPTIONS),
        ipujob("ipujob-sample", pods(), workerPerJobInstance="1", modelReplicasPerWorker="1", launcher=LAUNCHER),
        {
            **NAMESPACE,
            "spec.workerPerJobInstance": (ABSENT, "the API knows no such field"),
            "spec.workersPerJobInstance": ("1", "its name in the API"),
        },
    ),
    "001, 6.6.1": (
        lambda: made("interactive-sample-job", pods(imagePullPolicy="Always"), ipus_per_job_instance=2,
                     interactive={"ttl": 3600}),
        ipujob("interactive-sample-job", pods(imagePullPolicy="Always"), ipusPerJobInstance="2",
               interactive={"ttl": 3600}),
        NAMESPACE,
    ),
    "001, 6.7": (
        lambda: made("job-inference-1", SERVING, clean_pod_policy="None"),
        ipujob("job-inference-1", SERVING, "default", cleanPodPolicy="None"),
        {},
    ),
    "001, 6.7.1": (
        lambda: made("ipujob-sample", pods(), volumes=[volume("/mnt/sample", claim="nfs-pvc")], **OPTIONS),
        ipujob("ipujob-sample", CLAIMED, launcher=LAUNCHER),
        {
            **NAMESPACE,
            f"{TEMPLATE}.volumes.0.name": ("fabric-0", "a name that no pod template has"),
            f"{TEMPLATE}.volumes.0.persistentVolumeClaim.readOnly": (False, "the default, written out"),
            f"{TEMPLATE}.containers.0.volumeMounts.0.name": ("fabric-0", "likewise"),
            f"{TEMPLATE}.containers.0.volumeMounts.0.readOnly": (False, "likewise"),
        },
    ),
    **{
        f"002, rail {number}": (
            functools.partial(rail, number),
            rail_document(number),
            {**RAIL, "config.spec.macvlan.rdmaResourceName": (f"spidernet.io/shared_cx5_gpu{number}", INJECT)},
        )
        for number in RAILS
    },
    "002, rail 1, injected": (
        lambda: rail(1, injected=True),
        rail_document(1, "sriov", {"cni.spidernet.io/rdma-resource-inject": "rdma-network"}, enableRdma=True,
                      rdmaResourceName="spidernet.io/gpu1rdma"),
        {
            **RAIL,
            "resource.resourceName": ("gpu1rdma", "the document's ConfigMap has the other listing's names alone"),
            "config.spec.macvlan.enableRdma": (ABSENT, "Spiderpool 1.0 has removed it"),
        },
    ),
    "002, charts": (
        lambda: values_of(spiderpool, "spiderpool", CHART, networks=rack()["networks"], metrics=True, dashboards=True,
                          inject=True, rdma_resources=rack()["rdma_resources"]),
        CHART,
        {},
    ),
    "002, GPU operator": (
        lambda: values_of(gpu_operator, "gpu_operator", GPUS, rdma=True, host_mofed=True, gdrcopy=True),
        GPUS,
        {},
    ),
    "002, a pod on all rails": (
        pod_on_all_rails,
        {
            "networks": [{"name": f"gpu{number}-macvlan", "namespace": "spiderpool"} for number in RAILS],
            "resources": {"requests": {f"spidernet.io/shared_cx5_gpu{number}": 1 for number in RAILS}},
        },
        NAMED,
    ),
}  # fmt: skip


def fields(value, path=""):
    """Each field by its path; what is JSON in a text is read."""
    if isinstance(value, str) and value.startswith("{"):
        value = json.loads(value)
    if isinstance(value, (dict, list)) and value:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from fields(inner, f"{path}.{key}".lstrip("."))
    else:
        yield path, value


@pytest.mark.parametrize("case", CASES)
def test_what_is_made_is_the_documents_but_for_what_is_listed(case):
    make, document, differences = CASES[case]
    wanted, found = dict(fields(document)), dict(fields(make()))
    differing = {
        path: found.get(path, ABSENT)
        for path in {**wanted, **found}
        if found.get(path, ABSENT) != wanted.get(path, ABSENT)
    }
    assert differing == {path: value for path, (value, _reason) in differences.items()}


@pytest.mark.skipif(not SEEDS.is_dir(), reason="no ../shared/seeds")
@pytest.mark.parametrize("case", [case for case in CASES if not re.fullmatch("002, rail [2-8]", case)])
def test_the_documents_say_so(case):
    """Texts only: the first rail stands for all, and the NIC is a placeholder there."""
    (path,) = SEEDS.glob(f"{case[:3]}_*")
    text = path.read_text("utf-8")
    wanted = {value for value in dict(fields(CASES[case][1])).values() if isinstance(value, str)}
    assert [value for value in wanted - {"deployed", "ens1f0"} if value not in text] == []


@pytest.mark.parametrize("kind", ["Always", "OnFailure", "Never", "ExitCode"])
def test_restarts_of_the_guide(kind):
    codes = ["128-255"] if kind == "ExitCode" else None
    assert made("a", pods(), restart_policy=restart(kind, codes))["spec"]["restartPolicy"]["type"] == kind


@pytest.mark.parametrize("policy", ["Workers", "All", "None"])
def test_what_is_cleaned_up_in_the_guide(policy):
    assert made("a", pods(), clean_pod_policy=policy)["spec"]["cleanPodPolicy"] == policy

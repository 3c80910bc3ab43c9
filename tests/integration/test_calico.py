"""Calico by the role kubernetes, on an API server without controllers: the tests do what its operator does."""

from __future__ import annotations

import functools
import hashlib
import http.server
import ipaddress
import json
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._component.calico import calico_installation
from ansible_collections.ipu.fabric.tests.integration.api_server import ApiServer, Modules, Result, run_playbook
from ansible_collections.ipu.fabric.tests.unit.fixtures.web_server import serving

STRING, FLAG = {"type": "string"}, {"type": "boolean"}
# Of the definition of 3.32.1, what the role and the operator's defaults for it touch. Its lists have no list type.
POOL = {
    "allowedUses": {"type": "array", "items": STRING},
    "assignmentMode": STRING,
    "blockSize": {"type": "integer", "format": "int32"},
    "cidr": STRING,
    "disableBGPExport": {"type": "boolean", "default": False},
    "disableNewAllocations": FLAG,
    "encapsulation": {"type": "string", "enum": ["IPIPCrossSubnet", "IPIP", "VXLAN", "VXLANCrossSubnet", "None"]},
    "name": STRING,
    "natOutgoing": {"type": "string", "enum": ["Enabled", "Disabled"]},
    "nodeSelector": STRING,
}
DETECTION = {
    "canReach": STRING,
    "cidrs": {"type": "array", "items": STRING},
    "firstFound": FLAG,
    "interface": STRING,
    "kubernetes": {"type": "string", "enum": ["NodeInternalIP"]},
    "skipInterface": STRING,
}
NETWORK = {
    "bgp": {"type": "string", "enum": ["Enabled", "Disabled"]},
    "hostPorts": STRING,
    "ipPools": {"type": "array", "maxItems": 25, "items": {"type": "object", "properties": POOL, "required": ["cidr"]}},
    "linuxDataplane": STRING,
    "mtu": {"type": "integer", "format": "int32"},
    "multiInterfaceMode": STRING,
    "nodeAddressAutodetectionV4": {"type": "object", "properties": DETECTION},
    "nodeAddressAutodetectionV6": {"type": "object", "properties": DETECTION},
}
SPEC = {
    "calicoNetwork": {"type": "object", "properties": NETWORK},
    "controlPlaneReplicas": {"type": "integer", "format": "int32"},
    "registry": STRING,
    "variant": STRING,
}
SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": SPEC}}}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "installations.operator.tigera.io"},
    "spec": {
        "group": "operator.tigera.io",
        "names": {"kind": "Installation", "listKind": "InstallationList", "plural": "installations"},
        "scope": "Cluster",
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}],
    },
}
INSTALLATION = {"apiVersion": "operator.tigera.io/v1", "kind": "Installation", "metadata": {"name": "default"}}
# pkg/controller/ippool/defaults.go and pkg/controller/installation/core_controller.go of tigera/operator 1.42.3.
ANY_POOL = {
    "allowedUses": ["Workload", "Tunnel"],
    "nodeSelector": "all()",
    "disableNewAllocations": False,
    "assignmentMode": "Automatic",
}
FAMILY_POOL = {
    4: {"encapsulation": "IPIP", "natOutgoing": "Enabled", "blockSize": 26},
    6: {"encapsulation": "None", "natOutgoing": "Disabled", "blockSize": 122},
}


def fill_defaults(spec: Result) -> None:
    """What the operator does to an Installation that it finds."""
    network = spec["calicoNetwork"]
    spec.setdefault("variant", "Calico")
    spec.setdefault("controlPlaneReplicas", 2)
    network.setdefault("linuxDataplane", "Iptables")
    network.setdefault("hostPorts", "Enabled")
    network.setdefault("multiInterfaceMode", "None")
    for pool in network["ipPools"]:
        version = ipaddress.ip_network(pool["cidr"]).version
        for key, value in {**ANY_POOL, **FAMILY_POOL[version], "name": f"default-ipv{version}-ippool"}.items():
            pool.setdefault(key, value)
        network.setdefault(f"nodeAddressAutodetectionV{version}", {"firstFound": True})


def reconcile(api: ApiServer) -> Result:
    """A round of the operator: it reads, fills, and patches with what is missing, as its own field manager."""
    installation = api.get("installation", "default")
    fill_defaults(installation["spec"])
    patch = json.dumps({"spec": installation["spec"]})
    api.kubectl("patch", "installation", "default", "--type=merge", "--field-manager=operator", f"--patch={patch}")
    spec: Result = api.get("installation", "default")["spec"]
    return spec


@pytest.fixture
def installations(run: Modules, api: ApiServer) -> t.Iterator[None]:
    run("kube_apply", objects=[DEFINITION])
    yield
    api.kubectl("delete", "installations", "--all")


@pytest.mark.usefixtures("installations")
@pytest.mark.parametrize(
    ("cidrs", "settings"),
    [
        (["10.244.0.0/16"], {}),
        (["10.244.0.0/16", "fd00:10:244::/56"], {"registry": "registry.site"}),
        (["10.244.0.0/16"], {"calicoNetwork": {"ipPools": [{"cidr": "10.244.0.0/17", "blockSize": 24}]}}),
        (["10.244.0.0/16"], {"calicoNetwork": {"bgp": "Enabled", "ipPools": [{"cidr": "10.244.0.0/16"}]}}),
        (["10.244.0.0/16"], {"calicoNetwork": {"nodeAddressAutodetectionV4": {"interface": "ens3"}}}),
    ],
)
def test_the_second_run_changes_nothing(run: Modules, api: ApiServer, cidrs: t.List[str], settings: Result) -> None:
    wanted = {**INSTALLATION, "spec": calico_installation(cidrs, settings)}
    assert run("kube_apply", objects=[wanted])["changed"]
    spec = reconcile(api)
    for check in (True, False):
        again = run("kube_apply", objects=[wanted], check=check)
        assert not again["changed"], again["diff"]
    assert reconcile(api) == spec
    # It refuses a second way to find a node's address.
    for family in ("V4", "V6")[: len(cidrs)]:
        ways = spec["calicoNetwork"][f"nodeAddressAutodetection{family}"]
        assert len([way for way in ways.values() if way]) == 1


@pytest.mark.usefixtures("installations")
def test_a_cluster_that_took_the_first_address(run: Modules, api: ApiServer) -> None:
    """As earlier releases of the role left it: one run brings the new settings, the next one changes nothing."""
    pool = {"name": "default-ipv4-ippool", "cidr": "10.244.0.0/16", "encapsulation": "VXLAN"}
    former = {**INSTALLATION, "spec": {"calicoNetwork": {"bgp": "Disabled", "ipPools": [pool]}}}
    run("kube_apply", objects=[former])
    assert reconcile(api)["calicoNetwork"]["nodeAddressAutodetectionV4"] == {"firstFound": True}
    assert run("kube_apply", objects=[former], check=True)["changed"]
    wanted = {**INSTALLATION, "spec": calico_installation(["10.244.0.0/16"])}
    assert run("kube_apply", objects=[wanted], check=True)["changed"]
    assert run("kube_apply", objects=[wanted])["changed"]
    found = reconcile(api)["calicoNetwork"]["nodeAddressAutodetectionV4"]
    assert found == {"kubernetes": "NodeInternalIP", "firstFound": False}
    assert not run("kube_apply", objects=[wanted])["changed"]


OPERATOR = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tigera-operator"}}
PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.set_fact:
        __kubernetes_node: {node: {name: cp1, taints: []}}
    - ansible.builtin.include_role:
        name: ipu.fabric.kubernetes
        tasks_from: "{{ part }}"
      loop: "{{ parts }}"
      loop_control: {loop_var: part}
"""


class Site:
    """A site's server of manifests, and a directory for what a run keeps, which is not there yet."""

    def __init__(self, api: ApiServer, folder: Path, port: int) -> None:
        self.play, self.artifacts = folder / "play.yml", folder / "artifacts"
        self.play.write_text(PLAY)
        self.inventory = folder / "hosts"
        self.inventory.write_text("[kube_control_plane]\nlocalhost ansible_connection=local\n")
        self.kubeconfig = self.artifacts / "admin.conf"
        self.api, self.url = api, f"http://127.0.0.1:{port}"
        self.names = ("operator-crds.yaml", "tigera-operator.yaml")
        # They are not those of the release, whose digests the role knows.
        self.digests = [
            f"sha256:{hashlib.sha256((folder / 'www' / name).read_bytes()).hexdigest()}" for name in self.names
        ]

    def run(self, *parts: str, check: bool = False, **variables: t.Any) -> t.Tuple[bool, str]:
        """Whether these parts of the role succeed, and what they say."""
        urls = {"crds_url": f"{self.url}/{self.names[0]}", "operator_url": f"{self.url}/{self.names[1]}"}
        digests = dict(zip(("crds_checksum", "operator_checksum"), self.digests))
        sources = {**urls, **digests}
        variables = {"kubernetes_kubeconfig": str(self.kubeconfig), "kubernetes_calico": sources, **variables}
        options = ["-i", str(self.inventory), *["--check"] * check]
        done = run_playbook(self.play, *options, parts=parts, **variables)
        return done.returncode == 0, done.stdout + done.stderr

    def bring_kubeconfig(self) -> None:
        self.artifacts.mkdir(exist_ok=True)
        self.kubeconfig.write_text(self.api.kubeconfig.read_text())


@pytest.fixture
def site(api: ApiServer, tmp_path: Path) -> t.Iterator[Site]:
    folder = tmp_path / "www"
    folder.mkdir()
    (folder / "operator-crds.yaml").write_text(yaml.safe_dump(DEFINITION))
    (folder / "tigera-operator.yaml").write_text(yaml.safe_dump(OPERATOR))
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with serving(handler) as port:
        yield Site(api, tmp_path, port)
    api.kubectl("delete", "crd", "installations.operator.tigera.io", "--ignore-not-found")


def test_the_role_from_bare_hosts_and_again(site: Site, api: ApiServer) -> None:
    """In check mode without a cluster or a directory, then for real, then again with what the operator wrote."""
    parts = ("manifests", "cni")
    assert not site.artifacts.exists()
    succeeded, said = site.run(*parts, check=True)
    assert succeeded, said
    site.bring_kubeconfig()
    succeeded, said = site.run(*parts)
    assert succeeded, said
    assert "changed=2 " in said
    reconcile(api)
    for check in (True, False):
        succeeded, said = site.run(*parts, check=check)
        assert succeeded, said
        assert "changed=0 " in said


@pytest.mark.parametrize(
    ("url", "name", "seen"),
    [("http://127.0.0.1:9", "operator-crds.yaml", "Connection refused"), ("", "none.yaml", "404")],
)
def test_manifests_that_can_not_be_had(site: Site, url: str, name: str, seen: str) -> None:
    site.url, site.names = url or site.url, (name, "tigera-operator.yaml")
    succeeded, said = site.run("manifests", check=True)
    assert not succeeded
    for part in (f"Where: {site.url}/{name}", seen, "fabric_mirror.calico", "docs/mirror.md"):
        assert part in said


STATUS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "tigerastatuses.operator.tigera.io"},
    "spec": {
        "group": "operator.tigera.io",
        "names": {"kind": "TigeraStatus", "listKind": "TigeraStatusList", "plural": "tigerastatuses"},
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                },
            }
        ],
    },
}
READY = {"type": "Ready", "status": "True"}
PULL = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "quay.io/calico/node:v3.32.1"'}
WORKLOADS = [
    ("deployment", "tigera-operator", "tigera-operator"),
    ("daemonset", "calico-system", "calico-node"),
    ("deployment", "calico-system", "calico-typha"),
    ("deployment", "calico-system", "calico-kube-controllers"),
]


def pod_template(name: str) -> Result:
    spec = {"nodeName": "cp1", "containers": [{"name": name, "image": f"quay.io/calico/{name}"}]}
    return {"metadata": {"labels": {"app": name}}, "spec": spec}


def set_status(api: ApiServer, kind: str, name: str, namespace: str = "", **status: t.Any) -> None:
    place = [f"--namespace={namespace}"] if namespace else []
    patch = json.dumps({"status": status})
    api.kubectl("patch", kind, name, *place, "--subresource=status", "--type=merge", f"--patch={patch}")


def set_ready(api: ApiServer, kind: str, name: str, namespace: str) -> None:
    counts = (
        ["currentNumberScheduled", "desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady"]
        if kind == "daemonset"
        else ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"]
    )
    status = {"numberMisscheduled": 0} if kind == "daemonset" else {}
    set_status(api, kind, name, namespace, observedGeneration=1, **status, **dict.fromkeys(counts, 1))


@pytest.fixture
def network(run: Modules, api: ApiServer) -> t.Iterator[None]:
    """Calico as its operator has brought it to one node: all is ready."""
    run("kube_apply", objects=[STATUS])
    objects: t.List[Result] = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "cp1"}},
        *(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}}
            for n in ("tigera-operator", "calico-system")
        ),
        {"apiVersion": "operator.tigera.io/v1", "kind": "TigeraStatus", "metadata": {"name": "calico"}},
    ]
    for kind, namespace, name in WORKLOADS:
        spec = {"selector": {"matchLabels": {"app": name}}, "template": pod_template(name)}
        metadata = {"name": name, "namespace": namespace}
        plural = {"daemonset": "DaemonSet", "deployment": "Deployment"}[kind]
        objects.append({"apiVersion": "apps/v1", "kind": plural, "metadata": metadata, "spec": spec})
    pod = {"apiVersion": "v1", "kind": "Pod", **pod_template("calico-node")}
    pod["metadata"] = {**pod["metadata"], "name": "calico-node-x7k2p", "namespace": "calico-system"}
    run("kube_apply", objects=[*objects, pod])
    set_status(api, "node", "cp1", conditions=[READY])
    set_status(api, "tigerastatus", "calico", conditions=[{"type": "Degraded", "status": "False"}])
    for kind, namespace, name in WORKLOADS:
        set_ready(api, kind, name, namespace)
    yield
    api.kubectl("delete", "pod", "--all", "--namespace=calico-system", "--force", check=False)
    for kind, namespace, name in WORKLOADS:
        api.kubectl("delete", kind, name, f"--namespace={namespace}", "--ignore-not-found")
    api.kubectl("delete", "node", "cp1")
    api.kubectl("delete", "crd", "tigerastatuses.operator.tigera.io")


@pytest.mark.usefixtures("network")
def test_the_run_waits_for_the_pod_network_and_says_why(site: Site, api: ApiServer) -> None:
    """Nodes are Ready as soon as a plugin is configured: that is not the end of the wait."""
    site.bring_kubeconfig()
    succeeded, said = site.run("manifests", "wait")
    assert succeeded, said
    set_status(api, "daemonset", "calico-node", "calico-system", numberAvailable=0, numberReady=0)
    container = {"name": "calico-node", "ready": False, "restartCount": 0, "image": "", "imageID": ""}
    waiting = [{**container, "state": {"waiting": PULL}}]
    set_status(api, "pod", "calico-node-x7k2p", "calico-system", phase="Pending", containerStatuses=waiting)
    api.kubectl("delete", "deployment", "calico-typha", "--namespace=calico-system")
    refusal = {"type": "Degraded", "status": "True", "reason": "ResourceValidationError", "message": "IPIP needs BGP"}
    set_status(api, "tigerastatus", "calico", conditions=[refusal])
    succeeded, said = site.run("manifests", "wait", kubernetes_timeout=2)
    assert not succeeded
    for part in (
        "Waiting for the pod network (calico), the nodes and CoreDNS took too long.",
        "DaemonSet calico-system/calico-node: 0 of 1 pods are ready",
        "calico-node-x7k2p, container calico-node: ImagePullBackOff",
        "quay.io/calico/node:v3.32.1",
        "Deployment calico-system/calico-typha does not exist",
        "ResourceValidationError: IPIP needs BGP",
    ):
        assert part in said.replace('\\"', '"'), said

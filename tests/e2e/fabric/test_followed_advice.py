"""Faults in a real cluster, cured by nothing but the advice as report.json prints it.

Code finds the step in the sentence (fixtures/advice.py) and takes it: a playbook with its tags and settings, or a
command. Where a person has to act, the row has the words of the sentence and what they do. Then `verify_checks` has to
pass. Faults with the same step are put in together, so that it is taken once.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import gzip
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.manager import MANAGER
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import CHECK_TYPES
from ansible_collections.ipu.fabric.tests.e2e.bed import KUBECTL, Bed, Result
from ansible_collections.ipu.fabric.tests.e2e.fabric import test_faults as faults
from ansible_collections.ipu.fabric.tests.e2e.lifecycle.test_certificates import PKI, let_end
from ansible_collections.ipu.fabric.tests.unit.fixtures import advice
from ansible_collections.ipu.fabric.tests.unit.fixtures.certificates import certificate
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Heal = contextlib.ExitStack
NETWORK, OPERATOR, QUICK = faults.NETWORK, faults.OPERATOR, faults.QUICK
POOL = f"-n {OPERATOR} ippools.nv-ipam.nvidia.com rdma-net"
LAB_RANGE = ("10.5.0.128", "10.5.0.200")
NOBODY = "10.5.0.99"
NO_IMAGE = "docker.io/library/no-such-image:1"
LOW = "/etc/systemd/system/containerd.service.d/10-low.conf"
RESTART = "systemctl daemon-reload && systemctl restart containerd"


# -- what is put in


def fail_release(bed: Bed, heal: Heal) -> None:
    """As an upgrade that failed leaves it."""
    secret = bed.kubectl(f"-n {OPERATOR} get secrets -l owner=helm,name=network-operator,status=deployed")["items"][-1]
    record = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(secret["data"]["release"]))))
    record["info"]["status"] = "failed"
    packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(record).encode()))).decode()
    metadata = {"name": secret["metadata"]["name"], "namespace": OPERATOR}
    labels = {**secret["metadata"]["labels"], "status": "failed"}
    faults.apply(bed, {**secret, "metadata": {**metadata, "labels": labels}, "data": {"release": packed}})


def delete_kind(bed: Bed, heal: Heal) -> None:
    bed.on("cp1", f"{KUBECTL} delete crd ipujobs.graphcore.ai --timeout 120s")


def delete_network(bed: Bed, heal: Heal) -> None:
    bed.on("cp1", f"{KUBECTL} delete macvlannetwork rdma-net --timeout 120s")
    faults.wait_until("the NAD is gone", lambda: "rdma-net" not in bed.on("cp1", f"{KUBECTL} get net-attach-def"))


def edit_network(bed: Bed, heal: Heal) -> None:
    """Another IPAM, with a default route, that gives out the same addresses on each node."""
    ranges = [[{"subnet": "10.5.0.0/24", "rangeStart": "10.5.0.10", "rangeEnd": "10.5.0.19"}]]
    routes = [{"dst": cidr, "gw": "10.5.0.1"} for cidr in ("0.0.0.0/0", "10.244.0.0/16")]
    ipam = {"type": "host-local", "ranges": ranges, "routes": routes}
    patch(bed, "macvlannetwork rdma-net", "/spec/ipam", json.dumps(ipam))
    faults.wait_for_ipam(bed, "host-local")


def edit_policy(bed: Bed, heal: Heal) -> None:
    patch(bed, "nicclusterpolicy nic-cluster-policy", "/spec/nvIpam/version", "v0.0.1")
    faults.wait_until(
        "the policy is not ready",
        lambda: bed.kubectl("get nicclusterpolicy nic-cluster-policy")["status"]["state"] != "ready",
    )


def narrow_pool(bed: Bed, heal: Heal) -> None:
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["w1"]}]}]
    patch(bed, POOL, "/spec/nodeSelector", {"nodeSelectorTerms": terms})
    faults.wait_for_blocks(bed, "w1")


def leave_pool(bed: Bed, heal: Heal) -> None:
    """A pool that this collection has made for a network of a former plan."""
    pool = bed.kubectl(f"get {POOL}")
    metadata = {"name": "former", "namespace": OPERATOR}
    text = json.dumps({**pool, "metadata": metadata, "status": None})
    bed.on("cp1", f"{KUBECTL} apply --server-side --field-manager {MANAGER} -f - <<'EOF'\n{text}\nEOF")
    heal.callback(bed.on, "cp1", f"{KUBECTL} -n {OPERATOR} delete ippools.nv-ipam.nvidia.com former --ignore-not-found")


def take_label(bed: Bed, heal: Heal) -> None:
    labels = bed.plan()["vipu"]["node_labels"]["w1"]
    bed.on("cp1", f"{KUBECTL} label node w1 {' '.join(f'{key}-' for key in labels)}")


def ignore_webhook(bed: Bed, heal: Heal) -> None:
    """What a run leaves that is killed while it removes jobs by force."""
    where = "validatingwebhookconfiguration ipu-operator-admission"
    name = bed.kubectl(f"get {where}")["webhooks"][0]["name"]
    note = json.dumps({name: "Fail"})
    bed.on("cp1", f"{KUBECTL} annotate {where} ipu.fabric/failure-policies='{note}'")
    patch(bed, where, "/webhooks/0/failurePolicy", "Ignore")


def age_certificate(bed: Bed, heal: Heal) -> None:
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=10)
    text = base64.b64encode(certificate(soon)).decode()
    patch(bed, "-n ipu-operator secret ipu-operator-admission", "/data/cert", text)


def delete_operator(bed: Bed, heal: Heal) -> None:
    bed.on("cp1", f"{KUBECTL} -n ipu-operator delete deployment ipu-operator-vipu-proxy --timeout 120s")


def install_others(bed: Bed, heal: Heal) -> None:
    faults.namespace(bed, heal, "lab")
    faults.apply(
        bed,
        faults.daemonset("lab", "multus", "multus-cni:v4.2.2"),
        faults.daemonset("lab", "nfd-worker", "node-feature-discovery:v0.17.3"),
        faults.daemonset("lab", "another-nfd-worker", "node-feature-discovery:v0.17.3"),
    )


def overlap(bed: Bed, heal: Heal) -> None:
    faults.namespace(bed, heal, "lab-net")
    ipam = {"type": "host-local", "subnet": "10.5.0.0/24", "rangeStart": LAB_RANGE[0], "rangeEnd": LAB_RANGE[1]}
    config = json.dumps({"cniVersion": "1.0.0", "type": "macvlan", "master": "eth1", "ipam": ipam})
    nad = {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition"}
    faults.apply(bed, {**nad, "metadata": {"name": "lab-net", "namespace": "lab-net"}, "spec": {"config": config}})


def taint(bed: Bed, heal: Heal) -> None:
    heal.callback(bed.on, "cp1", f"{KUBECTL} taint node w1 lab:NoExecute-", check=False)
    bed.on("cp1", f"{KUBECTL} taint node w1 lab=yes:NoExecute")
    faults.wait_until("multus is gone from w1", lambda: set(faults.multus_pods(bed)) == {"cp1"})


def small_switch_port(bed: Bed, heal: Heal) -> None:
    port = faults.switch_port(bed, "w1")
    heal.callback(faults.machine, "ip", "link", "set", port, "mtu", "1500")
    faults.machine("ip", "link", "set", port, "mtu", "1400")


def separate(bed: Bed, heal: Heal) -> None:
    """Two segments: the switch takes nothing from one port to the other."""
    for host in faults.HOSTS:
        port = faults.switch_port(bed, host)
        heal.callback(faults.machine, "bridge", "link", "set", "dev", port, "isolated", "off")
        faults.machine("bridge", "link", "set", "dev", port, "isolated", "on")


def join(bed: Bed) -> None:
    for host in faults.HOSTS:
        faults.machine("bridge", "link", "set", "dev", faults.switch_port(bed, host), "isolated", "off")


def limit_memory(bed: Bed, heal: Heal) -> None:
    heal.callback(bed.on, "w1", f"rm -f {LOW} && {RESTART}")
    # Nothing but the unit itself, which an administrator may have edited.
    bed.on("w1", f"printf '[Service]\\nLimitMEMLOCK=1M\\n' > {LOW} && {RESTART}")


def stop_vipu(bed: Bed, heal: Heal) -> None:
    heal.callback(start_vipu, bed)
    bed.on("fabric", "ip address del 10.5.0.20/24 dev eth0")


def start_vipu(bed: Bed) -> None:
    bed.on("fabric", "ip address replace 10.5.0.20/24 dev eth0")


def stop_kubelet(bed: Bed, heal: Heal) -> None:
    heal.callback(bed.on, "w1", "systemctl start kubelet")
    bed.on("w1", "systemctl stop kubelet")
    bed.on("cp1", f"{KUBECTL} wait --for condition=Ready=Unknown --timeout 180s node w1")


def scale_dns(bed: Bed, heal: Heal) -> None:
    replicas = bed.kubectl("-n kube-system get deployment coredns")["spec"]["replicas"]
    heal.callback(bed.on, "cp1", f"{KUBECTL} -n kube-system scale deployment coredns --replicas {replicas}")
    bed.on("cp1", f"{KUBECTL} -n kube-system scale deployment coredns --replicas 0")
    faults.wait_until(
        "CoreDNS is gone", lambda: not bed.kubectl("-n kube-system get pods -l k8s-app=kube-dns")["items"]
    )


def start_dns(bed: Bed) -> None:
    bed.on("cp1", f"{KUBECTL} -n kube-system scale deployment coredns --replicas 2")
    bed.on("cp1", f"{KUBECTL} -n kube-system rollout status deployment coredns --timeout 180s")


def take_multus_configuration(bed: Bed, heal: Heal) -> None:
    """Its file is gone, and a pod that starts then lacks its network."""
    bed.on("w1", "rm /etc/cni/net.d/00-multus.conf && sleep 6")  # containerd reads the directory again
    body = faults.pod("w1", "trainer")
    template = {"metadata": {**body["metadata"], "labels": {"app": "trainer"}}, "spec": body["spec"]}
    heal.callback(bed.on, "cp1", f"{KUBECTL} delete deployment trainer --timeout 120s")
    faults.apply(
        bed,
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "trainer", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "trainer"}}, "template": template},
        },
    )
    bed.on("cp1", f"{KUBECTL} rollout status deployment trainer --timeout 180s")


def restart_multus(bed: Bed) -> None:
    bed.on("cp1", f"{KUBECTL} -n {OPERATOR} delete pod {faults.multus_pods(bed)['w1']} --timeout 120s")
    bed.on("cp1", f"{KUBECTL} -n {OPERATOR} rollout status ds/kube-multus-ds --timeout 180s")
    faults.wait_until("multus is first", lambda: "00-multus" in bed.on("w1", "ls /etc/cni/net.d"))
    bed.on("w1", "sleep 6")


def delete_trainer(bed: Bed) -> None:
    bed.on("cp1", f"{KUBECTL} delete pod -l app=trainer --timeout 120s")
    bed.on("cp1", f"{KUBECTL} rollout status deployment trainer --timeout 180s")


def request_certificate(bed: Bed, heal: Heal) -> None:
    """As a kubelet that is of no host of the inventory."""
    user = "system:node:stranger"
    name = x509.Name(
        [
            x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(x509.NameOID.COMMON_NAME, user),
        ]
    )
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("stranger")]), critical=False)
    request = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    text = base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode()
    spec = {
        "request": text,
        "signerName": "kubernetes.io/kubelet-serving",
        "usages": ["digital signature", "server auth"],
    }
    body = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "spec": spec}
    text = json.dumps({**body, "metadata": {"name": "stranger"}})
    bed.on("cp1", f"{KUBECTL} create --as {user} --as-group system:nodes -f - <<'EOF'\n{text}\nEOF")
    heal.callback(bed.on, "cp1", f"{KUBECTL} delete csr stranger")


def let_certificates_end(bed: Bed, heal: Heal) -> None:
    for path in (f"{PKI}/apiserver.crt", "/etc/kubernetes/admin.conf"):
        let_end(bed, "cp1", path, 10)


def nothing(bed: Bed, heal: Heal) -> None:
    """The settings are wrong, with which the proof is made."""


def patch(bed: Bed, where: str, part: str, value: Any) -> None:
    text = json.dumps([{"op": "add", "path": part, "value": value}])
    bed.on("cp1", f"{KUBECTL} patch {where} --type json --patch-file /dev/stdin <<'EOF'\n{text}\nEOF")


def delete_lab(bed: Bed) -> None:
    bed.on("cp1", f"{KUBECTL} -n lab delete daemonset multus another-nfd-worker --ignore-not-found --timeout 120s")


# -- the table


class Row(NamedTuple):
    """A fault, the check that names it, and the step of its advice that cures it."""

    check: str
    put: Callable[[Bed, Heal], None]
    step: str  # as code finds it in the sentence; with `do` or `given`: words of the sentence
    do: Callable[[Bed], None] | None = None  # what a person does who reads these words
    wrong: Mapping[str, Any] = {}  # settings with which it is a fault
    given: Mapping[str, Any] = {}  # settings that the words name, with values of this site
    place: Mapping[str, Any] = {}


SMALLER = {"fabric_networks": [{**NETWORK, "mtu": 1400, "share": "10.5.0.224/27"}]}
GROUPS: dict[str, list[Row]] = {
    "the fabric is applied again": [
        Row("release", fail_release, "fabric"),
        Row("attachment", edit_network, "fabric"),
        Row("default_route", nothing, "First act on `Attachment matches the plan`"),
        Row("address", nothing, "First act on `Attachment matches the plan`"),
        Row("main_routes", nothing, "First act on `Attachment matches the plan`"),
        Row("unique", nothing, "First act on `Attachment matches the plan`"),
        Row("ip_pool", narrow_pool, "fabric"),
        Row("ipu_labels", take_label, "fabric", place={"node": "w1"}),
        Row("webhook", ignore_webhook, "fabric"),
        Row("ipu_certificate", age_certificate, "fabric"),
    ],
    "what was deleted": [
        Row("network", delete_network, "fabric"),
        Row("kinds", delete_kind, "fabric"),
    ],
    "a policy that was edited": [Row("policy", edit_policy, "fabric")],
    "a Deployment was deleted": [Row("ipu_operator", delete_operator, "fabric")],
    "former pools are removed": [Row("pool_overlap", leave_pool, "fabric -e fabric_prune_networks=true")],
    "other settings": [
        Row("full_size", small_switch_port, "`mtu` in fabric_networks", given=SMALLER),
        Row("pool_overlap", overlap, "`share` in fabric_networks", given=SMALLER),
    ],
    "a taint": [
        Row(
            "multus_node",
            taint,
            "network_operator_tolerations",
            given={"network_operator_tolerations": [{"operator": "Exists"}]},
            place={"node": "w1"},
        ),
    ],
    "limits": [
        Row("memlock_root", limit_memory, "site --tags memlock", place={"node": "w1"}),
        Row("memlock_user", nothing, "site --tags memlock", place={"node": "w1"}),
    ],
    "an image that can't be pulled": [
        Row(
            "pod",
            nothing,
            "set verify_rdma_image (without RDMA: verify_image)",
            wrong={"verify_image": NO_IMAGE, "verify_timeout": 40},
            given={"verify_image": faults.PULL},
        )
    ],
    "a gateway that there is not": [
        Row(
            "gateway",
            nothing,
            "leave `gateway` out of fabric_networks",
            wrong={"fabric_networks": [{**NETWORK, "gateway": NOBODY}]},
            given={"fabric_networks": [NETWORK]},
        )
    ],
    "commands": [
        Row("kubelet_requests", request_certificate, "kubectl certificate deny NAME"),
        Row("node", stop_kubelet, "systemctl restart containerd && systemctl restart kubelet", place={"node": "w1"}),
    ],
    "people": [
        Row("vipu", stop_vipu, "Check that the V-IPU service runs", start_vipu),
        Row("vipu_proxy", nothing, "Check that the V-IPU service runs", start_vipu),
        Row("dns", scale_dns, "See `kubectl -n kube-system get pods -l k8s-app=kube-dns`", start_dns),
        Row("ping", separate, "Both masters must be on one layer 2 network", join),
        Row("multus_once", install_others, "Remove one", delete_lab),
        Row("nfd", nothing, "If neither of the two came with them, remove one", delete_lab),
    ],
    "multus starts again": [
        Row("multus", take_multus_configuration, "restart the node's pod of kube-multus-ds", restart_multus),
        Row("workloads", nothing, "Delete the named pods", delete_trainer),
    ],
    "certificates": [Row("certificates", let_certificates_end, "renew_certificates", place={"node": "cp1"})],
}


@pytest.fixture
def heal(finished: Bed) -> contextlib.ExitStack:
    with contextlib.ExitStack() as stack:
        yield stack


def proved(bed: Bed, checks: list[str], **variables: Any) -> Result:
    return bed.play("verify", **QUICK, verify_checks=checks, **variables)


def sentence_of(found: list[dict[str, Any]], row: Row) -> str:
    """What the report says to do about it."""
    mine = [each for each in found if each["check"] == row.check]
    mine = [each for each in mine if all(each[key] == value for key, value in row.place.items())]
    assert mine, f"{row.check} {row.place} is not among {json.dumps(found, indent=2)}"
    return mine[0]["next"]


def take(bed: Bed, step: str, given: Mapping[str, Any]) -> None:
    """Run what the sentence says."""
    name, _, rest = step.partition(" ")
    if name in advice.PLAYBOOKS:
        arguments = rest.split()
        settings = dict(each.split("=") for each in arguments if "=" in each)
        flags = [each for each in arguments if "=" not in each and each != "-e"]
        parsed = {key: {"true": True, "false": False}[value] for key, value in settings.items()}
        assert bed.play(name, *flags, **{**QUICK, **parsed, **given}).code == 0
    elif name == "kubectl":
        bed.on("cp1", step.replace("kubectl", KUBECTL, 1).replace("NAME", "stranger"))
    else:
        bed.on("w1", step)


@pytest.mark.parametrize("group", GROUPS)
def test_advice_as_printed(group: str, finished: Bed, heal: contextlib.ExitStack) -> None:
    rows = GROUPS[group]
    wrong = {key: value for row in rows for key, value in row.wrong.items()}
    given = {key: value for row in rows for key, value in row.given.items()}
    for row in rows:
        row.put(finished, heal)
    assert finished.play("verify", **QUICK, **wrong).code != 0
    found = [check for check in faults.report(finished) if check["status"] == "failed"]
    taken: list[str] = []
    for row in rows:
        sentence = sentence_of(found, row)
        named = advice.steps(sentence)
        if row.do or row.given or row.step not in named.all:
            assert row.step in sentence, sentence
        if row.do:
            row.do(finished)
        elif row.given:
            taken += named.playbooks
        elif row.step in named.all:
            taken.append(row.step)
    for step in dict.fromkeys(taken):
        take(finished, step, given)
    if "node" in {row.check for row in rows}:
        finished.on("cp1", f"{KUBECTL} wait --for condition=Ready --timeout 180s node w1")
    # A check that there is no longer anything to make of is skipped; that of nodes always has something.
    assert proved(finished, sorted({"node", *(row.check for row in rows)}), **given).code == 0


def test_the_site_as_it_was(finished: Bed) -> None:
    """Nothing that was followed has left anything: one run of site, and all is proved."""
    assert finished.play("site").code == 0


# Checks whose fault can't be had here; tests/unit has them all.
NOT_HERE = {
    "cni_tokens": "the stand-in of multus writes its token again each second",
    "image_digest": "each image of the mirror is the one that its tag names",
    "interface": "a CNI plugin that is not there fails the pod",
    "policy_routes": "of Spiderpool",
    "rail_isolation": "the testbed has one rail",
    "regression": "of figures of RDMA",
    "mtu": "the plan has the MTU that the host's interface has",
    **dict.fromkeys((check for check, kind in CHECK_TYPES.items() if kind.area in ("rdma", "gpu")), "takes hardware"),
}


def test_every_check_is_followed_here_or_can_not_be() -> None:
    here = {row.check for rows in GROUPS.values() for row in rows}
    assert here | set(NOT_HERE) == set(CHECK_TYPES)
    assert not here & set(NOT_HERE)

"""Eight rails on Spiderpool, checked against its real CRDs and its chart's real values."""

from __future__ import annotations

import copy
import json
import typing as t

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._component.spiderpool import PROBE, Seen, chart_values, decide
from ansible_collections.ipu.fabric.plugins.module_utils._model.wish import Wish
from ansible_collections.ipu.fabric.tests.integration.api_server import (
    ApiServer,
    ModuleFailedError,
    Modules,
    Result,
    crds,
)
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT, SCHEMAS

COORDINATOR = {"mode": "auto", "tunePodRoutes": True, "podRPFilter": 0}
DEFINITIONS = SCHEMAS / "network-operator" / "26.4.1"


def release() -> str:
    text = (ROOT / "roles" / "spiderpool" / "defaults" / "main.yml").read_text()
    return str(yaml.safe_load(text)["spiderpool_version"])


def rails(count: int = 8) -> t.List[Result]:
    """Rails as a plan has them, every other one with IPv6."""
    found = []
    for number in range(count):
        prefix = f"fd00:{number + 11}::" if number % 2 else f"172.16.{number + 11}."
        subnet = {
            "cidr": f"{prefix}/64" if number % 2 else f"{prefix}0/24",
            "gateway": f"{prefix}1",
            "range_start": f"{prefix}8000" if number % 2 else f"{prefix}128",
            "range_end": f"{prefix}ffff:ffff" if number % 2 else f"{prefix}254",
            "exclude": [f"{prefix}8000/124" if number % 2 else f"{prefix}254/32"],
        }
        found.append(
            {
                "name": f"rail-{number}",
                "namespace": "training",
                "master": f"enp{number + 11}s0f0np0",
                "mode": "bridge",
                "mtu": 9000,
                "rdma": True,
                "resource": f"rdma/rail_{number}",
                "subnet": subnet,
            }
        )
    return found


def rendered(inject: bool = True) -> Wish:
    return decide(defaults("spiderpool", networks=rails(), coordinator=COORDINATOR, inject=inject), Seen())


@pytest.fixture
def spiderpool(run: Modules, schemas: t.Any) -> Modules:
    """A cluster with Spiderpool's definitions, and nothing that acts on them."""
    folder = schemas / "spiderpool" / release()
    definitions = crds(*sorted(folder.glob("spiderpool.spidernet.io_*.yaml")))
    definitions += [
        crd
        for crd in crds(*sorted(path for path in DEFINITIONS.glob("*.yaml") if "_" in path.name))
        if crd["metadata"]["name"].startswith("network-attachment-definitions")
    ]
    run("kube_apply", objects=definitions, validation="Warn")
    return run


def test_eight_rails_applied_strictly_and_once(spiderpool: Modules) -> None:
    objects = rendered().objects
    assert len(spiderpool("kube_apply", objects=objects)["objects"]) == 17
    assert not spiderpool("kube_apply", objects=objects)["changed"]
    assert not spiderpool("kube_apply", check=True, objects=objects)["changed"]
    without = spiderpool("kube_apply", check=True, objects=rendered(inject=False).objects)
    assert len(without["objects"]) == 8, "the annotation goes when injection is off"


@pytest.mark.parametrize(
    ("number", "path", "value", "message"),
    [
        (9, "spec.macvlan.enableRdma", True, "enableRdma: field not declared"),
        (9, "spec.coordinator.podRpFilter", 0, "podRpFilter: field not declared"),
        (9, "spec.macvlan.vlanID", 4095, "vlanID"),
        (9, "spec.coordinator.mode", "route", "mode"),
        (1, "spec.excludes", [], "excludes: field not declared"),
    ],
)
def test_a_wrong_field_is_refused(spiderpool: Modules, number: int, path: str, value: t.Any, message: str) -> None:
    objects = copy.deepcopy(rendered().objects)
    spiderpool("kube_apply", objects=objects[:1])
    part, (*inner, last) = objects[number], path.split(".")
    for key in inner:
        part = part[key]
    part[last] = value
    with pytest.raises(ModuleFailedError, match=message):
        spiderpool("kube_apply", check=True, objects=objects[number : number + 1])


def test_the_probe_of_the_role_is_taken(spiderpool: Modules) -> None:
    assert not spiderpool("kube_wait", accepted=[PROBE], timeout=5)["pending"]


def test_attachments(spiderpool: Modules) -> None:
    """There is no controller here: its work is done by hand, as its source says that it does it."""
    found = rendered()
    spiderpool("kube_apply", objects=found.objects)
    wanted = found.networks
    with pytest.raises(ModuleFailedError, match="training/rail-0 does not exist"):
        spiderpool("kube_wait", attachments=wanted, timeout=1, what="Spiderpool")
    nads = []
    for entry in wanted:
        plugin = {key: entry[key] for key in ("master", "mode", "mtu", "ipam")}
        plugins = [{"type": "macvlan", **plugin}, {"type": "coordinator", "mode": "auto"}]
        config = json.dumps({"cniVersion": "0.3.1", "name": entry["name"], "plugins": plugins})
        nads.append(
            {
                "apiVersion": "k8s.cni.cncf.io/v1",
                "kind": "NetworkAttachmentDefinition",
                "metadata": {"name": entry["name"], "namespace": "training"},
                "spec": {"config": config},
            }
        )
    spiderpool("kube_apply", objects=nads[:7])
    pending = spiderpool("kube_wait", check=True, attachments=wanted)["pending"]
    assert pending == ["NetworkAttachmentDefinition training/rail-7 does not exist"]
    spiderpool("kube_apply", objects=nads)
    assert not spiderpool("kube_wait", attachments=wanted)["pending"]
    wrong = [{**wanted[0], "master": "eth9"}]
    with pytest.raises(ModuleFailedError, match="'eth9' is planned"):
        spiderpool("kube_wait", attachments=wrong, timeout=1)


@pytest.mark.usefixtures("schemas")
def test_every_value_is_the_charts() -> None:
    """A name that the chart does not know would be taken for a wish and do nothing."""
    chart = yaml.safe_load((SCHEMAS / "spiderpool" / release() / "values.yaml").read_text())
    settings = defaults(
        "spiderpool",
        rdma_resources=[{"resourceName": "rail_0", "resourcePrefix": "rdma", "selectors": {"ifNames": ["a"]}}],
        cni_bin_directory="/opt/cni/bin",
        cni_network_directory="/etc/cni/net.d",
        detect_ip_conflict=True,
        inject=True,
        inject_namespaces=["training"],
        metrics=True,
        dashboards=True,
        registry="registry.site",
        image_pull_secrets=["site"],
    )
    values = chart_values(settings, service_monitors=True)
    assert list(unknown(values, chart)) == []


def unknown(values: Result, chart: Result, where: str = "") -> t.Iterator[str]:
    for key, value in values.items():
        if key not in chart:
            # What is empty in the chart's values is free: annotations have names of their own.
            if chart:
                yield f"{where}{key}"
        elif isinstance(value, dict) and isinstance(chart[key], dict):
            yield from unknown(value, chart[key], f"{where}{key}.")


def test_the_cluster_tells_of_multus_and_groups(spiderpool: Modules, api: ApiServer) -> None:
    """Spiderpool's multus is installed by an init container of its agent."""
    image = "registry.site:5000/k8snetworkplumbingwg/multus-cni:v4.1.4"
    pod = {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {
            "initContainers": [{"name": "install", "image": image}],
            "containers": [{"name": "agent", "image": "ghcr.io/spidernet-io/spiderpool/spiderpool-agent:v1"}],
        },
    }
    agent = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "spiderpool-agent", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": pod},
    }
    spiderpool("kube_apply", objects=[agent])
    seen = spiderpool("cluster_info")
    spiderpool("kube_apply", objects=[agent], state="absent")
    assert seen["multus"] == ["kube-system/spiderpool-agent"]
    assert {"apps", "spiderpool.spidernet.io"} <= set(seen["api_groups"])
    assert "grafana.integreatly.org" not in seen["api_groups"]


def test_the_removal_of_networks_leaves_what_others_made(spiderpool: Modules, api: ApiServer) -> None:
    """The garbage collector and Spiderpool's controller are not here: what they would do is not waited for."""
    objects = rendered().objects
    spiderpool("kube_apply", objects=objects)
    theirs = {
        "apiVersion": "spiderpool.spidernet.io/v2beta1",
        "kind": "SpiderIPPool",
        "metadata": {"name": "theirs"},
        "spec": {"subnet": "192.0.2.0/24"},
    }
    api.kubectl("create", "-f", "-", stdin=json.dumps(theirs))
    found = spiderpool("fabric_stack", stack="spiderpool", check=True, state="absent")
    assert len([name for name in found["objects"] if name.startswith("SpiderMultusConfig training/rail-")]) == 8
    assert "SpiderIPPool theirs" in found["needed_by"]
    assert (found["installations"], found["definitions"]) == ([], [])
    assert spiderpool("fabric_stack", stack="spiderpool", state="absent", timeout=5)["changed"]
    assert not spiderpool("fabric_stack", stack="spiderpool", state="absent")["changed"]
    left = {pool["metadata"]["name"] for pool in api.get("spiderippools.spiderpool.spidernet.io")["items"]}
    api.kubectl("delete", "spiderippools.spiderpool.spidernet.io", "theirs")
    assert "theirs" in left
    assert not any(name.startswith("rail-") for name in left)

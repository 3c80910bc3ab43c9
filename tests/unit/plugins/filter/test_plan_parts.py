"""Which roles a play includes, and in which order."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.filter.plan_parts import plan_parts
from ansible_collections.ipu.fabric.tests.unit.fixtures import site

SITE: t.Dict[str, t.Any] = {
    "manage_kubernetes": True, "mirror": {"registry": ""}, "bundle": "", "runtime": "containerd", "ntp": [],
}  # fmt: skip
MIRROR = {"mirror": {"registry": "mirror.site:5000"}}


def parts(play: str, hosts: t.Any = None, tasks: str = "", given: t.Any = (), **settings: t.Any) -> t.List[str]:
    plan = site.plan(hosts or site.site(), **settings)
    found = plan_parts(plan, {**SITE, **dict(given)}, tasks)
    return [f"{part['role']}/{part['tasks']}" for part in found[play]]


def test_operators_and_networks() -> None:
    operator, networks, ipu = "network_operator/main", "macvlan/apply", "ipu_operator/main"
    assert parts("fabric") == [operator, networks, ipu]
    assert parts("fabric", ipam="whereabouts", ipu=False) == [operator, "whereabouts/main", networks]
    assert parts("fabric", stack="spiderpool", gpu=True) == ["spiderpool/main", "gpu_operator/main", ipu]
    assert parts("fabric", networks=[]) == [ipu]
    assert plan_parts(site.plan(site.site()), SITE)["fabric"][0]["title"] == "Network operator"


@pytest.mark.parametrize(
    ("given", "settings", "found"),
    [
        ({}, {}, ["kubernetes/sources"]),  # Calico's manifests
        ({}, {"cni": "flannel"}, []),
        (MIRROR, {"cni": "flannel"}, ["kubernetes/sources"]),
        ({**MIRROR, "bundle": "/bundle"}, {"cni": "flannel"}, []),
        ({**MIRROR, "runtime": "docker"}, {"cni": "flannel"}, []),
        ({**MIRROR, "ntp": ["ntp1.site"]}, {"cni": "flannel"}, ["kubernetes/sources", "chrony/main"]),
        ({**MIRROR, "manage_kubernetes": False}, {}, []),
    ],
)
def test_before_a_host_is_changed(given: t.Any, settings: t.Any, found: t.List[str]) -> None:
    assert parts("before", given=given, **settings) == found


def test_a_cluster_that_runs_has_its_images() -> None:
    assert parts("before", site.finished(), given=MIRROR, cni="flannel") == []


def test_what_makes_hosts_nodes() -> None:
    assert parts("cluster") == ["kubernetes/main", "memlock/main"]
    assert parts("cluster", given={"manage_kubernetes": False}) == ["memlock/main"]
    assert (parts("before", tasks="restore"), parts("cluster", tasks="restore")) == ([], ["kubernetes/restore"])
    plan = site.plan(site.site())
    plan["cluster"]["distribution"] = {"name": "k3s"}
    found = plan_parts(plan, {**SITE, "manage_kubernetes": False})["cluster"]
    assert [(part["role"], part["tasks"]) for part in found] == [
        ("embedded_containerd", "files"),
        ("memlock", "main"),
        ("embedded_containerd", "finish"),
    ]

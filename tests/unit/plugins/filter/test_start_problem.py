from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping

import pytest
import yaml
from ansible.errors import AnsibleUndefinedVariable
from ansible_collections.ipu.fabric.plugins.filter import start_problem
from ansible_collections.ipu.fabric.plugins.filter.start_problem import LONGEST, settings_problems
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("fabric_gpu", "perhaps", 'fabric_gpu is "perhaps": not of type bool'),
        ("fabric_gpu", "yes", ""),
        ("fabric_gpu", None, ""),
        ("fabric_networks", None, "fabric_networks is null, as YAML reads a name without a value: write [] for none"),
        ("fabric_mirror", None, "fabric_mirror is null, as YAML reads a name without a value: write {} for none"),
        ("fabric_pods_per_node", "many", 'fabric_pods_per_node is "many": not of type int'),
        ("fabric_pods_per_node", "16", ""),
        ("fabric_mirror", "http://mirror", 'fabric_mirror is "http://mirror": not of type dict'),
        (
            "fabric_networks",
            "rdma-net",
            'fabric_networks is "rdma-net": not a list of type dict, such as [{"name": "rdma-net"}]',
        ),
        (
            "fabric_networks",
            {"name": "a"},
            'fabric_networks is {"name": "a"}: not a list of type dict, such as [{"name": "rdma-net"}]',
        ),
        ("fabric_hardening", "high", 'fabric_hardening is "high": not one of none, baseline, cis'),
        ("fabric_rail_isolation", True, "fabric_rail_isolation is true: not one of expect, forbid"),
        ("fabric_vipu", {"api_port": "http"}, "api_port in it is not of type int"),
        (
            "fabric_registry_auth",
            {"user_name": "me"},
            "it has no key user_name (did you mean username?); its keys are password, username",
        ),
        ("fabric_mirror", {"chart": {}}, "it has no key chart (did you mean charts?); its keys are apt, "),
        ("fabric_allow", "memory", 'fabric_allow is "memory": write a list, [memory]'),
        ("fabric_proxy", {"no_proxy": ".site"}, 'fabric_proxy.no_proxy is ".site": write a list, [.site]'),
        ("fabric_proxy", {"http_proxy": "http://p"}, "it has no key http_proxy (did you mean http?)"),
        ("fabric_proxy", {"http": "me:password@p:3128"}, "fabric_proxy.http without a scheme: write http:// before"),
        ("fabric_proxy", {"http": "http://me:password@p:3128", "https": ""}, ""),
        ("fabric_ntp", "ntp1.site", ""),
        ("kubernetes_kubelet_config", "maxPods: 250", 'kubernetes_kubelet_config is "maxPods: 250": not of type dict'),
        ("kubernetes_timeout", "5m", 'kubernetes_timeout is "5m": not of type int'),
        ("kubernetes_kubelet_config", None, ""),  # site reads none as empty
        ("kubernetes_taints", "gpu=true:NoSchedule", ""),  # site sets it, so the plan says that it has no effect
        ("rdma_host_qos", "pfc", 'rdma_host_qos is "pfc": not of type dict'),
        ("fabric_registry_auth", "me:password", "fabric_registry_auth is (not shown): not of type dict"),
        ("fabric_proxy", "http://me:password@proxy", "fabric_proxy is (not shown): not of type dict"),
        ("fabric_mirror", "http://me:password@a", 'fabric_mirror is "http://(not shown)@a": not of type dict'),
        ("kubernetes_sysctl", "net.ipv4.ip_forward", 'kubernetes_sysctl is "net.ipv4.ip_forward": not of type dict'),
        ("fabric_stack", "other", ""),  # the plan says which there are
        ("rack", [], ""),
    ],
)
def test_a_value(name: str, value: object, said: str) -> None:
    problems = settings_problems({name: value, "fabric_cni": "calico"})
    assert len(problems) == bool(said)
    assert said in "".join(problems)


def test_a_long_value_is_cut() -> None:
    (problem,) = settings_problems({"fabric_pods_per_node": "x" * 1000})
    assert len(problem) < LONGEST + 60


def test_the_defaults_of_the_roles_are_right() -> None:
    files = [ROOT / f"roles/{role}/defaults/main.yml" for role in ("fabric", "kubernetes")]
    defaults = {name: value for file in files for name, value in yaml.safe_load(file.read_text("utf-8")).items()}
    templated = {name for name, value in defaults.items() if isinstance(value, str) and "{{" in value}
    assert settings_problems({name: defaults[name] for name in set(defaults) - templated}) == []


class Lazy(Mapping[str, t.Any]):
    """As hostvars: a value that can't be templated fails when it is read."""

    def __getitem__(self, name: str) -> t.Any:
        if name == "fabric_gpu":
            raise AnsibleUndefinedVariable("'gathered' is undefined")
        return {"fabric_pods_per_node": "many"}[name]

    def __iter__(self) -> Iterator[str]:
        return iter(("fabric_gpu", "fabric_pods_per_node"))

    def __len__(self) -> int:
        return 2


def test_a_value_that_is_not_known_yet_is_left_to_the_role() -> None:
    assert [problem.split()[0] for problem in settings_problems(Lazy())] == ["fabric_pods_per_node"]


@pytest.mark.parametrize(
    ("release", "environment", "packages", "refused"),
    [
        ("34.1.0", {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "10.0.0.0/8"}, ["kubernetes"], True),
        ("35.0.0", {"https_proxy": "http://proxy:3128", "no_proxy": "10.0.0.0/8"}, ["kubernetes"], True),
        ("36.0.2", {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "10.0.0.0/8"}, ["kubernetes"], False),
        ("33.1.0", {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "10.0.0.0/8"}, ["kubernetes"], False),
        ("34.1.0", {"HTTPS_PROXY": "http://proxy:3128"}, ["kubernetes"], False),  # with any release the same
        ("34.1.0", {"NO_PROXY": "10.0.0.0/8"}, ["kubernetes"], False),
        ("34.1.0", {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "10.0.0.0/8"}, [], False),  # the API is elsewhere
    ],
)
def test_a_client_that_ignores_no_proxy(
    release: str, environment: dict[str, str], packages: list[str], refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_problem, "version", lambda name: release)
    problem = start_problem.proxy_problem(packages, environment)
    assert bool(problem) is refused
    assert problem is None or f"kubernetes {release} ignores" in str(problem)


@pytest.mark.parametrize(
    ("groups", "step"),
    [
        (
            {"kube-controlplane": ["n1"], "kube-node": ["n2"]},
            "Rename kube-controlplane to kube_control_plane, kube-node",
        ),
        ({"masters": ["n1"], "workers": ["n2"], "ipu_hosts": ["n2"]}, "Rename masters to kube_control_plane, workers"),
        ({"server": ["n1"], "agent": ["n2"]}, "Rename server to kube_control_plane, agent to kube_node."),
        (
            {"server": ["n1"], "agent": ["n2"]},
            "pass a second file with -i: kube_control_plane: {children: {server: }}; kube_node: {children: {agent: }}.",
        ),
        ({"all": ["n1"], "web": ["n1"], "workers": []}, "Put at least one host into kube_control_plane."),
    ],
)
def test_groups_that_others_call_differently(groups: dict[str, list[str]], step: str) -> None:
    assert step in str(start_problem.no_hosts(groups, ["hosts.yml"]))


@pytest.mark.parametrize(
    ("asked", "only_proves", "refused"), [([], False, False), (["mtu"], True, False), (["mtu"], False, True)]
)
def test_single_checks_are_no_proof_for_other_playbooks(asked: list[str], only_proves: bool, refused: bool) -> None:
    problem = start_problem.checks_problem(asked, only_proves)
    assert bool(problem) == refused
    assert ("run ipu.fabric.verify with it" in str(problem)) == refused


@pytest.mark.parametrize(
    ("run", "skipped", "said"),
    [
        (["macvaln"], [], "macvaln (did you mean macvlan?)"),
        (["all"], ["network-operator"], "network-operator (did you mean network_operator?)"),
        (["all"], [], ""),
        (["macvlan", "memlock"], ["verify"], ""),
        (["untagged", "our_monitoring"], ["always"], ""),
    ],
)
def test_a_tag_that_no_task_has(run: list[str], skipped: list[str], said: str) -> None:
    problem = start_problem.tags_problem(run, skipped)
    assert said in str(problem or "")
    assert bool(problem) == bool(said)

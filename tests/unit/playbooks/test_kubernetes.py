"""The role kubernetes on hosts that are only names: on which of them a cluster is begun, and which of them join."""

import base64
import hashlib

import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._component import kubernetes_hardening
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults
from ansible_collections.ipu.fabric.tests.unit.fixtures.control_plane import CONFIGURATION, NO_KEYS
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play

GROUPS = {"kube_control_plane": ["cp1", "cp2", "cp3"], "kube_node": ["w1", "w9"]}
PLAY = [
    {
        "hosts": "all",
        "gather_facts": False,
        "roles": ["ipu.fabric.kubernetes"],
        "vars": {"kubernetes_cni": "none", "kubernetes_version": "1.35.4"},
    }
]
UNREACHABLE = {"unreachable": True, "msg": "Connection timed out"}


def node(host, membership):
    seen = "there is /etc/kubernetes/kubelet.conf, but the API server gives no answer" * (membership == "broken")
    return {
        "name": host,
        "address": f"10.88.0.{len(host)}",
        "distribution": "debian",
        "release": "bookworm",
        "kubelet": "1.35.4",
        "containerd": "2.2.1",
        "images": ["registry.k8s.io/pause:3.10.1"],
        "kubeconfig_sha256": hashlib.sha256(b"").hexdigest(),  # as the one on the controller, which is not there
        "membership": membership,
        "seen": seen,
        "next_step": "Start its cluster.",
        "answered": membership == "member",
        "registered": membership == "member",
        "is_control_plane": membership == "member" and host.startswith("cp"),
        "taints": [],
    }


def install(folder, found, *arguments, packages=(), **variables):
    """Run the role on hosts that are in these states. Packages are new on the hosts in `packages`."""
    states = {host: {"node": node(host, state)} if isinstance(state, str) else state for host, state in found.items()}
    versions = {"versions": {"containerd.io": "2.2.1"}}
    answers = {
        "kubernetes_node_info": states,
        "apt_packages": {"*": versions, **{host: {"changed": True, **versions} for host in packages}},
        "systemd_units": {"*": {"stale": []}},
        "kubeadm": {"*": {"discovery": {"endpoint": "", "token": "", "ca_hashes": []}}},
    }
    variables["kubernetes_kubeconfig"] = str(folder / "admin.conf")
    return play(folder, PLAY, GROUPS, answers, *arguments, **variables)


BARE = dict.fromkeys(("cp1", "cp2", "cp3", "w1", "w9"), "none")


def test_bare_hosts_become_one_cluster(tmp_path):
    run = install(tmp_path, BARE)
    assert run.where("kubeadm", command="init") == ["cp1"], run.text


def test_no_second_cluster_while_a_control_plane_may_be_in_one(tmp_path):
    run = install(tmp_path, {**BARE, "cp2": UNREACHABLE}, "--limit", "cp1,w9")
    assert run.where("kubeadm") == [], run.text
    assert run.where("apt_packages") == []
    assert "may be in one already. Where: cp1. Seen: cp2: no answer (Connection timed out). Next: Bring" in run.said


def test_a_host_that_must_not_join_is_left_alone(tmp_path):
    run = install(tmp_path, {**BARE, "cp1": "member", "w1": "broken"})
    assert run.code != 0
    assert "gives no answer. Next: Start its cluster. Then run again." in run.said, run.text
    assert "w1" not in run.where("apt_packages")
    assert "w9" in run.where("kubeadm", command="join")


def test_a_reinstalled_control_plane_joins_the_others_when_hosts_get_packages_at_different_times(tmp_path):
    found = {**BARE, "cp2": "member", "cp3": "member"}
    run = install(tmp_path, found, "--limit", "cp1,w9", packages=["w9"])
    assert run.where("kubeadm", command="init") == [], run.text
    assert run.where("kubeadm", command="token") == ["cp2"] * 4  # made and deleted, for control planes and for workers
    assert run.where("kubeadm", command="join") == ["cp1", "w9"]
    # When workers join, a control plane that has just joined is no node that its host has left behind.
    assert [call.options["names"] for call in run.calls if call.options.get("command") == "rejoin"] == [["cp1"], ["w9"]]


def test_a_finished_cluster_is_left_after_few_tasks(tmp_path):
    """Each task costs a second on every run, whether it is skipped or not."""
    settings = defaults("kubernetes", "kubernetes_hardening", version="1.35.4")
    planes = {"cp1": node("cp1", "member")}
    hardened = kubernetes_hardening.decide(settings, kubernetes_hardening.Seen(CONFIGURATION, ["cp1"], planes))
    answers = {
        "control_plane": {"*": {"configuration": hardened.text, "encryption": NO_KEYS}},
        "kubernetes_node_info": {host: {"node": node(host, "member")} for host in ("cp1", "w1")},
        "apt_packages": {"*": {"versions": {"containerd.io": "2.2.1"}}},
        "systemd_units": {"*": {"stale": []}},
    }
    flannel = [{**PLAY[0], "vars": {**PLAY[0]["vars"], "kubernetes_cni": "flannel"}}]
    groups = {"kube_control_plane": ["cp1"], "kube_node": ["w1"]}
    run = play(tmp_path, flannel, groups, answers, kubernetes_kubeconfig=str(tmp_path / "admin.conf"))
    assert run.code == 0, run.text
    assert run.text.count("TASK [") <= 26, run.text


FETCH = "Decide whether the one on the controller is another cluster's"
KUBECONFIG = [
    {
        "hosts": "all",
        "gather_facts": False,
        "tasks": [{"ansible.builtin.import_role": {"name": "ipu.fabric.kubernetes", "tasks_from": part}}],
    }
    for part in ("kubeconfig", "api_host")
]


def kubeconfig(*authorities, key="a"):
    clusters = [{"cluster": {"certificate-authority-data": data}, "name": data} for data in authorities]
    return yaml.safe_dump({"kind": "Config", "clusters": clusters, "users": [{"user": {"client-key-data": key}}]})


def encoded(text):
    return {"content": base64.b64encode(text.encode()).decode()}


def test_the_kubeconfig_of_another_cluster_is_kept(tmp_path):
    path, there = tmp_path / "admin.conf", kubeconfig("OURS", "OTHER")  # somebody's ~/.kube/config
    path.write_text(there)
    path.chmod(0o600)
    variables = {"kubernetes_kubeconfig": str(path), "__kubernetes_admin": encoded(kubeconfig("OURS"))}
    variables["__kubernetes_cluster"] = {"first": "cp1"}
    run = play(tmp_path, KUBECONFIG[:1], GROUPS, {}, "--start-at-task", FETCH, **variables)
    assert run.code == 0, run.text
    assert path.read_text() == kubeconfig("OURS")
    [kept] = tmp_path.glob("admin.conf.*~")
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == (there, 0o600)
    assert "It was kept as" in run.said


def speak(folder, there, **more):
    """The check of the cluster that another host speaks to, whose kubeconfig is this."""
    variables = {
        "kubernetes_kubeconfig": str(folder / "admin.conf"),
        "kubernetes_api_host": "cp1",
        "kubernetes_api_kubeconfig": str(folder / "there.conf"),
        "__kubernetes_cluster": {"first": "cp1"},
        **more,
    }
    (folder / "admin.conf").write_text(kubeconfig("OURS"))
    (folder / "there.conf").write_text(there)
    return play(folder, KUBECONFIG[1:], GROUPS, {}, **variables)


def test_the_api_host_speaks_to_this_cluster(tmp_path):
    run = speak(tmp_path, kubeconfig("OTHER"))
    assert run.code != 0
    assert "leads to another cluster than the one of cp1" in run.said, run.text
    run = speak(tmp_path, "", kubernetes_api_kubeconfig="/none/admin.conf")
    assert "Where: /none/admin.conf on cp1. Seen: " in run.said


ASK = [
    {
        "hosts": "all",
        "gather_facts": False,
        "tasks": [
            {"include_role": {"name": "ipu.fabric.kubernetes", "tasks_from": "sources"}},
            {"include_role": {"name": "ipu.fabric.kubernetes"}},
        ],
        "vars": {
            "kubernetes_cni": "flannel",
            "kubernetes_version": "1.35.4",
            "kubernetes_registry_mirror": "http://mirror.site:5000",
            "kubernetes_flannel_image": "ghcr.io/flannel-io/flannel:v1",
            "kubernetes_flannel_cni_image": "ghcr.io/flannel-io/plugin:v1",
        },
    }
]


def test_images_that_nobody_has_end_the_run_before_a_host_is_changed(tmp_path):
    lacking = {"image": "ghcr.io/flannel-io/plugin:v1", "seen": "Name or service not known"}
    answers = {"port_probe": {"*": {"lacking": [lacking]}}}
    run = play(tmp_path, ASK, GROUPS, answers, "--check", kubernetes_kubeconfig=str(tmp_path / "admin.conf"))
    assert {call.module for call in run.calls} == {"port_probe"}, run.text
    (call,) = run.calls
    assert call.options["mirror"] == "http://mirror.site:5000"
    assert call.options["images"] == [
        "registry.k8s.io/kube-apiserver:v1.35.4",
        "ghcr.io/flannel-io/flannel:v1",
        "ghcr.io/flannel-io/plugin:v1",
    ]
    assert "no ghcr.io/flannel-io/plugin:v1; Name or service not known" in " ".join(run.text.split())


OWN = {
    "kubernetes_kubelet_config": {"maxPods": 1},
    "kubernetes_flannel_image": "example.com/flannel:w9",
    "kubernetes_cluster_config": {"clusterName": "w9"},
}


def join_with(folder, said, **host_vars):
    """`--limit w9`, on a cluster of cp1, of a host that says this of itself."""
    groups = {"kube_control_plane": ["cp1"], "kube_node": ["w9"]}
    nodes = {"cp1": {"node": node("cp1", "member")}, "w9": {"node": node("w9", "none"), "ansible_facts": said}}
    answers = {
        "kubernetes_node_info": nodes,
        "apt_packages": {"*": {"versions": {"containerd.io": "2.2.1"}}},
        "systemd_units": {"*": {"stale": []}},
        "kubeadm": {"*": {"discovery": {"endpoint": "", "token": "", "ca_hashes": []}}},
    }
    plays = [{**PLAY[0], "vars": {**PLAY[0]["vars"], "kubernetes_cni": "flannel"}}]
    given = {"kubernetes_kubeconfig": str(folder / "admin.conf")}
    return play(folder, plays, groups, answers, "--limit", "w9", host_vars=host_vars, **given)


def test_settings_of_the_cluster_are_those_of_its_first_control_plane(tmp_path):
    planes = {"kubernetes_kubelet_config": {"maxPods": "{{ pods }}"}, "pods": 200}
    run = join_with(tmp_path, {"pods": 7}, cp1=planes, w9=OWN)
    assert run.code == 0, run.text
    (future,) = [call.options["settings"] for call in run.calls if call.module == "cluster_kubelets"]
    assert future["maxPods"] == 200
    objects = [str(call.options["objects"]) for call in run.calls if call.module == "kube_apply"]
    assert ["ghcr.io/flannel-io/flannel:v" in each for each in objects] == [True]
    assert "example.com" not in objects[0]


def test_what_a_host_says_is_no_setting(tmp_path):
    run = join_with(tmp_path, OWN)
    assert run.code != 0
    assert "Where: ansible_facts of w9. Seen: kubernetes_cluster_config, kubernetes_flannel_image" in run.said, run.text
    assert {call.module for call in run.calls} <= {"kubernetes_node_info"}

"""The role kubernetes on existing nodes: in which order kubelets change, and whose certificates are approved."""

import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._component.kubernetes_kubelet import HARDENED
from ansible_collections.ipu.fabric.tests.unit.fixtures import play as hosts
from ansible_collections.ipu.fabric.tests.unit.fixtures.play import Answers
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play
from ansible_collections.ipu.fabric.tests.unit.playbooks.test_kubernetes import BARE, GROUPS, PLAY, node

MEMBERS = dict.fromkeys(BARE, "member")
HARDENED_CONTENT = yaml.safe_dump({"kind": "KubeletConfiguration", **HARDENED})


def kubelet(needed=True):
    return {"needed": needed, "serves": True, "content": HARDENED_CONTENT}


def run_role(folder, kubelets, *arguments, states=None, **variables):
    answers = {
        "kubernetes_node_info": {host: {"node": node(host, state)} for host, state in (states or MEMBERS).items()},
        "apt_packages": {"*": {"versions": {"containerd.io": "2.2.1"}}},
        "systemd_units": {"*": {"stale": []}},
        "kubeadm": {"*": {"discovery": {"endpoint": "", "token": "", "ca_hashes": []}}},
        "kubelet_config": {"*": kubelet(False), **kubelets},
    }
    (folder / "admin.conf").write_text("")
    settings = {"kubernetes_kubeconfig": str(folder / "admin.conf"), **variables}
    return play(folder, PLAY, GROUPS, answers, *arguments, **settings)


def changes(run):
    """Where kubelets were changed, after the look that is taken at all of them."""
    calls = [call for call in run.calls if call.module == "kubelet_config"]
    return [call.host for call in calls if "ready_timeout" in call.options]


def test_nothing_to_change(tmp_path):
    run = run_role(tmp_path, {})
    assert run.code == 0, run.text
    assert changes(run) == []
    assert run.where("cluster_kubelets") == ["localhost"]
    (call,) = [call for call in run.calls if call.module == "cluster_kubelets"]
    assert call.options["settings"] == {}
    assert call.options["nodes"]["cp1"] == ["10.88.0.3"]


def test_control_planes_one_after_another_and_then_the_workers(tmp_path):
    due = {host: kubelet() for host in ("cp1", "cp3", "w1", "w9")}
    run = run_role(tmp_path, due, kubernetes_hardening="cis")
    assert run.code == 0, run.text
    assert changes(run)[:2] == ["cp1", "cp3"]
    assert sorted(changes(run)[2:]) == ["w1", "w9"]
    last = [call for call in run.calls if call.module in ("kubelet_config", "cluster_kubelets")][-1]
    assert last.module == "cluster_kubelets"
    assert last.options["settings"]["serverTLSBootstrap"] is True


class SecondFails(Answers):
    def kubernetes_node_info(self, args):
        found = {"name": self.host, "address": "192.0.2.1", "distribution": "debian", "release": "bookworm"}
        found.update(kubelet="1.35.4", containerd="2.2.1", images=["registry.k8s.io/pause:3.10.1"], seen="", taints=[])
        return {
            "node": {
                **found,
                "membership": "member",
                "kubeconfig_sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                "is_control_plane": True,
            }
        }

    def delegated_module(self, args):
        return {"hosts": {}}

    def apt_packages(self, args):
        return {"versions": {"containerd.io": "2.2.1"}}

    def systemd_units(self, args):
        return {"stale": []}

    def slurp(self, args):
        return {"failed": True, "msg": "file not found"}

    def kubelet_config(self, args):
        fails = self.host == "cp2" and not self.check
        content = "kind: KubeletConfiguration\n"
        return {"needed": True, "serves": True, "content": content, "failed": fails, "msg": "did not come up"}


def test_where_a_kubelet_fails_no_other_is_changed(tmp_path):
    settings = {"kubernetes_kubeconfig": str(tmp_path / "admin.conf")}
    run = hosts.play(tmp_path, PLAY, SecondFails, GROUPS, kubernetes_hardening="cis", **settings)
    assert run.code != 0
    assert [call.host for call in run.of("kubelet_config") if not call.check] == ["cp1", "cp2"], run.text
    assert run.of("cluster_kubelets") == []


def test_bare_hosts_get_it_from_kubeadm(tmp_path):
    run = run_role(tmp_path, {}, states=BARE, kubernetes_hardening="cis")
    init = next(call for call in run.calls if call.module == "kubeadm" and call.options["command"] == "init")
    config = next(each for each in init.options["documents"] if each["kind"] == "KubeletConfiguration")
    assert config["serverTLSBootstrap"] is True
    assert config["cgroupDriver"] == "systemd"
    assert changes(run) == []


def test_the_kernel_is_as_the_kubelet_demands_before_it_does(tmp_path):
    run = run_role(tmp_path, {}, kubernetes_sysctl={"vm.swappiness": 1, "kernel.panic": 20})
    calls = [call for call in run.calls if call.module in ("kernel_settings", "kubelet_config")]
    assert calls[0].module == "kernel_settings"
    assert calls[0].options["sysctl"]["kernel.panic_on_oops"] == 1
    assert calls[0].options["sysctl"]["kernel.panic"] == 20

"""Which distribution made a node, and where its parts are, on trees of files as they leave them."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._host import cluster, distributions
from ansible_collections.ipu.fabric.plugins.module_utils._host import facts as host_facts
from ansible_collections.ipu.fabric.plugins.module_utils._host import kubectl as host_kubectl
from ansible_collections.ipu.fabric.tests.unit.fixtures import rancher

K3S, RKE2 = "/var/lib/rancher/k3s", "/var/lib/rancher/rke2"
USUAL = ("/opt/cni/bin", "/etc/cni/net.d")


@pytest.mark.parametrize(
    ("name", "server", "units", "kubeconfig", "cni"),
    [
        ("kubeadm", True, ["kubelet"], "/etc/kubernetes/admin.conf", USUAL),
        ("kubeadm", False, ["kubelet"], "", USUAL),
        ("k3s", True, ["k3s"], "/etc/rancher/k3s/k3s.yaml", (f"{K3S}/data/cni", f"{K3S}/agent/etc/cni/net.d")),
        ("k3s", False, ["k3s-agent"], "", (f"{K3S}/data/cni", f"{K3S}/agent/etc/cni/net.d")),
        ("rke2", True, ["rke2-server"], "/etc/rancher/rke2/rke2.yaml", USUAL),
        ("rke2", False, ["rke2-agent"], "", USUAL),
    ],
)
def test_each_distribution(tmp_path, name, server, units, kubeconfig, cni):
    rancher.make_node(tmp_path, name, server)
    seen = distributions.read_kubernetes(str(tmp_path))
    assert (seen["distribution"], seen["server"], seen["units"]) == (name, server, units)
    assert seen["kubeconfig"] == kubeconfig
    assert (seen["cni_bin_directory"], seen["cni_network_directory"]) == cni
    embeds = name != "kubeadm"
    assert seen["containerd_socket"] == f"/run/{'k3s/' * embeds}containerd/containerd.sock"
    assert seen["containerd_config"] == (f"/var/lib/rancher/{name}/agent" * embeds) + "/etc/containerd/config.toml"
    assert seen["registries"] == f"/etc/rancher/{name}/registries.yaml" * embeds


def test_a_host_without_kubernetes(tmp_path):
    seen = distributions.read_kubernetes(str(tmp_path))
    assert (seen["distribution"], seen["units"], seen["server"]) == ("none", [], False)
    assert (seen["cni_bin_directory"], seen["cni_network_directory"]) == USUAL


def cni_of(root):
    seen = distributions.read_kubernetes(str(root))
    return seen["cni_bin_directory"], seen["cni_network_directory"]


def test_an_old_k3s_has_its_plugins_in_the_directory_of_its_release(tmp_path):
    """An upgrade makes another one, and a link leads to the present one."""
    rancher.make_node(tmp_path, "k3s", server=False, bundle=True)
    assert cni_of(tmp_path) == (f"{K3S}/data/current/bin", f"{K3S}/agent/etc/cni/net.d")


@pytest.mark.parametrize("version", [2, 3])
def test_k3s_without_flannel_leaves_cni_to_containerd(tmp_path, version):
    rancher.make_node(tmp_path, "k3s", server=False, config=rancher.containerd_config(version, None))
    assert cni_of(tmp_path) == USUAL


def test_before_its_first_start_it_is_where_k3s_will_have_it(tmp_path):
    rancher.make_node(tmp_path, "k3s", server=False, config=None)
    assert cni_of(tmp_path) == (f"{K3S}/data/cni", f"{K3S}/agent/etc/cni/net.d")


def test_rke2_with_directories_of_its_own(tmp_path):
    config = rancher.containerd_config(3, ("/srv/cni/bin/", "/srv/cni/net.d"))
    rancher.make_node(tmp_path, "rke2", server=False, config=config)
    assert cni_of(tmp_path) == ("/srv/cni/bin", "/srv/cni/net.d")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ("", "")),
        ("[plugins.'io.containerd.cri.v1.runtime'.cni]\n  bin_dirs = ['/a', '/b']\n  conf_dir = '/c'\n", ("/a", "/c")),
        (
            '[plugins."io.containerd.grpc.v1.cri".cni]\nconf_dir = "/c"\nbin_dir = "/a"\n[x]\nbin_dir = "/b"',
            ("/a", "/c"),
        ),
        ("[plugins.'io.containerd.cri.v1.runtime'.cni]\n[y]\nbin_dirs = ['/a']\nconf_dir = '/c'\n", ("", "")),
        ("[plugins.other.cni]\nbin_dir = '/a'\n", ("", "")),
    ],
)
def test_directories_in_the_configuration_of_containerd(text, found):
    assert distributions.cni_directories(text) == found


@pytest.mark.parametrize(
    "files",
    [
        {"/etc/rancher/k3s/config.yaml": "token: secret\ndata-dir: /mnt/k3s/ # a disk of its own\n"},
        {
            "/etc/rancher/k3s/config.yaml": "data-dir: /mnt/x\n",
            "/etc/rancher/k3s/config.yaml.d/9.yaml": "data-dir: '/mnt/k3s'",
        },
        {"/etc/systemd/system/k3s.service": rancher.unit("k3s", "--data-dir", "/mnt/k3s")},
        {"/etc/systemd/system/k3s-agent.service": rancher.unit("k3s", "--node-name", "w1", "--data-dir=/mnt/k3s")},
        {"/etc/systemd/system/k3s.service": rancher.unit("k3s", "-d", "/mnt/k3s")},
        {"/etc/systemd/system/k3s.service.env": "K3S_TOKEN='x'\nK3S_DATA_DIR='/mnt/k3s'\n"},
        {
            "/etc/rancher/k3s/config.yaml": "data-dir: /mnt/x\n",
            "/usr/local/lib/systemd/system/k3s.service": rancher.unit("k3s", "--data-dir", "/mnt/k3s"),
        },
    ],
)
def test_data_elsewhere(tmp_path, files):
    rancher.write_files(tmp_path, files)
    rancher.make_node(tmp_path, "k3s", server=True, data="/mnt/k3s")
    seen = distributions.read_kubernetes(str(tmp_path))
    assert (seen["distribution"], seen["server"]) == ("k3s", True)
    assert cni_of(tmp_path) == ("/mnt/k3s/data/cni", "/mnt/k3s/agent/etc/cni/net.d")


def test_a_kubeconfig_that_k3s_writes_elsewhere(tmp_path):
    rancher.make_node(tmp_path, "k3s", server=True)
    (tmp_path / "etc/rancher/k3s/k3s.yaml").unlink()
    seen = distributions.read_kubernetes(str(tmp_path))
    assert seen["kubeconfig"] == f"{K3S}/server/cred/admin.kubeconfig"


def test_somebody_s_copy_of_the_kubeconfig_makes_no_server(tmp_path):
    rancher.make_node(tmp_path, "k3s", server=False)
    rancher.write_files(tmp_path, {"/etc/rancher/k3s/k3s.yaml": ""})
    seen = distributions.read_kubernetes(str(tmp_path))
    assert (seen["server"], seen["kubeconfig"], seen["units"]) == (False, "", ["k3s-agent"])


def test_of_two_the_one_that_runs(tmp_path):
    rancher.make_node(tmp_path, "kubeadm", server=False)
    rancher.make_node(tmp_path, "k3s", server=False)
    assert distributions.read_kubernetes(str(tmp_path))["distribution"] == "kubeadm"
    rancher.write_files(tmp_path, {"/run/k3s/containerd/containerd.sock": ""})
    assert distributions.read_kubernetes(str(tmp_path))["distribution"] == "k3s"


@pytest.mark.parametrize(
    ("name", "printed", "version", "server"),
    [
        ("kubeadm", "Kubernetes v1.35.4\n", "v1.35.4", "10.88.0.11:6443"),
        ("k3s", "k3s version v1.35.4+k3s1 (14549535)\ngo version go1.25.5\n", "v1.35.4+k3s1", ""),
        ("rke2", "rke2 version v1.35.4+rke2r2 (abc)\ngo version go1.25.5 X:boringcrypto\n", "v1.35.4+rke2r2", ""),
    ],
)
def test_the_cluster_of_a_host(tmp_path, monkeypatch, name, printed, version, server):
    """All of them trust its CA, by which a kubeconfig of another cluster is known."""
    rancher.make_node(tmp_path, name, server=False)
    program = distributions.DISTRIBUTIONS[name].program
    monkeypatch.setattr(
        host_facts, "output_of", lambda *argv, timeout: printed if argv == (program, "--version") else ""
    )
    assert host_facts.read_kubelet(str(tmp_path)) == {
        "present": True,
        "version": version,
        "server": server,
        "cluster": host_facts.ca_digest(rancher.CA),
    }


def server_node(name, *arguments, pods="10.42.0.0/24", **annotations):
    written = "[" + ",".join(f'"{word}"' for word in ("server", *arguments)) + "]"
    return {
        "metadata": {"name": "cp1", "annotations": {f"{name}.io/node-args": written, **annotations}},
        "spec": {"podCIDR": pods},
    }


@pytest.mark.parametrize(
    ("arguments", "pods", "found"),
    [
        ([], "10.42.0.0/24", ("10.42.0.0/16", "10.43.0.0/16")),
        (["--cluster-cidr", "10.52.0.0/16"], "10.52.1.0/24", ("10.52.0.0/16", "10.43.0.0/16")),
        (
            ["--cluster-cidr=10.52.0.0/16", "--service-cidr=10.53.0.0/16"],
            "10.52.1.0/24",
            ("10.52.0.0/16", "10.53.0.0/16"),
        ),
        (["--cluster-cidr", "10.42.0.0/16,fd00::/56"], "10.42.0.0/24", ("10.42.0.0/16,fd00::/56", "10.43.0.0/16")),
        ([], "fd00:42::/64", ("", "")),
        (["--service-cidr"], "10.42.0.0/24", ("10.42.0.0/16", "10.43.0.0/16")),
    ],
)
@pytest.mark.parametrize("name", ["k3s", "rke2"])
def test_addresses_of_a_cluster(name, arguments, pods, found):
    agent = {"metadata": {"name": "w1"}, "spec": {"podCIDR": "10.42.9.0/24"}}
    servers = {"items": [agent, server_node(name, *arguments, pods=pods)]}
    assert cluster.embedded_addresses(name, servers) == found
    assert cluster.embedded_addresses(name, {"items": [agent]}) == ("", "")


@pytest.mark.parametrize("name", ["k3s", "rke2"])
def test_what_a_server_says_of_its_cluster(tmp_path, monkeypatch, name):
    rancher.make_node(tmp_path, name, server=True)
    node = server_node(name, **{"flannel.alpha.coreos.com/backend-type": "vxlan"})
    canal = [{"metadata": {"namespace": "kube-system", "name": "rke2-canal"}}] if name == "rke2" else []
    answers = {
        "/version": {"gitVersion": f"v1.35.4+{name}1"},
        cluster.SERVERS: {"items": [node]},
        "/apis/apps/v1/daemonsets": {"items": canal},
    }
    asked = []

    def run_program(argv, seconds, **_options):
        asked.append(argv[:-1])
        answer = answers.get(argv[-1])
        return Done(0, cluster.json.dumps(answer)) if answer else Done(1, "", "Error from server (NotFound): no")

    monkeypatch.setattr(host_kubectl, "run_program", run_program)
    seen = cluster.read_cluster(str(tmp_path))
    assert (seen["present"], seen["answered"], seen["version"]) == (True, True, f"1.35.4+{name}1")
    assert (seen["endpoint"], seen["pod_cidr"], seen["service_cidr"]) == ("", "10.42.0.0/16", "10.43.0.0/16")
    assert [network["name"] for network in seen["pod_networks"]] == ["canal" if canal else "flannel"]
    kubectl = ["k3s", "kubectl"] if name == "k3s" else [f"{tmp_path}{RKE2}/bin/kubectl"]
    admin = ["--kubeconfig", f"{tmp_path}/etc/rancher/{name}/{name}.yaml", "--request-timeout", "30s", "get", "--raw"]
    assert set(map(tuple, asked)) == {(*kubectl, *admin)}


DEBIAN = """\
version = 2

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni"
      conf_dir = "/etc/cni/net.d"
"""
CNI_TABLE = """\
version = 3
[plugins.'io.containerd.cri.v1.runtime'.cni]
{}
"""


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, USUAL),
        ({"config.toml": DEBIAN}, ("/usr/lib/cni", "/etc/cni/net.d")),
        # The last file that says something counts.
        (
            {
                "config.toml": f'imports = ["conf.d/*.toml", "/srv/more.toml"]\n{DEBIAN}',
                "conf.d/10-kubernetes.toml": CNI_TABLE.format("bin_dirs = ['/opt/cni/bin', '/usr/lib/cni']"),
                "conf.d/05-site.toml": CNI_TABLE.format("bin_dirs = ['/x']"),
                "../../srv/more.toml": CNI_TABLE.format("conf_dir = '/srv/net.d'"),
            },
            ("/opt/cni/bin", "/srv/net.d"),
        ),
        # Drop-ins count if they are imported, or if there is no main file.
        ({"config.toml": DEBIAN, "conf.d/1.toml": CNI_TABLE.format("bin_dirs = ['/x']")}, ("/usr/lib/cni", USUAL[1])),
        ({"conf.d/1.toml": CNI_TABLE.format("bin_dirs = ['/x']")}, ("/x", USUAL[1])),
    ],
)
def test_where_the_containerd_of_kubeadm_looks(tmp_path, files, found):
    (tmp_path / "etc/kubernetes").mkdir(parents=True)
    (tmp_path / "etc/kubernetes/kubelet.conf").write_text("")
    for path, text in files.items():
        file = tmp_path / "etc/containerd" / path
        (tmp_path / "etc/containerd").mkdir(exist_ok=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert cni_of(tmp_path) == found
    docker = distributions.read_kubernetes(str(tmp_path), docker=True)
    assert (docker["cni_bin_directory"], docker["cni_network_directory"]) == USUAL

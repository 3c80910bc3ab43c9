"""The runtime of a node, from what kubeadm leaves, and configurations of pod networks, from what anybody leaves."""

import socket
import threading

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._host import cni_files, cri
from ansible_collections.ipu.fabric.plugins.module_utils._host.facts import Questions, read_host

ENDPOINT = "containerRuntimeEndpoint: unix:///{}\n"
FLAGS = 'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///{} --pod-infra-container-image=pause:3.10"\n'
KUBELET = "var/lib/kubelet"


def write(root, files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


@pytest.mark.parametrize(
    ("files", "runtime"),
    [
        ({}, ""),
        ({f"{KUBELET}/config.yaml": "kind: KubeletConfiguration\n"}, ""),
        # As kubeadm up to 1.33 writes it, and from 1.34 on.
        ({f"{KUBELET}/kubeadm-flags.env": FLAGS.format("run/containerd/containerd.sock")}, "containerd"),
        ({f"{KUBELET}/kubeadm-flags.env": FLAGS.format("var/run/cri-dockerd.sock")}, "docker"),
        (
            {
                f"{KUBELET}/kubeadm-flags.env": 'KUBELET_KUBEADM_ARGS=""\n',
                f"{KUBELET}/instance-config.yaml": ENDPOINT.format("run/cri-dockerd.sock"),
                f"{KUBELET}/config.yaml": 'containerRuntimeEndpoint: ""\n',
            },
            "docker",
        ),
        (
            {f"{KUBELET}/config.yaml": 'containerRuntimeEndpoint: "unix:///run/containerd/containerd.sock"\n'},
            "containerd",
        ),
        ({f"{KUBELET}/instance-config.yaml": ENDPOINT.format("run/crio/crio.sock")}, "/run/crio/crio.sock"),
        # A flag counts before the file.
        (
            {
                f"{KUBELET}/kubeadm-flags.env": FLAGS.format("run/cri-dockerd.sock"),
                f"{KUBELET}/config.yaml": ENDPOINT.format("run/containerd/containerd.sock"),
            },
            "docker",
        ),
    ],
)
def test_the_runtime_of_a_node(tmp_path, files, runtime):
    write(tmp_path, files)
    assert cri.node_runtime(str(tmp_path)) == runtime


@pytest.mark.parametrize(
    ("text", "plugin"),
    [
        ('{"name": "k8s-pod-network", "plugins": [{"type": "calico"}, {"type": "portmap"}]}', "calico"),
        ('{"cniVersion": "0.3.1", "type": "multus-shim"}', "multus-shim"),
        ('{"plugins": []}', ""),
        ('{"plugins": [{"type": 7}]}', ""),
        ("[]", ""),
        ('{"plugins": [{"type": "bridge"},]}', ""),
        ("", ""),
    ],
)
def test_the_plugin_of_a_configuration(text, plugin):
    assert cni_files.plugin_of(text) == plugin


def test_files_in_the_order_in_which_runtimes_look_at_them(tmp_path):
    folder = "etc/cni/net.d"
    names = ("10-calico.conflist", "00-multus.conf", "calico-kubeconfig", "87-podman.conflist~", "99-x.json")
    write(tmp_path, {f"{folder}/{name}": '{"type": "x"}' for name in names})
    (tmp_path / folder / "whereabouts.d").mkdir()
    (tmp_path / folder / "d.conf").mkdir()
    read = cni_files.read_cni_files("/etc/cni/net.d", str(tmp_path))
    assert [file["name"] for file in read] == ["00-multus.conf", "10-calico.conflist", "99-x.json"]
    assert cni_files.read_cni_files("/nowhere", str(tmp_path)) == []
    assert cni_files.read_disabled("/etc/cni/net.d", str(tmp_path)) == []
    write(tmp_path, {f"{folder}/00-multus.conf.cilium_bak": '{"type": "multus"}'})
    disabled = [{"name": "00-multus.conf.cilium_bak", "plugin": "multus"}]
    assert cni_files.read_disabled("/etc/cni/net.d", str(tmp_path)) == disabled
    assert cni_files.read_cni_files("/etc/cni/net.d", str(tmp_path)) == read


def test_host_info_has_both(tmp_path):
    """The runtime only of a node of kubeadm: the kubelets of others are started in other ways."""
    write(
        tmp_path,
        {
            "etc/cni/net.d/10-flannel.conflist": '{"plugins": [{"type": "flannel"}]}',
            f"{KUBELET}/instance-config.yaml": ENDPOINT.format("run/cri-dockerd.sock"),
        },
    )
    asked = Questions(ports=[], modules=[], paths=[], names=[], controller_time=0)
    assert read_host(asked, str(tmp_path))["runtime"] == ""
    write(tmp_path, {"etc/kubernetes/kubelet.conf": "server: https://192.0.2.1:6443\n"})
    seen = read_host(asked, str(tmp_path))
    assert seen["runtime"] == "docker"
    assert seen["cni_files"] == [{"name": "10-flannel.conflist", "plugin": "flannel"}]


# What containerd 1.6.20 sends first, and its answers: with a message, and without one to a method that it lacks and
# while it starts.
FIRST = bytes.fromhex("00000604000000000000050000400000000004010000000000000806000000000002041010090e0707")
TYPE = "885f8b1d75d0620d263d4c4d6564"
ANSWER = bytes.fromhex(
    f"00000e010400000001{TYPE}0000050000000000010000000000"
    "00001801050000000140889acac8b21234da8f013040899acac8b5254207317f00"
)
NO_SUCH_METHOD = bytes.fromhex(f"00001b010500000001{TYPE}40889acac8b21234da8f023132")
NOT_YET = bytes.fromhex(f"00001b010500000001{TYPE}40889acac8b21234da8f023134")
GOODBYE = bytes.fromhex("0000080700000000000000000000000002")


@pytest.fixture
def runtime(tmp_path):
    """A socket that gives these answers, one a connection, and the methods that it was asked for."""
    path, asked = str(tmp_path / "cri.sock"), []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()

        def serve(answers):
            for answer in answers:
                peer, _address = listener.accept()
                with peer:
                    data = b""
                    while b"/runtime.v1." not in data or not data.endswith((b"\0" * 5, b"\x05pause")):
                        data += peer.recv(4096)
                    asked.append(data.partition(b"/runtime.v1.")[2].partition(b"\0")[0].decode("ascii", "replace"))
                    peer.sendall(FIRST + answer)
                    while peer.recv(4096):
                        pass

        def start(*answers):
            threading.Thread(target=serve, args=(answers,), daemon=True).start()
            return path, asked

        yield start


def test_a_runtime_that_works_knows_its_version_and_its_images(runtime):
    path, asked = runtime(ANSWER, ANSWER)
    assert cri.ask(path) is None
    assert asked == ["RuntimeService/Version", "ImageService/ImageStatus"]


@pytest.mark.parametrize(
    ("answers", "final", "seen"),
    [
        # containerd is active, and its CRI was not loaded.
        ([NO_SUCH_METHOD], True, "has no CRI: it does not know /runtime.v1.RuntimeService/Version"),
        ([ANSWER, NO_SUCH_METHOD], True, "has no CRI: it does not know /runtime.v1.ImageService/ImageStatus"),
        ([NOT_YET], False, "with an error (gRPC status 14)"),
        ([GOODBYE], False, "it refused the call"),
        ([b"\0\0\x01\x01\x04\0\0\0\x01\x40"], False, "does not answer"),
    ],
)
def test_a_runtime_that_does_not_work(runtime, answers, final, seen):
    path, _asked = runtime(*answers)
    silent = cri.ask(path)
    assert silent
    assert (silent.final, seen in silent.seen) == (final, True)


def test_a_runtime_that_is_not_there(tmp_path):
    silent = cri.ask(str(tmp_path / "none.sock"))
    assert silent
    assert (silent.final, "No such file" in silent.seen) == (False, True)


@pytest.mark.parametrize(
    ("done", "socket_path", "asked", "seen"),
    [
        (Done(0, "28.5.2"), "", [], None),
        (Done(127, "", "docker: not found"), "", [], None),
        (Done(1, "", "Cannot connect"), "", [], "docker info: Cannot connect"),
        (Done(None), "", [], "docker info: rc None"),
        # The node's kubelet has to reach it, by way of cri-dockerd.
        (Done(0, "28.5.2"), "/run/cri-dockerd.sock", ["/run/cri-dockerd.sock"], "no CRI"),
    ],
)
def test_docker_has_two_interfaces(monkeypatch, done, socket_path, asked, seen):
    paths = []
    monkeypatch.setattr(cri, "run_program", lambda argv, seconds: done)
    monkeypatch.setattr(cri, "kubelet_socket", lambda: socket_path)
    monkeypatch.setattr(cri, "ask", lambda path: paths.append(path) or cri.Silence("no CRI", True))
    silent = cri.silence("docker")
    assert (paths, silent.seen if silent else None) == (asked, seen)

# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runtime of a node, from what kubeadm leaves, and configurations of pod networks, from what anybody leaves."""

from __future__ import annotations

import pytest
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

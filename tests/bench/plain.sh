#!/usr/bin/env bash
# plain.sh MIRROR REGISTRY VERSION KEY CONTROL_PLANE WORKER: what kubeadm's own documentation says, straight through, and
# nothing more: packages, containerd, kubeadm init, kubeadm join. No checks, no pod network, not to be run twice.
set -euo pipefail
mirror=$1 registry=$2 version=$3 key=$4 control_plane=$5 worker=$6

on() {
    ssh -i "$key" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "root@$1" bash -euo pipefail
}

prepare() {
    on "$1" <<EOF
export DEBIAN_FRONTEND=noninteractive
printf 'net.ipv4.ip_forward=1\n' >/etc/sysctl.d/k8s.conf
sysctl -q -p /etc/sysctl.d/k8s.conf
echo 'deb [trusted=yes] $mirror/apt/kubernetes/ /' >/etc/apt/sources.list.d/kubernetes.list
echo 'deb [trusted=yes] $mirror/apt/containerd bookworm stable' >/etc/apt/sources.list.d/containerd.list
apt-get -qq update
apt-get -qq install -y containerd.io kubelet kubeadm kubectl kubernetes-cni >/dev/null
mkdir -p /etc/containerd/certs.d/_default
printf '[host."%s"]\n  capabilities = ["pull", "resolve"]\n' '$registry' >/etc/containerd/certs.d/_default/hosts.toml
pause=\$(kubeadm config images list --kubernetes-version v$version | grep /pause:)
containerd config default |
    sed "s|config_path = .*|config_path = '/etc/containerd/certs.d'|; s|SystemdCgroup = false|SystemdCgroup = true|;
         s|restrict_oom_score_adj = false|restrict_oom_score_adj = true|; s|sandbox = .*|sandbox = '\$pause'|" >/etc/containerd/config.toml
systemctl restart containerd
EOF
}

# What this kind of host needs besides: see testbed/README.md.
settings='apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
conntrack: {maxPerCore: 0, min: 0}'

prepare "$control_plane" &
prepare "$worker" &
wait -n
wait -n

on "$control_plane" <<EOF
cat >/root/kubeadm.yaml <<YAML
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v$version
networking: {podSubnet: 10.244.0.0/16}
---
$settings
YAML
kubeadm init --config /root/kubeadm.yaml --ignore-preflight-errors=SystemVerification,Swap,FileContent--proc-sys-net-bridge-bridge-nf-call-iptables >/dev/null
EOF
join=$(on "$control_plane" <<<'kubeadm token create --print-join-command')
on "$worker" <<<"$join --ignore-preflight-errors=SystemVerification,Swap,FileContent--proc-sys-net-bridge-bridge-nf-call-iptables >/dev/null"
on "$control_plane" <<<'kubectl --kubeconfig /etc/kubernetes/admin.conf get nodes'

# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that kubeadm leaves on a host, and ours beside them."""

from __future__ import annotations

ROOT = "/"
KUBERNETES = "/etc/kubernetes"
ADMIN = f"{KUBERNETES}/admin.conf"
KUBELET = f"{KUBERNETES}/kubelet.conf"
MANIFESTS = f"{KUBERNETES}/manifests"
# Any of these shows that a host is, was or was about to become a node.
TRACES = (ADMIN, KUBELET, f"{KUBERNETES}/bootstrap-kubelet.conf", f"{MANIFESTS}/kube-apiserver.yaml")
# Data of this host's etcd, which is a member of the cluster's before the host is a node.
ETCD = "/var/lib/etcd/member"
# There while we run kubeadm, with the name of its command, and left behind when it was interrupted: only then may a
# half-made node be reset.
MARKER = "/var/lib/ipu-fabric/kubeadm-unfinished"
# The kubelet's earlier configuration, from when a new one is written until its kubelet has come up with that.
EARLIER_KUBELET_CONFIG = "/var/lib/ipu-fabric/kubelet-config-before.yaml"
# There while certificates are renewed, with what is still to be done: renew or restart.
RENEWAL = "/var/lib/ipu-fabric/renewal-unfinished"
# There from the moment when a backup is put back on a control plane until all hosts are, with the name of the restore.
RESTORING = "/var/lib/ipu-fabric/restore-unfinished"
# There while a host with kubeadm's etcd is reset: kubeadm removes what else shows whose data those are.
ETCD_IS_OURS = "/var/lib/ipu-fabric/etcd-to-remove"
# On the other control planes, with the name of the restore for which what they had was set aside. It stays after that.
SET_ASIDE = "/var/lib/ipu-fabric/set-aside-for-restore"
# Held by kubeadm itself, which may go on after the run that started it was killed. Its directory is for root alone.
LOCK = "/run/ipu-fabric/kubeadm.lock"
# Configuration for kubeadm, while it runs. It may carry a token.
CONFIG = "/run/ipu-fabric/kubeadm.yaml"
# Files that arguments of the API server name; it has the directory, so that a file can be replaced in one step.
HARDENING = f"{KUBERNETES}/hardening"
# Keys of Secrets in etcd. Secret.
ENCRYPTION = f"{HARDENING}/encryption.yaml"
# Manifests and files as they were before a change, while it is not known whether the control plane lives with it.
EARLIER = "/var/lib/ipu-fabric/control-plane-earlier"
# Where kubeadm renders manifests before they are put in place.
RENDERED = "/run/ipu-fabric/manifests"

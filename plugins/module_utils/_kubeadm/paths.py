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
# Data of this host's etcd, which joins the cluster's etcd before the host is a node.
ETCD = "/var/lib/etcd/member"
# Exists while we run kubeadm, and contains the name of the command. It stays if kubeadm was interrupted: only then may
# a half-made node be reset.
MARKER = "/var/lib/ipu-fabric/kubeadm-unfinished"
# The kubelet's earlier configuration, from writing a new one until the kubelet has come up with that.
EARLIER_KUBELET_CONFIG = "/var/lib/ipu-fabric/kubelet-config-before.yaml"
# Exists while certificates are renewed, and contains what is still to do: renew or restart.
RENEWAL = "/var/lib/ipu-fabric/renewal-unfinished"
# Exists from restoring a backup on a control plane until all hosts are done, and contains the ID of the restore.
RESTORING = "/var/lib/ipu-fabric/restore-unfinished"
# Exists while a host with kubeadm's etcd is reset: kubeadm removes all other signs of whose data it is.
ETCD_IS_OURS = "/var/lib/ipu-fabric/etcd-to-remove"
# On the other control planes: the ID of the restore for which their state was set aside. It stays after the restore.
SET_ASIDE = "/var/lib/ipu-fabric/set-aside-for-restore"
# Held by kubeadm itself, which may outlive the run that started it. Its directory is for root only.
LOCK = "/run/ipu-fabric/kubeadm.lock"
# Configuration for a running kubeadm. It may contain a token.
CONFIG = "/run/ipu-fabric/kubeadm.yaml"
# Files that API server arguments refer to; the directory is mounted, so that files can be replaced atomically.
HARDENING = f"{KUBERNETES}/hardening"
# Keys of Secrets in etcd. This file is secret.
ENCRYPTION = f"{HARDENING}/encryption.yaml"
# Manifests and files as before a change, kept while it is uncertain whether the control plane runs with the new ones.
EARLIER = "/var/lib/ipu-fabric/control-plane-earlier"
# Where kubeadm renders manifests before they are put in place.
RENDERED = "/run/ipu-fabric/manifests"

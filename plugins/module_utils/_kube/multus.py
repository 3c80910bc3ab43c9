# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names by which pods and multus speak to each other."""

from __future__ import annotations

# Annotations of a pod: the networks that it asks for, and, as JSON, what multus gave it.
NETWORKS = "k8s.v1.cni.cncf.io/networks"
NETWORK_STATUS = "k8s.v1.cni.cncf.io/network-status"
# A network that pods can ask for.
NAD_API = "k8s.cni.cncf.io/v1"
NAD = (NAD_API, "NetworkAttachmentDefinition")

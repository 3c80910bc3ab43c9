# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pod Security Admission: what the pods of a namespace may ask for."""

from __future__ import annotations

POD_SECURITY = "pod-security.kubernetes.io/enforce"  # label of a namespace, with the level
PRIVILEGED = "privileged"  # the level that allows everything
REFUSED = "violates PodSecurity"  # in the API server's refusal of a pod

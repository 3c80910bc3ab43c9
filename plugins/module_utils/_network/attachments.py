# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for NetworkAttachmentDefinitions (NAD) that say what was planned, whoever makes them."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Cluster, Object, connect, wait_until
from ansible_collections.ipu.fabric.plugins.module_utils._network.macvlan import nad_faults, nad_of


def pending(cluster: Cluster, networks: t.Sequence[Object]) -> t.List[str]:
    """In what the NADs differ from the networks now."""
    return [fault for network in networks for fault in nad_faults(nad_of(cluster, network), network)]


def run(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module attachments_ready."""
    cluster, networks = connect(module), module.params["networks"]
    if module.check_mode:
        return {"changed": False, "pending": pending(cluster, networks)}
    wait_until(
        lambda: pending(cluster, networks),
        module.params["timeout"],
        f"{module.params['what']} was expected to make the planned NetworkAttachmentDefinition.",
        "Read the log of its controller.",
        0.5,
    )
    return {"changed": False, "pending": []}

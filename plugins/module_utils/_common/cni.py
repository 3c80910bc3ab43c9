# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""CNI configurations: one plugin, or a chain of them."""

from __future__ import annotations

import json
import re
import typing as t

Plugin = t.Dict[str, t.Any]
# Why a node is not Ready, as containerd and CRI-O say it, in the kubelet's words.
NO_CNI = re.compile("cni (plugin not |config un)initialized|No CNI configuration file")
# What cures missing files in /etc/cni/net.d.
WRITE_AGAIN = (
    "delete the pods that write /etc/cni/net.d when they start: first the node's kube-flannel-ds or calico-node, then"
    " its kube-multus-ds and nv-ipam-node (`kubectl get pods -A --field-selector spec.nodeName=NODE` shows them)"
)


def plugins_of(text: object) -> t.List[Plugin]:
    """The plugins of a configuration, in their order; none if it can't be read."""
    try:
        return chain_of(json.loads(str(text or "{}")))
    except ValueError:
        return []


def chain_of(config: object) -> t.List[Plugin]:
    """The same of a configuration that was parsed already."""
    chain = config.get("plugins") if isinstance(config, dict) else None
    return [plugin for plugin in (chain if isinstance(chain, list) else [config]) if isinstance(plugin, dict)]


def split_chain(config: object, cni: str) -> t.Tuple[t.Optional[Plugin], t.List[Plugin]]:
    """The main plugin, which is `cni`, and those that follow it. A chain without it has an empty one.

    A single plugin is the main one, whatever its type. None: this is no CNI configuration.
    """
    chain = chain_of(config)
    if len(chain) < 2:
        return next(iter(chain), None), []
    place = next((number for number, plugin in enumerate(chain) if plugin.get("type") == cni), len(chain))
    return next(iter(chain[place:]), {}), chain[place + 1 :]

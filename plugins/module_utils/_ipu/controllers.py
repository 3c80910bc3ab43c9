# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""V-IPU controllers as configured in the IPU operator, and the labels that select their nodes. Pure functions."""

from __future__ import annotations

import typing as t

from .._common.result import FabricError
from .._common.text import join_endpoint
from .._host.ipu_operator import CONTROLLER
from .._model.operators import LabelledNode, VipuController

PORT = 8090
# The operator's names for its own objects.
SECRET, TRACKER = "ipu-operator-admission", "ipu-partitions-tracker"


class NodeLabels(t.TypedDict):
    """Labels of a node; None removes one."""

    name: str
    labels: t.Dict[str, t.Optional[str]]


def controllers_value(controllers: t.Sequence[VipuController]) -> str:
    """The controllers in the chart's format: host:port:label=value, comma-separated. FabricError if one is invalid."""
    entries: t.Dict[str, str] = {}
    for controller in controllers:
        host, label = str(controller["host"]).strip("[]"), str(controller["label"])
        endpoint = join_endpoint(host, int(controller.get("port") or PORT))
        entry = f"{endpoint}:{label}"
        wrong = "" if CONTROLLER.fullmatch(entry) else "not of the form host:port:label=value"
        if host.partition(".")[0] == "localhost" or host.startswith("127."):
            wrong = "a loopback address, which the operator's proxy on the pod network can't reach"
        elif endpoint in entries:
            wrong = "named twice"
        if wrong:
            raise FabricError(
                "A V-IPU controller of the IPU operator is invalid.",
                "ipu_operator_vipu_controllers",
                f"{entry} is {wrong}",
                "Give each controller once: a host that pods reach, its port, and a label as key=value.",
                code="invalid-input",
            )
        entries[endpoint] = entry
    return ",".join(entries.values())


def parse_controllers(text: str) -> t.List[VipuController]:
    """The controllers in text from the operator's ConfigMap."""
    return [
        {"host": host.strip("[]"), "port": int(port), "label": f"{key}={value}"}
        for host, port, key, value in CONTROLLER.findall(text)
    ]


def label_pair(label: str) -> t.Tuple[str, str]:
    """Key and value of key=value."""
    key, _equals, value = str(label).partition("=")
    return key, value


def ipu_node_labels(
    controllers: t.Sequence[VipuController],
    former: t.Sequence[VipuController] = (),
    labelled: t.Sequence[LabelledNode] = (),
    absent: bool = False,
) -> t.List[NodeLabels]:
    """The labels to set on nodes, and those to remove from nodes that a controller no longer serves.

    former: the controllers that the operator knows now. labelled: the current nodes. absent: the operator is removed,
    together with the labels of all its controllers.
    """
    wanted: t.Dict[str, t.Dict[str, t.Optional[str]]] = {}
    for controller in controllers:
        key, value = label_pair(controller["label"])
        for name in [] if absent else controller.get("nodes") or []:
            labels = wanted.setdefault(name, {})
            if labels.setdefault(key, value) != value:
                raise FabricError(
                    "A node can have only one V-IPU controller for each label.",
                    f"node {name} in ipu_operator_vipu_controllers",
                    f"{key}={labels[key]} and {key}={value}",
                    "Remove the node from one of the two.",
                    code="invalid-input",
                )
    unmanaged = {label_pair(controller["label"]) for controller in controllers if controller.get("nodes") is None}
    managed = {label_pair(controller["label"]) for controller in [*controllers, *former]} - unmanaged
    for node in labelled:
        for key, value in managed:
            if node["labels"].get(key) == value:
                wanted.setdefault(node["name"], {}).setdefault(key, None)
    return [{"name": name, "labels": wanted[name]} for name in sorted(wanted)]

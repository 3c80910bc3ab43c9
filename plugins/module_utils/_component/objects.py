# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes objects that several components name."""

from __future__ import annotations

import typing as t

from .._kube.query import Object
from .._model.plan import PlannedNetwork, RdmaResource


def named(api_version: str, kind: str, name: str, namespace: str = "") -> Object:
    """The identifying part of an object."""
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **place}}


def definitions(names: t.Sequence[str]) -> t.List[Object]:
    return [named("apiextensions.k8s.io/v1", "CustomResourceDefinition", name) for name in names]


def home(namespace: str, needed: t.Sequence[str] = ()) -> t.List[Object]:
    """The namespace to remove with a component, unless something else is known to need it."""
    return [] if namespace in {"default", "kube-system", *needed} else [named("v1", "Namespace", namespace)]


def pods_on(networks: t.Sequence[PlannedNetwork]) -> t.List[Object]:
    """A pod on each network, in the form in which ipu.fabric.kube_wait starts it."""
    return [{key: value for key, value in each.items() if key in ("name", "namespace", "hosts")} for each in networks]


def device_plugin(resources: t.Sequence[RdmaResource]) -> Object:
    """The RDMA shared device plugin's configuration. It looks for new devices periodically."""
    return {"periodicUpdateInterval": 300, "configList": list(resources)}

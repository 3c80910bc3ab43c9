# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What components base their decisions on: the cluster and its operators, read in one call."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._common.manager import is_ours
from .._ipu.operator import read_ipu_operator
from .._kube.client import FIRST_LOOK, Cluster, connect
from .._kube.rights import missing_rights, user_name
from .._model.operators import MpiFacts
from .._network.cluster_info import read_cluster
from .._network.gpu_operator import read_gpu_operator
from .._network.removal import name_of
from .._network.saved_objects import report_objects
from .any_cluster import plan_of
from .mpi_operator import JOBS

PARTS = ("gpu", "ipu", "mpi", "objects", "plan", "rights")
MPIJOBS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/mpijobs.kubeflow.org"


def read_mpi_operator(cluster: Cluster) -> MpiFacts:
    jobs = cluster.resource(*JOBS)
    names = [name_of(job) for job in cluster.items(jobs.path())] if jobs else []
    return {"ours": is_ours(cluster.get(MPIJOBS)), "jobs": ["/".join(name) for name in names]}


def read(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module cluster_info."""
    params = module.params
    cluster = connect(module, FIRST_LOOK if params["parts"] == ["plan"] else None)
    if params["parts"] == ["rights"]:  # answered even if the user may read nothing else
        missing = missing_rights(cluster)
        user = user_name(cluster) if missing else ""
        said = {"present": cluster.present, "silence": cluster.silence, "rights": missing, "user": user}
        return {"changed": False, **said}
    if params["parts"] == ["plan"]:
        return {"changed": False, "present": cluster.present, "plan": plan_of(cluster, params["networks"])}
    found = {"changed": False, **read_cluster(cluster)}
    if "gpu" in params["parts"]:
        found["gpu"] = read_gpu_operator(cluster)
    if "ipu" in params["parts"]:
        found["ipu"] = read_ipu_operator(cluster, params["namespace"], params["labels"])
    if "mpi" in params["parts"]:
        found["mpi"] = read_mpi_operator(cluster)
    if "objects" in params["parts"]:
        found.update(report_objects(cluster, params["expected"], params["wait"]))
    return found

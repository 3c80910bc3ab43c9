# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a bundle contains besides Kubernetes, for the playbook bundle."""

from __future__ import annotations

import dataclasses
import typing as t

from .._common.result import FabricError
from .._model.plan import Plan
from .._model.stacks import has_rdma, has_stack
from .._model.wish import Package


@dataclasses.dataclass(frozen=True)
class Settings:
    """Variables of the role verify, without its name as a prefix."""

    image: str
    rdma_image: str


@dataclasses.dataclass(frozen=True)
class Seen:
    """What was requested."""

    directory: str
    plan_file: str
    plan: t.Optional[Plan]  # None: the file does not exist
    gpu: bool
    ipu: bool
    ntp: t.Sequence[str]


@dataclasses.dataclass(frozen=True)
class BundleWish:
    """What each role would otherwise download."""

    charts: t.Sequence[str]  # names of the components that decide which charts
    packages: t.Sequence[Package]
    images: t.Sequence[str]


def decide(settings: Settings, seen: Seen) -> BundleWish:
    """Raise FabricError for a plan that no bundle can be made for."""
    if not seen.directory or not seen.plan:
        raise FabricError(
            "A bundle is written for a plan.",
            seen.plan_file,
            f"fabric_bundle is '{seen.directory}', and the plan {'exists' if seen.plan else 'does not exist'}",
            "Run ipu.fabric.plan where the hosts are, then run this with -e fabric_bundle=DIRECTORY, and with"
            " -e fabric_bundle_plan=FILE if plan.json is not in the artifacts folder.",
            code="invalid-input",
        )
    check_plan(seen.plan, seen.plan_file)
    releases = seen.plan["releases"]
    parts = {
        releases["stack"]: has_stack(releases),
        "whereabouts": releases["whereabouts_standalone"],
        "gpu_operator": seen.gpu,
        "ipu_operator": seen.ipu,
    }
    rdma = has_rdma(seen.plan)
    return BundleWish(
        charts=[name for name, wanted in parts.items() if wanted],
        packages=[Package("chrony", hold=False)] if seen.ntp else [],
        images=[settings.rdma_image if rdma else settings.image],
    )


def check_plan(plan: Plan, file: str) -> None:
    errors = [each["what"] for each in plan["findings"] if each["level"] == "error" and each["check"] != "bundle"]
    if errors:
        raise FabricError(
            "The plan has errors, so what it installs may change.",
            file,
            " ".join(errors),
            "Correct them with ipu.fabric.plan, and copy plan.json here again.",
            code="invalid-input",
        )
    if (plan["cluster"].get("runtime") or {}).get("name") == "docker":
        raise FabricError(
            "A bundle has no packages of Docker, and its images are imported into containerd.",
            file,
            "the plan has fabric_runtime docker",
            "Leave fabric_runtime out, and plan again; or let the hosts reach the internet, through fabric_proxy too.",
            code="invalid-input",
        )

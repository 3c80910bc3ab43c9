# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sources of a bundle besides files: charts by helm, images by skopeo. A file gets its name only when complete."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
import typing as t

from .._common.command import nameless_file, path_of, run_program
from .._common.result import FabricError
from .._common.text import scheme_of
from .._host.download import AGAIN
from .._kube.helm import chart_source, check_chart
from .images import registry_of

with contextlib.suppress(ImportError):  # run_module() reports a missing package, from the module's `libraries`
    import yaml


class Chart(t.TypedDict):
    """A chart, and how it will be installed."""

    name: str  # of the release
    chart: str
    repo: str
    version: str
    sha256: str  # of the packed chart; empty accepts any
    namespace: str
    values: t.Dict[str, t.Any]
    images: t.Dict[str, str]  # replacements, by original image


class Tool:
    """A program that fetches, with a time-out."""

    def __init__(self, program: str, package: str, timeout: int) -> None:
        self.program, self.package, self.timeout = program, package, timeout

    def run(self, what: str, where: str, *words: str, pass_fds: t.Sequence[int] = ()) -> str:
        done = run_program([self.program, *words], self.timeout, pass_fds=pass_fds)
        if done.rc == 0:
            return done.out
        if done.rc in (126, 127):
            step = f"Install it ({self.package}), then run again."
            raise FabricError(
                f"The program {self.program} is needed.",
                "this machine",
                done.err.strip(),
                step,
                code="missing-requirement",
            )
        said = (done.err.strip() or done.out.strip())[-2000:]
        raise FabricError(
            what,
            where,
            said if done.rc is not None else f"timed out after {self.timeout} s",
            AGAIN,
            code="timeout" if done.rc is None else "download-failed",
        )


def pull_chart(helm: Tool, chart: Chart, path: str) -> None:
    """Download a packed chart to a path."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(path), prefix=".chart-") as scratch:
        helm.run(
            f"The chart {chart['chart']} {chart['version']} could not be fetched.",
            chart["repo"] or chart["chart"],
            *("pull", *chart_source(chart["chart"], chart["repo"]), "--version", chart["version"]),
            *("--destination", scratch),
        )
        packed = os.path.join(scratch, os.listdir(scratch)[0])
        check_chart(packed, chart["sha256"], chart["repo"] or chart["chart"])
        os.replace(packed, path)


def render_chart(helm: Tool, chart: Chart, path: str, kubernetes: str) -> t.List[t.Any]:
    """The objects of a chart, rendered with its values."""
    with nameless_file(json.dumps(chart["values"])) as values:
        text = helm.run(
            f"The chart {chart['chart']} {chart['version']} can't be rendered.",
            path,
            *("template", chart["name"], path, "--namespace", chart["namespace"], "--values", path_of(values)),
            *("--kube-version", kubernetes),
            pass_fds=[values.fileno()],
        )
    return [document for document in yaml.safe_load_all(text) if document]


def registries(images: t.Iterable[str], mirror: str) -> str:
    """skopeo's registries.conf: a site's mirror is tried before each registry."""
    location, insecure = re.sub(r"^https?://", "", mirror, flags=re.IGNORECASE), scheme_of(mirror) == "http"
    entries = [
        f'[[registry]]\nprefix = "{name}"\nlocation = "{name}"\n[[registry.mirror]]\nlocation = "{location}"\n'
        f"insecure = {str(insecure).lower()}\n"
        for name in sorted({registry_of(image) for image in images})
        if mirror
    ]
    return "\n".join(entries)


def copy_image(skopeo: Tool, image: str, architecture: str, path: str, configuration: str) -> str:
    """Copy an image into an archive under its own name; returns the digest of its manifest there."""
    part, digest = f"{path}.part", f"{path}.digest"
    if os.path.exists(part):
        os.remove(part)  # skopeo would add to an existing archive
    options = ["--registries-conf", configuration] if configuration else []
    skopeo.run(
        f"The image {image} could not be fetched for {architecture}.",
        registry_of(image),
        # Verifying signatures is up to the registry and skopeo login; a digest in the name is checked.
        *("--insecure-policy", "--override-os", "linux", "--override-arch", architecture, *options),
        *("copy", "--quiet", "--retry-times", "3", "--digestfile", digest),
        *(f"docker://{image}", f"oci-archive:{part}:{image}"),
    )
    with open(digest, encoding="utf-8") as file:
        seen = file.read().strip()
    os.remove(digest)
    os.replace(part, path)
    return seen

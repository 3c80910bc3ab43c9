# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs between helm's rendering and applying: `post_render.py CHANGES.json < manifests > manifests`.

It replaces images, adds tolerations to pods that have none, and annotates pod templates with a checksum of the chart's
own Secrets that they refer to, so that a change rolls them out.
Works on YAML nodes instead of values: a scalar keeps its text, and `8090:40` stays as it is.
Self-contained: helm_release writes this file to disk as it is.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
import typing as t

with contextlib.suppress(ImportError):
    import yaml

CHECKSUM = "ipu.fabric/secret-"
POD_LISTS = ("containers", "initContainers", "ephemeralContainers")
TEMPLATED = ("Deployment", "DaemonSet", "StatefulSet")


def child(node: t.Any, *keys: str) -> t.Any:
    """The node at a path of keys, or None."""
    for key in keys:
        pairs = node.value if getattr(node, "id", "") == "mapping" else []
        node = next((value for name, value in pairs if name.value == key), None)
    return node


def scalars(node: t.Any) -> t.Iterator[t.Any]:
    """Every scalar below a node."""
    if node is None:
        return
    if node.id == "scalar":
        yield node
    elif node.id == "sequence":
        for item in node.value:
            yield from scalars(item)
    else:
        for _key, value in node.value:
            yield from scalars(value)


def pod_specs(node: t.Any) -> t.Iterator[t.Any]:
    """Every mapping with a list of containers, wherever a kind has it."""
    if node is None or node.id == "scalar":
        return
    if node.id == "mapping" and getattr(child(node, "containers"), "id", "") == "sequence":
        yield node
    for item in node.value:
        yield from pod_specs(item if node.id == "sequence" else item[1])


def untyped(base: t.Any) -> t.Any:
    """A loader or dumper that treats a plain scalar as just its text."""
    return type("Untyped", (base,), {"yaml_implicit_resolvers": {}})


def unfold(node: t.Any) -> None:
    """Use block style everywhere: inside [] and {}, an empty or odd plain scalar can't be written unchanged."""
    if node.id == "scalar":
        return
    node.flow_style = False
    for item in node.value:
        for inner in item if node.id == "mapping" else [item]:
            unfold(inner)


def replace_images(document: t.Any, images: t.Mapping[str, str]) -> None:
    for spec in pod_specs(document):
        for part in POD_LISTS:
            for container in getattr(child(spec, part), "value", []):
                image = child(container, "image")
                if image is not None and image.value in images:
                    image.value = images[image.value]


def add_tolerations(document: t.Any, tolerations: t.Sequence[t.Mapping[str, t.Any]]) -> None:
    """Add tolerations to pods for which the chart has none."""
    for spec in pod_specs(document) if tolerations else ():
        if not getattr(child(spec, "tolerations"), "value", None):
            made = yaml.compose(json.dumps(tolerations), Loader=untyped(yaml.SafeLoader))
            rest = [pair for pair in spec.value if pair[0].value != "tolerations"]
            spec.value = [*rest, (text_node("tolerations"), made)]


def secret_checksums(documents: t.Sequence[t.Any]) -> t.Dict[str, str]:
    """A checksum of the content of each Secret in the chart."""
    sums = {}
    for document in documents:
        if getattr(child(document, "kind"), "value", "") == "Secret":
            content = "\n".join(
                f"{part}:{yaml.serialize(child(document, part))}"
                for part in ("data", "stringData")
                if child(document, part) is not None
            )
            sums[child(document, "metadata", "name").value] = hashlib.sha256(content.encode()).hexdigest()[:16]
    return sums


def text_node(value: str) -> t.Any:
    return yaml.ScalarNode("tag:yaml.org,2002:str", value, style='"')


def grown(node: t.Any, key: str) -> t.Any:
    """The mapping at `key`, created if it is missing or null."""
    found = child(node, key)
    if found is not None and found.id == "mapping":
        return found
    made = yaml.MappingNode("tag:yaml.org,2002:map", [], flow_style=False)
    node.value = [pair for pair in node.value if pair[0].value != key] + [(text_node(key), made)]
    return made


def add_checksums(document: t.Any, sums: t.Mapping[str, str]) -> None:
    """Annotate a pod template with the checksums of the Secrets that it refers to."""
    if getattr(child(document, "kind"), "value", "") not in TEMPLATED:
        return
    template = child(document, "spec", "template")
    if template is None:
        return
    named = {scalar.value for scalar in scalars(template)}
    for name in sorted(named & set(sums)):
        annotations = grown(grown(template, "metadata"), "annotations")
        annotations.value.append((text_node(CHECKSUM + name), text_node(sums[name])))


def render(manifests: str, images: t.Mapping[str, str], tolerations: t.Sequence[t.Mapping[str, t.Any]] = ()) -> str:
    """The manifests for helm to apply."""
    nodes = yaml.compose_all(manifests, Loader=untyped(yaml.SafeLoader))
    documents = [node for node in nodes if getattr(node, "id", "") == "mapping"]
    sums = secret_checksums(documents)
    for document in documents:
        replace_images(document, images)
        add_tolerations(document, tolerations)
        add_checksums(document, sums)
        unfold(document)
    dumper = untyped(yaml.SafeDumper)
    return yaml.serialize_all(documents, Dumper=dumper, explicit_start=True, allow_unicode=True, width=1 << 20)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        sys.stdout.write(render(sys.stdin.read(), **json.load(file)))

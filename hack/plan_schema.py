#!/usr/bin/env python3
"""Write docs/plan.schema.json from the plan's types. With --check, only report whether it is out of date."""

from __future__ import annotations

import ast
import importlib
import json
import sys
from typing import Any

import generated
import msgspec
from generated import ROOT

COLLECTIONS = ROOT / ".cache/collections"
MODEL = "ansible_collections.ipu.fabric.plugins.module_utils._model"
TARGET = ROOT / "docs/plan.schema.json"


def read_comments() -> dict[str, dict[str, str]]:
    """The comment of each field of each class, including fields of base classes."""
    comments: dict[str, dict[str, str]] = {}
    for name in ("observation", "plan"):
        source = (ROOT / f"plugins/module_utils/_model/{name}.py").read_text()
        lines = source.splitlines()
        for node in ast.parse(source).body:
            if not isinstance(node, ast.ClassDef):
                continue
            own = comments.setdefault(node.name, {})
            for base in node.bases:
                own.update(comments.get(base.id, {}) if isinstance(base, ast.Name) else {})
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    comment = lines[field.lineno - 1].partition("  # ")[2]
                    own.update({field.target.id: comment} if comment else {})
    return comments


def schema() -> dict[str, Any]:
    """The JSON Schema of plan.json."""
    sys.path.insert(0, str(COLLECTIONS))
    plan = importlib.import_module(f"{MODEL}.plan").Plan
    _reference, components = msgspec.json.schema_components([plan], ref_template="#/$defs/{name}")
    for name, fields in read_comments().items():
        for field, comment in fields.items():
            if name in components:
                components[name]["properties"][field]["description"] = comment
    root = components.pop("Plan")
    title = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "plan.json of ipu.fabric"}
    return {**title, **{key: root[key] for key in root if key != "title"}, "$defs": components}


def main() -> int:
    return generated.write({TARGET: json.dumps(schema(), indent=2) + "\n"})


if __name__ == "__main__":
    sys.exit(main())

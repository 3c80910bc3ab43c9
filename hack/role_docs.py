#!/usr/bin/env python3
"""Write roles/*/README.md from meta/argument_specs.yml. With --check only say which are out of date."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]


def plain(text: str) -> str:
    """Ansible's markup as Markdown's."""
    text = re.sub(r"\b(?:O|V|C|M|P|E|RV)\(([^()#]*(?:\([^()]*\)[^()#]*)*)(?:#\w+)?\)", r"`\1`", text)
    return re.sub(r"\b[BI]\(([^()]*)\)", r"*\1*", text).strip()


def sentences(value: str | list[str] | None) -> list[str]:
    return [plain(text) for text in ([value] if isinstance(value, str) else value or [])]


def shown(option: dict[str, Any]) -> str:
    if option.get("required"):
        return "needed"
    default = option.get("default")
    return "" if default is None else f"`{default if isinstance(default, str) and default else json.dumps(default)}`"


def row(name: str, option: dict[str, Any]) -> str:
    kind = option.get("type", "str") + (f" of {option['elements']}" if "elements" in option else "")
    cells = [f"`{name}`", kind, shown(option), " ".join(sentences(option.get("description")))]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def readme(role: str, specs: dict[str, Any]) -> str:
    lines = []
    for entry, spec in specs.items():
        title = f"# ipu.fabric.{role}" if entry == "main" else f"## Entry point {entry}"
        lines += [title, "", f"{plain(spec['short_description'])}.", ""]
        lines += [f"- {text}" for text in sentences(spec.get("description"))]
        if spec.get("options"):
            lines += ["", "| variable | type | default | |", "|---|---|---|---|"]
            lines += [row(name, option) for name, option in spec["options"].items()]
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    stale = []
    for path in sorted((ROOT / "roles").glob("*/meta/argument_specs.yml")):
        role = path.parents[1]
        text = readme(role.name, yaml.safe_load(path.read_text())["argument_specs"])
        target = role / "README.md"
        if not target.exists() or target.read_text() != text:
            stale.append(str(target.relative_to(ROOT)))
            if "--check" not in sys.argv:
                target.write_text(text)
    if stale and "--check" in sys.argv:
        print(f"error: out of date: {', '.join(stale)}\n  next: make docs")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Copy what documents the collection for antsibull-docs, which takes no template as the default of a bool, int or list.

Such a default goes into the description of its variable.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
STRINGS = ("str", "path", "raw")


def without_templates(options: dict[str, Any]) -> None:
    for option in options.values():
        default = option.get("default")
        if isinstance(default, str) and "{{" in default and option.get("type", "str") not in STRINGS:
            text = option.get("description", [])
            option["description"] = [*([text] if isinstance(text, str) else text), f"The default is C({default})."]
            del option["default"]
        without_templates(option.get("options", {}))


def main() -> None:
    target = Path(sys.argv[1])
    for name in ("galaxy.yml", "README.md"):
        shutil.copy(ROOT / name, target / name)
    for name in ("meta", "plugins"):
        shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (ROOT / "roles").glob("*/meta/*.yml"):
        copy = target / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        content = yaml.safe_load(path.read_text())
        for spec in content.get("argument_specs", {}).values():
            without_templates(spec.get("options", {}))
        copy.write_text(yaml.safe_dump(content, sort_keys=False))


if __name__ == "__main__":
    main()

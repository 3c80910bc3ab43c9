#!/usr/bin/env python3
"""Write each page of the site as Markdown beside its HTML, and llms.txt, which lists them for programs that read.

The sources of the pages are in the first directory, as hack/docs_site.sh lays them out; the site is in the second.
"""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "hack"), sys.argv[1]]
from role_docs import line, plain, row, sentences  # noqa: E402 (found in the folder named above)

SOURCE, SITE = Path(sys.argv[1]), Path(sys.argv[2])
conf = importlib.import_module("conf")  # the one beside the sources: it looks where it is
REFERENCE = {"modules": "module", "filter": "filter"}  # folders of plugins, and how the site calls their kind
ENTRY = re.compile(r"^(?:[^:<]+ <)?([\w/*-]+)>?$")  # a page of the start page's lists


def in_site(page: str, text: str) -> str:
    """A page with its links as the site has them."""
    return conf.LINK.sub(lambda link: re.sub(r"_role\.rst$", "_role.md", conf.shown_at(page, link[1])), text)


def options(found: dict[str, Any], prefix: str = "") -> list[str]:
    rows = []
    for name, option in found.items():
        rows += [row(prefix + name, option), *options(option.get("suboptions", {}), f"{prefix}{name}.")]
    return rows


def returned(found: dict[str, Any], prefix: str = "") -> list[str]:
    rows = []
    for name, value in found.items():
        what = " ".join(sentences(value.get("description")))
        rows += [line(f"`{prefix}{name}`", value.get("type", ""), what)]
        rows += returned(value.get("contains", {}), f"{prefix}{name}.")
    return rows


def plugin(name: str, text: str) -> str:
    """The reference of a module or filter, from its source or the YAML beside it."""
    blocks = dict(re.findall(r'^(DOCUMENTATION|EXAMPLES|RETURN) = r?"""(.*?)"""', text, re.MULTILINE | re.DOTALL))
    parts = {key: yaml.safe_load(block) for key, block in blocks.items() if key != "EXAMPLES"} or yaml.safe_load(text)
    documentation = parts["DOCUMENTATION"]
    lines = [f"# ipu.fabric.{name}", "", f"{plain(documentation['short_description']).rstrip('.')}.", ""]
    lines += [f"- {each}" for each in sentences(documentation.get("description"))]
    if documentation.get("options"):
        lines += ["", "| option | type | default | |", "|---|---|---|---|", *options(documentation["options"])]
    if parts.get("RETURN"):
        lines += ["", "| returned | type | |", "|---|---|---|", *returned(parts["RETURN"])]
    examples = (blocks.get("EXAMPLES") or parts.get("EXAMPLES") or "").strip()
    return "\n".join([*lines, "", "```yaml", examples, "```", ""] if examples else [*lines, ""])


def reference() -> dict[str, str]:
    """Pages by their path in the site."""
    pages = {}
    for folder, kind in REFERENCE.items():
        for path in sorted((ROOT / "plugins" / folder).glob("*")):
            if path.suffix in (".py", ".yml") and "DOCUMENTATION" in path.read_text():
                pages[f"reference/{path.stem}_{kind}.md"] = plugin(path.stem, path.read_text())
    for path in sorted((ROOT / "roles").glob("*/README.md")):
        pages[f"reference/{path.parent.name}_role.md"] = path.read_text()
    return pages


def entry(page: str, text: str) -> str:
    """A line of llms.txt: the title of a page, where it is, and its first sentence."""
    heading = re.search(r"^# (.+)$", text, re.MULTILINE)
    body = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\n+", body) if re.match(r"[\w`*]", part.strip())]
    first = re.match(r"(.+?[.:])(?: |$)", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", paragraphs[0])) if paragraphs else None
    return f"- [{heading[1] if heading else page}]({page})" + (f": {first[1].rstrip(':.')}." if first else "")


def sections(index: str, pages: dict[str, str]) -> list[str]:
    """The lists of the start page, with what their pages are about."""
    lines = []
    for caption, body in re.findall(r"^:caption: (.+)\n((?:.*\n)*?)```$", index, re.MULTILINE):
        lines += ["", f"## {caption}", ""]
        for each in body.splitlines():
            found = ENTRY.match(each)
            names = sorted(str(path.relative_to(SOURCE)) for path in SOURCE.glob(f"{found[1]}.md")) if found else []
            lines += [entry(name, pages[name]) for name in names if f"({name})" not in "".join(lines)]
    return lines


def main() -> None:
    pages = {str(path.relative_to(SOURCE)): "" for path in SOURCE.rglob("*.md") if "examples" not in path.parts}
    pages = {page: in_site(page, (SOURCE / page).read_text()) for page in sorted(pages)}
    pages.update(reference())
    for page, text in pages.items():
        (SITE / page).parent.mkdir(parents=True, exist_ok=True)
        (SITE / page).write_text(text)
    for path in SOURCE.glob("*.rst"):
        shutil.copy(path, SITE)
    index = pages["index.md"]
    summary = re.search(r"^# .+\n\n((?:.+\n)+)", index)
    head = ["# ipu.fabric", "", f"> {' '.join((summary[1] if summary else '').split())}"]
    listed = ["", "## Modules, filters and roles", ""]
    listed += [entry(page, text) for page, text in pages.items() if page.startswith("reference/")]
    (SITE / "llms.txt").write_text("\n".join([*head, *sections(index, pages), *listed]) + "\n")


if __name__ == "__main__":
    main()

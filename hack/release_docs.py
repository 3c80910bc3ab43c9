#!/usr/bin/env python3
"""Write the tables of docs/releases.md, and record what a release of the collection installs by default.

A version in galaxy.yml that is not yet in released.json gets the defaults of this checkout. With --check, only report
whether the page is out of date.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from itertools import pairwise
from types import ModuleType

import generated
import yaml
from generated import ROOT
from troubleshooting import UTILS, table

PAGE, RECORD = ROOT / "docs/releases.md", ROOT / "hack/released.json"
NEXT = "next"


def load(name: str) -> ModuleType:
    return importlib.import_module(f"{UTILS}._network.{name}")


def defaults(role: str) -> dict[str, object]:
    found: dict[str, object] = yaml.safe_load((ROOT / f"roles/{role}/defaults/main.yml").read_text())
    return found


def installed() -> dict[str, str]:
    """What this checkout installs, by component, unless a site configures something else."""
    tables, fabric, kubernetes = load("releases"), defaults("fabric"), defaults("kubernetes")
    of_fabric = {
        "Kubernetes": "kubernetes",
        "Calico": "calico",
        "network operator": "network_operator",
        "Spiderpool": "spiderpool",
        "GPU operator": "gpu_operator",
        "IPU operator": "ipu_operator",
    }
    cri_dockerd = kubernetes["kubernetes_cri_dockerd"]
    return {
        **{name: str(fabric[f"fabric_{variable}_version"]) for name, variable in of_fabric.items()},
        "flannel": tables.FLANNEL[0].lstrip("v"),
        "whereabouts": tables.WHEREABOUTS,
        "MPI operator": release_in(str(defaults("mpi_operator")["mpi_operator_manifest_url"])),
        "Helm": release_in(str(defaults("helm")["helm_url"])),
        "cri-dockerd": str(cri_dockerd["version"]) if isinstance(cri_dockerd, dict) else "",
    }


def release_in(url: str) -> str:
    found = re.search(r"\d+\.\d+\.\d+", url)
    if not found:
        raise ValueError(f"no release in {url}")
    return found[0]


def moves(record: dict[str, dict[str, str]], now: dict[str, str], version: str) -> str:
    """The releases of each component by release of the collection; changes are bold."""
    columns = {**record, **({NEXT: now} if record[version] != now else {})}
    rows = []
    for component in now:
        values = [each.get(component, "") for each in columns.values()]
        moved = [f"**{value}**" if old and value != old else value for old, value in pairwise(["", *values])]
        rows.append([component, *moved])
    return table(["component", *columns], rows)


def support_table() -> str:
    support, show = load("support"), load("releases").show
    today = support.READ
    ends = {show(line): end for line, end in support.KUBERNETES_ENDS.items()}
    alive = [f"{line} until {end}" for line, end in ends.items() if today <= end]
    gone = [line for line, end in ends.items() if end < today]
    rows = [["[Kubernetes](https://kubernetes.io/releases/)", ", ".join(alive), "", "", f"{gone[-1]} and older"]]
    for component, maker in support.MAKERS.items():
        states: dict[str, list[str]] = {}
        for line in sorted(maker.lines, reverse=True):
            states.setdefault(support.line_state(component, line, today), []).append(show(line))
        cells = [", ".join(states.get(state, [])) for state in (support.SUPPORTED, support.DEPRECATED, support.UNKNOWN)]
        rows.append([f"[{component}]({maker.source})", *cells, f"{states[support.ENDED][0]} and older"])
    heading = ["component", "supported", "deprecated: severe faults only", "not known", "ended"]
    return f"Read on {today}:\n\n{table(heading, rows)}"


def not_known_table() -> str:
    rows = [
        [component, f"[{release}]({each.source})", each.lacks]
        for component, releases in load("releases").NOT_KNOWN.items()
        for release, each in releases.items()
    ]
    return table(["component", "release", "what this collection does not know"], rows)


def pairs_table() -> str:
    rows = [
        [
            ", ".join(pair.gpu_operators),
            pair.beside,
            f"It {pair.what}: {pair.seen}. {pair.step}",
            ", ".join(f"[{number}]({source})" for number, source in enumerate(pair.sources, 1)),
        ]
        for pair in load("broken_pairs").PAIRS
    ]
    return table(["GPU operator", "beside", "what happens, and what to do", "sources"], rows)


def main() -> int:
    sys.path.insert(0, str(ROOT / ".cache/collections"))
    record = json.loads(RECORD.read_text())
    version = yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"]
    now = installed()
    record.setdefault(version, now)
    text = PAGE.read_text()
    made = {
        "moves": moves(record, now, version),
        "support": support_table(),
        "not-known": not_known_table(),
        "pairs": pairs_table(),
    }
    for name, content in made.items():
        begin, end = f"<!-- {name}: written by hack/release_docs.py (make docs) -->\n", f"\n<!-- end of {name} -->"
        text = text[: text.index(begin) + len(begin)] + content + text[text.index(end) :]
    return generated.write({PAGE: text, RECORD: json.dumps(record, indent=2) + "\n"})


if __name__ == "__main__":
    sys.exit(main())

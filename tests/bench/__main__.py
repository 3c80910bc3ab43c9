"""make bench: how long things take, each against a baseline in the same run.

Prints a table and writes artifacts/bench.json. tests/bench/README.md says what each figure means.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys

from ansible_collections.ipu.fabric.tests.bench.ansible import LOG
from ansible_collections.ipu.fabric.tests.bench.figures import Figure, table
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

SECTIONS = ("planning", "proof", "labels", "observing", "site")


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench ARGS=", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)} (default: all)")
    sections = parser.parse_args().sections or list(SECTIONS)
    unknown = sorted(set(sections) - set(SECTIONS))
    if unknown:
        parser.error(f"no section {', '.join(unknown)}: choose from {', '.join(SECTIONS)}")
    LOG.parent.mkdir(parents=True, exist_ok=True)
    LOG.write_text("")
    found: dict[str, list[Figure]] = {}
    for name in sections:
        print(f"{name} ...", file=sys.stderr, flush=True)
        module = importlib.import_module(f"ansible_collections.ipu.fabric.tests.bench.{name}")
        found[name] = module.figures()
        print(f"\n{name.upper()}\n{table(found[name])}", flush=True)
    report = {
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "load": os.getloadavg()[0],
        "figures": {
            name: [{**figure._asdict(), "ratio": round(figure.ratio, 3)} for figure in figures]
            for name, figures in found.items()
        },
    }
    place = ROOT / "artifacts/bench.json"
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps(report, indent=2) + "\n")
    print(f"\n{place.relative_to(ROOT)} has all figures")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Write the recorded sites, inventories/recorded/*.json.gz, from tests/unit/fixtures/recorded.py."""

from __future__ import annotations

import gzip
import importlib
import json
import sys

from generated import ROOT

COLLECTIONS = ROOT / ".cache/collections"
FIXTURE = "ansible_collections.ipu.fabric.tests.unit.fixtures.recorded"


def main() -> None:
    sys.path.insert(0, str(COLLECTIONS))
    recorded = importlib.import_module(FIXTURE)
    for name, content in recorded.files().items():
        path = ROOT / "inventories/recorded" / name
        data = json.dumps(content, separators=(",", ":")).encode()
        # Another zlib may compress the same data to other bytes.
        if not path.exists() or gzip.decompress(path.read_bytes()) != data:
            path.write_bytes(gzip.compress(data, mtime=0))


if __name__ == "__main__":
    main()

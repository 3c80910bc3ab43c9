"""Pages generated from the code: written if they are out of date, or with --check only reported."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def write(pages: dict[Path, str]) -> int:
    """Write pages or check them; returns the exit code of a script with these texts."""
    stale = [page for page, text in pages.items() if not page.exists() or page.read_text() != text]
    if stale and "--check" in sys.argv:
        print(f"error: out of date: {', '.join(str(page.relative_to(ROOT)) for page in stale)}\n  next: make docs")
        return 1
    for page in stale:
        page.write_text(pages[page])
    return 0

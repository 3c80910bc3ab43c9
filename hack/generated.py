"""Pages that scripts write from the code: written where they are out of date, or with --check only named."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def write(pages: dict[Path, str]) -> int:
    """The exit code of a script with these texts of its pages."""
    stale = [page for page, text in pages.items() if not page.exists() or page.read_text() != text]
    if stale and "--check" in sys.argv:
        print(f"error: out of date: {', '.join(str(page.relative_to(ROOT)) for page in stale)}\n  next: make docs")
        return 1
    for page in stale:
        page.write_text(pages[page])
    return 0

"""Write the pictures of README.md to docs/images, of the recorded rack: the drawing of plan.html, and the heat map of
report.html."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ansible_collections.ipu.fabric.tests.browser.test_pages import FLAGS
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from playwright.sync_api import sync_playwright

PICTURES = {"plan": ("svg", 1400), "report": (".pair", 1140)}  # by page, the part that is shown, and columns for it


def main() -> int:
    program = shutil.which("chromium")
    if not program:
        print("error: there is no Chromium here\n  next: hack/packages.sh chromium", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([ROOT / "hack/rack.sh", folder], check=True)  # before Playwright, whose pipes Ansible refuses
        take(program, Path(folder) / "recorded")
    return 0


def take(program: str, pages: Path) -> None:
    """Pictures of the pages in a folder."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        for name, (part, width) in PICTURES.items():
            page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme="light")
            page.goto((pages / f"{name}.html").as_uri())
            page.add_style_tag(content="body { max-width: none; }")  # a browser scrolls a wide drawing, a picture can't
            page.locator(part).first.screenshot(path=ROOT / f"docs/images/{name}.png")
        browser.close()


if __name__ == "__main__":
    sys.exit(main())

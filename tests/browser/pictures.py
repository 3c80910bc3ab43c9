# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
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

PICTURES = {"plan": "svg", "report": ".pair"}  # by page, the part that is shown


def main() -> int:
    program = shutil.which("chromium")
    if not program:
        print("error: there is no Chromium here\n  next: hack/packages.sh chromium", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        subprocess.run([ROOT / "hack/rack.sh", folder], check=True)
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
        for name, part in PICTURES.items():
            page.goto((Path(folder) / f"recorded/{name}.html").as_uri())
            page.add_style_tag(content="body { max-width: none; }")  # a browser scrolls a wide drawing, a picture can't
            page.locator(part).first.screenshot(path=ROOT / f"docs/images/{name}.png")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

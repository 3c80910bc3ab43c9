"""plan.html and report.html in Chromium: no wider than the window, no text that is cut off, and enough contrast.

Screenshots are in .cache/screenshots.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures import pages
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from playwright.sync_api import Browser, Page, sync_playwright

LOOK = Path(__file__).with_name("look.js").read_text(encoding="utf-8")
SCREENSHOTS = ROOT / ".cache/screenshots"
FLAGS = (
    "--no-sandbox",  # tests of a container run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MODES = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "narrow": {"color_scheme": "light", "viewport": {"width": 400, "height": 800}},
    "print": {"color_scheme": "dark", "viewport": {"width": 794, "height": 1123}},  # A4
}
MEGABYTE = 1_000_000
BROKEN = {
    "overflow": '<p style="width: 3000px">wide</p>',
    "clipped": '<svg><g><rect width="20" height="20" fill="#fff"/><text y="12">much too long</text></g></svg>',
    "hidden": '<div class="scroll" style="overflow-x: auto"><p style="width: 3000px">wide</p></div>',
    "overlap": '<svg><g><rect width="20" height="9"/></g><g><rect width="9" height="20"/></g></svg>',
    "contrast": '<p style="color: #999; background: #fff">pale</p>',
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if not program:
        pytest.skip("there is no Chromium here")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module", params=pages.PLANS)
def site(request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    """A site's size and its pages."""
    return request.param, pages.both(request.param)


def problems(page: Page) -> list[str]:
    """Folded, and with all of it unfolded."""
    folded = page.evaluate(LOOK)
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    return folded + page.evaluate(LOOK)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["plan", "report"])
def test_a_page_can_be_read(browser: Browser, site: tuple[str, dict[str, str]], name: str, mode: str) -> None:
    size, texts = site
    assert len(texts[name]) < MEGABYTE
    with browser.new_context(**MODES[mode]) as context:
        page, requests = context.new_page(), []
        page.on("request", lambda request: requests.append(request.url))
        page.emulate_media(media="print" if mode == "print" else "screen")
        page.set_content(texts[name])
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"{name}-{size.split()[0]}-{mode}.png", full_page=True)
        assert problems(page) == []
        assert requests == []


@pytest.mark.parametrize("problem", BROKEN)
def test_what_is_broken_is_seen(browser: Browser, problem: str) -> None:
    with browser.new_context(**MODES["narrow"]) as context:
        page = context.new_page()
        page.set_content(f"<!DOCTYPE html><body>{BROKEN[problem]}</body>")
        assert {line.partition(":")[0] for line in page.evaluate(LOOK)} == {problem}

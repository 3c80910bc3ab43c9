# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""docs/documents.md says where each step of four documents is: what it names exists."""

from __future__ import annotations

import re

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import ALLOWABLE, REQUIRED
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import CHECK_TYPES
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

PAGE = (ROOT / "docs/documents.md").read_text("utf-8")
ROWS = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if re.match(r"\| (?!in the doc|-)", line)]
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir())
INPUTS = {
    name
    for path in ROOT.glob("roles/*/meta/argument_specs.yml")
    for entry in yaml.safe_load(path.read_text("utf-8"))["argument_specs"].values()
    for name in entry.get("options", {})
}
KINDS = {
    "playbook": {path.stem for path in (ROOT / "playbooks").glob("*.yml")},
    "module": {path.stem for path in (ROOT / "plugins/modules").glob("*.py")},
    "filter": {path.stem for path in (ROOT / "plugins/filter").glob("*.*")},
}


def spans(text):
    return re.findall(r"`([^`]+)`", text)


def listed(text, word):
    """The code spans that follow a word, as in: proof: `ping`, `rping`."""
    return [span for run in re.findall(rf"(?i)\b{word}: ((?:`[^`]+`(?:, )?)+)", text) for span in spans(run)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_a_row_names_exists(row):
    _step, here = row
    assert set(listed(here, "plan")) <= {*ALLOWABLE, *REQUIRED}
    assert set(listed(here, "proof")) <= set(CHECK_TYPES)
    assert set(re.findall(r"\broles? `(\w+)`", here)) <= set(ROLES)
    for kind, name in re.findall(r"\b(playbook|module|filter) `ipu\.fabric\.(\w+)`", here):
        assert name in KINDS[kind]
    prefixed = [span for span in spans(here) if re.match(rf"(?:{'|'.join(ROLES)})_\w+$", span)]
    assert set(prefixed) - set(listed(here, "proof")) <= INPUTS


def test_no_row_is_empty_or_names_nothing():
    assert len(ROWS) > 60
    for step, here in ROWS:
        assert re.search(r"`|\]\(|not (?:here|checked)|the driver of the hosts", here), step

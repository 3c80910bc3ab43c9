"""Releases and sources of upstream: one place says them, and what repeats them for a reader agrees with it."""

import re

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._network.releases import NETWORK_OPERATORS
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

URL = re.compile(r"(?:https|oci)://[a-z0-9][^\s\"',}]+")
NEWEST = max((line, operator.newest) for line, operator in NETWORK_OPERATORS.items())[1]


def load(path):
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def options(module):
    text = (ROOT / f"plugins/modules/{module}.py").read_text(encoding="utf-8")
    return yaml.safe_load(re.search(r'DOCUMENTATION = r"""(.*?)"""', text, re.DOTALL)[1])["options"]


@pytest.mark.parametrize(
    "release",
    [
        options("fabric_plan")["network_operator_version"]["default"],
        load("roles/fabric/defaults/main.yml")["fabric_network_operator_version"],
        load("roles/network_operator/defaults/main.yml")["network_operator_version"],
    ],
)
def test_the_newest_network_operator_is_the_default(release):
    assert release == NEWEST


def test_no_code_names_that_release_besides_its_table():
    code = sorted((ROOT / "plugins/module_utils").rglob("*.py"))
    named = [path.stem for path in code if re.search(rf'= "{NEWEST}"|else "{NEWEST}"', path.read_text("utf-8"))]
    assert named == []


def test_only_the_role_that_takes_from_upstream_says_where_it_is():
    assert URL.findall((ROOT / "roles/fabric/vars/main.yml").read_text(encoding="utf-8")) == []
    found = {}
    for path in sorted(ROOT.glob("roles/*/defaults/main.yml")):
        for url in set(URL.findall(path.read_text(encoding="utf-8"))):
            found.setdefault(url, []).append(path.parts[-3])
    # One vendor's chart repository has two charts.
    shared = [["gpu_operator", "network_operator"]]
    assert [roles for roles in found.values() if len(roles) > 1] == shared

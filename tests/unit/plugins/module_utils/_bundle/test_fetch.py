import hashlib

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._bundle import fetch
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError

HELM = """#!/bin/sh
while [ "$1" != --destination ]; do shift; done
echo packed > "$2/chart-1.0.0.tgz"
"""
DIGEST = hashlib.sha256(b"packed\n").hexdigest()


def pull(tmp_path, sha256):
    program = tmp_path / "helm"
    program.write_text(HELM)
    program.chmod(0o755)
    chart = fetch.Chart(
        name="c",
        chart="chart",
        repo="https://charts.site",
        version="1.0.0",
        sha256=sha256,
        namespace="c",
        values={},
        images={},
    )
    fetch.pull_chart(fetch.Tool(str(program), "helm", 10), chart, str(tmp_path / "chart.tgz"))


@pytest.mark.parametrize("sha256", ["", DIGEST])
def test_a_chart(tmp_path, sha256):
    pull(tmp_path, sha256)
    assert (tmp_path / "chart.tgz").read_text() == "packed\n"


def test_a_chart_that_is_another_one_is_not_kept(tmp_path):
    with pytest.raises(FabricError) as raised:
        pull(tmp_path, "0" * 64)
    assert raised.value.where == "https://charts.site"
    assert DIGEST in raised.value.seen
    assert sorted(path.name for path in tmp_path.iterdir()) == ["helm"]

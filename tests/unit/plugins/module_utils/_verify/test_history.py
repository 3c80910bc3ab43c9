"""Earlier reports: as many as are kept, and none from a file that is something else."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Head
from ansible_collections.ipu.fabric.plugins.module_utils._verify import history
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import result


def run(number):
    check = result("mtu", number % 2 == 0, "1500", "1500", node="w1", network="rdma-net")
    return history.this_run([check], Head(f"2026-11-{number:02}T16:00:00Z", 4.2, "", ""))


def test_the_newest_are_kept():
    runs = [run(number) for number in range(30, 0, -1)]
    assert history.read_history(history.to_json(runs)) == runs[: history.KEPT]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"runs": 1}', '{"runs": [{"time": "now"}]}'])
def test_what_is_no_history_is_none(text):
    assert history.read_history(text) == []

import base64
import gzip
import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube import helm_storage as helm


def secret(revision, status, values=None, labels=None):
    body = {
        "version": revision,
        "info": {"status": status},
        "chart": {"metadata": {"name": "little", "version": "1.0.0"}},
        "config": values,
    }
    packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(body).encode()))).decode()
    return {"metadata": {"name": f"v{revision}", "labels": labels}, "data": {"release": packed}}


def test_decode_release():
    release = helm.decode_release(secret(3, "deployed", {"a": 1}, {helm.RENDER_LABEL: "x"}))
    assert release == helm.Release("", "", 3, "deployed", "little", "1.0.0", {"a": 1}, "x", "v3", "", True)
    foreign = helm.decode_release(secret(1, "deployed"))
    assert (foreign.render, foreign.ours) == (helm.NO_RENDER, False)


@pytest.mark.parametrize(
    ("statuses", "finished", "pending"),
    [
        ([], None, []),
        (["deployed"], 1, []),
        (["superseded", "deployed"], 2, []),
        (["pending-install"], None, [1]),
        (["deployed", "pending-upgrade"], 1, [2]),
        (["deployed", "failed", "pending-rollback"], 2, [3]),
        (["superseded", "pending-upgrade", "deployed"], 3, []),
    ],
)
def test_split_pending(statuses, finished, pending):
    releases = [helm.decode_release(secret(number, status)) for number, status in enumerate(statuses, 1)]
    latest, unfinished = helm.split_pending(releases)
    assert (latest.revision if latest else None) == finished
    assert [release.revision for release in unfinished] == pending

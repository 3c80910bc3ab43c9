"""What `drift` finds in a cluster is what was done to it by hand, and what `site` then puts right."""

from __future__ import annotations

import json
import shlex
from typing import Any

from ansible_collections.ipu.fabric.tests.e2e.bed import KUBECTL, Bed

NETWORK = "MacvlanNetwork rdma-net"
ATTACHMENT = "NetworkAttachmentDefinition default/rdma-net"


def drift(bed: Bed) -> dict[str, dict[str, Any]]:
    """Each object that differs from the plan, by its name. Nothing is changed."""
    before = bed.state()
    assert bed.play("drift").code == 0
    assert bed.state() == before
    return {found["object"]: found for found in bed.plan()["drift"]}


def test_drift(finished: Bed) -> None:
    assert drift(finished) == {}
    label, value = next(iter(finished.plan()["vipu"]["node_labels"]["w1"].items()))
    finished.on("cp1", f"{KUBECTL} label node w1 {label}-")
    finished.on("cp1", f"{KUBECTL} delete macvlannetwork rdma-net")

    found = drift(finished)
    assert sorted(found) == [NETWORK, "Node w1"]
    assert (found[NETWORK]["change"], found[NETWORK]["ours"]) == ("create", True)
    assert found["Node w1"]["change"] == "change"
    [field] = found["Node w1"]["fields"]
    assert label in field
    assert value in field
    assert NETWORK in (finished.artifacts / "plan.html").read_text()

    assert finished.play("plan fabric").changed() == {"cp1": 2}
    assert drift(finished) == {}


def test_a_network_attachment_that_was_edited(finished: Bed) -> None:
    nad = finished.kubectl("get network-attachment-definition rdma-net")
    text = json.dumps({**json.loads(nad["spec"]["config"]), "mtu": 1400})
    patch = shlex.quote(json.dumps({"spec": {"config": text}}))
    finished.on("cp1", f"{KUBECTL} patch network-attachment-definition rdma-net --type merge --patch {patch}")
    found = drift(finished)
    assert (list(found), found[ATTACHMENT]["change"]) == ([ATTACHMENT], "change")
    [field] = found[ATTACHMENT]["fields"]
    assert "1400" in field
    assert finished.play("plan fabric").changed() == {"cp1": 1}
    assert finished.kubectl("get network-attachment-definition rdma-net")["spec"] == nad["spec"]
    assert drift(finished) == {}

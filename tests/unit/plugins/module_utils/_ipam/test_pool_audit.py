"""The audit of all pools of a cluster, which reads them twice before it calls an address leaked."""

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._ipam import leaks
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.pool_audit import audit
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.whereabouts import WHEREABOUTS
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Cluster
from ansible_collections.ipu.fabric.tests.unit.fixtures.pools import Object, pod, whereabouts, whys


class Api(Cluster):
    """whereabouts' pool and its pods, in pages of one; they are others at each reading."""

    def __init__(self, looks: t.Sequence[t.Sequence[Object]], *held: Object) -> None:
        super().__init__(None)
        self.looks, self.held, self.asked = [list(pods) for pods in looks], list(held), 0

    def get(self, path: str, **query: t.Any) -> t.Optional[Object]:
        if path != "/api/v1/pods":
            return {"items": self.held} if path == f"{WHEREABOUTS}/ippools" else None
        assert "status.phase!=Failed" in query["fieldSelector"]
        at, seen = int(query["continue"] or 0), self.looks[min(self.asked, len(self.looks) - 1)]
        last = at + 1 >= len(seen)
        self.asked += last
        return {"metadata": {} if last else {"continue": str(at + 1)}, "items": seen[at : at + 1]}


def test_what_leaks_at_one_reading_only_does_not() -> None:
    a, b = pod("a", "10.5.0.129"), pod("b", "10.5.0.130")
    pool = whereabouts({"129": "default/a", "130": "default/b", "131": "default/gone"})
    api = Api([[b], [a, b]], pool)
    assert [whys(found) for found in audit(api, 0)] == [{"10.5.0.131": leaks.NO_POD}]
    assert api.asked == 2


def test_a_pool_without_leaks_is_read_once() -> None:
    api = Api([[pod("a", "10.5.0.129"), pod("b", "10.5.0.130")]], whereabouts({"129": "default/a", "130": "default/b"}))
    assert [whys(found) for found in audit(api, 60)] == [{}]
    assert api.asked == 1


def test_a_cluster_without_pools_has_its_pods_left_alone() -> None:
    api = Api([[]])
    assert (audit(api, 0), api.asked) == ([], 0)

"""The plan of many hosts, in one process."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from ansible_collections.ipu.fabric.tests.bench import sites
from ansible_collections.ipu.fabric.tests.bench.figures import Figure, best
from ansible_collections.ipu.fabric.tests.unit.fixtures import site

SETTINGS = {"ipu": False, "control_plane_endpoint": "10.88.255.250:6443"}


def there_and_back(facts: dict[str, Any]) -> object:
    return json.loads(json.dumps(facts))


def figures() -> list[Figure]:
    found = []
    for hosts, rails in ((100, 1), (1000, 8), (4000, 8)):
        seen = sites.observations(hosts, rails)
        seconds = best(partial(site.plan, seen, networks=sites.networks(rails), **SETTINGS))
        through_json = best(partial(there_and_back, seen))
        what = f"plan of {hosts} hosts with {rails} rails"
        found.append(Figure(what, seconds, "their observations to JSON and back", through_json))
    return found

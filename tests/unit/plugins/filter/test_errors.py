import importlib

import pytest
from ansible.errors import AnsibleFilterError

WORKLOAD = {"name": "Not A Name", "image": "i", "command": ["c"], "transport": "tcp"}
REFUSED = [
    ("mpi_job", WORKLOAD, "Not A Name"),
    ("transport_comparison", {"logs": {"roce": "ssh: no route to host"}}, "ssh: no route to host"),
]


@pytest.mark.parametrize(("name", "given", "said"), REFUSED, ids=[row[0] for row in REFUSED])
def test_a_filter_ends_with_an_error_that_a_play_shows(name, given, said):
    plugin = importlib.import_module(f"ansible_collections.ipu.fabric.plugins.filter.{name}").FilterModule()
    with pytest.raises(AnsibleFilterError, match=rf"{said}.*Next: "):
        plugin.filters()[name](given)

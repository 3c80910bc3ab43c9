import pytest
import tomllib
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._common.toml import to_toml


@pytest.mark.parametrize(
    "mapping",
    [
        {},
        {"version": 3, "debug": {"level": "info"}},
        {"plugins": {"io.containerd.cri.v1.images": {"pinned_images": {"sandbox": "registry.k8s.io/pause:3.10.1"}}}},
        {"a": {}, "b": {"c": {}}},
        {"text": 'with "quotes", \\ and\nlines', "unicode": "häßlich"},
        {"list": ["pull", "resolve"], "numbers": [1, 2.5], "nested": [[1], []], "yes": True, "no": False},
        {"host": {"http://192.0.2.1:5000": {"capabilities": ["pull"]}}},
    ],
)
def test_what_is_written_reads_back(mapping):
    assert tomllib.loads(to_toml(mapping)) == mapping


def test_layout():
    assert to_toml({"b": 1, "a": {"x y": {"k": "v"}}}) == 'b = 1\n\n[a."x y"]\nk = "v"\n'


@pytest.mark.parametrize("bad", [None, [1], "text", {"a": None}, {"a": [{"b": 1}]}])
def test_what_toml_cannot_say(bad):
    with pytest.raises(FabricError):
        to_toml(bad)

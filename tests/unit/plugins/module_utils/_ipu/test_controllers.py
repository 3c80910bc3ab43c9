import re

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipu import controllers as ipu
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("controllers", "value"),
    [
        ([], ""),
        ([{"host": "vipu.site", "label": "ipunode=true"}], "vipu.site:8090:ipunode=true"),
        ([{"host": "fd00::1", "port": "8091", "label": "a.site/x=y"}], "[fd00::1]:8091:a.site/x=y"),
        ([{"host": "a", "label": "k=1"}, {"host": "a", "port": 1, "label": "k=2"}], "a:8090:k=1,a:1:k=2"),
        ([{"host": "a", "label": "k=1"}, {"host": "a", "port": 8091, "label": "k=1"}], "a:8090:k=1,a:8091:k=1"),
    ],
)
def test_controllers(controllers, value):
    assert ipu.controllers_value(controllers) == value
    back = ipu.parse_controllers(f"  {value}\n")
    assert [(c["host"], c["label"]) for c in back] == [(c["host"], c["label"]) for c in controllers]


@pytest.mark.parametrize(
    ("controllers", "message"),
    [
        ([{"host": "localhost", "label": "a=b"}], "loopback"),
        ([{"host": "127.0.0.1", "label": "a=b"}], "loopback"),
        ([{"host": "a b", "label": "a=b"}], "not of the form"),
        ([{"host": "a", "label": "ab"}], "not of the form"),
        ([{"host": "a", "label": "a=b,c"}], "not of the form"),
        ([{"host": "a", "label": "a=b"}, {"host": "a", "port": 8090, "label": "a=c"}], "named twice"),
    ],
)
def test_controllers_that_no_operator_takes(controllers, message):
    with pytest.raises(FabricError, match=message):
        ipu.controllers_value(controllers)


@pytest.mark.parametrize(
    "text",
    [
        "a:8090:k=1,b:8091:k=2",
        "- a:8090:k=1\n- b:8091:k=2\n",
        'controllers: ["a:8090:k=1", "b:8091:k=2"]',
        "a:8090:k=1, b:8091:k=2\n",
    ],
)
def test_controllers_of_the_config_map(text):
    assert ipu.parse_controllers(text) == [
        {"host": "a", "port": 8090, "label": "k=1"},
        {"host": "b", "port": 8091, "label": "k=2"},
    ]


@given(st.text(alphabet="a:=1,[] \n\"'") | st.text())
def test_nothing_is_read_that_is_not_in_the_text(text):
    for controller in ipu.parse_controllers(text):
        assert re.search(rf"{re.escape(controller['host'])}\]?:0*{controller['port']}:", text)
        assert f":{controller['label']}" in text
        assert controller["label"].partition("=")[0]


OLD = [{"label": "old=1"}, {"label": "k=1"}]


@pytest.mark.parametrize(
    ("controllers", "labelled", "options", "expected"),
    [
        ([{"label": "k=1", "nodes": ["a", "b"]}], {}, {}, {"a": {"k": "1"}, "b": {"k": "1"}}),
        (
            [{"label": "k=1", "nodes": ["a"]}],
            {"a": {"k": "1"}, "b": {"k": "1"}},
            {},
            {"a": {"k": "1"}, "b": {"k": None}},
        ),
        # moved to another controller of the same key: the new value takes the old one's place
        (
            [{"label": "k=1", "nodes": ["a"]}, {"label": "k=2", "nodes": ["b"]}],
            {"b": {"k": "1"}},
            {},
            {"a": {"k": "1"}, "b": {"k": "2"}},
        ),
        ([{"label": "k=2", "nodes": ["a"]}], {"a": {"old": "1"}}, {}, {"a": {"k": "2", "old": None}}),
        ([{"label": "k=1"}], {"a": {"k": "1"}}, {}, {}),
        ([{"label": "k=1", "nodes": []}], {"a": {"k": "1"}}, {}, {"a": {"k": None}}),
        ([{"label": "k=1", "nodes": ["a"]}], {"b": {"k": "other"}}, {}, {"a": {"k": "1"}}),
        ([{"label": "k=1", "nodes": ["a"]}], {"a": {"k": "1"}}, {"absent": True}, {"a": {"k": None}}),
        ([], {}, {}, {}),
    ],
)
def test_node_labels(controllers, labelled, options, expected):
    seen = [{"name": name, "labels": labels} for name, labels in labelled.items()]
    nodes = ipu.ipu_node_labels(controllers, OLD, seen, **options)
    assert {node["name"]: node["labels"] for node in nodes} == expected


def test_a_node_of_two_controllers():
    with pytest.raises(FabricError, match=r"node a .* k=1 and k=2"):
        ipu.ipu_node_labels([{"label": "k=1", "nodes": ["a"]}, {"label": "k=2", "nodes": ["a"]}])

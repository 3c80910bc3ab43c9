"""What modules of the API would change, from what they return in check mode."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import outcome
from ansible_collections.ipu.fabric.plugins.module_utils._kube.drift import drift_of

POOL = "IPPool n/a"
SIXTEEN, EIGHT = {"spec": {"perNodeBlockSize": 16, "subnet": "10.5.0.0/24"}}, {"spec": {"perNodeBlockSize": 8}}
RELEASE = {"chart": "ipu-operator", "version": "1.2.0", "values": {}}


def told(module, options, result):
    found = drift_of(module, options, result)
    return [(one["change"], one["object"], one["ours"], "; ".join(one["fields"])) for one in found]


@pytest.mark.parametrize(
    ("module", "options", "result", "expected"),
    [
        ("kube_apply", {}, outcome({POOL: SIXTEEN}, {POOL: SIXTEEN}), []),
        ("kube_apply", {}, outcome({POOL: None}, {POOL: SIXTEEN}), [("create", POOL, True, "")]),
        ("kube_apply", {"state": "absent"}, outcome({POOL: SIXTEEN}, {POOL: None}), [("remove", POOL, True, "")]),
        (
            "kube_apply",
            {},
            outcome({POOL: EIGHT}, {POOL: SIXTEEN}),
            [
                (
                    "change",
                    POOL,
                    True,
                    "spec perNodeBlockSize: 8 now, 16 planned; spec subnet: absent now, 10.5.0.0/24 planned",
                )
            ],
        ),
        (
            "kube_apply",
            {},
            outcome({"NicClusterPolicy p": {}}, {"NicClusterPolicy p": {}}, others=["NicClusterPolicy p"]),
            [("take over", "NicClusterPolicy p", False, "")],
        ),
        (
            "macvlan_network",
            {"state": "present"},
            outcome({"rail": {"mtu": 9000}, "same": {}}, {"rail": {"mtu": 1500}, "same": {}}),
            [("change", "MacvlanNetwork rail", True, "mtu: 9000 now, 1500 planned")],
        ),
        (
            "macvlan_network",
            {"state": "pruned"},
            outcome({}, {}, unplanned=["MacvlanNetwork old"], removed=[], others=["IPPool lab/x"]),
            [("leave", "IPPool lab/x", False, ""), ("leave", "MacvlanNetwork old", True, "")],
        ),
        (
            "macvlan_network",
            {"state": "pruned"},
            outcome({"MacvlanNetwork old": {}}, {}, unplanned=["MacvlanNetwork old"], removed=["MacvlanNetwork old"]),
            [("remove", "MacvlanNetwork old", True, "")],
        ),
        (
            "node_labels",
            {},
            outcome({"w1": {"labels": {}}}, {"w1": {"labels": {"vipu-ctrl": "a"}}}),
            [("change", "Node w1", True, "labels vipu-ctrl: absent now, a planned")],
        ),
        (
            "ipujob",
            {"state": "restored"},
            outcome(
                {"ValidatingWebhookConfiguration v": {"a": "Ignore"}},
                {"ValidatingWebhookConfiguration v": {"a": "Fail"}},
            ),
            [("change", "ValidatingWebhookConfiguration v", True, "a: Ignore now, Fail planned")],
        ),
        (
            "helm_release",
            {"name": "ipu", "namespace": "ops"},
            outcome(
                {"release": {**RELEASE, "version": "1.1.0"}, "namespace": {"metadata": {}}},
                {"release": RELEASE, "namespace": {"metadata": {}}},
            ),
            [("change", "Helm release ops/ipu", True, "version: 1.1.0 now, 1.2.0 planned")],
        ),
        (
            "helm_release",
            {"name": "ipu", "namespace": "ops"},
            outcome({"release": None, "namespace": None}, {"release": RELEASE, "namespace": {"metadata": {}}}),
            [("create", "Helm release ops/ipu", True, ""), ("create", "Namespace ops", True, "")],
        ),
        ("kube_apply", {}, {"failed": True, "msg": "no"}, []),
        ("kube_wait", {}, {"changed": False}, []),
        ("node_drain", {}, outcome({"pods": ["a"]}, {"pods": []}), []),
    ],
)
def test_objects(module, options, result, expected):
    assert told(module, options, result) == expected


def test_what_else_makes_helm_run_is_a_field_of_the_release():
    before = {"release": RELEASE, "unfinished": ["revision 2 is pending-upgrade"], "certificate": "ends in 3 days"}
    after = {"release": RELEASE, "certificate": "renewed"}
    (found,) = told("helm_release", {"name": "ipu", "namespace": "ops"}, outcome(before, after))
    assert found[:2] == ("change", "Helm release ops/ipu")
    assert "certificate: ends in 3 days now, renewed planned" in found[3]
    assert "unfinished: [revision 2 is pending-upgrade] now, absent planned" in found[3]

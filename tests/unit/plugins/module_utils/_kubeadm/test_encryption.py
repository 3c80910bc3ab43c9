"""Keys of Secrets come and go in steps, and a run that was killed anywhere is completed without a Secret unread."""

import base64
import random
import types

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component.kubernetes_encryption import KeysSeen, plan_keys
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import encryption
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.encryption import (
    IDENTITY,
    check_same,
    count_stale,
    generate,
    parse,
    plan_steps,
    render,
    target,
)

PLANES = ("cp1", "cp2", "cp3")


class KilledError(Exception):
    """The run ends here."""


class Cluster:
    """Control planes that write with their first provider and read with all, and the Secrets in etcd."""

    def __init__(self, orders, writer):
        self.orders = {name: list(order) for name, order in orders.items()}
        self.secrets = [writer] * 5
        self.until_killed = None

    def act(self):
        if self.until_killed is not None:
            self.until_killed -= 1
            if self.until_killed < 0:
                raise KilledError
        for order in self.orders.values():
            readable = set(order) or {IDENTITY}
            assert set(self.secrets) <= readable, f"{order} can't read {self.secrets}"

    def write(self, plane):
        self.secrets.append((self.orders[plane] or [IDENTITY])[0])
        self.act()

    def run(self, rotate=False):
        steps = plan_steps(self.orders, True, rotate)
        every = steps["before"] + steps["after"]
        for index in range(len(steps["before"])):
            self.step(every, index)
        for position, key in enumerate(self.secrets):
            if key != steps["new"]:
                self.secrets[position] = steps["new"]
                self.act()
        for index in range(len(steps["before"]), len(every)):
            self.step(every, index)
        return steps["new"]

    def step(self, every, index):
        for plane in PLANES:
            self.orders[plane] = target(self.orders[plane], every, index)
            self.act()
            self.write(plane)


FIRST = {name: [] for name in PLANES}
ONE = {name: ["key1", IDENTITY] for name in PLANES}


@pytest.mark.parametrize(
    ("orders", "writer", "rotate", "end"),
    [(FIRST, IDENTITY, False, "key1"), (ONE, "key1", False, "key1"), (ONE, "key1", True, "key2")],
)
def test_all_secrets_are_written_with_the_new_key(orders, writer, rotate, end):
    cluster = Cluster(orders, writer)
    assert cluster.run(rotate) == end
    assert set(cluster.secrets) == {end}
    assert list(cluster.orders.values()) == [[end, IDENTITY]] * len(PLANES)


@pytest.mark.parametrize(("orders", "writer", "rotate"), [(FIRST, IDENTITY, False), (ONE, "key1", True)])
@pytest.mark.parametrize("moment", range(60))
def test_a_run_that_is_killed_anywhere_is_completed(orders, writer, rotate, moment):
    cluster = Cluster(orders, writer)
    cluster.until_killed = moment
    try:
        cluster.run(rotate)
    except KilledError:
        cluster.until_killed = None
        if random.Random(moment).random() < 0.5:
            cluster.write("cp2")
        cluster.run(False)  # by a normal run of site
    assert len(set(cluster.secrets)) == 1
    assert len({tuple(order) for order in cluster.orders.values()}) == 1
    assert len(cluster.orders["cp1"]) == 2


def test_nothing_is_begun_without_being_asked():
    assert plan_steps(FIRST, False, False) == {"before": [], "after": [], "new": ""}
    assert plan_steps(ONE, False, False)["before"] == []
    assert plan_steps(ONE, False, False)["new"] == "key1"


def test_a_rotation_that_goes_on_is_no_second_one():
    orders = {"cp1": ["key1", "key2", IDENTITY], "cp2": ["key1", IDENTITY], "cp3": ["key1", IDENTITY]}
    assert plan_steps(orders, True, True)["new"] == "key2"


def test_the_file_is_read_as_it_was_written():
    keys = {"key1": generate(), "key12": generate()}
    order = ["key12", "key1", IDENTITY]
    text = render(order, keys)
    assert parse(text) == (order, keys)
    document = yaml.safe_load(text)
    assert document["kind"] == "EncryptionConfiguration"
    assert [next(iter(provider)) for provider in document["resources"][0]["providers"]] == [
        "secretbox",
        "secretbox",
        "identity",
    ]
    assert len(base64.b64decode(document["resources"][0]["providers"][0]["secretbox"]["keys"][0]["secret"])) == 32
    assert parse("") == ([], {})


def test_keys_of_one_name_are_the_same():
    check_same({"cp1": {"key1": "aa"}, "cp2": {"key1": "aa", "key2": "bb"}})
    with pytest.raises(FabricError, match="two keys key1"):
        check_same({"cp1": {"key1": "aa"}, "cp2": {"key1": "bb"}})


def test_what_etcd_has_says_what_is_left():
    values = ["k8s:enc:secretbox:v1:key2:xx", "k8s:enc:secretbox:v1:key20:xx", "k8s\x00plain"]
    assert count_stale([base64.b64encode(each.encode()).decode() for each in values], "key2") == 2


def test_etcd_is_read_in_pages(monkeypatch):
    def pair(number, text):
        return {
            "key": base64.b64encode(f"/registry/secrets/{number}".encode()).decode(),
            "value": base64.b64encode(text.encode()).decode(),
        }

    pages = [
        {"kvs": [pair(1, "k8s:enc:secretbox:v1:key1:x"), pair(2, "k8s\0")], "more": True},
        {"kvs": [pair(3, "k8s\0")]},
    ]
    asked = []

    def ask(path, body):
        asked.append(base64.b64decode(body["key"]).decode())
        assert base64.b64decode(body["range_end"]) == b"/registry/secrets0"
        return pages[len(asked) - 1]

    monkeypatch.setattr(encryption.etcd_api, "ask", ask)
    assert encryption.stale_secrets("key1") == 2
    assert asked == ["/registry/secrets/", "/registry/secrets/2\0"]


SECRET = "A" * 43 + "="
OURS = render(["key1", IDENTITY], {"key1": SECRET})


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        (OURS, []),
        ("# ours\n" + OURS, []),
        (OURS.replace("      - secrets\n", "      - secrets\n      - configmaps\n"), ["- configmaps"]),
        (OURS.replace("secretbox", "aescbc"), ["- aescbc:"]),
        (OURS + "  - resources: [configmaps]\n", ["- resources: [configmaps]"]),
        (OURS.replace(SECRET, SECRET + " # mine"), ["secret: ..."]),
        (
            OURS + f"      - aesgcm: {{keys: [{{name: a, secret: {SECRET}}}]}}\n",
            ["- aesgcm: {keys: [{name: a, secret: ..."],
        ),
        (OURS + f"              secret: >-\n                {SECRET}\n", ["secret: ...", "..."]),
        (
            OURS.replace("    providers:\n", "").replace("      - secrets\n", "    providers:\n      - secrets\n"),
            ["its parts are in another order"],
        ),
    ],
)
def test_what_somebody_added_is_named_without_its_keys(text, lines):
    assert encryption.foreign_lines(text) == lines


def seen(order, *others, **digests):
    return KeysSeen(order, digests, list(others), True)


STEADY = seen(["key1", IDENTITY], key1="aa")


def test_a_rotation_refuses_a_file_that_was_edited_before_it_changes_any():
    planes = {"cp1": STEADY, "cp2": seen(["key1", IDENTITY], "- configmaps", key1="aa")}
    with pytest.raises(Exception, match="cp2: - configmaps"):
        plan_keys(planes, True)
    assert plan_keys(planes).before == []  # nothing is written


@pytest.mark.parametrize("planes", [PLANES, PLANES[::-1], ("cp2", "cp1", "cp3")])
def test_a_key_that_is_somewhere_is_never_made_again(planes):
    """After a kill and with another order of the inventory, the first one made a second key2."""
    begun = seen(["key1", "key2", IDENTITY], key1="aa", key2="bb")
    found = {"cp1": begun, "cp2": STEADY, "cp3": STEADY}
    steps = plan_keys({name: found[name] for name in planes})
    assert (steps.source, steps.generate, steps.new) == ("cp1", False, "key2")
    ending = {"cp1": seen(["key2", IDENTITY], key2="bb"), "cp2": begun, "cp3": begun}
    assert plan_keys({name: ending[name] for name in planes}).source in ("cp2", "cp3")


def test_a_new_key_is_made_once():
    steps = plan_keys(dict.fromkeys(PLANES, STEADY), True)
    assert (steps.source, steps.generate) == ("cp1", True)
    assert plan_keys(dict.fromkeys(PLANES, seen([]))).generate


def test_keys_that_no_control_plane_has_together_are_named():
    planes = {"cp1": seen(["key1", IDENTITY], key1="aa"), "cp2": seen(["key2", IDENTITY], key2="bb")}
    with pytest.raises(Exception, match="cp1: key1; cp2: key2"):
        plan_keys(planes)


def test_another_key_of_the_same_name_is_not_taken_for_the_own():
    module = types.SimpleNamespace(params={"keys": {"key2": "given"}, "generate": False})
    with pytest.raises(FabricError, match="two keys key2"):
        encryption.Encryption(module).complete(["key2"], {"key2": "own"})
    assert encryption.Encryption(module).complete(["key2"], {"key1": "own"}) == {"key1": "own", "key2": "given"}

"""How the role kubernetes hardens control planes that are only names: in which order, and where it stops."""

import hashlib

import yaml
from ansible_collections.ipu.fabric.tests.unit.fixtures.control_plane import CONFIGURATION, NO_KEYS
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play
from ansible_collections.ipu.fabric.tests.unit.playbooks.test_kubernetes import GROUPS, PLAY, node

PLANES = GROUPS["kube_control_plane"]
KEYS = {"key1": "c2VjcmV0LW9mLWtleTE="}
ENCRYPTED = {"order": ["key1", "identity"], "digests": {"key1": "ab"}, "used": True, "keys": KEYS}


def run(folder, *arguments, states=None, playbook=None, answers=None, fetched=False, **variables):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "admin.conf").write_text("kind: Config\n")
    sha = "another" if fetched else hashlib.sha256(b"kind: Config\n").hexdigest()
    names = [name for members in GROUPS.values() for name in members]
    found = {name: {**node(name, (states or {}).get(name, "member")), "kubeconfig_sha256": sha} for name in names}
    table = {
        "kubernetes_node_info": {name: {"node": each} for name, each in found.items()},
        "apt_packages": {"*": {"versions": {"containerd.io": "2.2.1"}}},
        "systemd_units": {"*": {"stale": []}},
        "kubeadm": {"*": {"discovery": {"endpoint": "", "token": "", "ca_hashes": []}}},
        **(answers or {}),
    }
    variables["kubernetes_kubeconfig"] = str(folder / "admin.conf")
    return play(folder, playbook or PLAY, GROUPS, table, *arguments, **variables)


def hardened(done):
    return [call for call in done.calls if call.module == "control_plane" and call.options.get("state") != "read"]


def keys(done, state="present"):
    return [call for call in done.calls if call.module == "secrets_encryption" and call.options["state"] == state]


def test_one_control_plane_after_another_and_then_the_configuration(tmp_path):
    done = run(tmp_path)
    assert done.code == 0, done.text
    calls = [(call.host, call.options.get("state", "present")) for call in hardened(done)]
    assert calls == [("cp1", "present"), ("cp2", "present"), ("cp3", "present"), ("cp1", "uploaded")]
    documents = hardened(done)[1].options["documents"]
    assert documents[0]["localAPIEndpoint"] == {"advertiseAddress": node("cp2", "member")["address"]}
    arguments = {each["name"]: each["value"] for each in documents[1]["apiServer"]["extraArgs"]}
    assert arguments["profiling"] == "false"
    assert "encryption-provider-config" not in arguments
    assert yaml.safe_load(hardened(done)[-1].options["configuration"]) == documents[1]
    assert keys(done) == []


def test_what_is_there_already_is_not_uploaded(tmp_path):
    first = run(tmp_path / "first")
    text = hardened(first)[-1].options["configuration"]
    done = run(
        tmp_path / "second", answers={"control_plane": {"* read": {"configuration": text, "encryption": NO_KEYS}}}
    )
    assert [call.host for call in hardened(done)] == PLANES
    assert "changed=0" in done.said
    assert "changed=1" not in done.said


def test_the_first_that_fails_is_the_last(tmp_path):
    failed = {
        "control_plane": {
            "* read": {"configuration": CONFIGURATION, "encryption": NO_KEYS},
            "cp2": {"failed": True, "msg": "The earlier files are back."},
        }
    }
    done = run(tmp_path, answers=failed)
    assert done.code != 0
    assert [call.host for call in hardened(done)] == ["cp1", "cp2"]
    assert "The earlier files are back." in done.said


def test_cis_has_all_read_with_the_key_before_one_writes_with_it(tmp_path):
    done = run(
        tmp_path,
        kubernetes_hardening="cis",
        answers={"secrets_encryption": {"*": {**ENCRYPTED, "order": [], "digests": {}}}},
    )
    assert done.code == 0, done.text
    steps = [(call.host, call.options["step"], bool(call.options.get("generate"))) for call in keys(done)]
    assert steps == [
        *(("cp1", 0, True), ("cp2", 0, False), ("cp3", 0, False)),
        *(("cp1", 0, True), ("cp2", 0, False), ("cp3", 0, False)),
        *(("cp1", 1, True), ("cp2", 1, False), ("cp3", 1, False)),
    ]
    assert [call.host for call in keys(done, "rewritten")] == ["cp1"]
    order = [(call.module, call.host) for call in done.calls if call in hardened(done) or call in keys(done)]
    assert order.index(("control_plane", "cp1")) > order.index(("secrets_encryption", "cp3"))
    assert KEYS["key1"] not in done.text


def test_who_joins_has_the_files_and_keys_before_kubeadm(tmp_path):
    configuration = CONFIGURATION + (
        "apiServer:\n  extraArgs:\n"
        "  - {name: encryption-provider-config, value: /etc/kubernetes/hardening/encryption.yaml}\n"
    )
    answers = {
        "control_plane": {"* read": {"configuration": configuration, "encryption": ENCRYPTED}},
        "secrets_encryption": {"*": ENCRYPTED},
    }
    done = run(tmp_path, states={"cp3": "none"}, answers=answers)
    assert done.code == 0, done.text
    order = [call.module for call in done.calls if call.host == "cp3"]
    assert order.index("control_plane") < order.index("kubeadm", order.index("control_plane"))
    (copied,) = keys(done, "copied")
    assert (copied.host, copied.options["steps"], copied.options["keys"]) == ("cp3", [["key1", "identity"]], KEYS)
    assert KEYS["key1"] not in done.text


def test_a_cluster_begins_hardened(tmp_path):
    done = run(tmp_path, states=dict.fromkeys([*PLANES, "w1", "w9"], "none"), kubernetes_hardening="cis")
    (init,) = [call for call in done.calls if call.module == "kubeadm" and call.options["command"] == "init"]
    assert "encryption-provider-config" in str(init.options["documents"])
    order = [(call.module, call.options.get("state")) for call in done.calls if call.host == "cp1"]
    assert ("secrets_encryption", "present") in order[: order.index(("kubeadm", None))]


def test_an_interrupted_change_is_settled_before_the_host_is_judged(tmp_path):
    unsettled = {"node": {**node("cp2", "broken"), "unsettled": True}}
    found = {"*": {"node": node("cp1", "member")}, "cp2": unsettled}
    done = run(tmp_path, answers={"kubernetes_node_info": found})
    assert [call.host for call in hardened(done) if call.options.get("state") == "settled"] == ["cp2"]


ROTATE = "ipu.fabric.rotate_encryption_key"


def test_rotation_takes_every_step_on_all_before_the_next(tmp_path):
    done = run(tmp_path, playbook=ROTATE, answers={"secrets_encryption": {"*": ENCRYPTED}})
    assert done.code == 0, done.text
    assert [(call.host, call.options["step"]) for call in keys(done)] == [
        (host, step) for step in range(3) for host in PLANES
    ]
    assert keys(done)[0].options["steps"] == [
        ["key1", "key2", "identity"],
        ["key2", "key1", "identity"],
        ["key2", "identity"],
    ]
    order = [call.options["state"] for call in done.calls if call.module == "secrets_encryption"]
    assert order.index("rewritten") > order.index("present")
    assert [call.options["key"] for call in keys(done, "rewritten")] == ["key2"]
    assert KEYS["key1"] not in done.text


def test_rotation_refuses(tmp_path):
    done = run(tmp_path, states={"cp3": "broken"}, playbook=ROTATE, answers={"secrets_encryption": {"*": ENCRYPTED}})
    assert done.code != 0
    assert "All control planes need the new key" in done.said
    assert keys(done) == []

"""An archive of a site whose API or hosts may be down, and what a maintainer reads in it."""

import json
import tarfile

from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play

GROUPS = {"kube_control_plane": ["cp1"], "kube_node": ["w1"]}
SECRET = "planted-4711"
FINDING = {"level": "error", "check": "mtu", "hosts": ["w1"], "what": "MTU 9000", "seen": "1500", "next": "Set it."}
POD = {
    "metadata": {"namespace": "kube-system", "name": "a"},
    "spec": {"password": SECRET},
    "status": {"phase": "Pending"},
}
ANSWERS = {
    "host_info": {
        "cp1": {"logs": {"kubelet": f"ready, Authorization: Bearer {SECRET}"}},
        "w1": {"unreachable": True, "msg": "no route to host"},
    },
    "support_info": {"*": {"cluster": {"objects": {"Pod": [POD]}, "logs": {"kube-system/a/b": "up"}, "gaps": []}}},
}


def plan_of(folder):
    (folder / "artifacts").mkdir()
    (folder / "artifacts/plan.json").write_text(json.dumps({"findings": [FINDING]}))


def test_an_archive_and_its_judgement(tmp_path):
    plan_of(tmp_path)
    (tmp_path / "artifacts/support-20250101T000000Z.tar.gz").write_bytes(b"older")
    done = play(tmp_path, "ipu.fabric.support", GROUPS, ANSWERS, network_operator_namespace="rails")
    assert done.code == 0, done.text
    assert "w1): unreachable: no route to host" in done.said
    assert sorted(done.where("host_info", links=False)) == ["cp1", "w1"]
    assert {call.options["journal"]["lines"] for call in done.calls if call.module == "host_info"} == {200}
    assert done.where("support_info") == ["localhost"]
    [namespaces] = [call.options["namespaces"] for call in done.calls if call.module == "support_info"]
    assert {"kube-system", "calico-system", "spiderpool", "gpu-operator", "ipu-operator", "rails"} <= {*namespaces}
    assert len({*namespaces}) == len(namespaces)
    older, path = sorted((tmp_path / "artifacts").glob("support-*.tar.gz"))
    assert older.read_bytes() == b"older"
    assert path.stat().st_mode & 0o777 == 0o600
    with tarfile.open(path) as archive:
        texts = {info.name.partition("/")[2]: archive.extractfile(info).read().decode() for info in archive}
    assert set(texts) == {
        *("about.json", "plan.json", "cluster/objects.json"),
        *("cluster/logs/kube-system/a/b.log", "hosts/cp1/kubelet.log"),
    }
    assert SECRET not in "".join(texts.values()) + done.text

    judged = play(tmp_path, "ipu.fabric.support", {}, {}, fabric_support_bundle=f"artifacts/{path.name}")
    assert judged.code == 0, judged.text
    assert judged.calls == []
    assert "ERROR plan, mtu: w1" in judged.said
    assert "ERROR pod, not ready: kube-system/a" in judged.said
    assert "WARNING archive, not collected: the journal (w1)" in judged.said


def test_check_mode_writes_nothing(tmp_path):
    down = {**ANSWERS, "support_info": {"*": {"failed": True, "msg": "connection refused"}}}
    done = play(tmp_path, "ipu.fabric.support", GROUPS, down, "--check")
    assert done.code == 0, done.text
    assert f"This would write {tmp_path}/artifacts/support-" in done.said
    assert "the cluster (its API): connection refused" in done.said
    assert not (tmp_path / "artifacts").exists()


def test_what_is_no_archive_is_refused(tmp_path):
    done = play(tmp_path, "ipu.fabric.support", GROUPS, {}, fabric_support_bundle="hosts.yml")
    assert done.code != 0
    assert "Where: " in done.said
    assert "Next: Ask for an archive as ipu.fabric.support wrote it." in done.said

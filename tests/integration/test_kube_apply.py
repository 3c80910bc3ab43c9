from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.tests.integration.api_server import ApiServer, ModuleFailedError, Modules


def settings(name: str, namespace: str = "default", **data: str) -> t.Dict[str, t.Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def namespace(name: str) -> t.Dict[str, t.Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def test_check_create_again_update_remove(run: Modules, api: ApiServer) -> None:
    objects = [settings("one", colour="red"), settings("two", colour="blue")]
    names = ["ConfigMap default/one", "ConfigMap default/two"]
    assert run("kube_apply", check=True, objects=objects)["objects"] == names
    assert api.kubectl("get", "configmap", "one", check=False).returncode
    created = run("kube_apply", objects=objects)
    assert (created["objects"], created["updated"]) == (names, [])
    assert not run("kube_apply", objects=objects)["changed"]
    assert not run("kube_apply", check=True, objects=objects)["changed"]
    update = run("kube_apply", objects=[settings("one", colour="green"), objects[1]])
    assert update["updated"] == names[:1]
    assert update["diff"]["before"][names[0]]["data"] == {"colour": "red"}
    assert update["diff"]["after"][names[0]]["data"] == {"colour": "green"}
    assert run("kube_apply", objects=objects, state="absent")["objects"] == names[::-1]
    assert not run("kube_apply", objects=objects, state="absent")["changed"]


def test_fields_of_others_stay(run: Modules, api: ApiServer) -> None:
    run("kube_apply", objects=[settings("shared", ours="1")])
    api.kubectl("annotate", "configmap", "shared", "somebody=else")
    assert not run("kube_apply", objects=[settings("shared", ours="1")])["changed"]
    assert api.get("configmap", "shared")["metadata"]["annotations"] == {"somebody": "else"}


def test_fields_of_a_spec_that_others_have_added_go_if_the_object_is_to_be_exact(run: Modules, api: ApiServer) -> None:
    metadata = {"name": "exact", "namespace": "default"}
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata}
    policy["spec"] = {"podSelector": {}, "policyTypes": ["Ingress"]}
    run("kube_apply", objects=[policy])
    api.kubectl("patch", "networkpolicy", "exact", "--type=merge", "--patch", '{"spec": {"ingress": [{}]}}')
    api.kubectl("annotate", "networkpolicy", "exact", "somebody=else")
    assert not run("kube_apply", objects=[policy])["changed"]
    for check in (True, False):
        removed = run("kube_apply", check=check, objects=[policy], exact=True)
        assert removed["updated"] == ["NetworkPolicy default/exact"]
        assert removed["diff"]["before"]["NetworkPolicy default/exact"]["spec"]["ingress"] == [{}]
        assert "ingress" not in removed["diff"]["after"]["NetworkPolicy default/exact"]["spec"]
    found = api.get("networkpolicy", "exact")
    assert (found["spec"], found["metadata"]["annotations"]) == (policy["spec"], {"somebody": "else"})
    assert not run("kube_apply", objects=[policy], exact=True)["changed"]


def test_what_somebody_else_has_made_is_not_taken_over(run: Modules, api: ApiServer) -> None:
    api.kubectl("create", "configmap", "theirs", "--from-literal=a=b")
    objects = [settings("ours", a="c"), settings("theirs", a="c")]
    for check in (True, False):
        with pytest.raises(ModuleFailedError, match="somebody else's objects") as failure:
            run("kube_apply", check=check, objects=objects, adopt=False)
        assert failure.value.result["error"]["where"] == "ConfigMap default/theirs"
    assert api.kubectl("get", "configmap", "ours", check=False).returncode
    api.kubectl("create", "namespace", "shared")
    assert run("kube_apply", objects=[namespace("shared"), objects[0]], adopt=False)["changed"]
    assert run("kube_apply", objects=[settings("ours", a="d")], adopt=False)["updated"]


def test_check_mode_before_the_namespace_exists(run: Modules) -> None:
    objects = [namespace("later"), settings("inside", "later", a="b")]
    assert run("kube_apply", check=True, objects=objects)["objects"] == ["Namespace later", "ConfigMap later/inside"]
    assert run("kube_apply", objects=objects)["changed"]
    assert not run("kube_apply", objects=objects)["changed"]


def test_an_unknown_field_is_an_error(run: Modules) -> None:
    with pytest.raises(ModuleFailedError, match="datum: field not declared") as failure:
        run("kube_apply", objects=[{**settings("typo"), "datum": {}}])
    assert failure.value.result["error"]["where"] == "ConfigMap default/typo"


def test_an_unknown_kind(run: Modules) -> None:
    stranger = {"apiVersion": "example.org/v1", "kind": "Stranger", "metadata": {"name": "x"}}
    assert run("kube_apply", check=True, objects=[stranger])["changed"]
    assert not run("kube_apply", objects=[stranger], state="absent")["changed"]
    with pytest.raises(ModuleFailedError, match="no such kind"):
        run("kube_apply", objects=[stranger])


def test_a_cluster_that_is_not_there(run: Modules, tmp_path: Path) -> None:
    missing = {"kubeconfig": str(tmp_path / "none"), "objects": [settings("one")]}
    result = run("kube_apply", check=True, **missing)
    assert result["changed"]
    assert "there is no file" in str(result["warnings"])
    assert "its cluster is treated as empty here" in str(result["warnings"])
    with pytest.raises(ModuleFailedError, match=r"Next: Name the file: fabric_kubeconfig"):
        run("kube_apply", **missing)


@pytest.mark.parametrize("theirs", [{}, {"colour": "red"}])
def test_a_namespace_of_others_gets_its_labels_back(run: Modules, api: ApiServer, theirs: t.Dict[str, str]) -> None:
    name = "theirs" + "".join(theirs.values())
    api.kubectl("create", "namespace", name)
    api.kubectl("label", "namespace", name, *(f"{key}={value}" for key, value in theirs.items()), "a=b")
    before = api.get("namespace", name)["metadata"]["labels"]
    labelled = {**namespace(name), "metadata": {"name": name, "labels": {"colour": "red"}}}
    run("kube_apply", objects=[labelled])
    assert api.get("namespace", name)["metadata"]["labels"] == {**before, "colour": "red"}
    removal: t.Dict[str, t.Any] = {"objects": [namespace(name)], "state": "absent", "only_ours": True}
    assert run("kube_apply", check=True, **removal)["changed"] is not bool(theirs)
    given_back = run("kube_apply", **removal)
    assert given_back["changed"] is not bool(theirs)
    assert [kept.partition(":")[0] for kept in given_back["kept"]] == [f"Namespace {name}"]
    assert api.get("namespace", name)["metadata"]["labels"] == before
    assert not run("kube_apply", **removal)["changed"]


def test_a_definition_that_is_slow_to_go_says_what_the_api_server_waits_for(run: Modules, api: ApiServer) -> None:
    names = {"plural": "slows", "singular": "slow", "kind": "Slow"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    spec = {"group": "example.org", "scope": "Cluster", "names": names, "versions": [version]}
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    definition["metadata"] = {"name": "slows.example.org"}
    run("kube_apply", objects=[definition])
    held = {"apiVersion": "example.org/v1", "kind": "Slow"}
    held["metadata"] = {"name": "held", "finalizers": ["example.org/held"]}
    run("kube_apply", objects=[held])
    with pytest.raises(ModuleFailedError, match=r"slows\.example\.org still exists \(CustomResource.*deletion"):
        run("kube_apply", objects=[definition], state="absent", timeout=2)
    api.kubectl("patch", "slow", "held", "--type=merge", "--patch", '{"metadata": {"finalizers": null}}')
    run("kube_apply", objects=[definition], state="absent")
    assert api.kubectl("get", "crd", "slows.example.org", check=False).returncode


def test_a_server_that_is_gone(run: Modules, api: ApiServer, tmp_path: Path) -> None:
    gone = tmp_path / "kubeconfig"
    gone.write_text(api.kubeconfig.read_text().replace(f":{api.port}", ":9"))
    assert run("kube_apply", check=True, kubeconfig=str(gone), objects=[settings("one")])["changed"]


def test_secrets_do_not_show(run: Modules) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "hidden", "namespace": "default"},
        "stringData": {"password": "correct horse"},
    }
    result = run("kube_apply", objects=[secret])
    assert result["changed"]
    assert "correct horse" not in str(result["diff"])

"""What a level of hardening makes of kubeadm's configuration, and of what the site has in it."""

import itertools

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import hardening
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.hardening import (
    LEVELS,
    SETTINGS,
    Wanted,
    differences,
    files,
    from_manifests,
    harden,
    in_order,
    parse_release,
    with_site,
)

PLAIN = {"apiVersion": hardening.API_VERSION, "kind": "ClusterConfiguration", "kubernetesVersion": "v1.35.4"}
ALL = frozenset({"encryption", "kubelet-ca"})


def wanted(level, release=(1, 35), met=ALL):
    return Wanted(level, release, met)


def extra(configuration, component="apiServer"):
    return in_order((configuration.get(component) or {}).get("extraArgs") or [])


def configured(component="apiServer", **arguments):
    given = [{"name": name.replace("_", "-"), "value": value} for name, value in arguments.items()]
    return {**PLAIN, component: {"extraArgs": given}}


def manifests(configuration):
    return {pod: extra(configuration, component) for component, pod in hardening.STATIC_POD.items()}


def test_none_leaves_all_as_it_is():
    assert harden(PLAIN, wanted("none")).configuration == PLAIN


@pytest.mark.parametrize("component", hardening.COMPONENTS)
def test_baseline_is_in_cis(component):
    low, high = (extra(harden(PLAIN, wanted(level)).configuration, component) for level in ("baseline", "cis"))
    assert low["profiling"] == "false"
    assert low["tls-min-version"] == "VersionTLS12"
    assert low.items() <= high.items()


@pytest.mark.parametrize(("first", "second"), list(itertools.product(LEVELS, LEVELS)))
def test_a_level_does_not_depend_on_the_one_before(first, second):
    """But for the encryption of Secrets, which nobody could read any more without its keys."""
    before = harden(PLAIN, wanted(first)).configuration
    after = harden(before, wanted(second)).configuration
    fresh = extra(harden(PLAIN, wanted(second)).configuration)
    if first == "cis":
        fresh["encryption-provider-config"] = hardening.paths.ENCRYPTION
    assert extra(after) == fresh
    assert harden(after, wanted(second)).configuration == after


def test_what_is_lowered_leaves_the_directory_of_the_keys_mounted():
    after = harden(harden(PLAIN, wanted("cis")).configuration, wanted("none")).configuration
    assert [volume["name"] for volume in after["apiServer"]["extraVolumes"]] == ["hardening"]


@pytest.mark.parametrize(
    ("arguments", "absent", "kept"),
    [
        ({"profiling": "true"}, [], "profiling (kube-apiserver): --profiling=true"),
        ({"audit_policy_file": "/etc/audit.yaml"}, ["audit-log-path"], "audit (kube-apiserver): --audit-policy-file="),
        ({"audit_webhook_config_file": "/x"}, ["audit-log-path"], "audit (kube-apiserver): --audit-webhook-config"),
        ({"oidc_issuer_url": "https://x"}, ["authentication-config"], "anonymous (kube-apiserver): --oidc-issuer-url"),
        ({"anonymous_auth": "false"}, ["authentication-config"], "anonymous (kube-apiserver): --anonymous-auth=false"),
        (
            {"enable_admission_plugins": "NodeRestriction,AlwaysPullImages"},
            ["admission-control-config-file"],
            "admission (kube-apiserver): --enable-admission-plugins=NodeRestriction,AlwaysPullImages",
        ),
        ({"encryption_provider_config": "/etc/kms.yaml"}, [], "encryption (kube-apiserver): --encryption-provider"),
    ],
)
def test_what_the_site_has_set_stays_with_all_that_belongs_to_it(arguments, absent, kept):
    given = configured(**arguments)
    hardened = harden(given, wanted("cis", met=frozenset()))
    after = extra(hardened.configuration)
    assert extra(given).items() <= after.items()
    assert not set(absent) & set(after)
    assert any(each.startswith(kept) for each in hardened.kept)
    assert harden(hardened.configuration, wanted("none")).configuration["apiServer"]["extraArgs"] == [
        {"name": name, "value": value} for name, value in extra(given).items()
    ]


def test_other_arguments_keep_their_place_and_volumes_theirs():
    volume = {"name": "oidc", "hostPath": "/etc/oidc", "mountPath": "/etc/oidc", "readOnly": True, "pathType": "File"}
    given = configured(z="1", profiling="false", a="2")
    given["apiServer"]["extraVolumes"] = [volume]
    given["apiServer"]["certSANs"] = ["api.example.org"]
    after = harden(given, wanted("baseline")).configuration["apiServer"]
    assert [each["name"] for each in after["extraArgs"]][:3] == ["z", "profiling", "a"]
    assert after["extraVolumes"][0] == volume
    assert after["certSANs"] == ["api.example.org"]


@pytest.mark.parametrize(
    ("release", "there"), [((1, 31), False), ((1, 32), True), ((1, 33), True), ((1, 34), True), ((1, 37), True)]
)
def test_anonymous_paths_need_a_release_that_knows_them(release, there):
    hardened = harden(PLAIN, wanted("cis", release))
    assert ("authentication-config" in extra(hardened.configuration)) == there
    found = {each["path"]: yaml.safe_load(each["content"]) for each in files(hardened.applied, release, [])}
    if there:
        document = found[hardening.AUTHENTICATION]
        assert document["apiVersion"].endswith("/v1" if release >= (1, 34) else "/v1beta1")
        assert {"path": "/readyz"} in document["anonymous"]["conditions"]


@pytest.mark.parametrize("name", ["encryption", "kubelet-ca"])
def test_a_condition_comes_first_and_is_not_asked_again(name):
    without = harden(PLAIN, wanted("cis", met=ALL - {name}))
    assert name not in [setting.name for setting in without.applied]
    before = harden(PLAIN, wanted("cis")).configuration
    assert harden(before, wanted("cis", met=frozenset())).configuration == before


def test_a_backup_that_is_encrypted_is_read_with_its_keys():
    after = harden(PLAIN, wanted("baseline", met=frozenset({"encrypted"}))).configuration
    assert extra(after)["encryption-provider-config"] == hardening.paths.ENCRYPTION


def test_files_are_those_of_the_arguments():
    for level in LEVELS:
        hardened = harden(PLAIN, wanted(level))
        named = [value for value in extra(hardened.configuration).values() if value.startswith("/etc/kubernetes/hard")]
        made = [each["path"] for each in files(hardened.applied, (1, 35), [])]
        assert sorted(made) == sorted(set(named) - {hardening.paths.ENCRYPTION})


def test_exempt_namespaces():
    applied = harden(PLAIN, wanted("cis")).applied
    (text,) = [each["content"] for each in files(applied, (1, 35), ["storage"]) if "admission" in each["path"]]
    (security,) = [each for each in yaml.safe_load(text)["plugins"] if each["name"] == "PodSecurity"]
    assert {"kube-system", "storage", "nvidia-network-operator"} <= set(
        security["configuration"]["exemptions"]["namespaces"]
    )


def test_the_policy_never_has_what_is_in_a_secret():
    rules = yaml.safe_load(hardening.POLICY)["rules"]
    with_bodies = [rule for rule in rules if rule["level"] in ("Request", "RequestResponse")]
    assert all(
        resource["group"] == "rbac.authorization.k8s.io" for rule in with_bodies for resource in rule["resources"]
    )
    secrets = [rule for rule in rules if "secrets" in str(rule)]
    assert [rule["level"] for rule in secrets] == ["Metadata"]


@pytest.mark.parametrize("level", LEVELS)
def test_a_control_plane_that_runs_so_does_not_differ(level):
    configuration = harden(PLAIN, wanted(level)).configuration
    running = manifests(configuration)
    running["kube-apiserver"].setdefault("enable-admission-plugins", "NodeRestriction")  # kubeadm's own
    assert differences(configuration, running) == {}
    assert differences(harden(from_manifests(running), wanted(level)).configuration, running) == {}


def test_differences_are_named_by_component():
    baseline, cis = (harden(PLAIN, wanted(level)).configuration for level in ("baseline", "cis"))
    assert differences(cis, manifests(baseline))["controllerManager"] == ["terminated-pod-gc-threshold"]
    assert "scheduler" not in differences(cis, manifests(baseline))
    assert differences(baseline, manifests(cis))["controllerManager"] == ["terminated-pod-gc-threshold"]


def test_the_sites_values_come_first_on_a_cluster_that_runs():
    before = harden(PLAIN, wanted("baseline")).configuration
    site = {"apiServer": {"extraArgs": [{"name": "profiling", "value": "true"}, {"name": "v", "value": "4"}]}}
    after = harden(with_site(before, site), wanted("baseline"))
    assert extra(after.configuration)["profiling"] == "true"
    assert "v" not in extra(after.configuration)  # not of the table: it was for the creation of the cluster
    assert after.kept == ["profiling (kube-apiserver): --profiling=true"]


def test_an_old_configuration_is_refused():
    with pytest.raises(FabricError, match="kubeadm config migrate"):
        harden({**PLAIN, "apiVersion": "kubeadm.k8s.io/v1beta3"}, wanted("baseline"))


def test_the_table():
    names = [(setting.name, setting.component) for setting in SETTINGS]
    assert len(names) == len(set(names))
    assert {setting.level for setting in SETTINGS} == {"baseline", "cis"}


@pytest.mark.parametrize(("text", "release"), [("v1.35.4", (1, 35)), ("1.36.0-rc.1", (1, 36)), ("", (0, 0))])
def test_releases(text, release):
    assert parse_release(text) == release


SHORT = "service-account-extend-token-expiration"


def test_a_setting_is_left_out_and_taken_back():
    left_out = wanted("cis")._replace(left_out=frozenset({"token-expiration"}))
    assert extra(harden(PLAIN, wanted("cis")).configuration)[SHORT] == "false"
    assert SHORT not in extra(harden(PLAIN, left_out).configuration)
    assert SHORT not in extra(harden(harden(PLAIN, wanted("cis")).configuration, left_out).configuration)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("left_out", [(), ("token-expiration",)])
def test_what_the_site_says_itself_stays_even_if_a_level_says_the_same(level, left_out):
    """Its value is that of cis: with a lower level, or where the setting is left out, it went with each run."""
    asked, site = wanted(level)._replace(left_out=frozenset(left_out)), configured(**{SHORT: "false"})
    once = harden(PLAIN, asked, site).configuration
    assert extra(once)[SHORT] == "false"
    assert harden(once, asked, site).configuration == once

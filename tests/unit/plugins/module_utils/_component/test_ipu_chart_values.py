import re

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._component.ipu_operator import chart_values
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

RELEASES = ("1.1.0", "1.2.0")
CHARTS = {
    **{f"stand-in {r}": (r, ROOT / f"testbed/standins/charts/ipu-operator-{r}/values.yaml") for r in RELEASES},
    **{r: (r, ROOT.parent / f"shared/schemas/ipu-operator/{r}/values.yaml") for r in RELEASES},
}
CHARTS = {
    name: chart for name, chart in CHARTS.items() if chart[1].is_file()
}  # the vendor's are not in this repository
SPEC = yaml.safe_load((ROOT / "roles/ipu_operator/meta/argument_specs.yml").read_text())["argument_specs"]["main"][
    "options"
]
GROUPS = ("controller", "proxy", "launcher", "webhook", "certgen")
# What a chart names in a comment only, because its own application's release is the default.
COMMENTED = re.compile(r"^( +)# (tag|launcherImageTag|cpu): ", re.MULTILINE)
# The table of the operator's guide has it, and the values of 1.1.0 spell it otherwise.
TABLE_ONLY = {"global.launcherImagePullPolicy", "global.laucherImagePullPolicy"}
# Ignored by the templates, or not to be changed as the role and the certificate know the names.
LEFT_OUT = {
    "nameOverride",
    "fullnameOverride",
    "controller.podAnnotations",
    "controller.podSecurityContext",
    "vipuProxy.proxyPartitionTrackerConfigMap",
}
IGNORED = {"1.1.0": set(), "1.2.0": {"admissionWebhooks.failurePolicy", "global.kubectlVersion"}}
# They have defaults in the chart, and take any key.
DICTIONARIES = {"controller.resources", "vipuProxy.resources"}
FULL = {
    "vipu_controllers": [{"host": "10.5.0.20", "label": "vipu-ctrl=v1"}],
    "image_pull_secrets": ["registry"],
    **{
        f"{name}_image": f"registry.site:5000/graphcore/{name}:1"
        for name in ("controller", "proxy", "launcher", "certgen")
    },
}


def values(release, **settings):
    given = {"version": release, "certgen_image": "", **settings}
    return chart_values(defaults("ipu_operator", **given), bundle=False)


def example(option):
    kinds = {"bool": True, "int": 7, "list": [{"key": "a"}], "dict": {}, "str": "text"}
    return kinds[option["type"]]


def everything(release):
    groups = {
        name: {key: example(option) for key, option in SPEC[f"ipu_operator_{name}"]["options"].items()}
        for name in GROUPS
    }
    return values(release, **FULL, **groups)


def flat(tree, start=""):
    """The paths of all values; below a chart's empty dictionary everything is allowed."""
    found = {}
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            found.update(flat(value, f"{start}{key}."))
        else:
            found[start + key] = value
    return found


def below(path, keys):
    """Whether a path is one of the keys, or inside one."""
    parts = path.split(".")
    return any(".".join(parts[:size]) in keys for size in range(1, len(parts) + 1))


@pytest.mark.parametrize("name", CHARTS)
def test_every_value_is_one_of_the_chart(name):
    release, path = CHARTS[name]
    keys = flat(yaml.safe_load(COMMENTED.sub(r"\1\2: ", path.read_text())))
    assert {path for path in flat(everything(release)) if not below(path, set(keys) | DICTIONARIES)} <= TABLE_ONLY


@pytest.mark.parametrize("name", CHARTS)
def test_every_value_of_the_chart_can_be_set(name):
    release, path = CHARTS[name]
    settable = set(flat(everything(release))) | DICTIONARIES | LEFT_OUT
    assert {path for path in flat(yaml.safe_load(path.read_text())) if not below(path, settable)} <= IGNORED[release]


@pytest.mark.parametrize("release", RELEASES)
def test_nothing_set_is_nothing_rendered(release):
    assert values(release) == {
        "global": {"vipuControllers": "", "imagePullSecrets": []},
        "worker": {"hostNetwork": False},
    }


@pytest.mark.parametrize(
    ("release", "settings", "path", "value"),
    [
        ("1.2.0", {"proxy_image": "r:5000/a/proxy:2"}, "vipuProxy.image.repository", "r:5000/a/proxy"),
        ("1.2.0", {"proxy_image": "r:5000/a/proxy:2"}, "vipuProxy.image.tag", "2"),
        ("1.2.0", {"proxy_image": "r:5000/a/proxy"}, "vipuProxy.image.tag", None),
        ("1.2.0", {"launcher_image": "a/b@sha256:12"}, "global.launcherImage", "a/b@sha256"),
        ("1.2.0", {"launcher_image": "a/b:1@sha256:12"}, "global.launcherImageTag", "12"),
        ("1.2.0", {"certgen_image": "a/b"}, "admissionWebhooks.patch.image.repository", None),
        ("1.1.0", {"certgen_image": "a/b"}, "admissionWebhooks.patch.image.repository", "a/b"),
        ("1.2.0", {"image_pull_policy": "Never"}, "controller.image.pullPolicy", "Never"),
        ("1.2.0", {"image_pull_policy": "Never"}, "global.launcherImagePullPolicy", "Never"),
        ("1.1.0", {"image_pull_policy": "Never"}, "global.laucherImagePullPolicy", "Never"),
        ("1.2.0", {"image_pull_policy": "Never"}, "global.laucherImagePullPolicy", None),
        (
            "1.2.0",
            {"image_pull_policy": "Never", "proxy": {"image_pull_policy": "Always"}},
            "vipuProxy.image.pullPolicy",
            "Always",
        ),
        ("1.2.0", {"controller": {"devel_logs": "false"}}, "controller.develLogs", False),
        ("1.2.0", {"controller": {"devel_logs": None}}, "controller.develLogs", None),
        ("1.2.0", {"proxy": {"log_level": "3"}}, "vipuProxy.logLevel", 3),
        ("1.2.0", {"controller": {"host_network": True}}, "controller.hostNetwork", None),
        ("1.1.0", {"controller": {"host_network": False}}, "controller.hostNetwork", False),
        ("1.2.0", {"webhook": {"timeout": 10, "failure_policy": "Ignore"}}, "admissionWebhooks.failurePolicy", None),
        ("1.2.0", {"image_pull_secrets": ["a"]}, "global.imagePullSecrets", [{"name": "a"}]),
        ("1.2.0", {"worker_host_network": True}, "worker.hostNetwork", True),
    ],
)
def test_values(release, settings, path, value):
    assert flat(values(release, **settings)).get(path) == value

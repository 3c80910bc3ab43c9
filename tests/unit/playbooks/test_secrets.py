"""A secret in every input that may have one: no output, not even with -vvv --diff, and no file of a run has it."""

import base64
import json
import os
import subprocess
import sys

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._component.kubernetes_host import mirror_file
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import COMPILED, ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play
from ansible_collections.ipu.fabric.tests.unit.fixtures.secret_inputs import INPUTS, is_public, leaked, may_be_secret
from ansible_collections.ipu.fabric.tests.unit.fixtures.terminal import LIMIT
from ansible_collections.ipu.fabric.tests.unit.fixtures.web_server import Quiet, serving
from ansible_collections.ipu.fabric.tests.unit.playbooks.test_api import GROUPS, answers
from ansible_collections.ipu.fabric.tests.unit.playbooks.test_hardening import run as harden
from ansible_collections.ipu.fabric.tests.unit.playbooks.test_kubernetes import node

MARKER = "planted-4711"
ENCODED = base64.b64encode(f"me:{MARKER}".encode()).decode()
ENV = [{"name": "PLAIN", "value": MARKER}]
VALUES = {"deep": [{"plain": MARKER}]}
POD = {"containers": [{"name": "a", "image": "a", "env": ENV}]}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "a", "namespace": "default"},
    "spec": {"template": {"spec": POD}},
}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"plain": MARKER}}
HERE = {"hosts": "localhost", "gather_facts": False, "connection": "local"}


def assert_kept(text, folder):
    """Neither the output nor a file that the run has left has it."""
    written = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()} if folder.exists() else {}
    for word in (MARKER, ENCODED):
        assert word not in text, text[max(0, text.index(word) - 2000) : text.index(word) + 200]
        assert [name for name, content in written.items() if word.encode() in content] == []


def given_to(*roles, without=()):
    """A secret in every variable of these roles that may have one."""
    return {name: value for role in roles for name, value in INPUTS[role].items() if name not in without}


def found_in(done, folder, *where):
    """Variables whose secret is in the output, in the log or in a file that the run has left there."""
    left = [path for place in ("artifacts", "log", *where) for path in (folder / place).rglob("*") if path.is_file()]
    return {
        name for text in [done.text, *(path.read_text("utf-8", "replace") for path in left)] for name in leaked(text)
    }


def shown(folder, playbook, groups, found, *arguments, **variables):
    """Run it as wordy as can be: what modules were called with is shown."""
    (folder / "log").mkdir(parents=True, exist_ok=True)
    log = {"ANSIBLE_LOG_PATH": str(folder / "log/ansible.log")}
    done = play(folder, playbook, groups, found, "-vvv", "--diff", *arguments, environment=log, shown=True, **variables)
    assert not done.calls or "module_args" in (folder / "log/ansible.log").read_text("utf-8")
    return done


def test_every_variable_that_may_have_a_secret_is_in_the_table():
    """By its name, or as data whose keys the role does not name."""
    specs = {
        path.parts[-3]: yaml.safe_load(path.read_text("utf-8"))["argument_specs"]
        for path in ROOT.glob("roles/*/meta/argument_specs.yml")
    }
    options = {
        (role, name): option
        for role, entries in specs.items()
        for entry in entries.values()
        for name, option in entry.get("options", {}).items()
    }
    listed = {(role, name) for role, variables in INPUTS.items() for name in variables}
    asked = {place for place, option in options.items() if may_be_secret(place[1], option) and not is_public(place[1])}
    assert asked - listed == set()
    assert listed - set(options) == set()


# Bare hosts with containerd or Docker, and a fabric by either stack: between them they take all variables of a site.
SITES = [
    ("ipu.fabric.kubernetes", {}),
    ("ipu.fabric.kubernetes", {"fabric_runtime": "docker", "fabric_mirror": {}}),
    ("ipu.fabric.fabric", {"fabric_gpu": True}),
    ("ipu.fabric.fabric", {"fabric_stack": "spiderpool", "fabric_ofed": {}}),
]


@pytest.mark.parametrize(("playbook", "settings"), SITES)
def test_a_site_keeps_its_secrets(tmp_path, playbook, settings):
    found = answers()
    found["kubernetes_node_info"] = {
        host: {"node": {**node(name, "none"), "architecture": "x86_64"}}
        for host, name in {"cp1": "node11", "w1": "node12", "w2": "node13"}.items()
    }
    found["apt_packages"] = {"*": {"versions": {"containerd.io": "2.2.1", "docker-ce": "29.1"}}}
    found["systemd_units"] = {"*": {"stale": [], "restarted": []}}
    found["port_probe"] = {"*": {"lacking": []}}
    found["kubeadm"] = {"*": {"failed": True, "msg": "enough"}}
    roles = ("fabric", "kubernetes", "network_operator", "ipu_operator", "gpu_operator", "spiderpool", "whereabouts")
    # A site gives them to the role by others.
    without = ("kubernetes_registry_auth", "kubernetes_proxy", "network_operator_ofed_driver")
    given = {"fabric_probe_ports": False, "fabric_cni": "none", "fabric_mirror": {"registry": "mirror.site:5000"}}
    given = {**given, **given_to(*roles, without=without), **settings}
    done = shown(tmp_path, playbook, GROUPS, found, "--check", **given)
    downloads = [call for call in done.calls if call.module in ("apt_packages", "helm_release", "port_probe")]
    assert {call.options["download_proxy"]["http"] for call in downloads} == {given["fabric_proxy"]["http"]}, done.text
    assert found_in(done, tmp_path) == set()


ALONE = {
    "chrony": {"chrony_servers": ["ntp1.site"], "chrony_wait": 0},
    "embedded_containerd": {},
    "native_workload": {"native_workload_name": "a", "native_workload_image": "a"},
    "network_operator": {"network_operator_nfd": True},
    "spiderpool": {},
    "whereabouts": {},
    "bundle": {
        "bundle_path": "/nowhere",
        "bundle_plan": {"hosts": {}, "releases": {"components": {}, "cni_images": []}},
        "bundle_platforms": ["debian-bookworm-amd64"],
    },
}


def test_a_role_on_its_own_keeps_them(tmp_path):
    """One play after another, in one run."""
    plays = [
        {
            **HERE,
            "tasks": [{"ansible.builtin.import_role": {"name": f"ipu.fabric.{role}"}}],
            "vars": {**INPUTS[role], **settings},
        }
        for role, settings in ALONE.items()
    ]
    found = {
        **answers(),
        "embedded_containerd": {"*": {"stale": [], "server": False, "node": "a", "distribution": "k3s"}},
    }
    done = shown(tmp_path, plays, {"all": []}, found, "--check")
    assert done.code == 0, done.text
    assert {call.module for call in done.calls} >= {
        "apt_packages",
        "bundle",
        "embedded_containerd",
        "helm_release",
        "kube_apply",
    }
    assert found_in(done, tmp_path) == set()


@pytest.mark.parametrize(
    "wrong",
    [
        {"fabric_registry_auth": f"me:{MARKER}", "fabric_proxy": f"http://me:{MARKER}@proxy.site:3128"},
        {"fabric_mirror": {"helm": {"url": f"https://me:{MARKER}@mirror.site/helm-v3.22.0-linux-amd64.tar.gz"}}},
    ],
)
def test_a_wrong_value_is_not_shown(tmp_path, wrong):
    done = shown(tmp_path, "ipu.fabric.plan", GROUPS, answers(), fabric_probe_ports=False, **wrong)
    assert done.code != 0
    assert all(name in done.text for name in wrong), done.text
    assert MARKER not in done.text
    assert_kept(done.text, tmp_path / "artifacts")


TOKEN, KEY = "abcdef.planted471100000", "planted-key-4711"
JOIN = {"endpoint": "cp1:6443", "token": TOKEN, "ca_hashes": ["sha256:1"], "certificate_key": KEY}
CONFIGURED = (
    "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\napiServer:\n  extraArgs:\n"
    "  - {name: encryption-provider-config, value: /etc/kubernetes/hardening/encryption.yaml}\n"
)


@pytest.mark.parametrize("joins", [True, False])
def test_what_hosts_join_with_is_not_shown(tmp_path, joins):
    """Token, certificate key, keys of Secrets, and the administrator's kubeconfig, also when the join fails."""
    failed = {"failed": True, "msg": "the API server does not answer"}
    encryption = {"order": ["key1", "identity"], "digests": {"key1": "ab"}, "used": True, "keys": {}}
    found = {
        "control_plane": {"*": {"configuration": CONFIGURED, "encryption": encryption}},
        "secrets_encryption": {
            "*": encryption,
            "* secrets": {**encryption, "keys": {"key1": MARKER}},
        },
        "kubeadm": {"* token": {"discovery": JOIN}, "cp3 join": {} if joins else failed},
    }
    (tmp_path / "admin").write_text(f"kind: Config\nclusters: []\nusers: [{{user: {{token: {MARKER}}}}}]\n")
    (tmp_path / "log").mkdir()
    done = harden(
        tmp_path, "-vvv", "--diff", states={"cp3": "none"}, answers=found, shown=True,
        environment={"ANSIBLE_LOG_PATH": str(tmp_path / "log/ansible.log")},
        _kubernetes_admin_kubeconfig=str(tmp_path / "admin"), fetched=True,
        kubernetes_join_retries=0,
    )  # fmt: skip
    assert (done.code == 0) == joins, done.text
    assert done.where("kubeadm", command="join") == ["cp3"]
    assert [call.host for call in done.calls if call.options.get("state") == "copied"] == ["cp3"]
    log = (tmp_path / "log/ansible.log").read_text("utf-8")
    for secret in (TOKEN, KEY, MARKER):
        assert secret not in done.text + log, done.text[done.text.find(secret) - 1000 :][:1100]
    assert (tmp_path / "admin.conf").stat().st_mode & 0o777 == 0o600


def test_the_file_with_the_login_is_for_root_alone():
    login = {"username": "me", "password": MARKER}
    mirror = {"registry_mirror": "https://mirror.site", "registry_auth": login}
    file = mirror_file(defaults("kubernetes", "kubernetes_host", **mirror))
    assert file.mode == "0600"
    assert f'authorization = "Basic {ENCODED}"' in file.content


URL = f"http://me:{MARKER}@127.0.0.1:9"
PROXY = {"http": URL, "https": URL}
LOGGED_IN = {
    "apiVersion": "v1", "kind": "Config", "current-context": "a",
    "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:{{ port }}"}}],
    "users": [{"name": "a", "user": {"token": MARKER}}],
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
}  # fmt: skip
CHART = {
    "name": "a",
    "namespace": "a",
    "chart": "a",
    "chart_version": "1.0.0",
    "values": VALUES,
    "download_proxy": PROXY,
}
SOURCE = {"kind": "file", "variable": "a", "name": "", "version": "", "release": "", "images": []}
TASKS = [
    {"ipu.fabric.systemd_units": {"files": [
        {"path": "{{ folder }}/hosts.toml", "mode": "0600", "content": f'authorization = "Basic {ENCODED}"\n'}
    ]}},
    {"ipu.fabric.kube_apply": {"kubeconfig": "{{ folder }}/none", "objects": [DEPLOYMENT, SECRET]}},
    {"ipu.fabric.kube_apply": {"kubeconfig": LOGGED_IN, "objects": [DEPLOYMENT, SECRET]}},
    {"ipu.fabric.helm_release": {"kubeconfig": "{{ folder }}/none", **CHART}},
    {"ipu.fabric.helm_release": {"kubeconfig": LOGGED_IN, **CHART}},
    {"ipu.fabric.ipujob": {
        "kubeconfig": "{{ folder }}/none", "name": "a", "namespace": "a", "launcher": {"command": ["a"], "env": ENV},
        "workers": {"template": {"spec": POD}}, "ipus_per_job_instance": 1,
    }},
    {"ipu.fabric.program": {"url": "http://127.0.0.1:9/a", "path": "{{ folder }}/a", "download_proxy": PROXY}},
    {"ipu.fabric.port_probe": {
        "step": "images", "mirror": "http://127.0.0.1:9", "images": ["a.invalid/a:1"],
        "login": {"username": "a", "password": MARKER}, "download_proxy": PROXY,
    }},
    {"ipu.fabric.apt_packages": {"download_proxy": PROXY, "sets_proxy": True}, "check_mode": True},
    {"ipu.fabric.systemd_units": {"files": [
        {"path": "{{ folder }}/proxy.env", "mode": "0600", "content": f'HTTP_PROXY="{URL}"\n'}
    ]}},
    {"ipu.fabric.bundle": {
        "path": "{{ folder }}/bundle", "releases": {}, "platforms": ["debian-bookworm-amd64"], "charts": [CHART],
        "helm": {"url": "", "checksum": ""}, "download_proxy": PROXY,
    }, "check_mode": True},
    {"ipu.fabric.embedded_containerd": {"config": {"password": MARKER}}, "check_mode": True},
    {"ipu.fabric.host_info": {
        "links": False, "vipu": {"executable": "{{ folder }}/vipu", "config": "{{ folder }}/vipu.conf", "timeout": 5},
        "download_proxy": PROXY,
        "sources": [{**SOURCE, "url": URL}],
    }},
]  # fmt: skip
# It says what it was called with, and repeats the key of its configuration, as the real one does.
VIPU = f"#!/bin/sh\necho \"$0 $@\" >> FOLDER/log/commands\necho 'denied, api-access-key={MARKER}' >&2\nexit 1\n"
# Where modules leave a line for the log of their host.
SYSLOG = """
LOG_USER = LOG_INFO = 0
openlog = lambda *_words: None
def syslog(_level, text):
    with open(FOLDER + "/log/syslog", "a") as file:
        file.write(text + chr(10))
"""


class Refusing(Quiet):
    """An API server that answers, and knows nobody: one that doesn't answer would be waited for."""

    def send(self):
        self.send_error(401)

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self.send
        raise AttributeError(name)


@pytest.fixture
def port():
    with serving(Refusing) as port:
        yield port


def test_modules_keep_them(tmp_path, port):
    """The real ones, most of which fail for want of a cluster: neither output nor log of the host have any."""
    (tmp_path / "log").mkdir()
    (tmp_path / "python").mkdir()
    (tmp_path / "python/syslog.py").write_text(f"FOLDER = {str(tmp_path)!r}\n{SYSLOG}")
    (tmp_path / "python/systemd.py").touch()  # else the journal would be asked
    (tmp_path / "vipu").write_text(VIPU.replace("FOLDER", str(tmp_path)))
    (tmp_path / "vipu").chmod(0o755)
    (tmp_path / "vipu.conf").write_text(f"api-access-key={MARKER}\n")
    blocks = [{"block": [task], "rescue": [{"ansible.builtin.debug": {"msg": "it has failed"}}]} for task in TASKS]
    source = tmp_path / "play.json"
    source.write_text(json.dumps([{**HERE, "tasks": blocks}]), encoding="utf-8")
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections"),
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "ANSIBLE_LOG_PATH": str(tmp_path / "log/ansible.log"),
        "ANSIBLE_LOCAL_TEMP": str(tmp_path / "tmp"),
        "ANSIBLE_REMOTE_TEMP": str(tmp_path / "tmp"),
        **COMPILED,
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "python"), COMPILED["PYTHONPATH"]]),
    }
    program = [sys.executable, "-m", "one_process", "-vvv", "--diff", "-i", "localhost,", str(source)]
    done = subprocess.run(
        [*program, "-e", f"folder={tmp_path} port={port}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("module_args") >= len(TASKS), done.stdout
    assert "Invoked with" in (tmp_path / "log/syslog").read_text()
    assert "--server-version" in (tmp_path / "log/commands").read_text()
    assert_kept(done.stdout + done.stderr, tmp_path / "log")

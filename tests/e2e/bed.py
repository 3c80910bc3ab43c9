"""A testbed as the tests use it: run playbooks on it, and say what state its hosts and its cluster are in."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

HOSTS = ("cp1", "w1")
KUBECTL = "kubectl --kubeconfig /etc/kubernetes/admin.conf"  # on a control plane
CACHE = Path(os.environ.get("IPU_FABRIC_CACHE") or Path.home() / ".cache/ipu-fabric")
# Where a role may leave something behind on a host, and what tests change there themselves.
CONFIGURED = "/etc /usr /opt /var/lib/dpkg"
WATCHED = f"{CONFIGURED} /var/lib/kubelet /var/lib/etcd"  # on hosts without a cluster, which itself writes there
OURS = r"/etc/vipu-standin|/usr/local/bin/vipu|/etc/testbed|__pycache__"

# Without backup files: their names have the time in them.
HOST_STATE = """
set -u
dpkg-query -W -f '${Package} ${Version} ${Status}\\n' 'kube*' 'containerd*' cri-tools 2>/dev/null | sort
apt-mark showhold | sort | sed 's/^/hold /'
find /etc/containerd /etc/modules-load.d /etc/sysctl.d /etc/apt/sources.list.d /etc/apt/keyrings \
    /etc/apt/preferences.d /etc/systemd/system /etc/fstab /etc/crictl.yaml /etc/default/kubelet /opt/cni/bin \
    -type f ! -name '*~' -exec sha256sum {} + 2>/dev/null | sort -k 2
find /etc/kubernetes /var/lib/kubelet/pki /etc/cni -printf '%p %m\\n' 2>/dev/null | grep -v 'kubelet-client-20' | sort
for unit in containerd kubelet; do echo "$unit $(systemctl is-active $unit) $(systemctl is-enabled $unit)"; done
systemctl show containerd -p LimitMEMLOCK
"""


@dataclasses.dataclass(frozen=True)
class Result:
    code: int
    text: str
    seconds: float

    @property
    def shown(self) -> str:
        """The output without the quotes that debug puts around lines."""
        return re.sub(r'^ +"(.*?)",?$', r"\1", self.text, flags=re.MULTILINE)

    @property
    def recap(self) -> dict[str, dict[str, int]]:
        """The counters of the play recap, by host."""
        rows = re.findall(r"^(\S+)\s+: (ok=.*)$", self.text, re.MULTILINE)
        return {host: {key: int(n) for key, n in re.findall(r"(\w+)=(\d+)", counts)} for host, counts in rows}

    def changed(self) -> dict[str, int]:
        return {host: counts["changed"] for host, counts in self.recap.items() if counts["changed"]}

    def tail(self, lines: int = 60) -> str:
        return "\n".join(self.text.splitlines()[-lines:])


class Bed:
    def __init__(self, number: str, artifacts: Path, variables: dict[str, Any]) -> None:
        self.number, self.artifacts, self.variables = number, artifacts, variables
        self.inventory = CACHE / "testbed" / number / "inventory" / "hosts.yml"
        self.hosts = "used"  # or: bare, finished

    # -- the testbed

    def testbed(self, *words: str) -> str:
        done = subprocess.run(
            [ROOT / "testbed/testbed", *words],
            env=os.environ | {"TESTBED_ID": self.number},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"testbed {' '.join(words)}: {done.stdout[-3000:]}"
        if words[0] in ("reset", "control-planes"):
            self.hosts = "bare" if words == ("reset",) else "used"
        return done.stdout

    def finish(self) -> None:
        """Let site build a cluster, unless it has done so already."""
        if self.hosts != "finished":
            assert self.play("site").code == 0
            self.hosts = "finished"

    def fresh(self) -> None:
        """Take new hosts, unless nothing was done to these."""
        if self.hosts != "bare":
            self.testbed("reset")

    def start_on(self, host: str, command: str) -> subprocess.Popen[bytes]:
        """A shell command on a host, that goes on."""
        words = ["podman", "exec", f"ipu-fabric-{self.number}-{host}", "sh", "-c", command]
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def on(self, host: str, command: str, check: bool = True) -> str:
        """What a shell command on a host prints."""
        words = ["podman", "exec", f"ipu-fabric-{self.number}-{host}", "sh", "-c", command]
        if host.startswith("roce"):
            words = [str(ROOT / "testbed/testbed"), "exec", host, "--", command]
        done = subprocess.run(
            words,
            env=os.environ | {"TESTBED_ID": self.number},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 or not check, f"{host}: {command}: {done.stderr[-2000:]}"
        return done.stdout

    def reboot(self, host: str) -> None:
        """Reboot a virtual machine and wait until it has."""
        ask = "cat /proc/sys/kernel/random/boot_id"
        before, deadline = self.on(host, ask), time.monotonic() + 900
        self.on(host, "systemd-run --on-active=2 systemctl reboot")
        while self.on(host, ask, check=False) in ("", before):
            assert time.monotonic() < deadline, f"{host} is not back"
            time.sleep(5)

    # -- playbooks

    def command(self, playbook: str, *arguments: str, inventory: Path | None = None, **variables: Any) -> list[str]:
        # What is proved differs from test to test on purpose.
        usual = {"fabric_artifacts_dir": str(self.artifacts), "verify_baseline": "none"}
        extra = {**usual, **self.variables, **variables}
        names = [name if name.endswith(".yml") else f"ipu.fabric.{name}" for name in playbook.split()]
        return ["ansible-playbook", "-i", str(inventory or self.inventory), "-e", json.dumps(extra), *arguments, *names]

    def play(self, playbook: str, *arguments: str, **options: Any) -> Result:
        return self.run(f"{playbook} {' '.join(arguments)}", self.command(playbook, *arguments, **options))

    def prove(self, plan: dict[str, Any], **variables: Any) -> Result:
        """The proof alone, of an existing plan: no host is observed."""
        (self.artifacts / "report.json").unlink(missing_ok=True)
        given = {
            "verify_plan": plan,
            "verify_kubeconfig": str(self.artifacts / "admin.conf"),
            "verify_artifacts_dir": str(self.artifacts),
        }
        play = {"hosts": "cp1", "gather_facts": False, "roles": ["ipu.fabric.verify"], "vars": given}
        playbook = self.artifacts / "prove.yml"
        playbook.write_text(json.dumps([play]))
        return self.play(str(playbook), **variables)

    def example(self, name: str, **variables: Any) -> Result:
        """Run a playbook of docs/examples; there is no RDMA hardware here."""
        extra = {
            "fabric_kubeconfig": str(self.artifacts / "admin.conf"),
            "logs": str(self.artifacts / "logs"),
            "rdma_resource": "",
            **variables,
        }
        path = ROOT / "docs" / "examples" / f"{name}.yml"
        return self.run(f"example {name}", ["ansible-playbook", "-e", json.dumps(extra), str(path)])

    def module(self, called: str, /, **options: Any) -> dict[str, Any]:
        """Run a module of the collection as `ansible -m` does."""
        arguments = json.dumps({"kubeconfig": str(self.artifacts / "admin.conf"), **options})
        done = subprocess.run(
            ["ansible", "localhost", "-m", f"ipu.fabric.{called}", "-a", arguments],
            env=os.environ | {"ANSIBLE_NOCOLOR": "1", "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections")},
            cwd=self.artifacts,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        result = json.loads(done.stdout.partition("=> ")[2] or json.dumps({"msg": done.stdout + done.stderr}))
        return {"failed": done.returncode != 0, **result}

    def run(self, title: str, command: list[str], folder: Path | None = None) -> Result:
        """Run a command in a folder, or among the artifacts."""
        begin, folder = time.monotonic(), folder or self.artifacts
        ansible = {"ANSIBLE_NOCOLOR": "1", "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections")}
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | ansible | {"PWD": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        result = Result(done.returncode, done.stdout, time.monotonic() - begin)
        if self.hosts == "bare" and result.code == 0:
            self.hosts = "used"
        print(f"$ {title} ({result.seconds:.0f} s, exit {result.code})")
        print(result.text if result.code else result.tail(8))
        return result

    def play_until(self, playbook: str, moment: Callable[[str], bool], limit: float = 600, **variables: Any) -> str:
        """Start a playbook and SIGKILL its process group as soon as `moment` is true of its output so far."""
        log, self.hosts = self.artifacts / "killed.log", "used"
        with log.open("w") as output:
            process = subprocess.Popen(
                self.command(playbook, **variables),
                cwd=self.artifacts,
                env=os.environ | {"ANSIBLE_NOCOLOR": "1", "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections")},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + limit
        try:
            while not moment(log.read_text()):
                assert process.poll() is None, f"ended before the moment came:\n{log.read_text()[-5000:]}"
                assert time.monotonic() < deadline, f"the moment did not come in {limit} s:\n{log.read_text()[-5000:]}"
                time.sleep(0.2)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return log.read_text()

    # -- state

    def plan(self) -> dict[str, Any]:
        return json.loads((self.artifacts / "plan.json").read_text())

    def errors(self) -> list[dict[str, Any]]:
        return [finding for finding in self.plan()["findings"] if finding["level"] == "error"]

    def fingerprint(self, where: str = WATCHED) -> dict[str, str]:
        """Every file below these directories with its size, mode and time of change, for each host."""
        command = f"find {where} -printf '%p %y %m %s %T@\\n' 2>/dev/null | grep -vE '{OURS}' | sort"
        return {host: self.on(host, command, check=False) for host in HOSTS}

    def kubectl(self, *words: str) -> Any:
        command = f"{KUBECTL} -o json {' '.join(words)}"
        return json.loads(self.on("cp1", command))

    def state(self) -> dict[str, Any]:
        """What a run leaves behind, without what differs from run to run: times, certificates, addresses of pods."""
        state: dict[str, Any] = {host: self.on(host, HOST_STATE, check=False).splitlines() for host in HOSTS}
        for node in self.kubectl("get nodes")["items"]:
            labels = {key: value for key, value in node["metadata"]["labels"].items() if "nfd" not in key}
            taints = [taint["key"] for taint in node["spec"].get("taints", [])]
            state[f"node {node['metadata']['name']}"] = {"labels": labels, "taints": taints, "ready": _ready(node)}
        for kind in ("deployments", "daemonsets"):
            for item in self.kubectl(f"get {kind} -A")["items"]:
                images = [container["image"] for container in item["spec"]["template"]["spec"]["containers"]]
                state[f"{kind} {_name(item)}"] = images
        for kind in (
            "macvlannetworks.mellanox.com",
            "network-attachment-definitions",
            "nicclusterpolicies.mellanox.com",
        ):
            for item in self.kubectl(f"get {kind} -A")["items"]:
                state[f"{kind} {_name(item)}"] = item["spec"]
        for item in self.kubectl("get secrets -A -l owner=helm")["items"]:
            labels = item["metadata"]["labels"]
            if labels["status"] != "superseded":
                state[f"helm {labels['name']}"] = labels["status"]
        return state


def wait_for(what: str, met: Callable[[], object], limit: float = 600) -> None:
    end = time.monotonic() + limit
    while not met():
        assert time.monotonic() < end, f"{what}: not within {limit} s"
        time.sleep(1)


def _name(item: dict[str, Any]) -> str:
    return f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}"


def _ready(node: dict[str, Any]) -> bool:
    return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in node["status"]["conditions"])


@contextlib.contextmanager
def vipu(bed: Bed, mode: str) -> Iterator[None]:
    """The `vipu` command of all hosts in another mode, for a while."""
    bed.testbed("vipu", mode)
    try:
        yield
    finally:
        bed.testbed("vipu", "json")

"""A real etcd and a real API server on loopback, and the modules run against them in this process."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import socket
import subprocess
import sys
import time
import typing as t
import unittest.mock
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

MODULES = "ansible_collections.ipu.fabric.plugins.modules."
TOKEN = "integration"
NAD_CRD = "network-operator/26.4.1/k8s.cni.cncf.io_networkattachmentdefinitions_crd.yaml"  # below the schemas
Result = t.Dict[str, t.Any]


class ModuleFailedError(Exception):
    """A module ended with fail_json."""

    def __init__(self, result: Result) -> None:
        self.result = result
        super().__init__(result["msg"])


def programs() -> Path:
    """Where the testbed's programs are. CI has them built before; elsewhere the tests can be skipped."""
    given = os.environ.get("IPU_FABRIC_BIN")
    return Path(given) if given else built("bin")


def built(what: str) -> Path:
    """The directory that a command of the testbed builds, and prints."""
    found = subprocess.run([ROOT / "testbed" / "testbed", what], capture_output=True, text=True, check=False)
    if found.returncode == 0:
        return Path(found.stdout.strip().splitlines()[-1])
    message = f"the testbed's programs can't be built: {found.stderr.strip()[-300:]}"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


def eventually(check: t.Callable[[], t.Any], seconds: float = 30) -> t.Any:
    """What a check finds, as soon as it finds something; what it found last, when the time is up."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            found = check()
        except OSError:
            found = None
        if found or time.monotonic() > deadline:
            return found
        time.sleep(0.5)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def service_account_key(path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    private, plain = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, private, plain))


class ApiServer:
    """etcd and kube-apiserver without controllers: what nobody writes stays as it is."""

    def __init__(self, binaries: Path, state: Path) -> None:
        self.binaries, self.state = binaries, state
        self.port, self.processes = free_port(), []  # type: int, t.List[subprocess.Popen[bytes]]
        self.kubeconfig = state / "kubeconfig"

    def start(self) -> None:
        client, peer = free_port(), free_port()
        (self.state / "tokens").write_text(f"{TOKEN},tester,tester,system:masters\n")
        service_account_key(self.state / "sa.key")
        key = self.state / "sa.key"
        self.spawn(
            "etcd", f"--data-dir={self.state}/etcd", f"--listen-client-urls=http://127.0.0.1:{client}",
            f"--advertise-client-urls=http://127.0.0.1:{client}", f"--listen-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}", f"--initial-cluster=default=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync",
        )  # fmt: skip
        self.spawn(
            "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{client}", f"--secure-port={self.port}",
            "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", f"--cert-dir={self.state}/certs",
            f"--token-auth-file={self.state}/tokens", "--service-account-issuer=https://localhost",
            f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
            "--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--allow-privileged",
        )  # fmt: skip
        self.kubeconfig.write_text(json.dumps(self.config()))
        self.kubeconfig.chmod(0o600)
        self.wait()

    def config(self) -> Result:
        server = {"server": f"https://127.0.0.1:{self.port}", "insecure-skip-tls-verify": True}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "loopback", "cluster": server}],
            "users": [{"name": "tester", "user": {"token": TOKEN}}],
            "contexts": [{"name": "loopback", "context": {"cluster": "loopback", "user": "tester"}}],
            "current-context": "loopback",
        }

    def spawn(self, program: str, *args: str) -> None:
        with open(self.state / f"{program}.log", "wb") as log:
            self.processes.append(subprocess.Popen([self.binaries / program, *args], stdout=log, stderr=log))

    def wait(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.kubectl("get", "--raw=/readyz", check=False).returncode == 0:
                return
            if any(process.poll() is not None for process in self.processes):
                break
            time.sleep(0.3)
        logs = "\n".join(log.read_text()[-2000:] for log in sorted(self.state.glob("*.log")))
        raise RuntimeError(f"the API server did not come up:\n{logs}")

    def kubectl(self, *args: str, stdin: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [str(self.binaries / "kubectl"), f"--kubeconfig={self.kubeconfig}", *args]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=check)

    def get(self, *args: str) -> Result:
        result: Result = json.loads(self.kubectl("get", *args, "-o", "json").stdout)
        return result

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
            process.wait(20)


class Modules:
    """Runs modules the way Ansible does, less the copying: arguments in, JSON out."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def __call__(self, module: str, /, *, check: bool = False, **params: t.Any) -> Result:
        arguments = {"kubeconfig": str(self.kubeconfig), "_ansible_check_mode": check, "_ansible_diff": True, **params}
        output = io.StringIO()
        # Tests that render templates bring Ansible's controller into this process; modules never share one with it.
        apart = unittest.mock.patch("ansible.module_utils._internal.is_controller", False)
        with apart, patch_module_args(arguments), contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
            importlib.import_module(MODULES + module).main()
        result: Result = json.loads(output.getvalue().strip().splitlines()[-1])
        if result.get("failed"):
            raise ModuleFailedError(result)
        return result


def run_playbook(playbook: Path, *options: str, **variables: t.Any) -> subprocess.CompletedProcess[str]:
    """A playbook on this machine, with the ansible-playbook of this checkout."""
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache" / "collections"),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "ANSIBLE_NOCOLOR": "true",
    }
    program = str(Path(sys.executable).parent / "ansible-playbook")
    command = [program, str(playbook), *options, "-e", json.dumps(variables)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)


def crds(*paths: Path) -> t.List[Result]:
    """The CustomResourceDefinitions in files."""
    documents = (document for path in paths for document in yaml.safe_load_all(path.read_text()))
    return [document for document in documents if document]

"""Renewal of certificates on a host of files, whose kubeadm, kubelet and static pods do what real ones do with them."""

import base64
import datetime
import os
import signal
import subprocess
import time

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import certificates, kubectl
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import paths, program, renewal, static_pods
from ansible_collections.ipu.fabric.tests.unit.fixtures import module as fake
from ansible_collections.ipu.fabric.tests.unit.fixtures.certificates import certificate

PODS = list(static_pods.STATIC_PODS)
KEY = "-----BEGIN RSA PRIVATE KEY-----\nc2VjcmV0\n-----END RSA PRIVATE KEY-----\n"
REFERENCE = "    client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem\n"


def pem(days):
    return certificate(datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)).decode()


def encode(text):
    return base64.b64encode(text.encode()).decode()


def kubeconfig(days):
    return f"    client-certificate-data: {encode(pem(days))}\n    client-key-data: {encode(KEY)}\n"


class Host(fake.Module):
    """A node, as the module's AnsibleModule and as the programs that it calls."""

    def __init__(self, root, **params):
        self.root, self.killed, self.calls, self.next_pid = root, [], [], 1000
        self.booted = int(time.time()) - 100000
        self.renews, self.dies_at, self.ready = True, "", True
        super().__init__(
            **{
                "days": 30,
                "force": False,
                "node_name": "cp1",
                "client": "",
                "wait": True,
                "ready_timeout": 0,
                "lock_timeout": 0,
                "timeout": 60,
                **params,
            }
        )

    def put(self, path, text, age=0.0):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        written = time.time() - age
        os.utime(target, (written, written))

    def put_leaves(self, days, age=0.0, names=tuple(certificates.LEAVES)):
        for name in names:
            path = certificates.LEAVES[name]
            self.put(path, kubeconfig(days) if path.endswith(".conf") else pem(days), age)

    def control_plane(self, days, kubelet=300):
        """Of this morning, by its files and processes."""
        self.put_leaves(days, age=40000)
        for path in certificates.AUTHORITIES.values():
            self.put(path, pem(3650))
            self.put(path.replace(".crt", ".key"), KEY)
        for name in PODS:
            self.put(
                f"etc/kubernetes/manifests/{name}.yaml", "- --advertise-address=10.88.0.11\n- --secure-port=6443\n"
            )
            self.start(name, 30000)
        self.kubelet(kubelet)

    def kubelet(self, days, serving=300):
        self.put("etc/kubernetes/kubelet.conf", REFERENCE + REFERENCE.replace("certificate", "key"))
        self.put("var/lib/kubelet/pki/kubelet-client-current.pem", pem(days) + KEY)
        self.put("var/lib/kubelet/pki/kubelet.crt", pem(serving))
        self.put("var/lib/kubelet/pki/kubelet.key", KEY)

    def start(self, name, age):
        """A process of this name, that old, in the network of the host."""
        self.next_pid += 1
        folder = self.root / "proc" / str(self.next_pid)
        (folder / "ns").mkdir(parents=True)
        (folder / "ns/net").symlink_to("net:[1]")
        ticks = int((time.time() - self.booted - age) * os.sysconf("SC_CLK_TCK"))
        fields = ["S", *["0"] * 18, str(ticks), "0"]
        (folder / "stat").write_text(f"{self.next_pid} ({name[:15]}) {' '.join(fields)}\n")

    def end_process(self, process):
        folder = self.root / "proc" / str(process.pid)
        name = next(pod for pod in PODS if f"({pod[:15]})" in (folder / "stat").read_text())
        self.killed.append(name)
        (folder / "stat").unlink()
        (folder / "ns/net").unlink()
        (folder / "ns").rmdir()
        folder.rmdir()
        self.start(name, 0)

    def run_program(self, argv, timeout=30, **options):
        if argv[0] == "kubectl":
            self.commands.append(argv)
            return Done(0, '{"kind": "Node"}') if self.ready else Done(1, "", "it is down")
        words = " ".join([os.path.basename(argv[0]), *[word for word in argv[1:] if "config=" not in word]])
        self.calls.append(words)
        if self.dies_at and self.dies_at in words:
            raise KeyboardInterrupt
        if "certs renew all" in words and self.renews:
            self.put_leaves(365)
        if words == "systemctl restart kubelet" and not (self.root / "var/lib/kubelet/pki/kubelet.crt").exists():
            assert not (self.root / "var/lib/kubelet/pki/kubelet.key").exists(), (
                "half a pair: the kubelet does not start"
            )
            self.put("var/lib/kubelet/pki/kubelet.crt", pem(365))
            self.put("var/lib/kubelet/pki/kubelet.key", KEY)
        return Done(0, kubeconfig(365) if "kubeconfig user" in words else "v1.35.4\n", "")

    def apply(self, check_mode=False):
        self.check_mode = check_mode
        return renewal.Renewal(self).apply()

    def ends(self):
        """In how many days each certificate ends."""
        found = certificates.read_certificates(str(self.root))
        return {each["name"]: round(certificates.seconds_left(each, time.time()) / 86400) for each in found}


@pytest.fixture
def host(tmp_path, monkeypatch):
    made = Host(tmp_path / "root")
    monkeypatch.setattr(paths, "ROOT", str(made.root))
    for name in ("LOCK", "CONFIG"):
        monkeypatch.setattr(paths, name, str(tmp_path / "run" / name.lower()))
    monkeypatch.setattr(paths, "RENEWAL", str(tmp_path / "lib/renewal"))
    monkeypatch.setattr(paths, "ADMIN", str(made.root / "etc/kubernetes/admin.conf"))
    for user in (kubectl, program, renewal):
        monkeypatch.setattr(user, "run_program", made.run_program)
    monkeypatch.setattr(renewal, "end_process", made.end_process)
    made.put("proc/stat", f"cpu 1 2\nbtime {made.booted}\n")
    made.put("proc/self/stat", "")
    (made.root / "proc/self/ns").mkdir()
    (made.root / "proc/self/ns/net").symlink_to("net:[1]")
    return made


def test_nothing_to_do(host):
    host.control_plane(300)
    result = host.apply()
    assert (result["changed"], result["needed"], result["renewed"], result["restarted"]) == (False, False, [], [])
    assert (host.calls, host.commands, host.killed) == ([], [], [])
    assert host.ends()["apiserver"] == 300


@pytest.mark.parametrize("days", [29, -3])
def test_a_control_plane_is_renewed(host, days):
    """All of kubeadm's certificates, also when one of them alone is about to end. The second run changes nothing."""
    host.control_plane(300)
    host.put_leaves(days, 40000, ["scheduler.conf"])
    result = host.apply()
    assert (result["changed"], result["renewed"]) == (True, list(certificates.LEAVES))
    assert result["expired"] == (["scheduler.conf"] if days < 0 else [])
    assert host.calls == ["kubeadm certs renew all", "systemctl restart kubelet"]
    assert host.killed == PODS, "in an order in which each finds what it needs"
    assert {days for name, days in host.ends().items() if name in certificates.LEAVES} == {365}
    asked = [" ".join(argv) for argv in host.commands]
    assert "--server https://10.88.0.11:6443 --tls-server-name kubernetes get --raw /readyz" in asked[0]
    assert "get node cp1" in asked[1]
    assert not os.path.exists(paths.RENEWAL)
    again = host.apply()
    assert (again["changed"], again["needed"], host.killed) == (False, False, PODS)


def test_check_mode_says_all_of_it_and_does_nothing(host):
    host.control_plane(10, kubelet=5)
    before = host.ends()
    result = host.apply(check_mode=True)
    assert result["changed"]
    assert result["renewed"] == [*certificates.LEAVES, "kubelet-client"]
    assert result["restarted"] == PODS
    assert result["diff"]["after"]["certificates"]["apiserver"] == "renewed"
    assert result["diff"]["after"]["certificates"]["ca"] == result["diff"]["before"]["certificates"]["ca"]
    assert (host.calls, host.killed, host.ends()) == ([], [], before)
    assert not os.path.exists(paths.RENEWAL)
    table = "\n".join(result["table"])
    assert "kubeadm certs renew all" in table
    assert "signed by the CA on a control plane" in table


def test_on_demand(host):
    host.control_plane(300, kubelet=300)
    host.params["force"] = True
    assert host.apply()["renewed"] == list(certificates.LEAVES)
    assert host.ends()["kubelet-client"] == 300


@pytest.mark.parametrize("moment", ["certs renew all", "systemctl restart kubelet"])
def test_a_run_that_was_killed_is_completed_by_the_next(host, moment):
    """kubeadm may have written a key and not its certificate, which nobody sees: so it does all of it again."""
    host.control_plane(10)
    host.dies_at = moment
    with pytest.raises(KeyboardInterrupt):
        host.apply()
    host.dies_at, host.calls = "", []
    if moment == "certs renew all":
        host.put_leaves(365)
    assert host.killed == []
    result = host.apply()
    assert result["needed"]
    assert ("kubeadm certs renew all" in host.calls) == (moment == "certs renew all")
    assert "systemctl restart kubelet" in host.calls
    assert host.killed == PODS
    assert not os.path.exists(paths.RENEWAL)
    assert not host.apply()["needed"]


def test_certificates_that_somebody_renewed_without_a_restart(host):
    host.control_plane(300)
    host.put_leaves(365, 10, ["controller-manager.conf"])
    result = host.apply()
    assert (result["changed"], result["renewed"], result["restarted"]) == (True, [], ["kube-controller-manager"])
    assert host.killed == ["kube-controller-manager"]
    assert not host.apply()["needed"]


def test_a_file_of_the_future_restarts_nothing(host):
    host.control_plane(300)
    host.put_leaves(300, -3600, ["controller-manager.conf"])
    assert not host.apply()["needed"]


def test_a_process_in_a_pod_of_its_own_network_is_somebody_elses(host):
    host.control_plane(10)
    for pid in os.listdir(host.root / "proc"):
        if pid.isdigit():
            (host.root / "proc" / pid / "ns/net").unlink()
            (host.root / "proc" / pid / "ns/net").symlink_to("net:[2]")
    with pytest.raises(FabricError, match=r"etcd did not start again.*no such process"):
        host.apply()
    assert host.killed == []


def test_control_planes_that_need_each_other(host):
    """Without a majority none gets ready: the first call ends without it, and the second one waits."""
    host.control_plane(-3)
    host.ready, host.params["wait"] = False, False
    assert host.apply()["changed"]
    assert (host.killed, host.commands) == (PODS, [])
    found = host.apply(check_mode=True)
    assert (found["needed"], found["interrupted"], found["expired"]) == (True, True, [])
    host.params["wait"] = True
    with pytest.raises(FabricError, match=r"not ready.*10\.88\.0\.11:6443/readyz does not say ok"):
        host.apply()
    host.ready = True
    result = host.apply()
    assert (result["changed"], result["needed"]) == (False, True)
    assert not host.apply()["needed"]


def test_certificates_that_kubeadm_leaves_as_they_are(host):
    host.control_plane(10)
    host.renews = False
    with pytest.raises(FabricError, match=r"were not renewed\..*apiserver"):
        host.apply()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("etc/kubernetes/pki/ca.key", "without the key of the CA"),
        ("etc/kubernetes/pki/etcd/ca.key", "without the key of the CA"),
        ("etc/kubernetes/pki/front-proxy-ca.crt", "without the CA that signs them"),
    ],
)
@pytest.mark.parametrize("check_mode", [True, False])
def test_without_a_ca_nothing_is_touched(host, path, said, check_mode):
    host.control_plane(10)
    (host.root / path).unlink()
    with pytest.raises(FabricError, match=said):
        host.apply(check_mode)
    assert (host.calls, host.ends()["apiserver"]) == ([], 10)


def test_a_ca_that_has_expired_is_said(host):
    host.control_plane(10)
    host.put("etc/kubernetes/pki/ca.crt", pem(-1))
    with pytest.raises(FabricError, match="manual-rotation-of-ca-certificates"):
        host.apply()


@pytest.mark.parametrize("days", [20, -1])
def test_a_kubelet_on_a_control_plane_gets_a_client_certificate_from_there(host, days):
    host.control_plane(300, kubelet=days)
    result = host.apply()
    assert result["renewed"] == ["kubelet-client"]
    assert host.calls == [
        "kubeadm version --output=short",
        "kubeadm kubeconfig user --org=system:nodes --client-name=system:node:cp1",
        "systemctl restart kubelet",
    ]
    assert host.killed == [], "static pods do without it"
    current = host.root / "var/lib/kubelet/pki/kubelet-client-current.pem"
    assert current.is_symlink()
    assert current.resolve().stat().st_mode & 0o777 == 0o600
    assert KEY in current.read_text()
    assert host.ends()["kubelet-client"] == 365
    assert not host.apply()["needed"]


def test_a_worker_takes_the_one_that_a_control_plane_has_signed(host):
    host.kubelet(-5)
    with pytest.raises(FabricError, match="has to be signed on a control plane"):
        host.apply()
    assert host.apply(check_mode=True)["renewed"] == ["kubelet-client"]
    assert host.calls == []
    host.params["client"] = kubeconfig(365)
    result = host.apply()
    assert (result["renewed"], host.calls) == (["kubelet-client"], ["systemctl restart kubelet"])
    assert "c2VjcmV0" not in str(result)
    host.params["client"] = ""
    assert not host.apply()["needed"]


@pytest.mark.parametrize("text", ["", "client-certificate-data: QQ==\n"])
def test_no_half_of_a_client_certificate(host, text):
    host.kubelet(-5)
    host.params["client"] = text or "kind: Config"
    with pytest.raises(FabricError, match="lacks one of them"):
        host.apply()
    assert host.ends()["kubelet-client"] == -5


def test_a_kubelet_conf_that_carries_its_certificate(host):
    """It names the kubelet's own file from then on, as kubeadm does it: or the kubelet could not renew it."""
    host.kubelet(300)
    host.put("etc/kubernetes/kubelet.conf", f"server: https://10.88.0.11:6443\n{kubeconfig(-1)}")
    host.params["client"] = kubeconfig(365)
    assert host.apply()["renewed"] == ["kubelet-client"]
    text = (host.root / "etc/kubernetes/kubelet.conf").read_text()
    assert text == f"server: https://10.88.0.11:6443\n{REFERENCE}{REFERENCE.replace('certificate', 'key')}"
    assert (host.root / "etc/kubernetes/kubelet.conf").stat().st_mode & 0o777 == 0o600
    assert host.ends()["kubelet-client"] == 365


def test_what_the_kubelet_shows_as_a_server(host):
    host.kubelet(300, serving=-1)
    result = host.apply()
    assert (result["renewed"], host.ends()["kubelet-serving"]) == (["kubelet-serving"], 365)
    assert (host.root / "var/lib/kubelet/pki/kubelet.key.old").exists()
    assert not host.apply()["needed"]


def test_half_a_pair_keeps_the_kubelet_from_starting(host):
    host.kubelet(300)
    (host.root / "var/lib/kubelet/pki/kubelet.crt").unlink()
    assert host.apply()["renewed"] == ["kubelet-serving"]
    assert host.ends()["kubelet-serving"] == 365


def test_a_server_certificate_that_the_cluster_has_signed_is_the_kubelets(host):
    host.kubelet(300)
    host.put("var/lib/kubelet/pki/kubelet-server-current.pem", pem(300))
    result = host.apply()
    assert (result["needed"], result["signed"], result["requested"]) == (False, True, False)
    host.put("var/lib/kubelet/pki/kubelet-server-current.pem", pem(-1))
    result = host.apply()
    assert (result["needed"], result["signed"], result["requested"]) == (False, True, True)
    assert "request is approved" in result["table"][-1]


def test_a_host_does_not_say_which_addresses_its_certificate_may_have(host):
    host.kubelet(300)
    host.put("var/lib/kubelet/kubeadm-flags.env", 'KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.50"')
    assert "10.0.0.50" not in str(host.apply())


def test_a_host_without_a_cluster(host):
    result = host.apply()
    assert (result["needed"], result["table"]) == (False, [])


def test_a_process_of_this_machine():
    """Found by its name, with the time at which it was started, and ended."""
    child = subprocess.Popen(["sleep", "60"])
    try:
        (found,) = [process for process in static_pods.processes("sleep") if process.pid == child.pid]
        assert abs(found.started - time.time()) < 30
        static_pods.end_process(found)
        assert child.wait(30) == -signal.SIGTERM
        assert child.pid not in [process.pid for process in static_pods.processes("sleep")]
        static_pods.end_process(found)  # it has ended by itself meanwhile
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize(
    ("manifest", "url"),
    [
        ("- --advertise-address=10.88.0.11\n- --secure-port=6443", "https://10.88.0.11:6443"),
        ("- --advertise-address=fd00::11\n- --secure-port=8443", "https://[fd00::11]:8443"),
        ("", "https://localhost:6443"),
    ],
)
def test_the_api_server_of_this_host(host, manifest, url):
    host.put("etc/kubernetes/manifests/kube-apiserver.yaml", manifest)
    assert static_pods.local_api() == url

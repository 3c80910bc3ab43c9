"""A cluster is hardened by the CIS benchmark: one that runs, and one from bare hosts. The fabric is proved by site."""

from __future__ import annotations

from ansible_collections.ipu.fabric.tests.e2e.bed import CONFIGURED, HOSTS, KUBECTL, Bed

CIS = {"fabric_hardening": "cis"}
SECRET = "/registry/secrets/default/mine"


def stored(bed: Bed) -> str:
    """How etcd has the Secret: its provider and the name of its key, or what it is without encryption."""
    pki = "/etc/kubernetes/pki/etcd"
    keys = f"--cacert {pki}/ca.crt --cert {pki}/server.crt --key {pki}/server.key"
    read = f"{KUBECTL} -n kube-system exec etcd-cp1 -- etcdctl {keys} get {SECRET} --print-value-only"
    return bed.on("cp1", f"{read} | head -c 40 | tr -cd '[:print:]'")


def status(bed: Bed, path: str) -> str:
    return bed.on("cp1", f"curl -sk -o /dev/null -w '%{{http_code}}' https://localhost:6443{path}")


def test_a_cluster_that_runs(finished: Bed) -> None:
    finished.on("cp1", f"{KUBECTL} create secret generic mine --from-literal word=open")
    assert "k8s:enc" not in stored(finished)
    before = finished.fingerprint(CONFIGURED)
    checked = finished.play("site", "--check", **CIS)
    assert checked.code == 0
    assert checked.changed()
    assert finished.fingerprint(CONFIGURED) == before
    assert finished.play("site", **CIS).code == 0
    again = finished.play("site", **CIS)
    assert (again.code, again.changed()) == (0, {})


def test_what_it_is_then(finished: Bed) -> None:
    assert stored(finished).startswith("k8s:enc:secretbox:")
    assert (status(finished, "/readyz"), status(finished, "/api")) == ("200", "401")
    modes = finished.on("cp1", "stat -c %a /etc/kubernetes/hardening/* /etc/kubernetes/manifests/*").split()
    assert set(modes) == {"600"}
    assert finished.on("cp1", "ls /etc/kubernetes/super-admin.conf 2>/dev/null", check=False) == ""
    assert finished.on("cp1", "wc -l </var/log/kubernetes/audit/audit.log").strip() != "0"
    for host in HOSTS:
        finished.on(host, "test -s /var/lib/kubelet/pki/kubelet-server-current.pem")


def test_the_key_of_secrets_is_replaced(finished: Bed) -> None:
    before = stored(finished)
    assert finished.play("rotate_encryption_key").code == 0
    assert stored(finished).startswith("k8s:enc:secretbox:")
    assert stored(finished) != before
    word = finished.on("cp1", f"{KUBECTL} get secret mine -o jsonpath='{{.data.word}}' | base64 -d")
    assert word == "open"
    again = finished.play("site", **CIS)
    assert (again.code, again.changed()) == (0, {})


def test_back_to_baseline(finished: Bed) -> None:
    """Everything but the encryption, which stays."""
    assert finished.play("site").code == 0
    again = finished.play("site")
    assert (again.code, again.changed()) == (0, {})
    assert status(finished, "/version") == "200"
    assert stored(finished).startswith("k8s:enc:secretbox:")
    finished.on("cp1", f"{KUBECTL} delete secret mine")


def test_from_bare_hosts(bare: Bed) -> None:
    assert bare.play("site", "--check", **CIS).code == 0
    assert bare.play("site", **CIS).code == 0
    again = bare.play("site", **CIS)
    assert (again.code, again.changed()) == (0, {})
    bare.on("cp1", f"{KUBECTL} create secret generic mine --from-literal word=open")
    assert stored(bare).startswith("k8s:enc:secretbox:")

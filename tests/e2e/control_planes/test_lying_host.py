"""A worker that says it is the control plane: nothing is signed, approved, drained, reset or deleted for that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import KUBECTL, Bed

FLAGS = "/var/lib/kubelet/kubeadm-flags.env"
CLIENT = "/var/lib/kubelet/pki/kubelet-client-current.pem"
# In place of the kubelet's own client certificate one that ends within days, by nobody's CA.
SHORT = f"""
cd /tmp && openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=w1 -keyout key -out crt 2>&-
cat crt key > short && cp --remove-destination short {CLIENT} && rm key crt short
"""
WATCHED = f"sha256sum /etc/kubernetes/*.conf {FLAGS} {CLIENT} /etc/machine-id; hostname; systemctl is-active kubelet"
NODES = f"{KUBECTL} get nodes -o jsonpath='{{range .items[*]}}{{.metadata.name}} {{.spec.unschedulable}};{{end}}'"
APPROVED = f"{KUBECTL} get csr --no-headers | grep -c Approved || true"


@pytest.fixture
def liar(finished: Bed) -> Iterator[Bed]:
    """w1, which has taken over the name, the machine ID and the address of cp1."""
    bed = finished
    machine, other = (bed.on(host, "cat /etc/machine-id").strip() for host in ("w1", "cp1"))
    address = bed.on("cp1", "hostname -i").split()[0]
    bed.on("w1", f"cp {FLAGS} /root/flags && cp -P {CLIENT} /root/client")
    bed.on("w1", f"hostname cp1 && echo {other} > /etc/machine-id && echo '# --node-ip={address}' >> {FLAGS}")
    try:
        yield bed
    finally:
        bed.on("w1", f"hostname w1; echo {machine} > /etc/machine-id")
        bed.on("w1", f"mv /root/flags {FLAGS}; mv /root/client {CLIENT}; systemctl restart kubelet")


def seen(bed: Bed) -> list[str]:
    return [bed.on("cp1", NODES), *(bed.on(host, WATCHED) for host in ("cp1", "w1"))]


def test_nothing_is_signed_for_another(liar: Bed) -> None:
    liar.on("w1", SHORT)
    before, approved = seen(liar), liar.on("cp1", APPROVED)
    result = liar.play("renew_certificates")
    assert result.code != 0
    assert "w1 says that it is cp1, but the inventory has it as w1" in " ".join(result.shown.split())
    assert (seen(liar), liar.on("cp1", APPROVED)) == (before, approved)


@pytest.mark.parametrize(
    ("playbook", "given", "said"),
    [
        ("remove_node", {"fabric_remove_nodes": "w1"}, "w1 says that it is cp1"),
        ("reset", {"fabric_reset": "fabric"}, "w1 says that it is cp1"),
        ("reset", {"fabric_reset": "cluster"}, "have the machine-id"),
        ("upgrade", {}, "w1 says that it is cp1"),
        ("site", {}, "w1 says that it is cp1"),
    ],
)
def test_nothing_is_changed_for_another(liar: Bed, playbook: str, given: dict[str, str], said: str) -> None:
    before = seen(liar)
    result = liar.play(playbook, **given)
    assert result.code != 0
    assert said in " ".join(result.shown.split())
    assert seen(liar) == before


def test_a_machine_id_of_another_is_not_taken_for_it(liar: Bed) -> None:
    """The host has its own name again."""
    liar.on("w1", "hostname w1")
    before = seen(liar)
    result = liar.play("remove_node", fabric_remove_nodes="w1")
    assert result.code != 0
    assert "the cluster has w1 with" in " ".join(result.shown.split())
    assert seen(liar) == before

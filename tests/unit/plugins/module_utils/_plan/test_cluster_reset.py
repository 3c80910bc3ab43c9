import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._plan.cluster_reset import Confirmation, Site, plan_reset

CA, OTHER = "0123456789abcdef", "fedcba9876543210"
NAME = "10.88.0.11:6443"


def host(name, ca=CA, cluster=NAME, kept=(), **removed):
    mark = {"name": cluster, "server": cluster, "ca": ca, "hostname": name, "machine_id": f"id-{name}", "serves": False}
    return {"cluster": mark, "removed": {kind: list(names) for kind, names in removed.items()}, "kept": list(kept)}


def bare(name):
    return host(name, ca="", cluster="")


def api(*names, ca=CA):
    return {"present": True, "ca": ca, "nodes": [{"name": name, "machine_id": f"id-{name}"} for name in names]}


NO_FILES = Site("", [])
DEAD = {"present": False, "ca": "", "nodes": []}
HOSTS = {"cp1": host("cp1", links=["cni0"]), "w1": host("w1", links=["cni0"], network_namespaces=["cni-1"])}


def plan(hosts=None, answer=None, jobs=(), name=NAME, force=False, site=NO_FILES):
    return plan_reset(HOSTS if hosts is None else hosts, answer or DEAD, jobs, site, Confirmation(name, force))


@pytest.mark.parametrize("answer", [DEAD, api("cp1", "w1"), api("cp1")])
def test_the_cluster_was_named(answer):
    result = plan(answer=answer)
    assert (result["refusal"], result["name"], result["ca"]) == ("", NAME, CA)
    assert result["table"] == ["cp1: links: cni0", "w1: links: cni0; network namespaces: cni-1"]


def test_what_stays_is_told():
    result = plan({"w1": host("w1", packages=["kubelet"], kept=["containerd.io (needed by docker-ce)"])})
    assert result["table"] == ["w1: packages: kubelet", "w1 keeps containerd.io (needed by docker-ce)"]


def test_paths_are_shown_as_they_are():
    path = "/etc/containerd/certs.d/_default/hosts.toml"
    assert plan({"w1": host("w1", cni_files=[path])})["table"] == [f"w1: cni files: {path}"]


@pytest.mark.parametrize("name", ["", "kubernetes", "10.88.0.12:6443"])
def test_another_name_or_none(name):
    refusal = plan(name=name)["refusal"]
    assert f"Its name is {NAME}. Seen: fabric_reset_name is {name or 'empty'}. Next: " in refusal
    assert refusal.endswith(f"-e fabric_reset=cluster -e fabric_reset_name={NAME}.")


def test_nothing_is_left():
    """A second run needs no name, and finds no API."""
    result = plan({"cp1": bare("cp1"), "w1": bare("w1")}, name="")
    assert (result["refusal"], result["table"]) == ("", ["cp1: nothing is left", "w1: nothing is left"])


@pytest.mark.parametrize(
    ("hosts", "ca", "reports", "kubeconfig"),
    [
        (HOSTS, CA, True, True),
        (HOSTS, "", True, False),  # the cluster does not answer with this kubeconfig, or at all
        (HOSTS, OTHER, True, False),
        # The site's hosts were reset before, or are others: nothing shows whose these files are.
        ({"cp1": bare("cp1")}, "", False, False),
        ({"cp1": bare("cp1")}, OTHER, False, False),
        ({"cp1": {**bare("cp1"), "removed": {"links": ["cni0"]}}}, OTHER, False, False),
    ],
)
def test_files_of_the_site_are_of_the_cluster_that_its_hosts_were_in(hosts, ca, reports, kubeconfig):
    result = plan(hosts, site=Site(ca, ["report.html"]))
    assert (result["reports"], result["kubeconfig"]) == (["report.html"] if reports else [], kubeconfig)
    assert ("this machine: files: report.html" in result["table"]) == reports


def test_a_killed_reset_is_finished():
    """The first control plane knows no name any more, or no host does."""
    hosts = {"cp1": {**bare("cp1"), "removed": {"data": ["/var/lib/etcd"]}}, "w1": bare("w1")}
    assert plan(hosts)["refusal"] == ""
    assert "No host knows its name any more." in plan(hosts, name="")["refusal"]


@pytest.mark.parametrize(
    ("hosts", "answer", "jobs", "said"),
    [
        ({**HOSTS, "w2": {"msg": "Connection timed out"}}, DEAD, [], "Seen: w2: Connection timed out."),
        ({**HOSTS, "w2": {}, "w3": {}}, DEAD, [], "Seen: w2: no answer; no answer from w3 either."),
        ({**HOSTS, "w2": host("w2", ca=OTHER)}, DEAD, [], "The hosts are in several clusters."),
        (HOSTS, api("cp1", "w1", ca=OTHER), [], f"its CA is {OTHER}, that of cp1, w1 is {CA}"),
        (HOSTS, api("cp1", "w1", "w7"), [], "has nodes that are not in the inventory. Seen: w7."),
        (
            HOSTS,
            api("cp1", "w1"),
            ["train/a"],
            "IPUJobs hold IPUs, which nobody would give back to V-IPU. Seen: train/a.",
        ),
    ],
)
def test_refused(hosts, answer, jobs, said):
    refusal = plan(hosts, answer, jobs)["refusal"]
    assert said in refusal
    assert ". Next: " in refusal


def test_jobs_that_may_go():
    assert plan(answer=api("cp1", "w1"), jobs=["train/a"], force=True)["refusal"] == ""


def said(host_name, **mark):
    """A host that says this of itself."""
    found = host(host_name, links=["cni0"])
    return {**found, "cluster": {**found["cluster"], **mark}}


@pytest.mark.parametrize(
    ("hosts", "answer", "seen"),
    [
        ({**HOSTS, "w2": said("w2", machine_id="id-w1")}, api("cp1", "w1"), "w1, w2 have the machine-id id-w1"),
        ({**HOSTS, "w1": said("w1", machine_id="other")}, api("cp1", "w1"), "the cluster has that node with id-w1"),
        # One of another cluster, which has its CA elsewhere.
        (
            {**HOSTS, "x1": said("x1", ca="", server="192.0.2.9:6443", name="192.0.2.9:6443")},
            api("cp1"),
            "192.0.2.9:6443",
        ),
        (
            {**HOSTS, "x1": said("x1", ca="", server="192.0.2.9:6443", name="192.0.2.9:6443")},
            DEAD,
            "x1: its API server",
        ),
        # No host knows a CA, and the API that answers has nodes that are none of them.
        ({"x1": said("x1", ca="", server="192.0.2.9:6443", name=NAME)}, api("cp1", "w1"), "Seen: cp1, w1."),
        # Both say that they are w1.
        ({**HOSTS, "w2": said("w1", machine_id="id-w2")}, api("cp1", "w1", "w2"), "w2 is w1 with the machine-id id-w2"),
        ({**HOSTS, "w2": said("w1", machine_id="id-w2", ca="")}, api("cp1", "w1", "w3"), "Seen: w3."),
        ({**HOSTS, "cp1": said("cp1", serves=True)}, DEAD, "nor with that of cp1."),
    ],
)
def test_who_is_who_and_nobody_is_silent(hosts, answer, seen):
    refusal = plan(hosts, answer)["refusal"]
    assert seen in refusal
    assert ". Next: " in refusal


def test_a_worker_that_a_killed_reset_has_left_a_kubeconfig():
    assert plan({**HOSTS, "w1": said("w1", ca="", server=NAME, name=NAME)}, api("cp1"))["refusal"] == ""


def test_what_does_not_say_whether_its_api_server_runs_may_have_one():
    hosts = {"cp1": said("cp1")}
    del hosts["cp1"]["cluster"]["serves"]
    assert "could not be asked" in plan(hosts)["refusal"]


def test_its_lines_fit_a_terminal():
    """Ansible's debug puts 11 columns around each. No name is cut."""
    many = {kind: [f"{kind}-{number}" for number in range(9)] for kind in ("links", "packages", "units")}
    table = plan({"w1": host("w1", kept=[f"package-{number} (theirs)" for number in range(9)], **many)})["table"]
    assert max(map(len, table)) <= 69
    assert {line[:2] for line in table} == {"w1", "  "}
    assert "package-8 (theirs)" in " ".join(line.strip() for line in table)

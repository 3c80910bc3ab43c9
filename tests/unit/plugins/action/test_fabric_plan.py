"""The plan on the controller: its options, and its files, which are written whole and never in check mode."""

import base64
import copy
import json
import os
import types

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.ipu.fabric.plugins.action import fabric_plan
from ansible_collections.ipu.fabric.plugins.action.fabric_plan import keep_plan
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host.facts import ca_digest
from ansible_collections.ipu.fabric.plugins.module_utils._plan.report import limit_text
from ansible_collections.ipu.fabric.plugins.plugin_utils._artifacts import write_file
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import SETTINGS, errors, finished, plan, site

PLAN = json.loads(json.dumps(plan(site())))
DEFAULTS = ROOT / "roles/fabric/defaults/main.yml"


def run(check_mode=False, variables=None, **arguments):
    """What the action returns; it needs no connection, so there is none."""
    known = variables or {}
    task = types.SimpleNamespace(
        args=arguments, check_mode=check_mode, async_val=0, action="ipu.fabric.fabric_plan", no_log=False, diff=False
    )
    shell = types.SimpleNamespace(tmpdir=None)
    connection = types.SimpleNamespace(_shell=shell, has_pipelining=False)
    templar = Templar(DataLoader(), known) if known else None
    action = fabric_plan.ActionModule(task, connection, None, None, templar, None)
    return action.run(task_vars=known)


def test_a_plan_and_its_files(tmp_path):
    result = run(hosts=site(), artifacts_dir=str(tmp_path / "artifacts"), networks=[{"name": "rdma-net"}])
    assert (result["changed"], result["errors"]) == (False, 0)  # there was no other plan before
    assert result["text"].startswith("Plan: 3 hosts")
    assert json.loads((tmp_path / "artifacts/plan.json").read_text()) == result["plan"]
    again = run(hosts=site(), artifacts_dir=str(tmp_path / "artifacts"), networks=[{"name": "rdma-net"}])
    assert not again["changed"]
    assert again["plan"]["since"]["moved"] == []
    other = run(hosts=site(), artifacts_dir=str(tmp_path / "artifacts"), networks=[{"name": "other"}])
    assert not other["changed"]  # no host was
    things = {(each["mark"], each["thing"]) for each in other["plan"]["since"]["moved"]}
    assert {("-", "Network rdma-net"), ("+", "Network other")} <= things


def test_check_mode_returns_the_plan_and_writes_nothing(tmp_path):
    result = run(check_mode=True, hosts=site(), artifacts_dir=str(tmp_path / "artifacts"), networks=[{"name": "a"}])
    assert not result["changed"]  # there is no plan to compare it with
    assert result["plan"]["networks"][0]["name"] == "a"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("check_mode", "variables", "said"),
    [
        (True, {}, []),
        (True, {"ansible_limit": "w1", "ansible_play_hosts_all": ["cp1", "w1", "w2"]}, []),
        (True, {"ansible_limit": "w1", "ansible_play_hosts_all": ["w1"]},
         ["Limited to w1 (--limit): this run sets up no other host.",
          "The plan covers these too, and has read their state: cp1, w2"]),
        (False, {}, ["Files in {}:", "  plan.json and plan.html; site adds report.html, report.json, junit.xml",
                     "  admin.conf, with all rights on the cluster, comes from site"]),
        (False, {"fabric_kubeconfig": "/elsewhere/admin.conf"},
         ["Files in {}:", "  plan.json and plan.html; site adds report.html, report.json, junit.xml"]),
    ],
)  # fmt: skip
def test_below_the_plan_of_a_site(tmp_path, check_mode, variables, said):
    known = {"fabric_kubeconfig": f"{tmp_path}/admin.conf", **variables}
    given = {"hosts": site(), "artifacts_dir": str(tmp_path)}
    plain, whole = (run(check_mode, known, **given, site=each)["text"] for each in (False, True))
    assert [line for line in whole[len(plain) :].splitlines() if line] == [line.format(tmp_path) for line in said]


def test_more_hosts_outside_a_run_than_a_line_has():
    assert limit_text("a", [f"n{number}" for number in range(11)]).endswith(
        ": n0, n1, n10, n2, n3, n4, n5, n6 and 3 more\n"
    )


def test_a_host_that_is_down_is_planned_from_the_last_run(tmp_path):
    first = run(hosts=site(), artifacts_dir=str(tmp_path), networks=[{"name": "a"}])
    hosts = copy.deepcopy(site())
    hosts["w1"] = {"groups": hosts["w1"]["groups"], "address": "", "errors": []}
    result = run(hosts=hosts, artifacts_dir=str(tmp_path), networks=[{"name": "a"}])
    assert (result["plan"]["since"]["moved"], result["errors"]) == ([], 1)
    assert result["plan"]["hosts"] == first["plan"]["hosts"]


def test_defaults_of_options_stay_as_they_are(tmp_path):
    """Modules of the same process share them."""
    run(scope="preflight", hosts=site(), artifacts_dir=str(tmp_path), networks=[{"name": "a"}])
    assert fabric_plan.ActionModule.spec["download_proxy"]["default"] == {}


def test_preflight_writes_no_files(tmp_path):
    result = run(scope="preflight", hosts=site(), artifacts_dir=str(tmp_path), networks=[{"name": "a"}])
    assert (result["changed"], set(result["plan"])) == (False, {"schema", "hosts", "findings"})
    assert result["text"].startswith("Preflight: 3 hosts")
    assert list(tmp_path.iterdir()) == []


STRANGER = {"kubeconfig": "admin.conf", "ca": "ab", "nodes": [{"name": "other", "machine_id": ""}]}


@pytest.mark.parametrize(
    ("check_mode", "managed", "in_cluster", "refused"),
    [
        (False, True, False, True),
        (True, True, False, False),  # the run itself would begin a cluster, and fetch its kubeconfig
        (True, False, False, True),
        (True, True, True, True),
    ],
)
def test_the_kubeconfig_of_another_cluster(check_mode, managed, in_cluster, refused):
    hosts = site()
    hosts["cp1"]["host"]["kubelet"]["cluster"] = "cd" * in_cluster
    result = run(check_mode, scope="cluster", hosts=hosts, cluster=STRANGER, manage_kubernetes=managed)
    assert result.get("failed", False) == refused
    assert result.get("error", {}).get("code") == ("other-cluster" if refused else None)
    assert not result.get("changed")


def test_a_host_that_says_it_is_another_is_refused_whatever_is_allowed():
    hosts = site()
    hosts["w1"]["host"]["hostname"] = "other"
    hosts["w2"]["address"] = "10.88.0.13"
    nodes = [{"name": name, "machine_id": "", "addresses": ["10.88.0.77"]} for name in ("other", "w1")]
    result = run(scope="cluster", hosts=hosts, cluster={**STRANGER, "nodes": nodes}, allow=["other-cluster"])
    assert result["error"]["seen"] == "w1 says that it is other, but the inventory has it as w1"


def test_files_in_the_inventory_are_not_written(tmp_path):
    result = run(hosts=site(), artifacts_dir=str(tmp_path), inventory_sources=[str(tmp_path)], networks=[{"name": "a"}])
    assert [item["check"] for item in result["plan"]["findings"] if item["level"] == "error"] == ["artifacts-dir"]
    assert list(tmp_path.iterdir()) == []


def test_a_kubeconfig_in_the_inventory_is_a_warning_and_the_plan_is_written(tmp_path):
    inventory, folder = tmp_path / "inventory", tmp_path / "artifacts"
    kubeconfig = str(inventory / "admin.conf")
    result = run(hosts=site(), artifacts_dir=str(folder), inventory_sources=[str(inventory)], kubeconfig=kubeconfig)
    found = {item["check"]: item for item in result["plan"]["findings"]}
    assert found["artifacts-dir"]["level"] == "warning"
    assert kubeconfig in found["artifacts-dir"]["seen"]
    assert (folder / "plan.json").exists()


def test_a_file_in_the_way_is_a_failure_that_says_what_to_do(tmp_path):
    (tmp_path / "artifacts").write_text("")
    result = run(hosts=site(), artifacts_dir=str(tmp_path / "artifacts"))
    assert result["failed"]
    assert "fabric_artifacts_dir" in result["error"]["next_step"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "hosts"),
        ({"hosts": {}, "scope": "all"}, "scope"),
        ({"hosts": {}, "pods_per_node": "many"}, "pods_per_node"),
        ({"hosts": {}, "pods": 8}, "pods"),
    ],
)
def test_wrong_options_are_refused(arguments, named):
    result = run(**arguments)
    assert (result["failed"], result["error"]["code"]) == (True, "invalid-input")
    assert named in result["msg"]
    assert "\n" not in result["msg"]


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setattr(fabric_plan.ActionModule, "libraries", ("netaddr", "no_such_library"))
    result = run(hosts={})
    assert result["failed"]
    assert "no_such_library" in result["msg"]
    assert result["error"]["code"] == "missing-requirement"


def test_options_are_the_settings_with_the_defaults_of_the_role():
    """The plan's settings, its options and the variables of the role fabric: one list, with the same defaults."""
    options = {name: spec.get("default") for name, spec in fabric_plan.ActionModule.spec.items()}
    taken = {"hosts", "observations", "scope", "cluster", "plan", "drift", "site", "questions", "download_proxy"} | {
        "all_findings",
        "observe_timeout",
        "refuse",
    }
    assert set(options) - taken == set(SETTINGS) - {
        "resolved",
        "site_variables",
        "passed_variables",
    }
    role = yaml.safe_load(DEFAULTS.read_text(encoding="utf-8"))
    own = {
        "hosts",
        "scope",
        "cluster",
        "plan",
        "drift",
        "refuse",
        "site",
        "questions",
        "download_proxy",
        "api_silence",
        "rights",
        "user",
        "artifacts_dir",
        "inventory_sources",
        "inventory_groups",
        "limit",
        "run_hosts",
        "kubeconfig",
    }
    own |= {
        "plan_file",
        "networks",
        "sources",
        "bundle",
        "proxy",
        "pod_network",
        "kubelet_config",
        "node_affinity",
        "cluster_config",
        "memlock",
        "memlock_limit",
    }  # what the role makes of its variables
    assert {name: options[name] for name in set(options) - own} == {
        name: role[f"fabric_{name}"] for name in set(options) - own
    }


@pytest.mark.parametrize(
    ("variables", "refused"),
    [
        ({"fabric_multus": True}, True),
        ({"fabric_multus": False}, False),
        ({"network_operator_multus": False}, False),
        ({"network_operator_namespace": "kube-system"}, False),
        ({"spiderpool_namespace": "kube-system"}, True),
    ],
)
def test_the_multus_of_the_stack_is_that_of_its_role(variables, refused):
    hosts = finished()
    hosts["cp1"]["host"]["cluster"]["multus"] = ["kube-system/kube-multus-ds"]
    planned = run(hosts=hosts, networks=[{"name": "rdma-net"}], variables=variables)["plan"]
    assert ("cluster-stack" in errors(planned)) is refused


def test_written_once(tmp_path):
    folder = tmp_path / "site" / "artifacts"
    folder.parent.mkdir()
    keep_plan(str(folder), PLAN, {}, check_mode=False)
    assert json.loads((folder / "plan.json").read_text()) == PLAN
    assert json.loads((folder / "observations.json").read_text()) == {}
    assert "<html" in (folder / "plan.html").read_text()
    assert os.stat(folder / "plan.json").st_mode & 0o777 == 0o644


@pytest.mark.parametrize(("all_findings", "in_full"), [(False, False), (True, True)])
def test_a_warning_is_told_in_full_once(tmp_path, all_findings, in_full):
    """An error, which stops each run, is told in each."""
    hosts, options = site(), {"artifacts_dir": str(tmp_path), "networks": [{"name": "rdma-net"}]}
    hosts["w1"]["host"].update(swap=["/dev/sdb"], memory_mb=900)
    first, again = (run(hosts=hosts, all_findings=all_findings, **options)["text"] for _time in range(2))
    findings = json.loads((tmp_path / "plan.json").read_text())["findings"]
    assert [(each["level"], each["check"]) for each in findings] == [("error", "memory"), ("warning", "swap")]
    assert (first.count("  next: "), again.count("  next: ")) == (2, 2 if in_full else 1)
    assert ("WARNING swap: w1, as before" in again) != in_full
    assert "ERROR memory: w1\n" in again
    hosts["w1"]["host"]["swap"] = ["/dev/sdc"]  # what is seen is another thing
    assert run(hosts=hosts, **options)["text"].count("  next: ") == 2


def test_what_is_no_plan_is_replaced(tmp_path):
    (tmp_path / "plan.json").write_text("[]")
    keep_plan(str(tmp_path), PLAN, {}, check_mode=False)
    assert json.loads((tmp_path / "plan.json").read_text()) == PLAN


def test_check_mode_writes_nothing(tmp_path):
    folder = tmp_path / "artifacts"
    keep_plan(str(folder), PLAN, {}, check_mode=True)
    assert not folder.exists()
    folder.mkdir()
    (folder / "plan.json").write_text('{"schema": 0}')
    keep_plan(str(folder), PLAN, {}, check_mode=True)
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("plan.json", '{"schema": 0}')]


def test_a_cluster_that_was_built_meanwhile_is_no_other_plan(tmp_path):
    """The second run of site changes nothing."""
    options = {"artifacts_dir": str(tmp_path), "networks": [{"name": "rdma-net"}]}
    assert run(hosts=site(), **options)["plan"]["cluster"]["running"] is None
    again = run(hosts=finished(), **options)
    assert again["plan"]["cluster"]["running"]["host"] == "cp1"
    assert (again["plan"]["since"]["moved"], again["errors"]) == ([], 0)
    assert json.loads((tmp_path / "plan.json").read_text()) == again["plan"]


@pytest.fixture
def approved(tmp_path):
    """A folder with a plan."""
    run(hosts=site(), artifacts_dir=str(tmp_path), networks=[{"name": "rdma-net"}])
    return tmp_path / "plan.json"


def moved():
    hosts = site()
    hosts["w1"]["rdma"]["links"][1].update(netdev="ens2f0", rdma_netdevs=["ens2f0"])
    return hosts


def test_the_approved_plan_is_applied_where_nothing_has_moved(approved):
    """Its file stays as it is, though there is something else to find now."""
    text, hosts = approved.read_text(), finished()
    hosts["w1"]["host"]["swap"] = ["/dev/sdb"]
    options = {"artifacts_dir": str(approved.parent), "networks": [{"name": "rdma-net"}]}
    result = run(hosts=hosts, plan_file=str(approved), **options)
    assert (result["changed"], result["errors"]) == (False, 0)
    assert " ".join(result["text"].split()).startswith(f"Plan, as in {approved}: 3 hosts")
    assert approved.read_text() == text
    assert "swap" in (approved.parent / "plan.html").read_text()


@pytest.mark.parametrize("check_mode", [True, False])
@pytest.mark.parametrize("name", ["plan.json", "link.json"])
def test_a_refused_plan_does_not_replace_the_approved_one(approved, name, check_mode):
    (approved.parent / "link.json").symlink_to("plan.json")
    text, page = approved.read_text(), (approved.parent / "plan.html").read_text()
    options = {"artifacts_dir": str(approved.parent), "networks": [{"name": "rdma-net"}]}
    result = run(check_mode, hosts=moved(), plan_file=str(approved.parent / name), **options)
    assert {each["check"] for each in result["plan"]["findings"]} == {"plan-moved"}
    assert result["errors"] == len(result["plan"]["findings"])
    assert result["text"].startswith("Plan: 3 hosts")
    assert approved.read_text() == text
    assert ((approved.parent / "plan.html").read_text() == page) == check_mode


def test_a_plan_elsewhere_is_compared_and_the_new_one_written(approved, tmp_path):
    kept = tmp_path / "approved.json"
    approved.rename(kept)
    result = run(hosts=moved(), artifacts_dir=str(tmp_path), plan_file=str(kept), networks=[{"name": "rdma-net"}])
    assert result["errors"]
    assert json.loads(approved.read_text()) == result["plan"]
    assert json.loads(kept.read_text()) != result["plan"]


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (None, "No such file or directory"),
        ("", "it is not JSON: "),
        ("{", "it is not JSON: "),
        ("\udcff", "it is not JSON: "),
        ("[]", "it is JSON, but not a plan"),
        ('{"hosts": []}', "it is JSON, but not a plan"),
        ('{"hosts": {}}', "its schema is None"),
    ],
)
def test_what_is_no_plan_is_refused_and_stays_as_it_is(tmp_path, text, seen):
    """Also where it is the plan.json that a run without it would write: the next run would find it then."""
    path = tmp_path / "plan.json"
    if text is not None:
        path.write_text(text, errors="surrogateescape")
    before = path.read_bytes() if text is not None else None
    result = run(hosts=site(), artifacts_dir=str(tmp_path), plan_file=str(path), networks=[{"name": "a"}])
    (finding,) = result["plan"]["findings"]
    assert (finding["level"], finding["check"]) == ("error", "plan-file")
    assert str(path) in finding["what"]
    assert finding["seen"].startswith(seen)
    assert (path.read_bytes() if path.exists() else None) == before


CHANGED = {
    "object": "IPPool n/a",
    "change": "change",
    "ours": True,
    "fields": ["spec perNodeBlockSize: 8 now, 16 planned"],
}
LEFT = {"object": "IPPool lab/x", "change": "leave", "ours": False, "fields": []}


@pytest.mark.parametrize(("check_mode", "kept"), [(False, [CHANGED, LEFT]), (True, None)])
def test_drift_is_added_to_the_plan(approved, check_mode, kept):
    plan = json.loads(approved.read_text())
    drift = [CHANGED, LEFT, CHANGED]
    result = run(check_mode, scope="drift", hosts={}, plan=plan, drift=drift, artifacts_dir=str(approved.parent))
    assert result["plan"]["drift"] == [CHANGED, LEFT]
    assert result["plan"]["drift_time"]
    assert "which ipu.fabric.fabric corrects: IPPool n/a." in result["plan"]["summary"]["line"]
    assert "change IPPool n/a" in result["text"]
    assert json.loads(approved.read_text())["drift"] == kept
    assert ("perNodeBlockSize" in (approved.parent / "plan.html").read_text()) == bool(kept)
    # The next plan keeps it with its time, until site has run.
    options = {"artifacts_dir": str(approved.parent), "networks": [{"name": "rdma-net"}]}
    again = run(check_mode, hosts=finished(), **options)["plan"]
    assert (again["drift"], again["drift_time"]) == (kept, result["plan"]["drift_time"] if kept else "")
    cluster = {"kubeconfig": "/site/a b/admin.conf", "host": "localhost"}
    done = run(scope="applied", hosts={}, plan=again, cluster=cluster, artifacts_dir=str(approved.parent))
    assert "kubectl --kubeconfig '/site/a b/admin.conf' get nodes" in done["text"]
    again = run(hosts=site(), **options)["plan"]
    assert (again["drift"], again["drift_time"], again["since"]["applied"]) == (None, "", True)


@pytest.mark.parametrize(
    ("given", "image"),
    [({}, "docker.io/nicolaka/netshoot:v0.14"), ({"image": "mirror.site/tools:1"}, "mirror.site/tools:1")],
)
def test_the_first_job_has_the_image_that_the_proof_has_pulled(given, image):
    planned = run(hosts=site(), ipu=False, networks=[{"name": "rdma-net"}])["plan"]
    done = run(scope="applied", hosts={}, plan=planned, cluster={"kubeconfig": "/a", "host": "localhost", **given})
    assert json.dumps({"example_image": image})[1:-1] in done["text"]


@pytest.mark.parametrize(
    ("report", "proposed"),
    [(None, True), ("[]", True), ('{"outcome": "failed"}', True), ('{"outcome": "proved"}', False)],
)
def test_a_first_job_is_proposed_until_a_proof_has_passed(tmp_path, report, proposed):
    if report:
        (tmp_path / "report.json").write_text(report)
    planned = run(hosts=site(), networks=[{"name": "rdma-net"}])["plan"]
    cluster = {"kubeconfig": "/a", "host": "localhost"}
    done = run(scope="applied", hosts={}, plan=planned, cluster=cluster, artifacts_dir=str(tmp_path))
    assert ("run a first IPUJob" in done["text"]) == proposed


@pytest.mark.parametrize(
    ("before", "resumed"),
    [
        (None, False),
        ('{"ca": "ab", "checks": []}', True),
        ('{"ca": "cd", "checks": []}', False),  # of a cluster that was reset
        ('{"checks": []}', False),
        ("[]", False),
        ("", False),
    ],
)
def test_an_upgrade_goes_on_only_from_a_proof_of_this_cluster(tmp_path, before, resumed):
    if before is not None:
        (tmp_path / "upgrade-1.36.3.json").write_text(before)
    cluster = {"ca": "ab", "version": "1.35.4", "nodes": []}
    given = {"kubernetes_version": "v1.36.3", "artifacts_dir": str(tmp_path)}
    done = run(scope="upgrade", hosts=site(), cluster=cluster, **given)
    assert (done["upgrade"]["ca"], done["upgrade"]["resumed"]) == ("ab", resumed)


def test_drift_does_not_change_an_approved_plan(approved):
    text = approved.read_text()
    run(
        scope="drift",
        hosts={},
        plan=json.loads(text),
        drift=[CHANGED],
        plan_file=str(approved),
        artifacts_dir=str(approved.parent),
    )
    assert approved.read_text() == text
    assert "perNodeBlockSize" in (approved.parent / "plan.html").read_text()


CERTIFICATE = "-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n"


def kubeconfig(**cluster):
    """Two clusters, of which the second is the current one."""
    entries = [{"name": "a", "cluster": {"server": "https://a"}}, {"name": "b", "cluster": cluster}]
    contexts = [{"name": name * 2, "context": {"cluster": name, "user": "u"}} for name in "ab"]
    return yaml.safe_dump({"clusters": entries, "contexts": contexts, "current-context": "bb", "users": []})


@pytest.mark.parametrize(("content", "errors"), [("MTIz", 0), ("NDU2", 1), (None, 0)])
@pytest.mark.parametrize("by_file", [True, False])
def test_a_kubeconfig_is_compared_with_the_cluster(tmp_path, content, errors, by_file):
    hosts, pem = finished(), CERTIFICATE % content
    for seen in hosts.values():
        seen["host"]["kubelet"]["cluster"] = ca_digest(CERTIFICATE % "MTIz")
    (tmp_path / "ca.crt").write_text(pem)
    data = {"certificate-authority-data": base64.b64encode(pem.encode()).decode()}
    authority = {} if content is None else {"certificate-authority": "ca.crt"} if by_file else data
    (tmp_path / "config").write_text(kubeconfig(server="https://b", **authority))
    result = run(hosts=hosts, kubeconfig=str(tmp_path / "config"), networks=[{"name": "rdma-net"}])
    assert result["errors"] == errors
    if errors:
        (finding,) = result["plan"]["findings"]
        assert (finding["check"], "leads to https://b," in finding["seen"]) == ("other-cluster", True)


@pytest.mark.parametrize("text", ["", "[]", "a: [", "current-context: x", "clusters: 1", None])
def test_what_is_no_kubeconfig_is_not_compared(tmp_path, text):
    if text is not None:
        (tmp_path / "config").write_text(text)
    result = run(hosts=finished(), kubeconfig=str(tmp_path / "config"), networks=[{"name": "rdma-net"}])
    assert result["plan"]["findings"] == []


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "artifacts").write_text("")
    with pytest.raises(FabricError, match="fabric_artifacts_dir"):
        keep_plan(str(tmp_path / "artifacts"), PLAN, {}, check_mode=False)


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    def refuse(*_paths):
        raise OSError("no space")

    (tmp_path / "plan.json").write_text("old")
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="no space"):
        write_file(str(tmp_path / "plan.json"), b"new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("plan.json", "old")]


def test_resolve_vipu(monkeypatch):
    monkeypatch.setattr(
        fabric_plan.socket, "getaddrinfo", lambda name, *_rest, **_more: [(0, 0, 0, "", ("10.5.0.20", 0))]
    )
    assert fabric_plan.resolve_vipu(["vipu:8090", "10.5.0.21", {"host": "b"}, "a b"]) == {
        "vipu": "10.5.0.20",
        "b": "10.5.0.20",
    }


def test_a_recorded_plan_is_the_same_whoever_makes_it(tmp_path, monkeypatch):
    run(hosts=site(), artifacts_dir=str(tmp_path / "first"), networks=[{"name": "rdma-net"}])
    options = {"observations": str(tmp_path / "first/observations.json"), "networks": [{"name": "rdma-net"}]}
    first = run(hosts=site(), **options)["plan"]
    monkeypatch.setattr(fabric_plan.getpass, "getuser", lambda: "another")
    monkeypatch.setattr(fabric_plan, "utc_now", lambda: "2030-01-01T00:00:00Z")
    assert run(hosts=site(), **options)["plan"] == first
    assert (first["made"]["time"], first["made"]["by"]) == (first["recorded"], "")


@pytest.mark.parametrize(
    ("level", "state", "bare", "refuse", "said"),
    [
        ("error", "errors", True, ["changes", "unbuilt"], "Errors in the plan: 1. They are shown above and in"),
        (
            "warning",
            "changes",
            False,
            ["changes"],
            "There are changes to apply, and fabric_detailed_exitcode is set.",
        ),
        ("warning", "changes", True, ["unbuilt"], "No host of this inventory is in a cluster. Seen: the line"),
        ("warning", "changes", True, [], ""),
        ("warning", "changes", False, ["unbuilt"], ""),
        ("warning", "nothing", False, ["changes", "unbuilt"], ""),
    ],
)
def test_what_ends_a_run_after_its_plan(level, state, bare, refuse, said):
    summary = {"state": state, "bare": bare, "line": "the line"}
    refusal = fabric_plan.refusal({"findings": [{"level": level}], "summary": summary}, "/site", refuse)
    assert refusal.startswith(said), refusal
    assert bool(refusal) == bool(said)

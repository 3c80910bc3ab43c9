# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan on the controller, since a plan needs no host and what the hosts reported is large."""

from __future__ import annotations

import dataclasses
import datetime
import getpass
import json
import os
import socket
import typing as t

from ansible.module_utils.parsing.convert_bool import boolean

from ..module_utils._common.helm_record import shown
from ..module_utils._common.proxy import PROXY
from ..module_utils._component import ipu_operator
from ..module_utils._host.sources import ask_sources
from ..module_utils._host.vipu import split_endpoint
from ..module_utils._model.observation import Observations
from ..module_utils._model.plan import Drift, Made, Plan
from ..module_utils._model.settings import Home, IpuRelease, OwnMultus, Settings, SiteProxy
from ..module_utils._model.stacks import STACKS
from ..module_utils._model.upgrade import SeenCluster
from ..module_utils._network.releases import IPU_OPERATORS
from ..module_utils._plan import build, observation_cache, upgrade
from ..module_utils._plan.cluster_identity import check_cluster, check_names, is_bare
from ..module_utils._plan.endpoints import parse_address
from ..module_utils._plan.proxy import sources
from ..module_utils._plan.record import (
    Earlier,
    known_findings,
    name_site,
    parse_plan,
    record,
    with_drift,
    with_fabric,
    without_drift,
)
from ..module_utils._plan.recording import Recording, recorded
from ..module_utils._plan.report import as_text, drift_text, files_text, limit_text, next_steps
from ..module_utils._verify.catalog import PROVED
from ..modules import fabric_plan
from ..plugin_utils._artifacts import plan_text, read_file, write_files
from ..plugin_utils._bundle import see_bundle
from ..plugin_utils._collection import COLLECTION, collection_version
from ..plugin_utils._controller_action import ControllerAction, argument_spec, plain
from ..plugin_utils._delegation import DelegatingAction, Result, Results
from ..plugin_utils._kubeconfig import read_kubeconfig
from ..plugin_utils._plan_file import see_plan
from ..plugin_utils._recording import OBSERVATIONS, read_recording
from ..plugin_utils._render.pages import plan_page
from ..plugin_utils._role_settings import role_settings
from ..plugin_utils._site_variables import (
    passed_variables,
    role_options,
    role_variables,
    site_options,
    site_variables,
)

LIBRARIES = ("jmespath", "netaddr")
# Variables of the role fabric that its tasks pass on modified, or that the plan must not know.
NOT_TAKEN = {
    "artifacts_dir",
    "bundle",
    "kubeconfig",
    "observations",
    "plan_file",
    "proxy",
    "questions",
    "download_proxy",
}
PLAN, APPLIED, REPORT, REPORT_JSON = "plan.json", "applied.json", "report.html", "report.json"


def resolve_vipu(entries: t.Sequence[object]) -> t.Dict[str, str]:
    """Resolve the host names among fixed V-IPU controllers here, since the plan itself looks nothing up."""
    addresses = {}
    for entry in entries:
        host = str(entry.get("host", "")) if isinstance(entry, dict) else str(entry)
        try:
            name = split_endpoint(host)[0]
            if parse_address(name) is None:
                addresses[name] = str(socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0])
        except (OSError, ValueError):  # the plan reports what is wrong with it
            continue
    return addresses


def keep_plan(
    folder: str, plan: Plan, cache: t.Optional[observation_cache.Cache], check_mode: bool, approved: str = ""
) -> None:
    """Write the plan, and what hosts reported for it.

    cache: what they reported; None: nothing new.
    approved: the path of an approved plan, which is never overwritten; it need not exist.
    """
    if not check_mode:
        texts = plan_files(folder, plan, approved)
        if cache is not None:
            texts[OBSERVATIONS] = json.dumps(cache) + "\n"
        write_files(folder, texts, "fabric_artifacts_dir")


def earlier_plans(folder: str) -> Earlier:
    """The plan of the last run, and the one that site applied."""
    last, applied = (parse_plan(read_file(os.path.join(folder, name))) if folder else None for name in (PLAN, APPLIED))
    return Earlier(last, applied)


def made_now(now: str, site: str) -> Made:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # an execution environment's user may have no name
        user = str(os.getuid())
    return {"time": now, "site": site, "collection": collection_version(), "by": f"{user}@{socket.gethostname()}"}


def plan_files(folder: str, plan: Plan, approved: str) -> t.Dict[str, str]:
    """The files of a plan by name, without the file of an approved plan."""
    texts = {PLAN: plan_text(plan), "plan.html": plan_page(plan)}
    if approved and os.path.realpath(approved) == os.path.realpath(os.path.join(folder, PLAN)):
        del texts[PLAN]
    return texts


def ipu_release(settings: ipu_operator.Settings, version: str, sources: t.Mapping[str, t.Any]) -> IpuRelease:
    """The release that the role ipu_operator would install. The plan has the controllers and the chart's source."""
    repo = (sources.get("charts") or {}).get("ipu_operator") or settings.chart_repo_url
    version = version.lstrip("v") if version.lstrip("v") in IPU_OPERATORS else settings.version
    wanted = dataclasses.replace(settings, version=version, chart_repo_url=repo, vipu_controllers=())
    values = shown(ipu_operator.all_values(wanted))
    return IpuRelease(settings.release_name, settings.namespace, settings.crd_url, values)


def make_preflight(settings: Settings, observations: Observations) -> t.Dict[str, t.Any]:
    preflight = build.build_preflight(settings, observations)
    return {"changed": False, "plan": preflight, "text": as_text(preflight, "Preflight")}


def read_cache(folder: str) -> observation_cache.Cache:
    """What the last runs saw of the hosts, from the artifacts folder."""
    return observation_cache.parse_cache(read_file(os.path.join(folder, OBSERVATIONS)) if folder else "")


def utc_now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def make_plan(
    settings: Settings,
    observations: Observations,
    check_mode: bool,
    recording: t.Optional[Recording],
    all_findings: bool,
) -> t.Dict[str, t.Any]:
    """Make the plan and its files in the artifacts folder. A plan from a recording is as of that day."""
    folder, now = settings.artifacts_dir, utc_now()
    earlier = earlier_plans(folder)
    if recording:
        planned = build.build_plan(settings, recorded(observations, recording), recording.time[:10], recording.time)
        cache = None
    else:
        last = read_cache(folder)
        planned = build.build_plan(settings, observation_cache.recall_hosts(observations, last), now[:10])
        cache = observation_cache.update_cache(observations, last, now)
    made = made_now(now, name_site(settings.inventory_sources, settings.cluster_config))
    if recording:  # the same input gives the same plan, whoever makes it
        made = {**made, "time": recording.time, "by": ""}
    plan = record(planned, made, earlier)
    reported = {finding["check"] for finding in plan["findings"]}
    errors = {finding["check"] for finding in plan["findings"] if finding["level"] == "error"}
    approved = settings.plan_file.path if settings.plan_file else ""
    if folder and "artifacts-dir" not in errors:
        keep_plan(folder, plan, cache, check_mode, approved)
    title = f"Plan, as in {approved}" if approved and not reported & {"plan-file", "plan-moved"} else "Plan"
    known = [] if all_findings else known_findings(earlier.last)
    return {"changed": False, "plan": plan, "text": as_text(plan, title, known)}


def refusal(plan: Plan, folder: str, refuse: t.Container[str]) -> str:
    """Why a run ends here; empty if it goes on. Ansible has one exit code for all failures, plan.json several."""
    errors = sum(finding["level"] == "error" for finding in plan["findings"])
    summary = plan["summary"]
    if errors:
        proof = " No proof was made: report.json is still that of the last one." if "unbuilt" in refuse else ""
        return f"Errors in the plan: {errors}. They are shown above and in {folder}/plan.html.{proof}"
    if "changes" in refuse and summary["state"] == "changes":
        return (
            f"There are changes to apply, and fabric_detailed_exitcode is set. Seen: {summary['line']}"
            " Next: run ipu.fabric.site to apply them."
        )
    if "unbuilt" in refuse and summary["bare"]:
        return (
            f"No host of this inventory is in a cluster. Seen: {summary['line']}"
            " Next: run ipu.fabric.site first, which builds it."
        )
    return ""


def add_drift(
    plan: Plan, drift: t.Sequence[Drift], options: t.Dict[str, t.Any], check_mode: bool
) -> t.Dict[str, t.Any]:
    """Add the drift of the cluster to the plan, and rewrite its files."""
    once = [each for number, each in enumerate(drift) if each not in drift[:number]]
    planned = with_drift(plan, once, utc_now())
    folder = options["artifacts_dir"]
    if folder and not check_mode:
        write_files(folder, plan_files(folder, planned, options["plan_file"]), "fabric_artifacts_dir")
    return {"changed": False, "plan": planned, "text": drift_text(once)}


def keep_derived(plan: Plan, folder: str, check_mode: bool) -> t.Dict[str, t.Any]:
    """Complete the plan of what a cluster has with who derived it, and write its files."""
    planned: Plan = {**plan, "made": made_now(utc_now(), "")}
    if folder and not check_mode:
        write_files(folder, plan_files(folder, planned, ""), "fabric_artifacts_dir")
    return {"changed": False, "plan": planned, "text": as_text(planned)}


def was_proved(folder: str) -> bool:
    """Whether the last proof in this folder passed."""
    try:
        return bool(folder) and json.loads(read_file(os.path.join(folder, REPORT_JSON)))["outcome"] == PROVED
    except (ValueError, TypeError, KeyError):  # no file, or not a report
        return False


def keep_applied(
    plan: Plan, cluster: t.Mapping[str, str], options: t.Dict[str, t.Any], check_mode: bool, only_fabric: bool
) -> t.Dict[str, t.Any]:
    """Save the plan as the one that was applied, with which later ones are compared, and say what to do next."""
    folder, applied = options["artifacts_dir"], without_drift(plan)
    if folder and not check_mode:
        saved = with_fabric(earlier_plans(folder).applied, applied) if only_fabric else applied
        kept = {APPLIED: json.dumps(saved) + "\n"} if saved is not None else {}
        write_files(folder, {**plan_files(folder, applied, options["plan_file"]), **kept}, "fabric_artifacts_dir")
    here, path = os.environ.get("PWD", ""), str(COLLECTION / "docs/examples")
    usual = cluster["kubeconfig"] == os.path.join(here, "artifacts/admin.conf")
    examples = os.path.relpath(path, here) if here and path.startswith(f"{here}/") else path
    report = os.path.join(folder, REPORT) if folder else ""
    image = cluster.get("image") or role_options("verify")["verify_image"]["default"]
    proved = was_proved(folder)
    steps = next_steps(applied, cluster["kubeconfig"], cluster["host"], examples, usual, image, report, proved)
    return {"changed": False, "plan": applied, "text": "\n".join(steps)}


def make_upgrade(observations: Observations, cluster: SeenCluster, options: t.Dict[str, t.Any]) -> t.Dict[str, t.Any]:
    planned = upgrade.plan_upgrade(observations, cluster, options["kubernetes_version"].lstrip("v"), options["allow"])
    errors = [finding for finding in planned["findings"] if finding["level"] == "error"]
    folder = options["artifacts_dir"]
    before = read_file(os.path.join(folder, f"upgrade-{planned['to']}.json")) if folder else ""
    turns = {**planned, "ca": cluster["ca"], "resumed": upgrade.is_resumed(before, cluster["ca"])}
    return {"changed": False, "upgrade": turns, "text": upgrade.upgrade_text(planned), "errors": len(errors)}


class ActionModule(DelegatingAction, ControllerAction):
    """See the module of the same name."""

    spec: t.ClassVar[t.Dict[str, t.Dict[str, t.Any]]] = {**argument_spec(fabric_plan), "download_proxy": PROXY}
    libraries = LIBRARIES

    def run(self, tmp: t.Any = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> t.Dict[str, t.Any]:
        self.variables = task_vars or {}
        known, given = self.variables, self._task.args
        if boolean(given.get("site", False), strict=False):
            for name in self.spec.keys() - given.keys() - NOT_TAKEN:
                variable = f"fabric_{name}"
                if variable in site_options() and variable in known:
                    given[name] = self._templar.template(known[variable])
        return super().run(tmp, task_vars)

    def below(self, options: t.Mapping[str, t.Any], observations: Observations, recorded: bool) -> str:
        """The text below the plan of a site: the hosts outside this run and, except in check mode, the files."""
        known = self.variables
        others = () if recorded else set(observations) - set(known.get("ansible_play_hosts_all", observations))
        fetched = self._templar.template(known.get("fabric_kubeconfig", "")) if options["manage_kubernetes"] else ""
        files = "" if self._task.check_mode else files_text(options["artifacts_dir"], fetched, recorded)
        return limit_text(known.get("ansible_limit", ""), others) + files

    def act(self, options: t.Dict[str, t.Any]) -> t.Dict[str, t.Any]:
        observations, scope, cluster = (options.pop(name) for name in ("hosts", "scope", "cluster"))
        plan, drift, site, in_full = (options.pop(name) for name in ("plan", "drift", "site", "all_findings"))
        refuse, limit = options.pop("refuse"), options.pop("observe_timeout")
        if scope == "cluster":
            return self.same_cluster(cluster, observations, options)
        if scope == "drift":
            return add_drift(plan, drift, options, self._task.check_mode)
        if scope == "derived":
            return keep_derived(plan, options["artifacts_dir"], self._task.check_mode)
        if scope in ("applied", "applied_fabric"):
            return keep_applied(plan, cluster, options, self._task.check_mode, scope == "applied_fabric")
        if scope == "upgrade":
            return make_upgrade(observations, cluster, options)
        path = options.pop("observations")
        recording = read_recording(os.path.expanduser(path)) if path else None
        options["kubeconfig"] = read_kubeconfig(options["kubeconfig"])
        questions, download_proxy = options.pop("questions"), options.pop("download_proxy")
        bundle, proxy = see_bundle(os.path.expanduser(options.pop("bundle"))), options.pop("proxy")
        own = SiteProxy(proxy.get("no_proxy", ()), sources(proxy.get("mirror", {}))) if proxy else None
        options.update(bundle=bundle, proxy=own, plan_file=see_plan(options["plan_file"]))
        settings = Settings(
            **options,
            resolved=resolve_vipu(options["vipu_hosts"]),
            site_variables=site_variables() | role_variables(),
            passed_variables=passed_variables(),
            ipu_release=self.ipu_release(options),
            own_multus=self.own_multus(options["stack"]),
            homes=self.homes(),
            source_problems=ask_sources(questions, download_proxy),
        )
        if scope == "ports":
            return {"changed": False, "hosts": self.probe_ports(settings, observations, limit)}
        if scope == "preflight":
            result = make_preflight(settings, observations)
        else:
            result = make_plan(settings, observations, self._task.check_mode, recording, in_full)
            result["text"] += self.below(options, observations, bool(recording)) if site else ""
            result["refusal"] = refusal(result["plan"], options["artifacts_dir"], refuse)
        levels = [finding["level"] for finding in result["plan"]["findings"]]
        return {**result, "errors": levels.count("error")}

    def same_cluster(self, cluster: t.Any, observations: Observations, options: t.Mapping[str, t.Any]) -> Result:
        """Ask the API about its cluster if the site names the host that can, and compare it with the hosts."""
        asked: Result = {}
        if "host" in cluster:
            question, where = {"kubeconfig": cluster["kubeconfig"]}, cluster["host"]
            asked = self.delegate_all("ipu.fabric.cluster_info", {where: question}, 0, self.variables)[where]
            if not asked.get("present"):  # no API server answers yet, or the question failed
                return asked
            cluster = {**asked, "kubeconfig": f"{cluster['kubeconfig']} on {where}"}
        # In check mode nothing has replaced the kubeconfig of a former cluster yet.
        if not (self._task.check_mode and options["manage_kubernetes"] and is_bare(observations)):
            if "other-cluster" not in options["allow"]:
                check_cluster(observations, cluster)
            # A host that is down keeps the name that it had.
            known = observation_cache.recall_hosts(observations, read_cache(options["artifacts_dir"]))
            check_names(known, cluster["nodes"])
        return {"changed": False, **asked}

    def probe_ports(self, settings: Settings, observations: Observations, limit: int) -> Results:
        """Hosts listen on free ports that others need of them, connect to the others, and end their listeners."""
        seen: Results = {name: {} for name in settings.run_hosts if "host" in observations.get(name, {})}

        def step(name: str, hosts: t.Mapping[str, t.Mapping[str, t.Any]]) -> None:
            options = {host: {"step": name, **given} for host, given in hosts.items()}
            for host, result in self.delegate_all("ipu.fabric.port_probe", options, limit, self.variables).items():
                seen[host].update({key: value for key, value in result.items() if key != "invocation"})

        try:
            if len(settings.run_hosts) > 1:
                wanted = build.build_port_needs(settings, observations)["listen"]
                step("listen", {host: wanted.get(host, {}) for host in seen})
            for host, result in seen.items():
                if "listener" in result:
                    observations[host]["listener"] = result["listener"]
            targets = build.build_port_needs(settings, observations)["ports"]
            step("connect", {host: {"targets": targets.get(host, [])} for host in seen})
        finally:
            step("stop", {host: {} for host, result in seen.items() if "listener" in result})
        return seen

    def ipu_release(self, options: t.Dict[str, t.Any]) -> IpuRelease:
        template = self._templar.template if self._templar else plain
        own = role_settings(ipu_operator.Settings, "ipu_operator", self.variables, template)
        return ipu_release(own, options["ipu_operator_version"], options["sources"])

    def own_multus(self, stack: str) -> OwnMultus:
        if stack not in STACKS or not self._templar:  # no such stack is a finding
            return OwnMultus()
        return role_settings(OwnMultus, stack, self.variables, self._templar.template)

    def homes(self) -> t.Dict[str, str]:
        template = self._templar.template if self._templar else plain
        roles = (*STACKS, "whereabouts", "gpu_operator")
        return {role: role_settings(Home, role, self.variables, template).namespace for role in roles}

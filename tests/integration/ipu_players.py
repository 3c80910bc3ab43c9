"""Stand-ins for the IPU operator and for the kubelet's logs: threads of the tests."""

from __future__ import annotations

import contextlib
import http.server
import ssl
import threading
import time
import typing as t
import urllib.parse
from pathlib import Path

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_spec import FINALIZER
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import ApiError, Cluster

Object = t.Dict[str, t.Any]
NAMESPACE = "jobs"
JOBS = f"/apis/graphcore.ai/v1alpha1/namespaces/{NAMESPACE}/ipujobs"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
OPERATOR = "/api/v1/namespaces/ipu-operator/pods/ipu-operator-controller-manager-0"
Step = t.Callable[["Operator", Object], None]


class Kubelet:
    """Serves the logs that the tests write, as a kubelet would: with time stamps, and followed until the pod ends."""

    def __init__(self, state: Path) -> None:
        self.lines: t.Dict[str, t.List[str]] = {}
        self.ended: t.Set[str] = set()
        kubelet = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urllib.parse.urlsplit(self.path)
                query = dict(urllib.parse.parse_qsl(url.query))
                pod, sent = url.path.split("/")[3], 0
                self.send_response(200)
                self.end_headers()
                while True:
                    ended, lines = pod in kubelet.ended, kubelet.lines.get(pod, [])
                    for line in lines[sent:]:
                        if line[:19] >= query.get("sinceTime", "")[:19]:
                            self.wfile.write(line.encode() + b"\n")
                    self.wfile.flush()
                    sent = len(lines)
                    if ended or query.get("follow") != "true":
                        return
                    time.sleep(0.02)

            def log_message(self, *_args: t.Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(state / "certs" / "apiserver.crt", state / "certs" / "apiserver.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def write(self, pod: str, *texts: str) -> None:
        for text in texts:
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + f".{time.time_ns() % 10**9:09d}Z"
            self.lines.setdefault(pod, []).append(f"{stamp} {text}")


class Operator(threading.Thread):
    """Stands for the IPU operator. What happens to a job after it was taken up is the test's script, a step a tick."""

    def __init__(self, cluster: Cluster, kubelet: Kubelet) -> None:
        super().__init__(daemon=True)
        self.cluster, self.kubelet, self.over = cluster, kubelet, threading.Event()
        self.scripts: t.Dict[str, t.List[Step]] = {}
        self.old: t.Set[t.Tuple[str, int]] = set()  # uids and generations of jobs whose script is over

    def run(self) -> None:
        while not self.over.wait(0.2):
            # A conflict, or a server that restarts: the next tick sees it again.
            with contextlib.suppress(ApiError, FabricError):
                for job in self.cluster.items(JOBS):
                    self.reconcile(job)

    def reconcile(self, job: Object) -> None:
        metadata = job["metadata"]
        path, held = f"{JOBS}/{metadata['name']}", FINALIZER in metadata.get("finalizers", [])
        if "deletionTimestamp" in metadata:
            self.remove_pods(job)
            if held:
                self.cluster.patch(path, {"metadata": {"finalizers": None}})
        elif not held:
            self.cluster.patch(path, {"metadata": {"finalizers": [FINALIZER]}})
        elif self.scripts.get(metadata["name"]) and (metadata["uid"], metadata["generation"]) not in self.old:
            self.scripts[metadata["name"]].pop(0)(self, job)

    def next_script(self, name: str, *steps: Step) -> None:
        """What happens once the job has another spec, or another job has its name; no sooner, however slow the test."""
        present = self.cluster.request("get", f"{JOBS}/{name}")["metadata"]
        self.old.add((present["uid"], present["generation"]))
        self.scripts[name] = list(steps)

    def status(self, job: Object, **status: t.Any) -> None:
        base = {"desiredReplicas": job["spec"]["jobInstances"], "lastMessage": "Successfully reconciled IPUJob"}
        body = {"status": {**base, **status}}
        path = f"{JOBS}/{job['metadata']['name']}/status"
        self.cluster.request("patch", path, body=body, content_type="application/merge-patch+json")

    def pod(self, job: Object, name: str, phase: str, **container: t.Any) -> None:
        """Make the pod if it is not there, and give it a status."""
        metadata = job["metadata"]
        full, owner = f"{metadata['name']}-{name}", {"apiVersion": job["apiVersion"], "kind": "IPUJob"}
        spec = {**job["spec"]["workers"]["template"]["spec"], "nodeName": "loopback", "restartPolicy": "Never"}
        body = {
            "metadata": {"name": full, "ownerReferences": [{**owner, "name": metadata["name"], "uid": metadata["uid"]}]}
        }
        if self.cluster.get(f"{PODS}/{full}") is None:
            self.cluster.request("post", PODS, body={**body, "spec": spec})
        entry = {"name": "main", "image": "i", "imageID": "", "ready": True, "restartCount": 0, "state": container}
        status = {"phase": phase, "containerStatuses": [entry]}
        kind = "application/merge-patch+json"
        self.cluster.request("patch", f"{PODS}/{full}/status", body={"status": status}, content_type=kind)

    def end_pod(self, job: Object, name: str, code: int = 0) -> None:
        self.kubelet.ended.add(f"{job['metadata']['name']}-{name}")
        phase = "Failed" if code else "Succeeded"
        self.pod(job, name, phase, terminated={"exitCode": code, "reason": "Error" if code else "Completed"})

    def remove_pods(self, job: Object) -> None:
        for pod in self.cluster.items(PODS):
            if pod["metadata"]["name"].startswith(job["metadata"]["name"] + "-"):
                self.kubelet.ended.add(pod["metadata"]["name"])
                path = f"{PODS}/{pod['metadata']['name']}"
                with contextlib.suppress(ApiError):
                    self.cluster.request("delete", path, body={"gracePeriodSeconds": 0})


def shrinks(operator: Operator, job: Object) -> None:
    """The pods of instances that are not wanted any more go."""
    for pod in operator.cluster.items(PODS):
        name = pod["metadata"]["name"]
        if int(name.rpartition("-")[2]) >= job["spec"]["jobInstances"]:
            with contextlib.suppress(ApiError):
                operator.cluster.request("delete", f"{PODS}/{name}", body={"gracePeriodSeconds": 0})


def pending(message: str) -> Step:
    return lambda o, job: o.status(job, launcherStatus="Pending", lastMessage=message)


def runs(*texts: str) -> Step:
    def step(o: Operator, job: Object) -> None:
        instances = job["spec"]["jobInstances"]
        for n in range(instances):
            o.pod(job, f"worker-{n}", "Running", running={})
        o.kubelet.write(f"{job['metadata']['name']}-worker-0", *texts)
        workers = {"active": instances, "succeeded": 0, "failed": 0}
        o.status(job, launcherStatus="Running", currentReplicas=instances, workersStatus=workers)

    return step


def writes(*texts: str) -> Step:
    return lambda o, job: o.kubelet.write(f"{job['metadata']['name']}-worker-0", *texts)


def ends(code: int = 0, clean: bool = False, over: bool = True, restarts: int = 0) -> Step:
    def step(o: Operator, job: Object) -> None:
        o.kubelet.write(f"{job['metadata']['name']}-worker-0", f"last words, {code}")
        o.end_pod(job, "worker-0", code)
        if clean:
            o.remove_pods(job)
        status = {"launcherStatus": "Failed" if code else "Completed", "restartCount": restarts}
        o.status(job, **status, **({"completionTime": "2026-11-21T10:00:00Z"} if over else {}))

    return step


def restart(o: Operator, job: Object) -> None:
    """What a restart does to the pods."""
    o.remove_pods(job)
    o.kubelet.ended.clear()
    o.kubelet.lines.clear()
    o.status(job, launcherStatus="Pending", restartCount=1)


def idle(_o: Operator, _job: Object) -> None:
    """A tick in which nothing happens."""

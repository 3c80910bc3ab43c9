#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ipujob
short_description: Run, scale and remove jobs on IPUs
version_added: 0.1.0
description:
  - Creates an IPUJob of Graphcore's IPU operator, waits for it, keeps its logs, scales it, and removes it, or all jobs
    of a namespace or of the cluster.
  - Options are checked before the cluster is contacted, and all their errors are reported at once. Then the API server
    and the operator's webhook check the job in a dry run, in check mode too.
  - Of an existing job only O(job_instances) and O(labels) can be changed; for anything else, O(recreate) replaces it.
  - While it waits, every change of the job's state goes into RV(progress), and into the system log of the host if the
    module does not run on the controller. The wait stops early when an image can't be pulled or the namespace refuses
    the pods. It survives a restart of the API server and of the operator.
author: ipu.fabric contributors (@ipu-fabric)
requirements:
  - cryptography
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  name:
    description:
      - Name of the job. At most 36 characters, since the operator derives longer names from it.
      - Needed with O(scope=job), and only then.
    type: str
  namespace:
    description:
      - Namespace of the job, V(default) if not given. It must exist. Pods with O(rdma_resource) need one that allows
        privileged pods.
      - Needed with O(scope=namespace). Not allowed with O(scope=cluster).
    type: str
  state:
    description:
      - V(present) makes sure that the job exists as given; with O(wait) also that it runs or has completed.
      - V(finished) makes sure that it exists and has completed. A job that has failed is an error, now and at the next
        run.
      - V(scaled) scales an existing job, whoever created it, to O(job_instances) instances; with O(wait) they run, and
        the pods of other instances are gone or about to end. No other option is needed, and nothing else is changed.
      - V(absent) removes the job. Its partitions are then free, and its pods are gone or about to end.
      - V(restored), for O(scope=cluster) only, touches no job. It restores the failure policies of webhooks that a
        killed run with O(force) has left at C(Ignore). Every other state does that first, too.
    type: str
    choices: [present, finished, scaled, absent, restored]
    default: present
  scope:
    description:
      - V(job) is the job O(name).
      - V(namespace), for O(state=absent) only, and V(cluster) are all jobs there, for example before their operator is
        removed. If there are any, the module fails and names them, unless O(delete_all) is set.
    type: str
    choices: [job, namespace, cluster]
    default: job
  delete_all:
    description: Delete all jobs of O(scope), running ones too.
    type: bool
    default: false
  job_instances:
    description:
      - Number of instances, each with workers and a partition of its own. Use more than one for inference.
      - If not set, a new job has 1, and an existing one keeps its number. O(state=scaled) needs it.
    type: int
  ipus_per_job_instance:
    description: IPUs of each instance's partition, V(1), V(2), V(4), V(8), V(16), V(32) or V(64). Needed
      with O(state=present) and O(state=finished).
    type: int
  workers_per_job_instance:
    description: Worker pods of each instance. The operator's default is 1.
    type: int
  model_replicas_per_worker:
    description: Replicas of the model in each worker. The operator's default is 1.
    type: int
  launcher:
    description:
      - What to run in a launcher pod that drives the workers, for example C(mpirun). The operator tells C(mpirun) its
        hosts, the workers, and how to reach them.
      - Without it and O(interactive), the workers run the command of their template.
    type: dict
    suboptions:
      command:
        description: The command and its arguments.
        type: list
        elements: str
        required: true
      env:
        description: Environment variables, as in a container.
        type: list
        elements: dict
      mpi_interfaces:
        description:
          - Interfaces of the pods, or subnets, through which the ranks of Open MPI reach each other over TCP. They
            become C(OMPI_MCA_btl_tcp_if_include), which is the same as C(mpirun --mca btl_tcp_if_include), unless
            O(launcher.env) has it. An option in O(launcher.command) overrides both.
          - If not given, and O(workers_per_job_instance) is more than 1, they are the interfaces of O(networks),
            V(net1) and so on. An empty list leaves the choice to MPI.
        type: list
        elements: str
  interactive:
    description: A launcher pod that does nothing, for a person to work in. RV(attach) is the command for it.
    type: dict
    suboptions:
      ttl:
        description: Seconds that the pod lives.
        type: int
        required: true
  workers:
    description: The pods that use the IPUs. Needed with O(state=present) and O(state=finished).
    type: dict
    suboptions:
      template:
        description: Pod template, with C(metadata) and C(spec) as in a Deployment.
        type: dict
        required: true
      replicas:
        description: The field C(workers.replicas) of the IPUJob. The operator's default is 1.
        type: int
  networks:
    description: Secondary networks of the pods, as C(NAME) or C(NAMESPACE/NAME). Short for the template's annotation.
    type: list
    elements: str
    default: []
  rdma_resource:
    description:
      - Gives the template's first container one of this RDMA resource and the capability C(IPC_LOCK).
      - A name without a prefix is one of C(rdma/).
    type: str
    default: ""
  volumes:
    description:
      - Volumes that every container of the template, and so the launcher, mounts. Write other volumes into the
        template.
    type: list
    elements: dict
    default: []
    suboptions:
      nfs:
        description: A directory of an NFS server. Give this or O(volumes[].claim).
        type: dict
        suboptions:
          server:
            description: Name or address of the server.
            type: str
            required: true
          path:
            description: Directory on the server.
            type: str
            required: true
      claim:
        description: Name of a PersistentVolumeClaim that many pods can mount.
        type: str
      mount_path:
        description: Mount path in the containers.
        type: str
        required: true
      read_only:
        description: Whether the volume is read-only.
        type: bool
        default: false
  restart_policy:
    description: When the operator restarts a job that has ended.
    type: dict
    suboptions:
      type:
        description:
          - V(Always) after every end, V(OnFailure) after a failure, V(ExitCode) after O(restart_policy.exit_codes).
          - O(clean_pod_policy=All) overrides it.
        type: str
        choices: [Always, OnFailure, Never, ExitCode]
        required: true
      back_off_limit:
        description: The maximum number of restarts. The operator's default is 3.
        type: int
      exit_codes:
        description: Exit codes and ranges of them, like V(128-255), that are worth another try.
        type: list
        elements: str
  clean_pod_policy:
    description: Which pods the operator deletes when the job has ended. The operator's default is V(None).
    type: str
    choices: ["None", All, Workers]
  labels:
    description: Labels of the job.
    type: dict
    default: {}
  recreate:
    description: Delete and recreate the job if it differs in something that can't be changed, or has failed.
    type: bool
    default: false
  force:
    description:
      - Remove the operator's finalizer if the operator is not there to do so, or has not done so within
        O(wait_timeout).
      - If the operator's webhooks do not answer, their failure policy is set to V(Ignore) for that moment. If the run
        is killed in that moment, the next one restores the policy.
      - Partitions may stay behind in V-IPU; RV(partitions_left) names them.
    type: bool
    default: false
  wait:
    description:
      - Whether to wait until the job is as O(state) says. If V(false), O(state=present) ends when the job is stored.
    type: bool
    default: true
  wait_timeout:
    description: The maximum number of seconds to wait, for all jobs together. The job continues after that.
    type: int
    default: 600
  record:
    description:
      - Whether to inspect the workers while they run. RV(record) and the job's annotation C(fabric.ipu/moved) then say
        how the job moved its data.
      - Needs O(state=finished) and the right to exec into pods.
    type: bool
    default: false
  logs:
    description:
      - What to do with the logs of the launcher and the workers. They are read while the module waits.
      - If the wait fails, RV(evidence) is collected too.
    type: dict
    suboptions:
      path:
        description:
          - Directory, on the host where the module runs, for a file C(POD.CONTAINER.log) for each container that wrote
            anything. After a restart, the next file is C(POD.CONTAINER.2.log).
          - A file gets its name when it is complete, and is not replaced if the content is the same. Files do not count
            as a change.
        type: path
      tail:
        description: How many of the last lines to return.
        type: int
        default: 20
"""

EXAMPLES = r"""
- name: Train, and fail if the training fails
  ipu.fabric.ipujob:
    kubeconfig: artifacts/admin.conf
    name: mnist-training
    ipus_per_job_instance: 2
    networks: [rdma-net]
    rdma_resource: rdma_shared_device_a
    volumes:
      - claim: datasets
        mount_path: /data
        read_only: true
    workers:
      template:
        spec:
          containers:
            - name: mnist
              image: graphcore/pytorch-tutorials:latest
              command: [python3, mnist_poptorch.py, --epochs=1]
    clean_pod_policy: All
    state: finished
    wait_timeout: 7200
    logs:
      path: artifacts/mnist
  delegate_to: localhost
  run_once: true

- name: Train on two workers, driven by mpirun
  ipu.fabric.ipujob:
    kubeconfig: artifacts/admin.conf
    name: resnet
    ipus_per_job_instance: 2
    workers_per_job_instance: 2
    networks: [rdma-net]
    launcher:
      command: [mpirun, --allow-run-as-root, --bind-to, none, -np, "2", python3, train.py]
    workers:
      template:
        spec:
          containers:
            - name: resnet
              image: registry.example.com/resnet:1
    state: finished
  delegate_to: localhost
  run_once: true

- name: Run three instances of a server
  ipu.fabric.ipujob:
    kubeconfig: artifacts/admin.conf
    name: inference
    job_instances: 3
    ipus_per_job_instance: 1
    workers:
      template:
        spec:
          containers:
            - name: server
              image: registry.example.com/inference:1
  delegate_to: localhost
  run_once: true

- name: Scale down to one instance at night, whoever made the job
  ipu.fabric.ipujob:
    kubeconfig: artifacts/admin.conf
    name: inference
    job_instances: 1
    state: scaled
  delegate_to: localhost
  run_once: true

- name: Remove a job, even if the operator was uninstalled before
  ipu.fabric.ipujob:
    kubeconfig: artifacts/admin.conf
    name: inference
    state: absent
    force: true
  delegate_to: localhost
  run_once: true

- name: Delete all jobs of a team
  ipu.fabric.ipujob:
    kubeconfig: artifacts/admin.conf
    state: absent
    scope: namespace
    namespace: vision
    delete_all: true
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
job:
  description:
    - C(name), C(namespace), C(labels), C(uid), C(created), C(started), C(ended), C(deleting). Times as in the API.
    - C(state) is V(Pending), V(Running), V(Restarting), V(Completed), V(Failed) or V(Deleting), from the status and the
      pods; C(status) is the operator's own name for it, empty until the operator has reconciled the job.
    - C(instances) and C(instances_wanted), C(workers_active), C(workers_succeeded), C(workers_failed), C(restarts), and
      C(message), the last one of the operator. C(awaited) lists what the job waits for.
    - C(ipus) of all instances, and the names of their C(partitions). C(held) is true while the operator's finalizer is
      set.
    - C(pods), the launcher first, each with C(name), C(role), C(phase), C(node), C(ip), C(deleting), C(problems), and
      C(exits), the containers that have ended, with C(container), C(exit_code) and C(reason).
    - C(spec) as the API has it.
    - Empty after O(state=absent).
  returned: success, and when a wait has failed
  type: dict
  sample: {name: mnist, namespace: default, state: Completed, instances: 1, ipus: 2, partitions:
    [p-mnist-default-0]}
progress:
  description:
    - The changes of state during the wait, each with the C(seconds) since its start. Other keys are those of RV(job).
  returned: success, and when a wait has failed
  type: list
  elements: dict
  sample: [{seconds: 0.2, state: Pending, awaited: [partition not ready yet!]}, {seconds: 9.5, state: Running,
    awaited: []}]
logs:
  description:
    - The collected logs, each with C(name) (C(POD.CONTAINER)), C(file) (empty without O(logs.path)), C(tail) (the last
      lines), and C(error) (why it could not be read).
  returned: success, and when a wait has failed
  type: list
  elements: dict
  sample: [{name: mnist-launcher.mnist, file: artifacts/mnist/mnist-launcher.mnist.log, tail: [epoch 1 of 1],
    error: ""}]
evidence:
  description:
    - What explains the failure besides the job's own logs.
    - C(conditions) of the job, each with C(type), C(status), C(reason), C(message) and C(changed), the oldest first.
      C(events), up to 50 lines about the job and its pods, the newest last.
    - C(operator), the ends of the logs of the IPU operator's controller and V-IPU proxy since the job was created, each
      with C(name) (C(NAMESPACE/POD.CONTAINER)), C(lines) (O(logs.tail) of them) and C(error) (why it could not be read;
      a user may not have the right).
    - C(file), with up to 200 lines of each log, C(NAME.evidence.json) in O(logs.path). Empty without it.
  returned: when a wait has failed
  type: dict
  sample: {conditions: [{type: Failed, status: "True", reason: IPUJobFailed, message: IPUJob default/mnist has failed.,
    changed: "2026-11-21T10:00:00Z"}], events: [], operator: [], file: artifacts/mnist/mnist.evidence.json}
record:
  description:
    - How the job moved its data. Empty without O(record).
    - C(verdict) is V(rdma), V(tcp), V(both), V(nothing), V(unseen), or V(earlier) for a job that was recorded before.
      C(text) is the verdict for a person, C(why) the reason why it was not RDMA, C(next) what to do, C(note) what the
      counters do not show, and C(ranks) what each pod showed.
  returned: success, and when a wait has failed
  type: dict
  sample: {verdict: tcp, text: "moved 39 GB over TCP on eth0: its pods have no RDMA device", why: its pods have no RDMA
    device, next: "Ask for the RDMA resource of the network.", note: "", ranks: []}
waited:
  description: Seconds of the wait.
  returned: success, and when a wait has failed
  type: float
  sample: 93.1
attach:
  description: The command that opens a shell in the job. Empty after O(state=absent).
  returned: success
  type: str
  sample: kubectl exec -it --namespace default mnist-launcher -- bash
jobs:
  description: Namespace and name of each job that was removed, or would be in check mode. Empty unless O(state=absent).
  returned: success
  type: list
  elements: str
  sample: [training/resnet]
partitions_left:
  description: Names of the partitions that may stay in V-IPU, because O(force) removed the finalizer.
  returned: success
  type: list
  elements: str
  sample: [p-resnet-training-0]
"""

import functools

from ..module_utils._common.result import Runner, run_module
from ..module_utils._ipu.job_reconcile import reconcile_jobs
from ..module_utils._kube.client import arguments
from ..module_utils._verify.recorder import Recorder

LAUNCHER = {
    "command": {"type": "list", "elements": "str", "required": True},
    "env": {"type": "list", "elements": "dict"},
    "mpi_interfaces": {"type": "list", "elements": "str"},
}
WORKERS = {"template": {"type": "dict", "required": True}, "replicas": {"type": "int"}}
NFS = {"server": {"type": "str", "required": True}, "path": {"type": "str", "required": True}}
VOLUME = {
    "nfs": {"type": "dict", "options": NFS},
    "claim": {"type": "str"},
    "mount_path": {"type": "str", "required": True},
    "read_only": {"type": "bool", "default": False},
}
RESTART = {
    "type": {"type": "str", "choices": ["Always", "OnFailure", "Never", "ExitCode"], "required": True},
    "back_off_limit": {"type": "int"},
    "exit_codes": {"type": "list", "elements": "str"},
}
LOGS = {"path": {"type": "path"}, "tail": {"type": "int", "default": 20}}
NEEDED = [("scope", "job", ["name"]), ("scope", "namespace", ["namespace"])]


def main(run: Runner = run_module) -> None:
    spec = arguments(
        name={"type": "str"},
        namespace={"type": "str"},
        state={"type": "str", "choices": ["present", "finished", "scaled", "absent", "restored"], "default": "present"},
        scope={"type": "str", "choices": ["job", "namespace", "cluster"], "default": "job"},
        delete_all={"type": "bool", "default": False},
        job_instances={"type": "int"},
        ipus_per_job_instance={"type": "int"},
        workers_per_job_instance={"type": "int"},
        model_replicas_per_worker={"type": "int"},
        launcher={"type": "dict", "options": LAUNCHER},
        interactive={"type": "dict", "options": {"ttl": {"type": "int", "required": True}}},
        workers={"type": "dict", "options": WORKERS},
        networks={"type": "list", "elements": "str", "default": []},
        rdma_resource={"type": "str", "default": ""},
        volumes={"type": "list", "elements": "dict", "default": [], "options": VOLUME},
        restart_policy={"type": "dict", "options": RESTART},
        clean_pod_policy={"type": "str", "choices": ["None", "All", "Workers"]},
        labels={"type": "dict", "default": {}},
        recreate={"type": "bool", "default": False},
        force={"type": "bool", "default": False},
        wait={"type": "bool", "default": True},
        wait_timeout={"type": "int", "default": 600},
        record={"type": "bool", "default": False},
        logs={"type": "dict", "options": LOGS},
    )
    run(
        spec,
        functools.partial(reconcile_jobs, recorders=Recorder),
        libraries=("cryptography", "jmespath"),
        hidden=("launcher", "workers"),
        required_if=NEEDED,
    )


if __name__ == "__main__":
    main()

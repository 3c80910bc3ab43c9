"""Only for this scenario: runs the launcher of an MPIJob, and returns what was sent over which device.

Command and environment are those of `job`, an MPIJob as the filter mpi_job renders it. The launcher sits in the first
pod, in place of one of its own. The rest is as the MPI operator and its images have it: the hostfile, variables for
Open MPI 4, and an `ssh` into the workers that hands on no environment. Here it is `ip netns exec`.
"""

from __future__ import annotations

import json
import time
import typing as t
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import run_program

BYTES = 1 << 21  # each way
# mpirun's own end, however slow the machine; what hangs is killed.
SECONDS = 240
PROGRAM = f"""
import os
from array import array
from mpi4py import MPI
world = MPI.COMM_WORLD
data, got = bytearray({BYTES}), bytearray({BYTES})
word, window = array("i", [7 + world.rank]), array("i", [0])
world.Sendrecv(data, 1 - world.rank, recvbuf=got, source=1 - world.rank)
side = MPI.Win.Create(window, comm=world)
side.Fence()
side.Put(word, 1 - world.rank)
side.Fence()
side.Free()
found = [os.environ.get(name, "-") for name in ("UCX_NET_DEVICES", "UCX_IB_GID_INDEX")]
print(MPI.Get_processor_name(), *found, "sum", world.allreduce(world.rank + 1), "put", window[0], flush=True)
"""
SSH = """\
#!/bin/sh
# [OPTION...] HOST COMMAND...
while :; do
  case $1 in -o) shift 2 ;; -*) shift ;; *) break ;; esac
done
name=${1%%.*}
shift
# Names and shared memory of its own, as pods have: else UCX would take two pods for one host.
exec env -i HOME=/root PATH="$PATH" ip netns exec "p$((${name##*-} + 1))" unshare --uts --ipc sh -c "hostname $name; $*"
"""
OPERATOR = {
    "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
    "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
    "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
    "OMPI_MCA_orte_set_default_slots": "1",
}
PLACE = Path("/srv/soft-roce")


def prepare() -> None:
    """What the image and the operator bring."""
    for folder in (PLACE, Path("/etc/mpi")):
        folder.mkdir(exist_ok=True)
    (PLACE / "ssh").write_text(SSH)
    (PLACE / "ssh").chmod(0o755)
    (PLACE / "program.py").write_text(PROGRAM)
    hosts = (f"soft-worker-{n}.soft.default.svc slots=1\n" for n in range(2))
    Path("/etc/mpi/hostfile").write_text("".join(hosts))


def sent() -> t.Dict[str, int]:
    """How much left the pods so far: bytes of the interfaces, packets of the RDMA devices."""
    found = {}
    for pod in ("p1", "p2"):
        for link in json.loads(run_program(["ip", "-n", pod, "-j", "-s", "link"]).out):
            found[f"{pod} {link['ifname']}"] = link["stats64"]["tx"]["bytes"]
    for link in json.loads(run_program(["rdma", "-j", "statistic"]).out):
        found[link["ifname"]] = link["sent_pkts"]
    return found


def main() -> None:
    module = AnsibleModule({"job": {"type": "dict", "required": True}})
    prepare()
    spec = module.params["job"]["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    launcher = spec["containers"][0]
    variables = {**OPERATOR, **{one["name"]: one["value"] for one in launcher["env"]}}
    path = f"PATH={PLACE}:/usr/sbin:/usr/bin:/sbin:/bin"
    words = ["ip", "netns", "exec", "p1", "env", path, *(f"{name}={value}" for name, value in variables.items())]

    before, start = sent(), time.monotonic()
    done = run_program([*words, *launcher["command"]], SECONDS)
    module.exit_json(
        mpirun_rc=done.rc,
        ranks=sorted(done.out.splitlines()),
        errors=done.err,
        seconds=int(time.monotonic() - start),
        sent={name: count - before.get(name, 0) for name, count in sent().items()},
    )


if __name__ == "__main__":
    main()

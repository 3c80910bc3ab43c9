"""The commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from . import docker, estimate, hosts, inventory, programs, prune, vm, workers
from .build import Wanted, build
from .common import ProblemError, lock, say


def _parser() -> argparse.ArgumentParser:
    about = "Disposable hosts and the mirror they install from. TESTBED_ID (0 to 9) chooses which."
    parser = argparse.ArgumentParser(prog="testbed", description=about)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    simple = {
        "up": "build what is missing, start what does not run: mirror, fabric, hosts",
        "down": "remove this testbed; what is built stays",
        "estimate": "how long `make demo` takes here, and why",
        "status": "what runs, and where",
        "inventory": "print the path of the inventory",
        "bin": "print the directory of the built programs",
        "docker": "build packages of Docker Engine, and print their directory",
        "sriov-operator": "build the SR-IOV operator, and print the directory in which it runs",
        "prune": "drop what no checkout state and no running testbed uses",
    }
    for name, text in simple.items():
        commands.add_parser(name, help=text)
    only = commands.add_parser("build", help="build, and start nothing")
    only.add_argument("--calico", action="store_true", help="what a mirror with Calico has, too")
    only.add_argument("--next-kubernetes", action="store_true", help="the release to upgrade to, too")
    reset = commands.add_parser("reset", help="fresh hosts, or only those that are named; the mirror stays")
    reset.add_argument("hosts", nargs="*", metavar="HOST")
    planes = commands.add_parser(
        "control-planes", help="1, or 3 behind a load balancer; replaces all hosts with fresh ones"
    )
    planes.add_argument("count", type=int, choices=(1, 3))
    planes.add_argument("--virtual-address", action="store_true", help="of the API, in place of the load balancer")
    releases = commands.add_parser(
        "kubernetes", help="1, or 2 releases of Kubernetes in the mirror; the second one is built for it"
    )
    releases.add_argument("count", type=int, choices=(1, 2))
    networks = commands.add_parser("calico", help="whether the mirror has Calico too, which is built for it: on or off")
    networks.add_argument("state", choices=("on", "off"))
    more = commands.add_parser("workers", help="worker nodes with RDMA, virtual machines: 1 or 2; 0 ends them")
    more.add_argument("count", type=int, choices=range(len(hosts.WORKERS) + 1))
    fabric = commands.add_parser("fabric", help="give the second network another subnet")
    fabric.add_argument("cidr")
    rails = commands.add_parser("rails", help="give the hosts so many fabric NICs, each on a network of its own")
    rails.add_argument("count", type=int, choices=range(1, hosts.RAILS + 1), metavar=f"1-{hosts.RAILS}")
    vipu = commands.add_parser("vipu", help="choose how the vipu command answers")
    vipu.add_argument("mode", choices=hosts.VIPU_MODES)
    execute = commands.add_parser("exec", help="run a command on a host: exec HOST -- COMMAND")
    execute.add_argument("host", choices=[*hosts.HOSTS, *hosts.MORE_CONTROL_PLANES, *hosts.WORKERS])
    execute.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    machine = commands.add_parser("vm", help="a virtual machine whose kernel has RDMA: vm ssh -- COMMAND")
    machine.add_argument("action", choices=["up", "down", "status", "ssh"])
    machine.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    return parser


def _build(arguments: argparse.Namespace) -> None:
    more = Wanted(arguments.next_kubernetes, arguments.calico) if arguments.command == "build" else Wanted()
    with lock("store", shared=True):
        parts = build(more)
    if arguments.command == "bin":
        print(parts.bin)


def _docker(_: argparse.Namespace) -> None:
    with lock("store", shared=True):
        print(docker.directory())


def _sriov_operator(_: argparse.Namespace) -> None:
    with lock("store", shared=True):
        print(programs.sriov_operator())


def _start(arguments: argparse.Namespace) -> None:
    testbed = hosts.testbed()
    with lock("store", shared=True):  # until the testbed has recorded what it uses
        if arguments.command == "kubernetes":
            testbed.want(programs.NEXT, arguments.count > 1)
        if arguments.command == "calico":
            testbed.want("calico", arguments.state == "on")
        parts = build(testbed.wanted)
        if arguments.command == "control-planes":
            testbed.set_control_planes(arguments.count, arguments.virtual_address)
        if arguments.command == "workers":
            workers.down(testbed, *list(hosts.WORKERS)[arguments.count :])
            testbed.set_workers(arguments.count)
        if arguments.command in ("up", "workers", "kubernetes", "calico"):
            testbed.up(parts)
        else:
            named = getattr(arguments, "hosts", [])
            machines = [host for host in testbed.workers if host in named or not named]
            workers.down(testbed, *machines)
            containers = [host for host in named if host not in hosts.WORKERS]
            testbed.reset(parts, *containers) if containers or not named else None
        workers.up(testbed, parts)
    say(f"inventory: {inventory.write(testbed, parts)}")


def _words(arguments: argparse.Namespace) -> list[str]:
    return arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words


def _execute(arguments: argparse.Namespace) -> int:
    testbed, host = hosts.testbed(), arguments.host
    if host in hosts.WORKERS:
        return workers.machine(testbed, host).execute(_words(arguments))
    return testbed.execute(host, _words(arguments))


def _down(_: argparse.Namespace) -> None:
    testbed = hosts.testbed()
    workers.down(testbed, *testbed.workers)
    testbed.down()


def _status(_: argparse.Namespace) -> None:
    testbed = hosts.testbed()
    print("\n".join([testbed.status(), *workers.status(testbed)]))


COMMANDS: dict[str, Callable[[argparse.Namespace], int | None]] = {
    "build": _build,
    "bin": _build,
    "docker": _docker,
    "sriov-operator": _sriov_operator,
    "up": _start,
    "reset": _start,
    "control-planes": _start,
    "kubernetes": _start,
    "calico": _start,
    "workers": _start,
    "down": _down,
    "estimate": lambda _: say(estimate.here()),
    "status": _status,
    "inventory": lambda _: print(inventory.path(hosts.testbed())),
    "prune": lambda _: prune.prune(build()),
    "fabric": lambda arguments: hosts.testbed().set_fabric(arguments.cidr),
    "rails": lambda arguments: hosts.testbed().set_rails(arguments.count),
    "vipu": lambda arguments: hosts.testbed().set_vipu(arguments.mode),
    "exec": _execute,
    "vm": lambda arguments: vm.act(arguments.action, _words(arguments)),
}


def main() -> int:
    arguments = _parser().parse_args()
    try:
        return COMMANDS[arguments.command](arguments) or 0
    except ProblemError as problem:
        print(f"testbed: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130

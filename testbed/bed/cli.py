"""The commands."""

from __future__ import annotations

import argparse
import sys

from . import hosts, inventory, prune
from .build import build
from .common import Problem, say


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="testbed", description="Disposable hosts and the mirror they install from. TESTBED_ID (0 to 9) chooses which.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    simple = {
        "up": "build what is missing, start what does not run: mirror, fabric, hosts",
        "down": "remove this testbed; what is built stays",
        "reset": "fresh hosts; the mirror stays",
        "status": "what runs, and where",
        "inventory": "print the path of the inventory",
        "build": "only build",
        "bin": "print the directory of the built programs",
        "prune": "drop what no checkout state and no running testbed uses",
    }
    for name, text in simple.items():
        commands.add_parser(name, help=text)
    fabric = commands.add_parser("fabric", help="give the second network another subnet")
    fabric.add_argument("cidr")
    vipu = commands.add_parser("vipu", help="choose how the vipu command answers")
    vipu.add_argument("mode", choices=hosts.VIPU_MODES)
    execute = commands.add_parser("exec", help="run a command on a host: exec HOST -- COMMAND")
    execute.add_argument("host", choices=list(hosts.HOSTS))
    execute.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    return parser


def _do(arguments: argparse.Namespace) -> int:
    testbed = hosts.testbed()
    match arguments.command:
        case "up" | "reset":
            parts = build()
            getattr(testbed, arguments.command)(parts)
            say(f"inventory: {inventory.write(testbed, parts)}")
        case "down":
            testbed.down()
        case "status":
            print(testbed.status())
        case "inventory":
            print(testbed.state / "inventory" / "hosts.yml")
        case "build":
            build()
        case "bin":
            print(build().bin)
        case "prune":
            prune.prune(build())
        case "fabric":
            testbed.set_fabric(arguments.cidr)
        case "vipu":
            testbed.set_vipu(arguments.mode)
        case "exec":
            words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
            return testbed.execute(arguments.host, words)
    return 0


def main() -> int:
    arguments = _parser().parse_args()
    try:
        return _do(arguments)
    except Problem as problem:
        print(f"testbed: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130

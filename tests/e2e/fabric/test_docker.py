"""The role memlock with a real Docker Engine whose containers live, beside the containerd of a node.

Hosts of a testbed may not raise a limit, so it is lowered: below the 8 MiB that they have.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import Bed, Result
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

LIMIT, BYTES = "4M", 4194304
DAEMON = "/etc/docker/daemon.json"
# A site's own: containers without a network, on whatever file system a host has.
SETTINGS = {"live-restore": True, "bridge": "none", "iptables": False, "ip6tables": False, "storage-driver": "vfs"}
ULIMIT = {"memlock": {"Name": "memlock", "Hard": BYTES, "Soft": BYTES}}
DROP_IN = "/etc/systemd/system/docker.service.d/90-site.conf"
EXEC_START = "/usr/bin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock"
# An image of the host's own shell.
IMAGE = """
set -e
mkdir /tmp/image && cd /tmp/image
cp --parents -L /bin/sh /bin/sleep $(ldd /bin/sh /bin/sleep | grep -o '/lib[^ ]*' | sort -u) .
tar -c . | docker import - shell:1
rm -r /tmp/image
"""


def write(bed: Bed, path: str, text: str) -> None:
    bed.on("w1", f"mkdir -p {Path(path).parent} && cat > {path} <<'END'\n{text}\nEND")


def restart(bed: Bed) -> None:
    bed.on("w1", "systemctl daemon-reload && systemctl restart docker")


def memlock(bed: Bed, *arguments: str) -> Result:
    play: dict[str, Any] = {"hosts": "w1", "gather_facts": False, "become": True, "roles": ["ipu.fabric.memlock"]}
    play["vars"] = {"memlock_units": ["docker"], "memlock_limit": LIMIT}
    playbook = bed.artifacts / "memlock.yml"
    playbook.write_text(json.dumps([play]))
    return bed.play(str(playbook), *arguments)


def limit_of(bed: Bed, name: str) -> tuple[str, str]:
    """The process of a container, and its limit of locked memory in bytes."""
    process = bed.on("w1", f"docker inspect -f '{{{{.State.Pid}}}}' {name}").strip()
    line = bed.on("w1", f"grep 'Max locked memory' /proc/{process}/limits").split()
    assert line[3] == line[4]
    return process, line[3]


def start(bed: Bed, name: str) -> tuple[str, str]:
    bed.on("w1", f"docker run --detach --network none --name {name} shell:1 /bin/sleep 3600")
    return limit_of(bed, name)


@pytest.fixture
def docker(finished: Bed) -> Iterator[Bed]:
    """Docker on a worker, as somebody has installed it there."""
    done = subprocess.run(
        [ROOT / "testbed/testbed", "docker"],
        env=os.environ | {"TESTBED_ID": finished.number},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    packages, container = done.stdout.split()[-1], f"ipu-fabric-{finished.number}-w1"
    finished.on("w1", "mkdir -p /var/cache/docker")
    subprocess.run(["podman", "cp", f"{packages}/.", f"{container}:/var/cache/docker"], check=True)
    write(finished, DAEMON, json.dumps(SETTINGS))
    finished.on("w1", "dpkg --install /var/cache/docker/*.deb && docker info")
    finished.on("w1", IMAGE)
    yield finished
    finished.on("w1", "docker rm --force $(docker ps --all --quiet)", check=False)
    finished.on("w1", "dpkg --purge docker-ce docker-ce-cli", check=False)
    finished.on("w1", "rm -rf /etc/docker /var/lib/docker /var/cache/docker /etc/systemd/system/docker.service.d")
    finished.on("w1", "systemctl daemon-reload")


def test_the_limit_comes_with_a_restart_that_containers_outlive(docker: Bed) -> None:
    before = start(docker, "before")
    assert before[1] != str(BYTES)
    done = memlock(docker)
    # Docker's configuration, and its restart.
    assert (done.code, done.changed()) == (0, {"w1": 2}), done.tail()
    assert json.loads(docker.on("w1", f"cat {DAEMON}")) == {**SETTINGS, "default-ulimits": ULIMIT}
    # The same process as before, and Docker knows it still.
    assert limit_of(docker, "before") == before
    assert start(docker, "after")[1] == str(BYTES)
    again = memlock(docker)
    assert (again.code, again.changed()) == (0, {}), again.tail()


def test_the_flag_of_the_vendors_guide(docker: Bed) -> None:
    """`--default-ulimit` in ExecStart does it alone. With the key in daemon.json as well Docker would not start."""
    flag = f"--default-ulimit memlock={BYTES}:{BYTES}"
    write(docker, DROP_IN, f"[Service]\nExecStart=\nExecStart={EXEC_START} {flag}")
    restart(docker)
    done = memlock(docker)
    assert done.code == 0, done.tail()
    assert json.loads(docker.on("w1", f"cat {DAEMON}")) == SETTINGS
    assert start(docker, "flag")[1] == str(BYTES)
    # Both: the role refuses, as Docker does.
    both = {**SETTINGS, "default-ulimits": ULIMIT}
    write(docker, DAEMON, json.dumps(both))
    refused = memlock(docker)
    assert refused.code != 0
    assert "both a flag and in its configuration" in refused.shown
    said = docker.on("w1", f"dockerd --validate --config-file {DAEMON} {flag} 2>&1; echo rc $?")
    assert "default-ulimits: (from flag: " in said
    assert said.endswith("rc 1\n")
    # What runs goes on: nothing was restarted.
    assert docker.on("w1", "systemctl is-active docker") == "active\n"

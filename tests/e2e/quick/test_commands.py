"""Commands of the pages, typed as they stand there, in the folder of a site that is finished.

Those that change a site, or need another one, are run with their variables by the other tests.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml
from ansible_collections.ipu.fabric.tests.e2e.bed import Bed
from ansible_collections.ipu.fabric.tests.unit.test_documents import MANUAL, PAGES, commands

# What each says, and whether it ends well.
COMMANDS = {
    "ansible-playbook -i inventory ipu.fabric.plan": (True, "can be applied"),
    "ansible-playbook -i inventory ipu.fabric.drift": (True, "would change nothing"),
    "ansible-playbook -i inventory ipu.fabric.site --check --diff": (True, "can be applied"),
    "ansible-playbook -i inventory ipu.fabric.site --tags network_operator": (True, "can be applied"),
    "ansible-playbook -i inventory ipu.fabric.verify": (True, "proved"),
    "ansible-playbook -i inventory ipu.fabric.backup": (True, "It contains all keys and secrets of the cluster"),
    "ansible-playbook -i inventory ipu.fabric.support": (True, "Everything was collected"),
    "ansible-playbook -i inventory ipu.fabric.renew_certificates --check": (True, "apiserver-etcd-client"),
    "ansible-playbook -i inventory ipu.fabric.rotate_encryption_key --check": (False, "fabric_hardening"),
    "ansible-playbook -i inventory ipu.fabric.upgrade --check": (True, "1.36"),
    "ansible-playbook -i inventory ipu.fabric.reset": (False, "fabric_reset=fabric"),
    "ansible-playbook -i inventory ipu.fabric.reset -e fabric_reset=cluster": (False, "fabric_reset_name"),
}
DOCUMENTED = {" ".join(words) for page in MANUAL for words in commands(PAGES[page])}


@pytest.fixture
def folder(finished: Bed, tmp_path: Path) -> Path:
    """A site as the pages have it: the inventory, and artifacts beside it."""
    (tmp_path / "inventory/group_vars").mkdir(parents=True)
    (tmp_path / "inventory/hosts.yml").write_text(finished.inventory.read_text())
    (tmp_path / "inventory/group_vars/all.yml").write_text(yaml.safe_dump(finished.variables))
    (tmp_path / "artifacts").symlink_to(finished.artifacts)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_pages(finished: Bed, folder: Path, command: str) -> None:
    assert command in DOCUMENTED
    before = finished.state()
    result = finished.run(command, shlex.split(command), folder)
    ends_well, says = COMMANDS[command]
    assert (result.code == 0) == ends_well
    assert says in " ".join(result.shown.split())
    assert finished.state() == before

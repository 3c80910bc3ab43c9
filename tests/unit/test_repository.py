"""What has to agree between files of the collection."""

import configparser
import json
import re
import shutil
import subprocess

import pytest
import yaml
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

MODULES = sorted(path.stem for path in (ROOT / "plugins/modules").glob("*.py"))
FILTERS = sorted({path.stem for path in (ROOT / "plugins/filter").glob("*.*")})
CALLBACKS = sorted(path.stem for path in (ROOT / "plugins/callback").glob("*.py"))
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir() if path.is_dir())
PLAYBOOKS = sorted(path.stem for path in (ROOT / "playbooks").glob("*.yml"))
TABLE_OF_CONTENTS = 65  # lines that tasks/main.yml of a role may have


def load(path):
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return [line for line in listed.stdout.decode().splitlines() if (ROOT / line).is_file()]


def test_action_group_has_every_module():
    assert load("meta/runtime.yml")["action_groups"]["all"] == MODULES


@pytest.mark.parametrize("module", MODULES)
def test_module_documents_itself(module):
    text = (ROOT / f"plugins/modules/{module}.py").read_text(encoding="utf-8")
    for part in (
        "GNU General Public License v3.0+",
        "License-Identifier: GPL-3.0-or-later\n",
        "version_added: 0.1.0",
    ):
        assert part in text
    for block in ("DOCUMENTATION", "EXAMPLES", "RETURN"):
        assert re.search(rf"^{block} = r?\"\"\"", text, re.MULTILINE)
    assert "ipu.fabric.attributes" in text


@pytest.mark.parametrize("callback", CALLBACKS)
def test_callback_documents_itself(callback):
    text = (ROOT / f"plugins/callback/{callback}.py").read_text(encoding="utf-8")
    documentation = yaml.safe_load(re.search(r'^DOCUMENTATION = r"""(.*?)"""', text, re.MULTILINE | re.DOTALL)[1])
    assert (documentation["name"], documentation["version_added"]) == (callback, "0.1.0")
    assert re.search(r"^EXAMPLES = ", text, re.MULTILINE)


@pytest.mark.parametrize("example", sorted({path.name for path in (ROOT / "inventories").iterdir()} - {"recorded"}))
def test_examples_show_steps(example):
    config = configparser.ConfigParser()
    config.read(ROOT / f"inventories/{example}/ansible.cfg", encoding="utf-8")
    assert config["defaults"]["stdout_callback"] in [f"ipu.fabric.{name}" for name in CALLBACKS]
    assert config["defaults"]["inventory"] == "inventory"  # what the guides call the copy
    assert (ROOT / "inventories" / example / "hosts.yml").is_file()
    assert config.getboolean("ssh_connection", "pipelining")


@pytest.mark.parametrize("role", ROLES)
def test_role_defaults_are_its_argument_spec(role):
    options = load(f"roles/{role}/meta/argument_specs.yml")["argument_specs"]["main"].get("options", {})
    path = ROOT / f"roles/{role}/defaults/main.yml"
    defaults = (yaml.safe_load(path.read_text(encoding="utf-8")) or {}) if path.exists() else {}
    assert set(defaults) == {name for name, option in options.items() if not option.get("required")}
    # A template is shown in the documentation as it is; everything else is the same value of the same type.
    assert {name: options[name].get("default") for name in defaults} == defaults


@pytest.mark.parametrize("role", ROLES)
def test_role_variables_have_its_prefix(role):
    public = load(f"roles/{role}/meta/argument_specs.yml")["argument_specs"]["main"].get("options", {})
    assert [name for name in public if not name.startswith(f"{role}_")] == []
    path = ROOT / f"roles/{role}/vars/main.yml"
    internal = (yaml.safe_load(path.read_text(encoding="utf-8")) or {}) if path.exists() else {}
    assert [name for name in internal if not name.startswith(f"_{role}_")] == []


@pytest.mark.parametrize("role", ROLES)
def test_role_main_is_a_table_of_contents(role):
    assert len((ROOT / f"roles/{role}/tasks/main.yml").read_text(encoding="utf-8").splitlines()) <= TABLE_OF_CONTENTS


def test_changelog_lists_every_module_filter_and_role():
    release = load("changelogs/changelog.yaml")["releases"]["0.1.0"]
    listed = [release["modules"], release["plugins"]["filter"], release["objects"]["role"]]
    names = [[entry["name"] for entry in entries] for entries in listed]
    assert names == [MODULES, FILTERS, ROLES], "run: make changelog"


def test_galaxy_and_changelog_name_one_version():
    assert load("galaxy.yml")["version"] in load("changelogs/changelog.yaml")["releases"]


def used_collections():
    """Collections whose modules, filters or code the collection uses, other than its own and Ansible's."""
    tasks = re.compile(r"^\s+([a-z]+\.[a-z_]+)\.[a-z_]+:", re.MULTILINE)
    imports = re.compile(r"^\s*(?:from|import) ansible_collections\.([a-z]+\.[a-z_]+)\.", re.MULTILINE)
    found = set()
    for pattern, paths in ((tasks, tracked("roles/*.yml", "playbooks/*.yml")), (imports, tracked("plugins/*.py"))):
        for path in paths:
            found |= set(pattern.findall((ROOT / path).read_text(encoding="utf-8")))
    return found - {"ansible.builtin", "ipu.fabric"}


def test_dependencies_are_bounded_and_used():
    dependencies = load("galaxy.yml")["dependencies"]
    for bounds in dependencies.values():
        assert re.fullmatch(r">=\d+\.\d+\.\d+,<\d+\.0\.0", bounds)
    assert set(dependencies) == used_collections()


def test_only_declared_collections_are_used():
    allowed = {"ansible", "ipu", *(name.split(".")[0] for name in load("galaxy.yml")["dependencies"])}
    used = set()
    for path in tracked("roles/*.yml", "playbooks/*.yml"):
        text = (ROOT / path).read_text(encoding="utf-8")
        used |= set(re.findall(r"^\s+([a-z]+)\.[a-z_]+\.[a-z_]+:", text, re.MULTILINE))
    assert used <= allowed


def test_no_task_has_an_environment():
    """It is on the command line of a module, which -vvv and lists of processes show. A proxy may have a password."""
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in tracked("roles/*.yml", "playbooks/*.yml")}
    assert [path for path, text in texts.items() if re.search(r"^ +environment:", text, re.MULTILINE)] == []


def plays_of(path):
    """The plays of a playbook in their order, with those that it imports."""
    for play in yaml.safe_load(path.read_text(encoding="utf-8")):
        imported = play.get("ansible.builtin.import_playbook")
        yield from plays_of(path.parent / imported) if imported else [play]


@pytest.mark.parametrize("name", PLAYBOOKS)
def test_each_playbook_runs_alone(name):
    """Advice names them, so none may need a variable that another one has set."""
    known = False
    for task in (task for play in plays_of(ROOT / f"playbooks/{name}.yml") for task in play.get("tasks", [])):
        text = json.dumps(task)
        known |= '"tasks_from": "site"' in text
        assert known or not re.search(r"(?<!ipu\.fabric\.)\bfabric_(plan|site)\b", text), task["name"]


def test_no_message_says_that_nothing_was_changed():
    """It can't know what tasks before it did: a run counts that, and says it at its end."""
    claim = re.compile(r"(?:nothing|no host) was (?:changed|written)", re.IGNORECASE)
    paths = tracked("plugins/*.py", "roles/*.yml", "playbooks/*.yml")
    texts = {path: re.sub(r'"\s*f?"', "", (ROOT / path).read_text(encoding="utf-8")) for path in paths}
    found = {path: claim.findall(text) for path, text in texts.items()}
    # The archive that it speaks of is what the module writes.
    assert {path for path, said in found.items() if said} == {"plugins/action/support_archive.py"}


def test_readme_is_short_and_has_the_usual_sections():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 75
    sections = [line[3:] for line in lines if line.startswith("## ")]
    assert sections == ["Requirements", "Installation", "Use", "Support", "Changelog", "License"]


def test_readme_names_playbooks_and_targets_that_exist():
    text = "\n".join((ROOT / path).read_text(encoding="utf-8") for path in ["README.md", *tracked("docs/*.md")])
    targets = re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"`make ([a-z0-9-]+)", text)) <= set(targets)
    known = {"all", *PLAYBOOKS, *MODULES, *FILTERS, *CALLBACKS, *ROLES}
    assert set(re.findall(r"\bipu\.fabric\.([a-z_]+)", text)) <= known


def test_contributing_names_files_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:plugins|roles|hack|tests|testbed)/[\w./*-]+)`", text)
    assert len(named) >= 10
    assert [path for path in named if "NAME" not in path and not list(ROOT.glob(path.rstrip("/")))] == []
    targets = re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"`make ([a-z0-9-]+)", text)) <= set(targets)


def test_lock_file_pins_everything_and_names_no_host():
    assert tracked("requirements.txt", "*/requirements.txt") == ["requirements.txt"]
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert "://" not in text
    assert "--index-url" not in text
    pins = re.findall(r"^(?:# core-[\d.]+: )?[A-Za-z0-9._-]+==\S+ \\$", text, re.MULTILINE)
    assert len(pins) > 100
    assert len(pins) == len(re.findall(r"^(?:# core-[\d.]+: )?[A-Za-z0-9]", text, re.MULTILINE))


def test_hooks_run_tools_of_this_checkout():
    repositories = load(".pre-commit-config.yaml")["repos"]
    assert [each["repo"] for each in repositories] == ["local"]
    for hook in repositories[0]["hooks"]:
        assert hook["language"] == "system"
        program = hook["entry"].split()[0]
        assert shutil.which(str(ROOT / program) if "/" in program else program), program


def test_the_matrix_has_the_oldest_releases_that_the_collection_takes():
    lock = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    python = (ROOT / "ee-requirements.txt").read_text(encoding="utf-8").split()
    for requirement in [f"ansible-core{load('meta/runtime.yml')['requires_ansible']}", *python]:
        assert re.search(f"^# core-2.18: {requirement.replace('>=', '==')} ", lock, re.MULTILINE)


def test_no_ignore_files():
    assert tracked("tests/sanity/ignore*", ".ansible-lint-ignore") == []
    assert "skip_list" not in (ROOT / ".ansible-lint").read_text(encoding="utf-8")
    assert "warn_list" not in (ROOT / ".ansible-lint").read_text(encoding="utf-8")


def test_no_errors_are_swallowed():
    found = []
    for path in tracked("roles/*.yml", "playbooks/*.yml", "molecule/*.yml"):
        text = (ROOT / path).read_text(encoding="utf-8")
        found += [path for words in ("ignore_errors: true", "failed_when: false") if words in text]
    assert found == []

"""What the documents name exists: pages and headings, commands, variables, checks, roles, modules and filters."""

import importlib.util
import json
import re
import shlex
import subprocess

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import ALLOWABLE, REQUIRED
from ansible_collections.ipu.fabric.plugins.module_utils._model.failure import KINDS as CODES
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import CHECK_TYPES
from ansible_collections.ipu.fabric.plugins.plugin_utils._site_variables import OF_PLAYBOOKS, site_variables
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

PAGE = (ROOT / "docs/documents.md").read_text("utf-8")
ROWS = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if re.match(r"\| (?!in the doc|-)", line)]
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir())
INPUTS = {
    name
    for path in ROOT.glob("roles/*/meta/argument_specs.yml")
    for entry in yaml.safe_load(path.read_text("utf-8"))["argument_specs"].values()
    for name in entry.get("options", {})
}
OF_EXPLAIN = {"pod", "container"}  # they are of one run, never of an inventory
KINDS = {
    "playbook": {path.stem for path in (ROOT / "playbooks").glob("*.yml")},
    "module": {path.stem for path in (ROOT / "plugins/modules").glob("*.py")},
    "filter": {path.stem for path in (ROOT / "plugins/filter").glob("*.*")},
    "role": set(ROLES),
}
LISTED = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout.decode()
PAGES = {name: (ROOT / name).read_text("utf-8") for name in LISTED.splitlines() if (ROOT / name).exists()}
MANUAL = [name for name in PAGES if name.startswith(("docs/", "README", "CONTRIBUTING"))]
# What a code block holds is no text with links and headings.
TEXTS = {name: re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL) for name, text in PAGES.items()}
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = set(re.findall(r"^([a-z0-9-]+):", MAKEFILE, re.MULTILINE))


def spans(text):
    return re.findall(r"`([^`]+)`", text)


def listed(text, word):
    """The code spans that follow a word, as in: proof: `ping`, `rping`."""
    return [span for run in re.findall(rf"(?i)\b{word}: ((?:`[^`]+`(?:, )?)+)", text) for span in spans(run)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_a_row_names_exists(row):
    _step, here = row
    assert set(listed(here, "plan")) <= {*ALLOWABLE, *REQUIRED}
    assert set(listed(here, "proof")) <= set(CHECK_TYPES)
    assert set(re.findall(r"\broles? `(\w+)`", here)) <= set(ROLES)
    for kind, name in re.findall(r"\b(playbook|module|filter) `ipu\.fabric\.(\w+)`", here):
        assert name in KINDS[kind]
    prefixed = [span for span in spans(here) if re.match(rf"(?:{'|'.join(ROLES)})_\w+$", span)]
    assert set(prefixed) - set(listed(here, "proof")) <= INPUTS


def test_no_row_is_empty_or_names_nothing():
    assert len(ROWS) > 60
    for step, here in ROWS:
        assert re.search(r"`|\]\(|not (?:here|checked)|the driver of the hosts", here), step


def anchors(text):
    """The names that GitHub gives the headings of a page."""
    found = []
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        found.append(f"{name}-{found.count(name)}" if name in found else name)
    return found


@pytest.mark.parametrize("page", TEXTS)
def test_links_lead_to_files_and_headings(page):
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", TEXTS[page]):
        path, _sign, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = (ROOT / page).parent.joinpath(path).resolve() if path else ROOT / page
        if not target.exists() or (anchor and anchor not in anchors(TEXTS[str(target.relative_to(ROOT))])):
            broken.append(link)
    assert broken == []


def commands(text):
    """Commands in code blocks, without prompt and comment, and those that stand in a line of text."""
    blocks = [
        line
        for block in re.findall(r"^ *```[^\n]*\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    ]
    for line in [*blocks, *spans(re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL))]:
        command = re.sub(r"^\s*(?:\w*\$\s+)?(?:\w+=\S+ )?", "", line.partition(" && ")[2] or line)
        if re.match(r"(?:ansible-playbook|make) ", command):
            yield shlex.split(command.partition(" || ")[0], comments=True)


def test_commands_are_found():
    text = "Say `make plan` or\n```\nsite$ ansible-playbook -i inventory x.yml -e a=b    # why\n$ make demo\n```\n"
    assert list(commands(text)) == [
        ["ansible-playbook", "-i", "inventory", "x.yml", "-e", "a=b"],
        ["make", "demo"],
        ["make", "plan"],
    ]


def given_variables(words):
    for option, value in zip(words, words[1:]):
        if option == "-e":
            yield from json.loads(value) if value.startswith("{") else [value.partition("=")[0]]


WITHOUT_HOSTS = {"fabric_support_bundle", "fabric_slice_plan", "pod"}  # variables of playbooks that ask no host then


def wrong_play(words):
    """What is wrong with a call of ansible-playbook; empty if nothing is."""
    takes_value = {"-i", "-e", "--limit", "--tags"}
    plain = [word for last, word in zip(words, words[1:]) if not word.startswith("-") and last not in takes_value]
    unknown = {word for word in words if word.startswith("-")} - takes_value - {"--check", "--diff"}
    if unknown or len(plain) != 1:
        return f"options {unknown}, playbooks {plain}"
    known = INPUTS | site_variables() | OF_EXPLAIN
    if plain[0].startswith("docs/examples/"):
        if not (ROOT / plain[0]).exists():
            return "no such example"
        known = known | set(re.findall(r"\w+", (ROOT / plain[0]).read_text("utf-8")))
    elif plain[0] != "site.yml" and plain[0].rpartition(".")[2] not in KINDS["playbook"]:
        return "no such playbook"
    elif not {"-i", "ipu.fabric.prove_cluster"} & set(words) and not WITHOUT_HOSTS & set(given_variables(words)):
        return "it needs an inventory"
    tags = {value for option, value in zip(words, words[1:]) if option == "--tags"}
    playbooks = "".join(path.read_text("utf-8") for path in (ROOT / "playbooks").rglob("*.yml"))
    if not all(re.search(rf"tags: \[.*\b{tag}\b", playbooks) for tag in tags):
        return "no such tag"
    return ", ".join(sorted(set(given_variables(words)) - known))


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ("ansible-playbook -i inventory ipu.fabric.site --limit w7", ""),
        ("ansible-playbook ipu.fabric.site", "it needs an inventory"),
        ("ansible-playbook -i inventory ipu.fabric.sight", "no such playbook"),
        ("ansible-playbook -i inventory ipu.fabric.reset -e fabric_rest=x", "fabric_rest"),
        ("ansible-playbook -i inventory ipu.fabric.site --tags nothing", "no such tag"),
        ("ansible-playbook docs/examples/none.yml", "no such example"),
    ],
)
def test_wrong_commands_are_noticed(command, wrong):
    assert wrong_play(shlex.split(command)) == wrong


@pytest.mark.parametrize("page", MANUAL)
def test_commands_can_be_run(page):
    for words in commands(PAGES[page]):
        if words[0] == "ansible-playbook":
            assert wrong_play(words) == "", " ".join(words)
            continue
        given = [word for word in words[1:] if word not in ("-C", "ipu.fabric")]
        assert {word for word in given if "=" not in word} <= TARGETS, " ".join(words)
        assert {word.partition("=")[0] for word in given if "=" in word} <= {"ARGS", "TESTBED_ID"}


@pytest.mark.parametrize("page", MANUAL)
def test_names_in_pages_exist(page):
    text = PAGES[page]
    assert set(re.findall(r"-e (\w+)=", text)) - INPUTS - site_variables() - OF_EXPLAIN <= set(
        re.findall(r"\w+", "".join(path.read_text("utf-8") for path in (ROOT / "docs/examples").rglob("*.yml")))
    )
    for kind, name in re.findall(r"\b(playbook|module|filter|role)s? `(?:ipu\.fabric\.)?(\w+)`", TEXTS[page]):
        assert name in KINDS[kind] | ({"NAME"} if page == "CONTRIBUTING.md" else set()), f"{kind} {name}"
    named = {span for span in spans(TEXTS[page]) if re.fullmatch(r"fabric_\w+", span)}
    assert named - site_variables() - KINDS["module"] - {"fabric_"} == set()


def test_what_documentation_of_plugins_links_to_exists():
    sources = [path.read_text("utf-8") for path in ROOT.glob("plugins/**/*") if path.suffix in (".py", ".yml")]
    sources += [path.read_text("utf-8") for path in ROOT.glob("roles/*/meta/argument_specs.yml")]
    links = set(re.findall(r"\bP\(ipu\.fabric\.(\w+)#(\w+)\)", "".join(sources)))
    links |= {(name, "module") for name in re.findall(r"\bM\(ipu\.fabric\.(\w+)\)", "".join(sources))}
    assert [link for link in links if link[0] not in KINDS[link[1]]] == []


@pytest.mark.parametrize("page", MANUAL)
def test_checks_that_a_text_names_exist(page):
    runs = re.findall(r"\b(?:checks?|findings?),? ((?:`[\w-]+`(?:, | and )?)+)", TEXTS[page])
    assert {name for run in runs for name in spans(run)} <= {*CHECK_TYPES, *ALLOWABLE, *REQUIRED}


@pytest.mark.parametrize("page", MANUAL)
def test_paths_of_an_installed_collection_exist(page):
    ignored = yaml.safe_load((ROOT / "galaxy.yml").read_text("utf-8"))["build_ignore"]
    for path in re.findall(r"ansible_collections/ipu/fabric/([\w./-]+)", PAGES[page]):
        assert (ROOT / path).exists()
        assert path.partition("/")[0] not in ignored


def rows_of(page, heading):
    section = PAGES[page].partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [spans(line)[0] for line in section.splitlines() if line.startswith("| `")]


def test_every_finding_and_check_is_in_troubleshooting():
    page = "docs/troubleshooting.md"
    assert rows_of(page, "Findings of the plan") == sorted({**ALLOWABLE, **REQUIRED})
    assert sorted(rows_of(page, "Checks of the proof")) == sorted(CHECK_TYPES)


def test_every_code_of_an_error_is_on_its_page():
    table = PAGES["docs/errors.md"].partition("\n## Codes\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `")]
    assert rows == [[f"`{code}`", "yes" if kind.transient else "no", kind.meaning] for code, kind in CODES.items()]
    # A finding's name is a code too.
    assert set(CODES) & {*ALLOWABLE, *REQUIRED, *CHECK_TYPES} == {"other-cluster"}


def test_every_variable_is_on_the_page_of_variables():
    site = rows_of("docs/variables.md", "Site variables")
    roles = spans(PAGES["docs/variables.md"].partition("\n## Role variables\n")[2])
    assert sorted({*site, *roles}) == sorted([*site, *roles])
    assert {*site, *roles} >= INPUTS
    assert set(site) <= site_variables()
    # The others are what plays keep for each other: something sets them.
    kept = "".join(
        path.read_text("utf-8") for folder in ("playbooks", "roles") for path in (ROOT / folder).rglob("*.yml")
    )
    unset = [
        name for name in set(OF_PLAYBOOKS) - set(site) if not re.search(rf"(?:^\s+|register: ){name}\b", kept, re.M)
    ]
    assert unset == []


def script(monkeypatch, name):
    monkeypatch.syspath_prepend(ROOT / "hack")
    specification = importlib.util.spec_from_file_location(name, ROOT / f"hack/{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_step_for_a_new_finding_is_asked_for(monkeypatch, capsys):
    module = script(monkeypatch, "troubleshooting")
    monkeypatch.setattr(module, "STEPS", {**module.STEPS, "no-such-finding": "Nothing."})
    assert module.main() == 1
    assert "no-such-finding" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("now", "rows"),
    [
        ({"Helm": "3.2.0"}, ["| component | 1.0.0 | 1.1.0 |", "| Helm | 3.1.0 | **3.2.0** |"]),
        ({"Helm": "3.2.1"}, ["| component | 1.0.0 | 1.1.0 | next |", "| Helm | 3.1.0 | **3.2.0** | **3.2.1** |"]),
        (
            {"Helm": "3.2.0", "flannel": "0.1.0"},
            [
                "| component | 1.0.0 | 1.1.0 | next |",
                "| Helm | 3.1.0 | **3.2.0** | 3.2.0 |",
                "| flannel |  |  | 0.1.0 |",
            ],
        ),
    ],
)
def test_what_each_release_of_the_collection_moves(monkeypatch, now, rows):
    record = {"1.0.0": {"Helm": "3.1.0"}, "1.1.0": {"Helm": "3.2.0"}}
    made = script(monkeypatch, "release_docs").moves(record, now, "1.1.0").splitlines()
    assert [made[0], *made[2:]] == rows

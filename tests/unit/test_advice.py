"""What messages name exists, and is of use to those who read them: playbooks, roles, variables, checks, tags, pages."""

from __future__ import annotations

import ast
import re
import typing as t

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import ALLOWABLE, CHECKS
from ansible_collections.ipu.fabric.plugins.module_utils._plan.host_checks import RDMA_MODULES
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import CHECK_TYPES
from ansible_collections.ipu.fabric.plugins.plugin_utils._site_variables import role_variables, site_variables
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.test_documents import KINDS, MANUAL, TEXTS, anchors

GAP = "\ufffc"  # what a message takes in when it is made
PAGES = "https://github.com/ipu-fabric/ipu.fabric/blob/main/"
EXAMPLES = {
    name for path in (ROOT / "docs/examples").glob("*.yml") for name in re.findall(r"\bexample_\w+", path.read_text())
}
VARIABLES = role_variables() | site_variables() | EXAMPLES | {"kubernetes_checked_kubeconfig", "pod", "container"}
# Names with the prefix of a role that are something else.
OTHERS = {*CHECK_TYPES, *KINDS["module"], *KINDS["filter"], *KINDS["role"], *KINDS["playbook"]}
MODULES = set(RDMA_MODULES)
UNITS = {"containerd", "docker", "cri-docker", "kubelet", "keepalived", "chrony", "k3s", "k3s-agent", "rke2-server"}


def literal(node: ast.AST) -> t.Optional[str]:
    """A string of the source, with gaps for what is put into it."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(literal(each) or GAP for each in node.values)
    return None


def strings_of_code(source: str) -> t.Iterator[str]:
    """Strings that a program may print: no docstrings, and nothing of what documents a plugin."""
    tree = ast.parse(source)
    silent = {id(part) for node in ast.walk(tree) if isinstance(node, ast.Expr) for part in ast.walk(node.value)
              if isinstance(node.value, ast.Constant)}  # fmt: skip
    for node in ast.walk(tree):
        if id(node) in silent or literal(node) is None:
            continue
        silent |= {id(part) for part in ast.walk(node)}  # parts of an f-string
        yield t.cast(str, literal(node))


def strings_of_yaml(value: object) -> t.Iterator[str]:
    if isinstance(value, str):
        yield re.sub(r"\{\{.*?\}\}|\{%.*?%\}", GAP, value, flags=re.DOTALL)
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings_of_yaml(part)


def sentences() -> t.Iterator[t.Tuple[str, str]]:
    """What the collection may print, with the file that it is in."""
    for path in sorted(ROOT.glob("plugins/**/*.py")):
        source = re.sub(
            r'^(?:DOCUMENTATION|EXAMPLES|RETURN) = r?""".*?^"""', "", path.read_text("utf-8"), flags=re.M | re.S
        )
        yield from ((str(path.relative_to(ROOT)), text) for text in strings_of_code(source) if " " in text)
    tasks = [path for pattern in ("playbooks/**/*.yml", "roles/*/tasks/*.yml", "roles/*/vars/*.yml")
             for path in ROOT.glob(pattern)]  # fmt: skip
    for path in sorted(tasks):
        found = strings_of_yaml(yaml.safe_load(path.read_text("utf-8")))
        yield from ((str(path.relative_to(ROOT)), text) for text in found if " " in text)


def steps() -> t.Dict[str, str]:
    """What docs/troubleshooting.md says of findings of the plan. Links in it are tested with the page."""
    source = (ROOT / "hack/troubleshooting.py").read_text("utf-8")
    return ast.literal_eval(re.search(r"^STEPS = (\{.*?^\})", source, re.MULTILINE | re.DOTALL)[1])


SENTENCES = sorted({*sentences(), *(("docs/troubleshooting.md", text) for text in steps().values())})


def given_by_playbooks() -> t.Set[str]:
    """Variables of roles that site and upgrade set, so that an inventory can't."""
    found: t.Set[str] = set()

    def read(value: object) -> None:
        if isinstance(value, dict):
            found.update(value.get("vars") or ())
        for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            read(part)

    for path in [*ROOT.glob("playbooks/plays/*.yml"), ROOT / "playbooks/upgrade.yml"]:
        read(yaml.safe_load(path.read_text("utf-8")))
    return found & set(role_variables()) - site_variables()


GIVEN = given_by_playbooks()
TASKS = "".join(path.read_text("utf-8") for place in ("playbooks", "roles") for path in ROOT.glob(f"{place}/**/*.yml"))
TAGS = set(re.findall(r"\w+", " ".join(re.findall(r"tags: \[(.*?)\]", TASKS))))
PREFIXED = re.compile(
    rf"(?<![\w./-])((?:{'|'.join(['fabric', *sorted(KINDS['role'])])})_[a-z0-9_]*[a-z0-9])(?![\w{GAP}-])"
)


def wrong_names(text: str) -> t.Iterator[str]:
    """What of a message does not exist."""
    known = set().union(*KINDS.values()) | {"all", "steps"}
    for kind, name in re.findall(r"\b(?:(playbook|role|filter|module)s? )?`?ipu\.fabric\.(\w+)", text):
        if name not in (KINDS[kind] if kind else known):
            yield f"ipu.fabric.{name}"
    yield from set(PREFIXED.findall(text)) - VARIABLES - OTHERS
    yield from {f"-e {name}" for name in re.findall(r"-e (\w+)=", text)} - {f"-e {name}" for name in VARIABLES}
    yield from {f"--tags {name}" for name in re.findall(r"--tags (\w+)", text)} - {f"--tags {tag}" for tag in TAGS}
    for names in re.findall(r"fabric_allow: \[([\w, -]+)\]", text):
        yield from {f"allowed {name}" for name in names.split(", ") if name not in ALLOWABLE}
    yield from {f"check {name}" for name in re.findall(r"\(check (\w+)\)", text) if name not in {*CHECK_TYPES, *CHECKS}}
    yield from {f"unit {name}" for name in re.findall(r"journalctl -u ([\w-]+)", text)} - {f"unit {u}" for u in UNITS}
    for names in re.findall(r"modprobe -a ((?:\w+ ?)+)", text):
        yield from {f"module {name}" for name in names.split()} - {f"module {name}" for name in MODULES}
    yield from re.findall(r"\b(?:testbed|hack|molecule)/\w+|\bmake [a-z]+-[a-z]+", text)  # not in the collection
    for page, anchor in re.findall(rf"{re.escape(PAGES)}([\w./-]+\w)(?:#([\w-]+))?", text):
        if page not in MANUAL or (anchor and anchor not in anchors(TEXTS[page])):
            yield f"{page}#{anchor}"
    yield from re.findall(rf"(?<!{re.escape(PAGES)})\b(?:docs/[\w-]+\.md|README)", text)  # not where its reader is


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Run the playbook ipu.fabric.sight.", ["ipu.fabric.sight"]),
        ("Run the playbook ipu.fabric.memlock.", ["ipu.fabric.memlock"]),
        ("Apply the role ipu.fabric.memlock.", []),
        ("Set fabric_kubernetes_versoin.", ["fabric_kubernetes_versoin"]),
        (f"Set fabric_{GAP} or kubernetes_allow_new_cluster.", []),
        ("Run it with -e fabric_rest=cluster.", ["-e fabric_rest", "fabric_rest"]),
        ("Run it with -e example_transport=tcp, or -e example_transprt=tcp.", ["-e example_transprt"]),
        ("Run site with --tags macvaln.", ["--tags macvaln"]),
        ("Or allow it with fabric_allow: [cgroups].", ["allowed cgroups"]),
        ("RDMA fails in them (check gids).", ["check gids"]),
        ("See journalctl -u kublet.", ["unit kublet"]),
        ("Run modprobe -a ib_umad rdma_cm", ["module rdma_cm"]),  # rdma_ucm makes /dev/infiniband/rdma_cm
        ("Run testbed/testbed up.", ["testbed/testbed"]),
        ("See docs/kubernetes.md.", ["docs/kubernetes.md"]),
        (f"See {PAGES}docs/kubernetes.md#certificates", []),
        (f"See {PAGES}docs/kubernetes.md#certs", ["docs/kubernetes.md#certs"]),
    ],
)
def test_wrong_names_are_noticed(text: str, wrong: t.List[str]) -> None:
    assert sorted(wrong_names(text)) == sorted(wrong)


def test_what_a_message_names_exists() -> None:
    assert len(SENTENCES) > 3000
    assert [(path, wrong, text) for path, text in SENTENCES for wrong in wrong_names(text)] == []


def test_a_variable_that_playbooks_give_is_named_with_that_of_the_site() -> None:
    found = []
    for path, text in SENTENCES:
        named = set(PREFIXED.findall(text))
        if text.rstrip().endswith(".") and named & GIVEN and not named & site_variables():
            found.append((path, sorted(named & GIVEN), text))
    assert found == []

"""Which file of plugins/ may import which: no cycles, and nothing on hosts that they lack."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

PLUGINS = ROOT / "plugins"
PREFIX = "ansible_collections.ipu.fabric.plugins."
# Packages whose code runs on hosts, with nothing but Python.
HOST_PACKAGES = {f"module_utils.{name}" for name in ("_common", "_host", "_kubeadm", "_model")}
# Modules that roles call on the hosts of the inventory; all others run where the API is.
HOST_MODULES = (
    "apt_packages",
    "bundle_files",
    "control_plane",
    "control_plane_backup",
    "control_plane_restore",
    "etcd_member",
    "host_info",
    "host_reset",
    "kernel_settings",
    "kubeadm",
    "kubelet_config",
    "kubernetes_node_info",
    "node_certificates",
    "port_probe",
    "program",
    "rdma_info",
    "secrets_encryption",
    "systemd_units",
    "vipu_info",
)
# As CONTRIBUTING.md draws them: each imports only from those before it.
LAYERS = (
    *("_model", "_common", "_host", "_kubeadm", "_kube", "_bundle"),
    *("_ipam", "_network", "_plan", "_ipu", "_component", "_verify", "_support"),
)
Graph = t.Dict[str, t.Set[str]]


def file_name(path: Path) -> str:
    return ".".join(path.relative_to(PLUGINS).with_suffix("").parts)


def package_of(name: str) -> str:
    return name.rpartition(".")[0]


def imported_names(name: str, path: Path) -> t.Iterator[str]:
    """Everything that a file imports, under its full name, even inside of functions and for types only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = importlib.util.resolve_name("." * node.level + (node.module or ""), PREFIX + package_of(name))
            assert node.level or not module.startswith(PREFIX), f"{name}: {module} is imported by its full name"
            yield from (f"{module}.{alias.name}" for alias in node.names)


FILES = {file_name(path): path for path in sorted(PLUGINS.rglob("*.py"))}
IMPORTS = {name: set(imported_names(name, path)) for name, path in FILES.items()}


def file_of(imported: str) -> str:
    """The file of plugins/ that an imported name comes from."""
    name = imported[len(PREFIX) :]
    return name if name in FILES else package_of(name)


def own(names: t.Iterable[str]) -> t.Set[str]:
    return {file_of(name) for name in names if name.startswith(PREFIX)}


def file_graph() -> Graph:
    return {name: own(names) for name, names in IMPORTS.items()}


def package_graph() -> Graph:
    graph: Graph = {package_of(name): set() for name in FILES}
    for name, targets in file_graph().items():
        graph[package_of(name)] |= {package_of(target) for target in targets} - {package_of(name)}
    return graph


def find_cycle(graph: Graph) -> t.List[str]:
    """A way through the graph that ends where it begins; empty when there is none."""
    done: t.Set[str] = set()

    def follow(name: str, way: t.Tuple[str, ...]) -> t.List[str]:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return []
        for target in sorted(graph.get(name, ())):
            cycle = follow(target, (*way, name))
            if cycle:
                return cycle
        done.add(name)
        return []

    return next(filter(None, (follow(name, ()) for name in sorted(graph))), [])


def reach(graph: Graph, start: str) -> t.Set[str]:
    """All files that a file imports, itself and through others."""
    found: t.Set[str] = set()
    todo = [start]
    while todo:
        name = todo.pop()
        todo += graph[name] - found
        found |= graph[name]
    return found


@pytest.mark.parametrize(
    ("graph", "cycle"),
    [
        ({"a": {"b", "c"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"c"}, "c": {"b"}}, ["b", "c", "b"]),
        ({"a": {"a"}}, ["a", "a"]),
    ],
)
def test_find_cycle(graph: Graph, cycle: t.List[str]) -> None:
    assert find_cycle(graph) == cycle


def test_imports_lead_to_files() -> None:
    missing = {f"{name} imports {target}" for name, targets in file_graph().items() for target in targets - set(FILES)}
    assert missing == set()


@pytest.mark.parametrize("graph", [file_graph(), package_graph()], ids=["files", "packages"])
def test_no_cycles(graph: Graph) -> None:
    cycle = find_cycle(graph)
    assert not cycle, " -> ".join(cycle)


@pytest.mark.parametrize(("place", "package"), [*enumerate(LAYERS)], ids=LAYERS)
def test_a_package_imports_only_from_those_above_it(place: int, package: str) -> None:
    above = {f"module_utils.{name}" for name in LAYERS[:place]}
    assert package_graph()[f"module_utils.{package}"] <= above


def test_the_drawing_names_every_package_in_that_order() -> None:
    drawn = re.findall(r"^(?:\w+(?: \w+)*)? +(_[a-z]+) ", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE)
    assert drawn == list(LAYERS)
    assert {f"module_utils.{name}" for name in LAYERS} == {
        name for name in package_graph() if name.startswith("module_utils.")
    }


@pytest.mark.parametrize("name", [name for name in FILES if package_of(name) in HOST_PACKAGES])
def test_code_on_hosts_imports_only_what_hosts_have(name: str) -> None:
    others = {imported for imported in IMPORTS[name] if not imported.startswith(("ansible.module_utils.", PREFIX))}
    assert {imported.partition(".")[0] for imported in others} - set(sys.stdlib_module_names) == set()
    assert {package_of(target) for target in file_graph()[name]} <= HOST_PACKAGES


@pytest.mark.parametrize("module", HOST_MODULES)
def test_modules_on_hosts_reach_only_code_for_hosts(module: str) -> None:
    assert {package_of(name) for name in reach(file_graph(), f"modules.{module}")} <= HOST_PACKAGES


@pytest.mark.parametrize("name", [name for name, path in FILES.items() if "\ndef decide(" in path.read_text("utf-8")])
def test_what_decides_asks_nobody(name: str) -> None:
    assert "module_utils._kube.client" not in reach(file_graph(), name)


def test_packages_re_export_nothing() -> None:
    assert [name for name in FILES if name.endswith("__init__")] == []


# What a controller may lack. connect() itself says so of the Kubernetes client.
LIBRARIES = {"cryptography", "jmespath", "netaddr"}


@pytest.mark.parametrize("module", sorted(path.stem for path in (PLUGINS / "modules").glob("*.py")))
def test_a_module_names_the_libraries_that_its_code_imports(module: str) -> None:
    """In run_module(), or in the action plugin of its name, and in its documentation."""
    graph = file_graph()
    entry = f"action.{module}" if f"action.{module}" in FILES else f"modules.{module}"
    files = {entry, f"modules.{module}"} | reach(graph, entry) | reach(graph, f"modules.{module}")
    needed = {imported.partition(".")[0] for name in files for imported in IMPORTS[name]} & LIBRARIES
    text = "".join(FILES[name].read_text("utf-8") for name in sorted({entry, f"modules.{module}"}))
    named = {
        name
        for group in re.findall(r"(?:libraries=|LIBRARIES = )\(([^)]*)\)", text)
        for name in LIBRARIES
        if name in group
    }
    assert named == needed
    fragment = "jmespath" if "ipu.fabric.api\n" in text else ""
    documented = set(
        re.findall(r"^  - (\w+)", text.partition("\nrequirements:")[2].partition("\noptions:")[0], re.MULTILINE)
    )
    assert documented | {fragment} - {""} >= needed


def test_errors_of_modules_name_their_kind() -> None:
    """Those of the plan become findings, those of the filters are messages alone."""
    unnamed = []
    for name, path in FILES.items():
        if name.startswith(("module_utils._plan.", "plugin_utils._render.")):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("FabricError", "JobError"):
                codes = [each for each in node.keywords if each.arg == "code"]
                unnamed += [] if codes else [f"{name}:{node.lineno}"]
    assert unnamed == []


# Roles and playbooks name fields of what Python has decided.
DECIDES = re.compile(r"\b(selectattr|rejectattr|is version|regex_\w+|combine\(|product\(|dict2items|items2dict|zip\()")
PLACES = ("playbooks", *sorted(f"roles/{path.name}" for path in (ROOT / "roles").iterdir()))


@pytest.mark.parametrize("place", PLACES)
def test_python_decides(place: str) -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / place).rglob("*.yml")}
    found = [f"{path.relative_to(ROOT)}: {word}" for path, text in texts.items() for word in DECIDES.findall(text)]
    assert found == []

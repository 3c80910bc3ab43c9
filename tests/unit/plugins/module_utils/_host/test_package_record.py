import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import apt, package_record
from ansible_collections.ipu.fabric.tests.unit.fixtures.module import Module

SIMULATED = """\
Reading package lists...
The following NEW packages will be installed:
  kubelet cri-tools
Inst cri-tools (1.35.0-1.1 kubernetes [amd64])
Inst libseccomp2 [2.5.3-2] (2.5.4-1 Debian:12.5/stable [amd64])
Inst kubelet (1.35.4-1.1 kubernetes [amd64])
Conf kubelet (1.35.4-1.1 kubernetes [amd64])
"""
STATUS = "kubectl\tinstall\tinstalled\t1.35.4-1.1\n"


@pytest.fixture
def record(tmp_path, monkeypatch):
    path = tmp_path / "ipu-fabric/packages.json"
    monkeypatch.setattr(package_record, "PATH", str(path))
    return path


def test_names_are_added(record):
    module = Module()
    assert package_record.read_record() == {"installed": [], "held": [], "replaced": {}}
    package_record.add_to_record(module, installed=["kubelet", "cri-tools"])
    package_record.add_to_record(module, installed=["kubelet"], held=["kubectl"])
    package_record.add_to_record(module, replaced={"chrony": ["systemd-timesyncd"], "kubelet": []})
    assert package_record.read_record() == {
        "installed": ["cri-tools", "kubelet"],
        "held": ["kubectl"],
        "replaced": {"chrony": ["systemd-timesyncd"]},
    }


def test_nothing_is_written_for_nothing(record):
    package_record.add_to_record(Module())
    assert not record.exists()


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_broken_record_is_no_leave_to_remove(record, text):
    with pytest.raises(FabricError, match="then count as installed by somebody else"):
        package_record.parse_record(text)


def test_packages_that_were_there_are_not_new():
    assert apt.new_packages(SIMULATED) == ["cri-tools", "kubelet"]


def install(monkeypatch, fails="", simulated=SIMULATED, replaces=(), keep=()):
    """Install kubelet and hold it, and kubectl, which is there. What was called, with the record at that moment."""
    calls = []

    def run(argv, timeout, **options):
        words = " ".join(argv)
        calls.append((words, package_record.read_record()))
        if fails and fails in words:
            return Done(100, "", "E: it went wrong")
        if argv[0] == "dpkg-query":
            return Done(0, STATUS)
        if argv[0] == "apt-cache":
            return Done(0, "kubelet | 1.35.4-1.1 | http://mirror\n")
        return Done(0, simulated if "--simulate" in argv else "")

    monkeypatch.setattr(apt, "run_program", run)
    monkeypatch.setattr(apt.os, "listdir", lambda path: [])
    packages = [{"name": name, "version": "1.35.4", "hold": True} for name in ("kubelet", "kubectl")]
    module = Module(
        repositories={}, packages=packages, lock_timeout=0, timeout=60, only=False, replaces=replaces,
        download_proxy={}, sets_proxy=False, keep=keep,
    )  # fmt: skip
    return module, calls


def test_the_record_is_there_before_apt_installs(record, monkeypatch):
    module, calls = install(monkeypatch)
    apt.apply_packages(module)
    [seen] = [record for words, record in calls if " install " in words and "--simulate" not in words]
    assert seen["installed"] == ["cri-tools", "kubelet"]
    assert package_record.read_record() == {
        "installed": ["cri-tools", "kubelet"],
        "held": ["kubectl", "kubelet"],
        "replaced": {},
    }


def test_no_record_of_what_can_not_be_resolved(record, monkeypatch):
    module, _calls = install(monkeypatch, fails="--simulate")
    with pytest.raises(FabricError, match="Could not resolve the packages"):
        apt.apply_packages(module)
    assert not record.exists()


REPLACING = SIMULATED + "Remv systemd-timesyncd [252.38-1]\n"


def test_what_may_be_replaced_goes_and_is_remembered(record, monkeypatch):
    module, calls = install(monkeypatch, simulated=REPLACING, replaces=["systemd-timesyncd"])
    apt.apply_packages(module)
    [(words, seen)] = [call for call in calls if " install " in call[0] and "--simulate" not in call[0]]
    assert "--no-remove" not in words
    assert seen["replaced"] == {"kubelet": ["systemd-timesyncd"]}


@pytest.mark.parametrize("replaces", [[], ["systemd-timesyncd"]])
def test_nothing_else_is_ever_removed(record, monkeypatch, replaces):
    module, calls = install(monkeypatch, simulated=REPLACING + "Remv ntpsec [1.2]\n", replaces=replaces)
    with pytest.raises(FabricError, match="ntpsec"):
        apt.apply_packages(module)
    installs = [words for words, _record in calls if " install " in words]
    assert all("--simulate" in words for words in installs)
    assert [("--no-remove" in words) for words in installs] == [not replaces] * len(installs)
    assert not record.exists()

from __future__ import annotations

import base64
import ipaddress
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

sys.path.insert(0, str(ROOT / "testbed"))

from bed import build, cli, common, estimate, hosts, images, programs, progress, soft_roce, trees, vm, workers


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in (common, hosts, vm):
        monkeypatch.setattr(module, "CACHE", tmp_path)
    monkeypatch.setattr(common, "STORE", tmp_path / "store")
    return tmp_path


def test_digest_sees_content_names_and_modes(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    file = tree / "a"
    file.write_text("x")
    seen = {common.digest(tree)}
    file.chmod(0o755)
    seen.add(common.digest(tree))
    file.write_text("y")
    seen.add(common.digest(tree))
    file.rename(tree / "b")
    seen.add(common.digest(tree))
    seen.add(common.digest(tree, "more"))
    assert len(seen) == 5
    assert common.digest(tree) == common.digest(tree)


# As `go build -v` says it.
GO_BUILD = """go: downloading github.com/spf13/cobra v1.9.1
internal/goarch
unicode/utf8
github.com/go-logr/logr
k8s.io/kubernetes/vendor/gopkg.in/yaml.v3
# runtime/cgo
gcc: warning: unused argument
k8s.io/kubernetes/cmd/kubeadm
"""


def test_go_builds_count_packages() -> None:
    work = progress.Work("build go-cluster", begun=0)
    assert work.says(59.6) == "build go-cluster 60 s"
    for line in GO_BUILD.splitlines(keepends=True):
        work.read(line)
    assert work.says(20) == "build go-cluster 20 s, compiled 5 packages"
    work.packages = 1903
    other = progress.Work("build debian", begun=100)
    assert progress.line([work, other], 250) == (
        "testbed: build go-cluster 4 min 10 s, compiled 5 of 1903 packages; build debian 2 min 30 s"
    )


@pytest.mark.parametrize(("code", "list_code"), [(0, 0), (0, 1), (1, 0)])
def test_go_build_is_followed(code: int, list_code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = tmp_path / "go"
    go.write_text(f"""#!/bin/sh
[ $1 = list ] && {{ echo "a b c" | tr ' ' '\\n'; exit {list_code}; }}
echo "$@" > {tmp_path}/called
cat <<'B'
{GO_BUILD}B
exit {code}
""")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with progress.work("build"):
        if code:
            with pytest.raises(common.ProblemError, match=r"ended with 1:\n(.*\n)*k8s.io/kubernetes/cmd/kubeadm"):
                programs._go_build("cni", tmp_path, tmp_path / "out", "-tags=x", "tool")
        else:
            programs._go_build("cni", tmp_path, tmp_path / "out", "-tags=x", "tool")
        assert progress.current().compiled == 5
    assert (tmp_path / "called").read_text() == f"build -v -trimpath -o {tmp_path}/out/ -tags=x tool\n"


def test_progress_is_said_twice_a_minute_in_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.work("build x"):
        assert progress._tick(progress.current().begun + 29, progress.current().begun) == progress.current().begun
        assert capsys.readouterr().err == ""
        told = progress._tick(progress.current().begun + 31, progress.current().begun)
        assert told == progress.current().begun + 31
    assert capsys.readouterr().err == "testbed: build x 31 s\n"


def test_stored_is_made_once() -> None:
    made = []

    def make(target: Path) -> None:
        made.append(target)
        (target / "file").write_text("content")

    first, second = common.stored("thing", "1", make), common.stored("thing", "1", make)
    assert first == second
    assert len(made) == 1
    assert (first / "file").read_text() == "content"


def test_a_killed_build_leaves_nothing_that_counts() -> None:
    def fail(target: Path) -> None:
        (target / "half").write_text("")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        common.stored("thing", "1", fail)
    place = common.stored("thing", "1", lambda target: (target / "whole").touch())
    assert [file.name for file in place.iterdir()] == ["whole"]
    assert [entry.name for entry in common.STORE.iterdir()] == ["thing-1"]


def test_failed_command_says_what_it_said() -> None:
    with pytest.raises(common.ProblemError, match=r"(?s)`sh -c echo no way; exit 3` ended with 3:.*no way"):
        common.run("sh", "-c", "echo no way; exit 3")


@pytest.mark.parametrize(
    ("network", "number", "address"),
    [("10.5.0.0/24", 20, "10.5.0.20"), ("10.5.2.64/26", 11, "10.5.2.75"), ("fd00:5::/64", 20, "fd00:5::20")],
)
def test_addresses_on_the_fabric(cache: Path, network: str, number: int, address: str) -> None:
    testbed = hosts.Testbed(1)
    testbed.state.mkdir(parents=True)
    (testbed.state / "fabric").write_text(network)
    assert testbed.on_fabric(number) == address


@pytest.mark.parametrize(
    ("kept", "endpoint", "virtual"),
    [("3\n", "10.71.0.4:6443", ""), ("3 virtual\n", "", "10.71.0.5"), (None, "", "")],
)
def test_control_planes_have_a_balancer_or_a_virtual_address(kept: str | None, endpoint: str, virtual: str) -> None:
    testbed = hosts.Testbed(1)
    testbed.state.mkdir(parents=True)
    if kept:
        (testbed.state / "control-planes").write_text(kept)
    assert (testbed.endpoint, testbed.virtual_address) == (endpoint, virtual)


def test_hosts_find_the_packages_of_their_distribution() -> None:
    assert hosts.DEBIAN_SOURCE.format("10.71.0.2").startswith("deb [signed-by=/etc/apt/keyrings/")
    assert "keepalived" in trees.DISTRIBUTION.split()


def test_rails_and_macs_are_apart() -> None:
    assert [hosts.Testbed.on_rail(rail, 11) for rail in (2, 8)] == ["10.6.0.11/24", "10.12.0.11/24"]
    macs = {hosts.Testbed(bed).mac(net, host) for bed in range(10) for net in range(9) for host in (11, 12)}
    assert len(macs) == 180


@pytest.mark.parametrize("text", ["banana", "10.5.0.1/24", "10.5.0.0/28"])
def test_a_bad_network_changes_nothing(text: str) -> None:
    with pytest.raises(common.ProblemError):
        hosts.Testbed(1).set_fabric(text)
    assert not (hosts.Testbed(1).state / "fabric").exists()


@pytest.mark.parametrize("text", ["x", "10", "-1", ""])
def test_testbed_id(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("TESTBED_ID", text)
    with pytest.raises(common.ProblemError, match="TESTBED_ID"):
        hosts.testbed()


@pytest.mark.parametrize(
    ("reference", "repository", "tag"),
    [
        ("registry.k8s.io/coredns/coredns:v1.13.1", "coredns/coredns", "v1.13.1"),
        ("docker.io/library/busybox:1.37", "library/busybox", "1.37"),
    ],
)
def test_names_in_the_mirror(reference: str, repository: str, tag: str) -> None:
    image = images.Image(reference, {})
    assert (image.repository, image.tag) == (repository, tag)


def test_layers_do_not_depend_on_time_or_owner(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("x")
    program.chmod(0o700)
    images._layer({"usr/bin/program": program}, tmp_path / "one")
    os.utime(program, (1, 1))
    if os.geteuid() == 0:
        os.chown(program, 1000, 1000)
    images._layer({"usr/bin/program": program}, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    with tarfile.open(tmp_path / "one") as layer:
        assert layer.getmember("usr/bin/program").mode == 0o755


def test_packages_of_a_containerfile() -> None:
    run = "RUN apt-get update \\\n && apt-get install --yes a \\\n  b-c \\\n && rm x\n"
    text = f"# a\nFROM docker.io/library/debian:trixie-slim\n{run}"
    assert trees.containerfile(text) == ("trixie", ["a", "b-c"])
    with pytest.raises(common.ProblemError, match="no line FROM"):
        trees.containerfile("FROM scratch\n")


def test_the_mirror_has_the_images_of_verify_and_of_the_examples() -> None:
    built = {entry["image"]: entry["base"] for entry in json.loads((programs.STANDINS / "images.json").read_text())}
    defaults = yaml.safe_load((ROOT / "roles/verify/defaults/main.yml").read_text())
    assert built[defaults["verify_rdma_image"]] == "rdma"
    assert built[defaults["verify_image"]] == "tools"
    # The name that the page gives to the image of the Containerfile.
    tag = re.search(r"--tag (\S+)", trees.RDMA_TOOLS.read_text())
    assert tag
    assert built[tag[1]] == "rdma"
    assert tag[1] in (ROOT / "docs/mirror.md").read_text()
    for example in (ROOT / "docs/examples").glob("*.yml"):
        for image in re.findall(r"\bimage: ([\w./:-]+)$", example.read_text(), re.MULTILINE):
            assert image in built


def test_the_image_of_the_comparison_is_what_the_testbed_runs() -> None:
    text = (ROOT / "docs/images/mpi-bench.Containerfile").read_text()
    suite, packages = trees.containerfile(text)
    assert suite == trees.SUITE
    assert {*trees.MPI.split(), "iproute2"} == set(packages)
    for name in ("etc/ssh/ssh_config", "etc/ssh/sshd_config", "home/mpiuser/.sshd_config"):
        lines = " ".join(f"'{line}'" for line in trees.MPI_FILES[name].splitlines())
        assert re.search(rf"printf '%s\\n' {re.escape(lines)}\s+(?:\\\n\s+)?>/{re.escape(name)}", text)
    tag = re.search(r"--tag (\S+)", text)
    assert tag
    assert tag[1] in (ROOT / "docs/examples/mpi-compare.yml").read_text()


def test_versions_are_those_of_the_roles() -> None:
    defaults = yaml.safe_load((ROOT / "roles/kubernetes/defaults/main.yml").read_text())
    assert defaults["kubernetes_version"] == programs.KUBERNETES
    flannel = {defaults["kubernetes_flannel_image"], defaults["kubernetes_flannel_cni_image"]}
    assert flannel == {image.reference for image in images.flannel_images(Path(), Path())}


def test_the_real_device_plugin_is_behind_its_name_in_every_release(tmp_path: Path) -> None:
    listed = json.loads((programs.STANDINS / "images.json").read_text())
    for entry in listed:
        (tmp_path / Path(entry.get("package", "-")).name).touch()
    found = [
        image
        for image in images.standin_images(tmp_path, Path("/cni"), Path("/real"), Path("/bin"), {})
        if "k8s-rdma-shared-dev-plugin" in image.reference
    ]
    assert len(found) == sum("cloud-native/network-operator:" in entry["image"] for entry in listed)
    for image in found:
        assert image.entrypoint == ["/bin/k8s-rdma-shared-dp"]
        assert image.files == {
            "bin/k8s-rdma-shared-dp": tmp_path / "soft-roce",
            "usr/local/bin/k8s-rdma-shared-dp": Path("/real/k8s-rdma-shared-dp"),
        }


def test_real_programs_are_in_the_images_that_have_them(tmp_path: Path) -> None:
    for entry in json.loads((programs.STANDINS / "images.json").read_text()):
        (tmp_path / Path(entry.get("package", "-")).name).touch()
    found = images.standin_images(
        tmp_path, Path("/cni"), Path("/real"), Path("/kubernetes"), {"lib.sh": Path("/lib.sh")}
    )
    assert [image.tag for image in found if "lib.sh" in image.files] == ["network-operator-v25.7.0", "v0.9.4"]
    launchers = [image for image in found if "ipu-operator-launcher" in image.reference]
    assert len(launchers) == 2
    for image in launchers:
        assert image.files["usr/local/bin/kubectl"] == Path("/kubernetes/kubectl")
        assert image.entrypoint == ["/usr/local/bin/ipu-launcher"]


def test_each_device_of_a_pod_has_its_files() -> None:
    source = (programs.STANDINS / "cni-plugins/soft_roce.go").read_text()
    of_pods = int(re.search(r"^\s*devices += (\d+)", source, re.MULTILINE)[1])  # type: ignore[index]
    assert of_pods + 1 == soft_roce.DEVICES  # the NIC's
    nodes = soft_roce.FILES["etc/tmpfiles.d/soft-roce.conf"]
    assert f"c /dev/infiniband/uverbs{of_pods} 0666 root root - 231:{192 + of_pods}\n" in nodes


def test_the_emulator_is_told_what_this_kernel_bears() -> None:
    given = {"ssh.authorized_keys.root": "ssh-ed25519 AAAA me\n"}
    words = vm.command(Path("/state"), Path("/store/vm-1"), 1024, vm.devices(22221), given)
    options = dict(zip(words, words[1:], strict=False))
    assert options["-accel"] == "tcg,thread=single"
    assert (options["-cpu"], options["-smp"]) == ("Nehalem", "1")
    assert "snapshot=on" in options["-drive"]  # what is built stays as it is
    assert "hostfwd=tcp:127.0.0.1:22221-:22" in " ".join(words)
    assert "hostfwd=tcp::" not in " ".join(words)  # nobody else may come in
    key = options["-smbios"].rpartition("authorized_keys.root=")[2]
    assert base64.b64decode(key).decode() == "ssh-ed25519 AAAA me\n"


def test_no_machine_takes_the_port_of_another() -> None:
    assert len({vm.alone(number).port for number in range(10)}) == 10


def test_no_testbed_is_in_podmans_own_networks() -> None:
    """Its default network, and the pool that it takes the networks of others from."""
    theirs = [ipaddress.ip_network(text) for text in ("10.88.0.0/16", "10.89.0.0/16", "10.90.0.0/15", "10.92.0.0/14")]
    ours = [ipaddress.ip_network(f"{hosts.Testbed(number).management(0)}/24") for number in range(10)]
    assert len(set(ours)) == 10
    assert not [(one, other) for one in ours for other in theirs if one.overlaps(other)]


def test_what_a_worker_is_told_when_it_boots() -> None:
    bed = hosts.Testbed(4)
    given = workers.credentials(bed, "roce2")
    assert given["system.hostname"] == "roce2"
    files = {line.split()[1]: line.split(" - ", 1)[1] for line in given["tmpfiles.extra"].splitlines()}
    assert "Address=10.74.0.16/24\nGateway=10.74.0.1\n" in given["network.network.20-management"]
    assert "Address=10.5.0.16/24\n" in given["network.network.20-fabric"]
    assert "10.5.0.20 vipu-server\\n" in files["/etc/hosts"]


def test_a_tap_device_has_a_name_that_linux_takes() -> None:
    names = [
        workers.tap(hosts.Testbed(number), host, network)
        for number in range(10)
        for host in hosts.WORKERS
        for network in ("management", "fabric")
    ]
    assert len(set(names)) == len(names)
    assert max(len(name) for name in names) <= 15


def test_workers_pull_the_newest_release_of_each_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "kubernetes_images", lambda *_: [images.Image("registry.k8s.io/etcd:3", {})])
    wanted = images.references(Path())
    assert "registry.k8s.io/etcd:3" not in wanted  # that is for control planes
    operators = [name for name in wanted if "/network-operator:" in name]
    assert operators == ["nvcr.io/nvidia/cloud-native/network-operator:v26.7.1"]


def test_images_of_the_next_kubernetes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its own programs; etcd and CoreDNS are the existing ones, by the tags that its kubeadm asks for."""
    monkeypatch.setattr(images, "output", lambda *_: "registry.k8s.io/kube-proxy:v1.37.2\nregistry.k8s.io/etcd:3.7.0-0")
    ours = {"kube-proxy": "v1.36.3", "etcd": "3.6.8-0"}
    made = [
        images.Image(f"registry.k8s.io/{name}:{tag}", {f"bin/{name}": tmp_path / "ours" / name}, base=f"base of {name}")
        for name, tag in ours.items()
    ]
    monkeypatch.setattr(images, "kubernetes_images", lambda *_: made)
    other = tmp_path / "other"
    other.mkdir()
    (other / "kube-proxy").touch()
    proxy, etcd = images.next_images(other, tmp_path / "ours")
    assert (proxy.reference, proxy.files, proxy.base) == (
        "registry.k8s.io/kube-proxy:v1.37.2",
        {"bin/kube-proxy": other / "kube-proxy"},
        "base of kube-proxy",
    )
    assert (etcd.reference, etcd.files) == ("registry.k8s.io/etcd:3.7.0-0", {"bin/etcd": tmp_path / "ours" / "etcd"})


def test_the_next_kubernetes_is_the_minor_release_after() -> None:
    before, now = (release.split(".") for release in (programs.KUBERNETES, programs.KUBERNETES_NEXT))
    assert int(now[1]) == int(before[1]) + 1


@pytest.mark.parametrize(
    ("console", "fault"),
    [
        ("[ 1.0] EXT4-fs mounted\nDebian GNU/Linux 13 roce ttyS0\n", ""),
        (
            "[ 0.4] Kernel panic - not syncing: Attempted to kill init!\n[ 0.5] CPU: 0",
            "Kernel panic - not syncing: Atte",
        ),
        ("Gave up waiting for root file system device.  Common problems:\n", "Gave up waiting for root"),
    ],
)
def test_a_kernel_that_gave_up(console: str, fault: str) -> None:
    found = vm.boot_fault(console)
    assert found.startswith(fault)
    assert bool(found) == bool(fault)


def test_a_container_that_was_killed_behind_podmans_back() -> None:
    """With the process that watches it, as when the session of a whole test run is ended."""
    gone = {"State": "running", "Id": "0bd9", "Pid": 2**22 + 1}  # more than Linux gives
    reused = {"State": "running", "Id": "0bd9", "Pid": os.getpid()}
    assert [hosts.with_true_state(entry)["State"] for entry in (gone, reused)] == ["killed", "killed"]
    stopped = {"State": "exited", "Id": "0bd9", "Pid": 0}
    assert hosts.with_true_state(stopped) == stopped


def test_a_pid_that_is_somebody_elses() -> None:
    machine = vm.alone(1)
    machine.state.mkdir(parents=True)
    assert machine.pid() == 0
    (machine.state / "pid").write_text("1\n")  # init's: the emulator ended, and its number was reused
    assert machine.pid() == 0
    assert vm.status(1) == "does not run"


def test_a_machine_that_runs_keeps_its_disks() -> None:
    for machine, places in ((vm.alone(3), ["vm-old"]), (workers.machine(hosts.Testbed(2), "roce1"), ["a-1", "b-2"])):
        machine.state.mkdir(parents=True)
        (machine.state / "parts").write_text("".join(f"/store/{name}\n" for name in places))
    assert vm.used() == {"vm-old", "a-1", "b-2"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "sources.list",
            "# deb http://old.example/debian x\ndeb [trusted=yes] http://mirror.example/debian x main\n",
        ),
        ("sources.list.d/debian.sources", "Types: deb\nURIs: http://mirror.example/debian\nSuites: x\n"),
    ],
)
def test_debian_mirror_is_the_one_of_apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setattr(trees, "Path", lambda path: tmp_path / path.lstrip("/"))
    file = tmp_path / "etc/apt" / name
    file.parent.mkdir(parents=True)
    with pytest.raises(common.ProblemError, match="no Debian mirror"):
        trees.debian_mirror()
    file.write_text(f"URIs: http://security.example/debian-security\n{text}")
    assert trees.debian_mirror() == "http://mirror.example/debian"


def test_packages_of_missing_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[tuple[str | Path, ...]] = []
    monkeypatch.setattr(build, "run", lambda *words, **_options: runs.append(words))
    build.need({"sh": "dash", "no-such-emulator": "emulator its-firmware", "no-such-tool": "tool"})
    assert runs[-1][-3:] == ("emulator", "its-firmware", "tool")


def test_help_names_every_command() -> None:
    text = subprocess.run([ROOT / "testbed/testbed", "--help"], capture_output=True, text=True, check=True).stdout
    readme = (ROOT / "testbed/README.md").read_text()
    for command in cli.COMMANDS:
        assert re.search(rf"^    {command}\s", text, re.MULTILINE)
        assert f"`{command}" in readme


@pytest.mark.parametrize(
    ("missing", "cores", "said"),
    [
        ((), 2, "about 3 minutes: all programs are compiled"),
        ((programs.CLUSTER, *programs.SHORT), 2, "about 13 minutes on 2 cores: Kubernetes and more is compiled first"),
        ((programs.CLUSTER, *programs.SHORT), 16, "about 5 minutes on 16 cores"),
        (("cni",), 1, "about 5 minutes on 1 core: cni is compiled first"),
    ],
)
def test_the_demo_says_how_long_it_takes(missing: tuple[str, ...], cores: int, said: str) -> None:
    assert said in estimate.estimate(missing, cores, "/store")


def test_what_is_built_is_seen() -> None:
    name = programs.SHORT[-1]
    assert not programs.is_built(name)
    (common.STORE / f"go-{name}-{programs._group_key(name)}").mkdir(parents=True)
    assert programs.is_built(name)

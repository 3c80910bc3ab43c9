"""Files of others that would run in place of those of packages."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host.shadows import read_shadows


@pytest.mark.parametrize(
    ("path", "target", "found"),
    [
        ("usr/local/bin/kubelet", "", [("/usr/local/bin/kubelet", False)]),
        ("usr/local/bin/kubectl", "", []),  # an administrator's tool
        ("usr/bin/kubelet", "", []),
        ("etc/systemd/system/kubelet.service", "", [("/etc/systemd/system/kubelet.service", False)]),
        ("etc/systemd/system/containerd.service", "/dev/null", [("/etc/systemd/system/containerd.service", True)]),
        ("etc/systemd/system/containerd.service", "/lib/systemd/system/containerd.service", []),  # enabled by alias
        ("etc/systemd/system/containerd.service.d/10-memlock.conf", "", []),
        (
            "usr/local/lib/systemd/system/containerd.service",
            "",
            [("/usr/local/lib/systemd/system/containerd.service", False)],
        ),
    ],
)
def test_what_goes_before_packages(tmp_path, path, target, found):
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    if target:
        file.symlink_to(target)
    else:
        file.touch()
    assert [(each["path"], each["masks"]) for each in read_shadows(str(tmp_path))] == found


@pytest.mark.parametrize(
    ("text", "shadows"),
    [
        ("[Service]\nExecStart=\nExecStart=/usr/local/bin/kubelet $KUBELET_CONFIG_ARGS\n", True),
        ("[Service]\nExecStart=\nExecStart = -/opt/bin/kubelet\n", True),
        ("[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --v=4\n", False),
        ("[Service]\n#ExecStart=/opt/bin/kubelet\nExecStartPre=/opt/bin/wait\nLimitNOFILE=9\n", False),
    ],
)
def test_a_drop_in_that_starts_another_program(tmp_path, text, shadows):
    path = "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf"
    (tmp_path / path[1:]).parent.mkdir(parents=True)
    (tmp_path / path[1:]).write_text(text)
    assert read_shadows(str(tmp_path)) == [{"path": path, "masks": False}] * shadows

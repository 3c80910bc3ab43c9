import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component.datasets import Seen, Settings, decide

BASE = {"name": "imagenet", "server": "10.1.0.5", "path": "/export/imagenet"}


def made(volumes):
    return decide(Settings(volumes), Seen()).objects


def test_a_volume_and_its_claim_name_each_other():
    volume, claim = made([BASE])
    assert volume == {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "default-imagenet"},
        "spec": {
            "capacity": {"storage": "1Ti"},
            "accessModes": ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "volumeMode": "Filesystem",
            "mountOptions": ["hard", "nfsvers=4.1"],
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": "default",
                "name": "imagenet",
            },
            "nfs": {"server": "10.1.0.5", "path": "/export/imagenet"},
        },
    }
    assert claim["metadata"] == {"name": "imagenet", "namespace": "default"}
    assert claim["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Ti"}},
        "storageClassName": "",
        "volumeMode": "Filesystem",
        "volumeName": "default-imagenet",
    }


def test_what_a_site_sets():
    given = {"namespace": "vision", "volume": "sets", "size": "5Gi", "read_only": True, "mount_options": ["nfsvers=3"]}
    volume, claim = made([{**BASE, **given}])
    assert (volume["metadata"]["name"], claim["metadata"]["namespace"]) == ("sets", "vision")
    assert volume["spec"]["nfs"]["readOnly"]
    assert volume["spec"]["accessModes"] == claim["spec"]["accessModes"] == ["ReadOnlyMany"]
    assert volume["spec"]["mountOptions"] == ["nfsvers=3", "ro"]
    [again, _claim] = made([{**BASE, "read_only": True, "mount_options": ["ro", "soft"]}])
    assert again["spec"]["mountOptions"] == ["ro", "soft"]
    assert volume["spec"]["capacity"] == claim["spec"]["resources"]["requests"] == {"storage": "5Gi"}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"server": ""}, "imagenet: no server"),
        ({"name": ""}, "entry 1: no name"),
        ({"name": "Image"}, "'Image' is not a DNS-1123 label"),
        ({"namespace": "a_b"}, "'a_b' is not a DNS-1123 label"),
        ({"volume": "-v"}, "'-v' is not a DNS-1123 subdomain"),
        ({"server": "10.1.0.5:/x"}, "neither a name nor an address"),
        ({"path": "export"}, "'export' is not absolute"),
        ({"size": "lots"}, "'lots' is not like 500Gi"),
        ({"access_modes": ["RWX"]}, "are not among ReadWriteMany"),
        ({"mount_options": ["hard,intr"]}, "must be one word"),
        ({"read_only": True, "access_modes": ["ReadWriteMany"]}, "exclude each other"),
    ],
)
def test_what_is_refused(changed, message):
    with pytest.raises(FabricError, match=message):
        made([{**BASE, **changed}])


def test_what_is_waited_for():
    found = decide(Settings([BASE]), Seen()).ready
    assert [(one["kind"], one["namespace"], one["name"]) for one in found] == [
        ("PersistentVolume", "", "default-imagenet"),
        ("PersistentVolumeClaim", "default", "imagenet"),
    ]
    assert all(one["value"] == "Bound" and one["api_version"] == "v1" for one in found)


def test_names_are_unique():
    with pytest.raises(FabricError, match=r"the claim default/imagenet is named 2 times"):
        made([BASE, {**BASE, "volume": "other"}])
    with pytest.raises(FabricError, match=r"the volume v is named 2 times"):
        made([{**BASE, "volume": "v"}, {**BASE, "name": "other", "volume": "v"}])
    assert len(made([BASE, {**BASE, "namespace": "vision"}])) == 4

from ansible_collections.ipu.fabric.plugins.module_utils._ipu import job_info
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Resource


class Cluster:
    """Two namespaces with a job and a pod each."""

    def __init__(self, known=True):
        self.known, self.asked = known, []

    def resource(self, api_version, kind):
        assert (api_version, kind) == ("graphcore.ai/v1alpha1", "IPUJob")
        return Resource("/apis/graphcore.ai/v1alpha1", "ipujobs", True) if self.known else None

    def items(self, path, **selectors):
        self.asked.append((path, {key: value for key, value in selectors.items() if value}))
        if path.endswith("/pods"):
            return [{"metadata": {"name": "a-worker-0"}}]
        return [
            {"metadata": {"name": name, "namespace": where}} for where, name in (("x-1", "a"), ("x", "b"), ("x", "a"))
        ]


def test_jobs_are_read_where_they_are_asked_for():
    cluster = Cluster()
    job_info.read_jobs(cluster)
    job = job_info.read_jobs(cluster, "x", labelSelector="a=b", fieldSelector=None)[0]
    base = "/apis/graphcore.ai/v1alpha1"
    assert cluster.asked == [(f"{base}/ipujobs", {}), (f"{base}/namespaces/x/ipujobs", {"labelSelector": "a=b"})]
    assert (job["apiVersion"], job["kind"]) == ("graphcore.ai/v1alpha1", "IPUJob")


def test_a_cluster_without_the_kind_has_no_jobs():
    cluster = Cluster(known=False)
    assert job_info.read_jobs(cluster) == []
    assert cluster.asked == []


def test_views_are_sorted_and_each_namespace_is_read_once():
    cluster = Cluster()
    views = job_info.view_jobs(cluster, job_info.read_jobs(cluster))
    assert [(view["namespace"], view["name"], len(view["pods"])) for view in views] == [
        ("x", "a", 1),
        ("x", "b", 0),
        ("x-1", "a", 1),
    ]
    assert sorted(path for path, _selectors in cluster.asked[1:]) == [
        "/api/v1/namespaces/x-1/pods",
        "/api/v1/namespaces/x/pods",
    ]

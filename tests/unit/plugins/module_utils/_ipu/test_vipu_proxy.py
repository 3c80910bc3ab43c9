import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipu import vipu_proxy

ADDRESS = vipu_proxy.ProxyAddress("n", "s", 80)


def test_stats_of_the_documentation():
    assert vipu_proxy.read_stats({"default": {"used": 4, "available": 28}, "total": {"used": 4, "available": 28}}) == {
        "total": {"used": 4, "available": 28, "ipus": 32},
        "namespaces": {"default": {"used": 4, "available": 28, "ipus": 32}},
        "sizes": [],
    }


@pytest.mark.parametrize(
    ("answer", "partitions", "fits"),
    [
        ({"available": True, "numOfPartitions": 14, "message": ""}, 14, True),
        # Documented: it says that it is available, and there is none.
        ({"available": True, "numOfPartitions": 0, "message": ""}, 0, False),
        ({"available": False, "numOfPartitions": "2", "message": None}, 2, True),
        ({"available": True, "numOfPartitions": 1}, 1, True),
    ],
)
def test_only_the_number_of_partitions_counts(answer, partitions, fits):
    assert vipu_proxy.read_room(2, answer) == {"size": 2, "partitions": partitions, "fits": fits, "message": ""}


@pytest.mark.parametrize("size", [0, -1, 3, 63, 128])
def test_sizes_that_no_partition_has(size):
    with pytest.raises(FabricError) as error:
        vipu_proxy.check_sizes([1, size, 64])
    assert error.value.next_step == "A partition has a power of two of IPUs, up to 64."
    assert error.value.seen == f"{size} is not one of 1, 2, 4, 8, 16, 32, 64"


class Cluster:
    def __init__(self, answer):
        self.answer = answer

    def request(self, *_words, **_options):
        return self.answer


@pytest.mark.parametrize("answer", [{}, [], {"total": {}}, {"total": {"used": "x", "available": 1}}, {"total": 3}])
def test_an_answer_that_cannot_be_read_is_an_error_with_a_next_step(answer):
    with pytest.raises(FabricError, match="can't be read") as error:
        vipu_proxy.VipuProxy(Cluster(answer), ADDRESS).usage([])
    assert error.value.where == "/api/v1/namespaces/n/services/http:s:80/proxy/stats"
    assert "vipu_proxy: {namespace: NAMESPACE}" in error.value.next_step


class NoService:
    """A cluster without the proxy's Service, and with or without IPUJobs."""

    def __init__(self, knows):
        self.knows = knows

    def request(self, *_words, **_options):
        raise vipu_proxy.ApiError(status=404, reason="not found")

    def resource(self, _api_version, kind):
        return kind if kind in self.knows else None


@pytest.mark.parametrize(
    ("knows", "step"),
    [([], "Set fabric_ipu to true and run ipu.fabric.site"), (["IPUJob"], "vipu_proxy: {namespace: NAMESPACE}")],
)
def test_a_cluster_without_the_operator_is_told_from_one_with_it_elsewhere(knows, step):
    with pytest.raises(FabricError, match="404") as error:
        vipu_proxy.VipuProxy(NoService(knows), ADDRESS).usage([])
    assert step in error.value.next_step
    assert ("another namespace" in error.value.next_step) == bool(knows)


class Answers:
    """Room for so many IPUs."""

    def request(self, verb, path, body):
        if path.endswith("/stats"):
            assert (verb, body) == ("get", None)
            return {"total": {"used": 0, "available": 7}}
        assert (verb, path.rpartition("/")[2]) == ("post", "query")
        return {"available": True, "numOfPartitions": 7 // body["size"]}


def test_every_size_is_asked_for_by_itself():
    usage = vipu_proxy.VipuProxy(Answers(), ADDRESS).usage([2, 8])
    assert usage["total"]["available"] == 7
    assert [(room["size"], room["partitions"], room["fits"]) for room in usage["sizes"]] == [
        (2, 3, True),
        (8, 0, False),
    ]


def test_check_mode_assumes_no_ipus():
    assert vipu_proxy.read_stats({"total": {"used": 0, "available": 0}}) == vipu_proxy.NO_IPUS

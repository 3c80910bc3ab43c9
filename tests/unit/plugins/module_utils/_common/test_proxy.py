import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.proxy import proxy_variables

URL = "http://me:password@proxy.site:3128"


@pytest.mark.parametrize("proxy", [{}, {"http": "", "https": None, "no_proxy": ["a"]}])
def test_without_a_proxy_nothing_is_set(proxy):
    assert proxy_variables(proxy) == {}


def test_programs_read_either_case():
    assert proxy_variables({"http": URL, "no_proxy": ["a", ".b"]}) == {
        "http_proxy": URL, "https_proxy": "", "no_proxy": "a,.b",
        "HTTP_PROXY": URL, "HTTPS_PROXY": "", "NO_PROXY": "a,.b",
    }  # fmt: skip

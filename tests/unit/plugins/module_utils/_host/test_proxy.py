"""The proxy of apt and containerd: what is written, who reads it, and that it goes away again."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import proxy

URL = "http://proxy.site:3128"
SECRET = "http://user:p%40ss@proxy.site:3128"
NO_PROXY = ["localhost", "10.96.0.0/12", ".svc", "registry.site", "10.0.0.2"]


def test_what_apt_and_containerd_read():
    expected = f'HTTP_PROXY="{URL}"\nHTTPS_PROXY="{URL}"\nNO_PROXY="{",".join(NO_PROXY)}"\n'
    assert proxy.environment_text(URL, URL, NO_PROXY) == expected
    lines = proxy.apt_text(URL, URL, NO_PROXY).splitlines()
    assert f'Acquire::http::Proxy "{URL}";' in lines
    assert 'Acquire::https::Proxy::registry.site "DIRECT";' in lines
    assert 'Acquire::http::Proxy::10.0.0.2 "DIRECT";' in lines
    assert not [line for line in lines if ".svc" in line or "/12" in line]


@pytest.mark.parametrize("url", ["proxy.other:3128", 'http://a"b', "http://a b", "socks5://a", "http://a\\b"])
def test_what_is_no_url_is_refused_and_not_shown(url):
    with pytest.raises(FabricError) as error:
        proxy.has_proxy({"http": url})
    assert url not in str(error.value)


class Module:
    """As much of an AnsibleModule as is used."""

    def __init__(self, check_mode=False):
        self.check_mode = check_mode


def test_the_file_of_apt_comes_and_goes(tmp_path, monkeypatch):
    path = tmp_path / "apt/90-proxy"
    monkeypatch.setattr(proxy, "APT", str(path))
    assert not proxy.set_apt_proxy(Module(), {"http": None})
    assert proxy.set_apt_proxy(Module(True), {"http": SECRET})
    assert list(tmp_path.iterdir()) == []
    assert proxy.set_apt_proxy(Module(), {"http": SECRET})
    assert path.stat().st_mode & 0o777 == 0o600  # only root reads a password
    assert not proxy.set_apt_proxy(Module(), {"http": SECRET})
    assert proxy.set_apt_proxy(Module(), {})
    assert not path.exists()


def test_a_file_of_others_stays_where_there_is_no_proxy(tmp_path, monkeypatch):
    path = tmp_path / "90-proxy"
    path.write_text('Acquire::http::Proxy "http://site:1";\n')
    monkeypatch.setattr(proxy, "APT", str(path))
    assert not proxy.set_apt_proxy(Module(), {})
    assert path.exists()

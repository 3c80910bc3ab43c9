# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy of apt and containerd: what is written, who reads it, and that it goes away again."""

from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import proxy

URL = "http://proxy.site:3128"
SECRET = "http://user:p%40ss@proxy.site:3128"
NO_PROXY = ["localhost", "10.96.0.0/12", ".svc", "registry.site", "10.0.0.2"]


def test_both_files():
    files = proxy.wanted_files(URL, URL, NO_PROXY)
    assert files[proxy.CONTAINERD] == {
        "content": f'HTTP_PROXY="{URL}"\nHTTPS_PROXY="{URL}"\nNO_PROXY="{",".join(NO_PROXY)}"\n',
        "mode": "0600",
    }
    lines = files[proxy.APT]["content"].splitlines()
    assert f'Acquire::http::Proxy "{URL}";' in lines
    assert 'Acquire::https::Proxy::registry.site "DIRECT";' in lines
    assert 'Acquire::http::Proxy::10.0.0.2 "DIRECT";' in lines
    assert not [line for line in lines if ".svc" in line or "/12" in line]


def test_only_root_reads_a_password():
    files = proxy.wanted_files(SECRET, "", [])
    assert {file["mode"] for file in files.values()} == {"0600"}


def test_without_a_proxy_there_is_no_file():
    assert proxy.wanted_files("", "", NO_PROXY) == {proxy.APT: None, proxy.CONTAINERD: None}


@pytest.mark.parametrize("url", ["proxy.other:3128", 'http://a"b', "http://a b", "socks5://a", "http://a\\b"])
def test_what_is_no_url_is_refused_and_not_shown(url):
    with pytest.raises(FabricError) as error:
        proxy.wanted_files(url, "", [])
    assert url not in str(error.value)


class Module:
    """As much of an AnsibleModule as is used."""

    def __init__(self, check_mode=False, **params):
        self.check_mode, self.params = check_mode, {"http": "", "https": "", "no_proxy": [], **params}


def test_files_come_and_go(tmp_path, monkeypatch):
    monkeypatch.setattr(proxy, "CONTAINERD", str(tmp_path / "containerd/proxy.env"))
    monkeypatch.setattr(proxy, "APT", str(tmp_path / "apt/90-proxy"))
    assert not proxy.apply_proxy(Module())["changed"]
    assert proxy.apply_proxy(Module(True, http=SECRET))["changed"]
    assert list(tmp_path.iterdir()) == []
    result = proxy.apply_proxy(Module(http=SECRET))
    assert result["changed"]
    assert "p%40ss" not in str(result)
    assert not proxy.apply_proxy(Module(http=SECRET))["changed"]
    assert proxy.apply_proxy(Module())["changed"]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_files_of_others_stay_where_there_is_no_proxy(tmp_path, monkeypatch):
    texts = {"APT": 'Acquire::http::Proxy "http://site:1";\n', "CONTAINERD": "# site\nHTTP_PROXY=http://site:1\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(proxy, name, str(tmp_path / name))
    assert proxy.apply_proxy(Module()) == {"changed": False, "files": []}
    assert {name: (tmp_path / name).read_text() for name in texts} == texts

"""Fixtures of the integration tests: one API server for all of them."""

from __future__ import annotations

import shutil
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils import basic
from ansible_collections.ipu.fabric.tests.integration.api_server import ApiServer, Modules, programs
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import SCHEMAS


def pytest_configure(config: pytest.Config) -> None:
    # The API server's certificate signs itself.
    config.addinivalue_line("filterwarnings", "ignore::urllib3.exceptions.InsecureRequestWarning")


@pytest.fixture(scope="session")
def binaries() -> Path:
    return programs()


@pytest.fixture(scope="session")
def api(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[ApiServer]:
    server = ApiServer(binaries, tmp_path_factory.mktemp("api"))
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.state, ignore_errors=True)


@pytest.fixture
def run(api: ApiServer) -> Modules:
    basic._ANSIBLE_ARGS = None
    return Modules(api.kubeconfig)


@pytest.fixture(scope="session")
def schemas() -> Path:
    if not SCHEMAS.is_dir():
        pytest.skip("no ../shared/schemas")
    return SCHEMAS

"""What whole runs share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from small_model import install
from vllm_server import VllmServer


@pytest.fixture(scope="session")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    """A real small model behind a real server, for all tests of it."""
    with VllmServer(install(), tmp_path_factory.mktemp("server") / "vllm.log") as running:
        yield running

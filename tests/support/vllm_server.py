"""A real vLLM server on loopback, for tests: started, awaited, counted, ended."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Final

from small_model import NAME, Installed

SECOND_NAME: Final = "another-judge"
"""It answers to this name as well, and says its first one in every reply."""
KEY: Final = "sk-of-the-test-server"  # - no secret
"""Without it the server refuses requests."""
MOST_TOKENS: Final = 256
"""Longest reply: the model often rambles until it is cut, which at 2,048 tokens outlasts every
time-out on a busy machine."""
CONTEXT_TOKENS: Final = 8192
"""Longest prompt and reply together: all that the model knows."""
_HOST: Final = "127.0.0.1"
_START_S: Final = 600.0
_END_S: Final = 30.0
_REQUESTS: Final = re.compile(
    r'^http_requests_total\{[^}]*handler="/v1/chat/completions"[^}]*\} (\S+)$', re.MULTILINE
)


class VllmServer:
    """A server of the small model, ended with its context.

    Args:
        installed: What to start.
        log: File for what the server prints.
        most_tokens: Longest reply.
        n_pictures: Most pictures of a request; 0 for a model that sees none.
    """

    def __init__(
        self,
        installed: Installed,
        log: Path,
        *,
        most_tokens: int = MOST_TOKENS,
        n_pictures: int = 0,
    ) -> None:
        self._installed = installed
        self._log = log
        self._most_tokens = most_tokens
        self._pictures = (
            ["--limit-mm-per-prompt", json.dumps({"image": n_pictures})] if n_pictures else []
        )
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Base URL of its OpenAI-compatible endpoint."""
        return f"http://{_HOST}:{self._port}/v1"

    def n_requests(self) -> int:
        """Chat requests that it has answered, with whatever status; it counts them itself."""
        counted = _REQUESTS.findall(self.metrics())
        return int(sum(map(float, counted)))

    def metrics(self) -> str:
        return self._get("/metrics")

    def kill(self) -> None:
        """End it as a machine that loses power does."""
        process, self._process = self._process, None
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def __enter__(self) -> VllmServer:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command(),
                env=_environment(self._installed.binaries),
                stdout=log,
                stderr=subprocess.STDOUT,
                # Its workers are processes of their own: all are ended together.
                start_new_session=True,
            )
        try:
            self._wait()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _command(self) -> list[str]:
        return [
            str(self._installed.binaries / "vllm"), "serve", str(self._installed.model),
            "--served-model-name", NAME, SECOND_NAME, "--host", _HOST, "--port", str(self._port),
            "--api-key", KEY, "--max-model-len", str(CONTEXT_TOKENS),
            "--enforce-eager", "--block-size", "32", "--max-num-batched-tokens", "65536",
            # Without it a checkpoint's own sampling defaults fill what a request leaves out.
            "--generation-config", "vllm", "--enable-prompt-tokens-details",
            "--override-generation-config", json.dumps({"max_new_tokens": self._most_tokens}),
            *self._pictures,
        ]  # fmt: skip

    def _wait(self) -> None:
        end = time.monotonic() + _START_S
        while time.monotonic() < end:
            if self._process is None or self._process.poll() is not None:
                break
            try:
                self._get("/health")
            except (ConnectionError, TimeoutError):
                time.sleep(0.5)
            else:
                return
        raise RuntimeError(
            f"vllm serve did not start within {_START_S:.0f} s; its log, {self._log}, ends with\n"
            f"{self._log.read_text(errors='replace')[-3000:]}"
        )

    def _get(self, path: str) -> str:
        connection = HTTPConnection(_HOST, self._port, timeout=30)
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        finally:
            connection.close()


def _environment(binaries: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    ours = {
        "PATH": f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}",
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "2",
        "VLLM_NO_USAGE_STATS": "1",
    }
    return {**kept, **ours}


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind((_HOST, 0))
        port: int = listener.getsockname()[1]
    return port

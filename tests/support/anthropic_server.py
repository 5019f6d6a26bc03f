"""A stand-in of Anthropic's messages API on loopback: strict about what it is sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

from raw_server import Asked, RawServer, http

KEY: Final = "sk-ant-api03-a-key-of-some-length-0123456789"
_TAKEN: Final = {
    "model", "messages", "max_tokens", "system", "temperature", "top_p", "top_k", "stop_sequences",
}  # fmt: skip
_ROLES: Final = {"user", "assistant"}

Answer = tuple[int, dict[str, Any], dict[str, str]]
"""Status, body and headers."""
Script = Callable[[dict[str, Any]], Answer]


def message(text: str, stop_reason: str | None = "end_turn", **fields: Any) -> Answer:
    """An answer that says this."""
    usage = {"input_tokens": 90, "output_tokens": len(text) // 4 + 1}
    payload = {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": usage,
        **fields,
    }
    return 200, payload, {}


def error(status: int, kind: str, words: str, **headers: str) -> Answer:
    """An error of that type, with these words."""
    body = {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_01"}
    return status, body, headers


def plain(payload: dict[str, Any]) -> dict[str, Any]:
    """A request as OpenAI's API would have it: the system's words are the first message."""
    system = payload.get("system")
    first = [{"role": "system", "content": system}] if system else []
    return {**payload, "messages": [*first, *payload["messages"]], "seed": 0}


class AnthropicServer:
    """Answers as its script has it, once a request is as the API wants it; a context manager."""

    def __init__(self, script: Script, key: str = KEY) -> None:
        self.script = script
        self.key = key
        self.payloads: list[dict[str, Any]] = []
        """Every request that was as it should be."""
        self.refused: list[str] = []
        """What was wrong with the others."""
        self._server = RawServer(self._answer)

    @property
    def url(self) -> str:
        """Base URL, as that of ``https://api.anthropic.com``."""
        return self._server.url.removesuffix("/v1")

    def __enter__(self) -> AnthropicServer:
        self._server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.__exit__()

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        status, body, headers = self._said(asked)
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        writer.write(http(json.dumps(body).encode(), status, lines))

    def _said(self, asked: Asked) -> Answer:
        if "authorization" in asked.headers or asked.headers.get("x-api-key") != self.key:
            return error(401, "authentication_error", "invalid x-api-key")
        if asked.method == "GET" and asked.path.startswith("/v1/models"):
            return 200, {"data": [{"type": "model", "id": "judge"}], "has_more": False}, {}
        if (asked.method, asked.path) != ("POST", "/v1/messages"):
            return error(404, "not_found_error", f"no such path: {asked.path}")
        wrong = _wrong(asked)
        if wrong:
            self.refused.append(wrong)
            return error(400, "invalid_request_error", wrong)
        payload = asked.payload
        self.payloads.append(payload)
        status, body, headers = self.script(payload)
        if status == 200:
            body = {"model": payload["model"], **body}
        return status, body, headers


def _wrong(asked: Asked) -> str:
    payload = asked.payload
    if asked.headers.get("anthropic-version") != "2023-06-01":
        return "anthropic-version: header is required"
    extra = sorted(set(payload) - _TAKEN)
    if extra:
        return f"{extra[0]}: Extra inputs are not permitted"
    if not isinstance(payload.get("max_tokens"), int):
        return "max_tokens: Field required"
    for one in payload["messages"]:
        if one["role"] not in _ROLES:
            return f"messages: Unexpected role {one['role']!r}"
        parts = one["content"] if isinstance(one["content"], list) else []
        if not all(part["type"] in ("text", "image") for part in parts):
            return "messages: Input tag 'image_url' does not match any of the expected tags"
    return ""

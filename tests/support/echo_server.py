"""An endpoint that puts the key it was sent into its answers, in any field and any code."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any, Final

from raw_server import Asked, RawServer, http

KEY: Final = "sk-Ab12Cd34_ef56+GH78/ij90KL12mn34"
_SLOT: Final = "<the key>"
_CASE: Final = re.compile(r"\bcase (\d+)")


CODES: Final[dict[str, Callable[[str], str]]] = {
    "plain": lambda key: key,
    "within more": lambda key: f"Bearer {key};",
}


def traces(raw: bytes) -> list[str]:
    """Return the forms in which a text holds the key."""
    forms = {"plain": KEY, "bytes": ", ".join(str(byte) for byte in KEY.encode())}
    return [name for name, form in forms.items() if form.encode() in raw]


def _completion(**changes: Any) -> dict[str, Any]:
    token = {"token": "7", "logprob": -0.1, "bytes": [55], "top_logprobs": []}
    token |= {name: changes.pop(name) for name in ("token", "bytes") if name in changes}
    top = {"token": "8", "logprob": -2.0, "bytes": [56]}
    top |= {name[4:]: changes.pop(name) for name in ("top_token", "top_bytes") if name in changes}
    if "bytes" not in top:
        top = {**top, "bytes": None}
    token["top_logprobs"] = [{"token": "7", "logprob": -0.1, "bytes": None}, top]
    message = {"role": "assistant", "content": changes.pop("content", "The score is $7$.")}
    message |= changes.pop("message", {})
    choice = {"index": 0, "message": message, "finish_reason": changes.pop("finish_reason", "stop")}
    choice["logprobs"] = {"content": [{**token}]}
    usage = changes.pop("usage", {"prompt_tokens": 9, "completion_tokens": 3})
    return {"choices": [choice], "usage": usage, **changes}


def _bytes(key: str) -> list[int]:
    return list(key.encode())


ANSWERS: Final[dict[str, dict[str, Any] | list[str]]] = {
    "content": _completion(content=_SLOT),
    "content beside a verdict": _completion(content=f"{_SLOT} {{'pred': 'yes', 'score': 3}}"),
    "content in parts": _completion(content=[{"type": "text", "text": _SLOT}]),
    "finish_reason": _completion(finish_reason=_SLOT),
    "id": _completion(id=_SLOT),
    "model": _completion(model=_SLOT),
    "system_fingerprint": _completion(system_fingerprint=_SLOT),
    "role": _completion(message={"role": _SLOT}),
    "refusal": _completion(message={"refusal": _SLOT, "content": None}),
    "reasoning": _completion(message={"reasoning_content": _SLOT}),
    "token": _completion(token=f"7{_SLOT}"),
    "token as bytes": _completion(bytes=[55, *_bytes(KEY)]),
    "alternative": _completion(top_token=f"8{_SLOT}", top_bytes=None),
    "alternative as bytes": _completion(top_bytes=[56, *_bytes(KEY)]),
    "name in usage": _completion(usage={_SLOT: 1, "prompt_tokens": 2}),
    "usage": _completion(usage={"prompt_tokens": _SLOT, "completion_tokens": 1}),
    "whole usage": _completion(usage=_SLOT),
    "unknown field": _completion(**{_SLOT: _SLOT}),
    "no choices": {"choices": [], "note": _SLOT},
    "error in a 200": {"error": {"message": _SLOT, "code": _SLOT, "type": _SLOT, "param": _SLOT}},
    "no object": [_SLOT],
}
"""Bodies of a 200."""
ERRORS: Final[dict[str, Any]] = {
    "message": {"error": {"message": f"Incorrect API key: {_SLOT}"}},
    "code": {"error": {"message": "", "code": _SLOT}},
    "param": {"error": {"message": "Unsupported parameter", "param": _SLOT, "code": "x"}},
    "type": {"error": {"type": _SLOT}},
    "text": {"error": _SLOT},
    "detail": {"detail": [{"msg": _SLOT}]},
}
"""Bodies of other answers."""
LINES: Final = {
    "Retry-After": f"HTTP/1.1 429 Slow\r\nRetry-After: {_SLOT}\r\nContent-Length: 2\r\n\r\n{{}}",
    "reason phrase": f"HTTP/1.1 500 {_SLOT}\r\nContent-Length: 2\r\n\r\n{{}}",
    "status line": f"HTTP/9 {_SLOT}\r\n\r\n",
    "header": f"HTTP/1.1 200 OK\r\n{_SLOT} \x01: x\r\n\r\n",
    "length": f"HTTP/1.1 200 OK\r\nContent-Length: {_SLOT}\r\n\r\n",
    "chunk": f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{_SLOT}\r\n\r\n",
    "Location": f"HTTP/1.1 307 Go\r\nLocation: /v1/else?{_SLOT}\r\nContent-Length: 0\r\n\r\n",
    "no Location": f"HTTP/1.1 307 Go\r\nLocation: http://[{_SLOT}\r\nContent-Length: 0\r\n\r\n",
    "web page": f"HTTP/1.1 502 Bad\r\nContent-Length: 99\r\n\r\n<p>{_SLOT:<96}",
}
"""Whole answers, as they go over the wire."""
STOPS: Final = (401, 402, 403, 404, 407)
PASSES: Final = (400, 429, 500)
PLACES: Final = (
    *ANSWERS,
    *LINES,
    *(f"{status} {name}" for status in PASSES for name in ERRORS),
)


def body_of(place: str, code: str) -> bytes:
    """JSON of an answer that holds the key."""
    shape = ANSWERS[place] if place in ANSWERS else ERRORS[place]
    return json.dumps(shape).replace(_SLOT, CODES[code](KEY)).encode("ascii")


def answer_of(place: str, code: str) -> bytes:
    """An answer that holds the key, as it goes over the wire."""
    if place in LINES:
        coded = CODES[code](KEY)
        answer = LINES[place].replace(f"{_SLOT:<96}", f"{coded:<96.96}")
        return answer.replace(_SLOT, coded).encode("latin-1")
    status, _, name = place.partition(" ") if place[0].isdigit() else ("200", "", place)
    return http(body_of(name, code), int(status))


class EchoServer(RawServer):
    """Answers request by request, and closes each connection; a context manager.

    Args:
        cases: Place and code of each case. A request names its case in its last message, as in
            ``case 17``; where it names none it is the first one.
    """

    def __init__(self, cases: list[tuple[str, str]]) -> None:
        super().__init__(self._echo)
        self.cases = cases
        self.seen: set[tuple[str, str]] = set()
        """Cases that were asked for."""

    async def _echo(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        writer.write(self._answer(asked))
        writer.close()

    def _answer(self, asked: Asked) -> bytes:
        if asked.path.startswith("/v1/else"):
            return answer_of("500 message", "plain")
        numbers = _CASE.findall(asked.body.decode())
        case = self.cases[int(numbers[-1]) if numbers else 0]
        self.seen.add(case)
        return answer_of(*case)

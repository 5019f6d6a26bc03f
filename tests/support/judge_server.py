"""An OpenAI-compatible judge for loopback, with chosen latency, limits and faults.

Replies are a pure function of the prompt, so any two runs can be compared; everything asked is
counted. Run it as a program, or start a :class:`JudgeServer` in a thread.

    python tests/support/judge_server.py --port 8400 --latency 0.2
    curl http://127.0.0.1:8400/stats
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import math
import random
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import captioner_papers

FAULTS = (
    "500", "503", "429", "hang", "drop", "cut", "garbage", "nonsense", "empty", "length", "filter",
)  # fmt: skip


@dataclass(slots=True)
class Behaviour:
    latency_s: float = 0.0
    """Seconds until a reply."""
    tail: float = 0.0
    """Share of replies that take ``tail_factor`` times as long."""
    tail_factor: float = 20.0
    slots: int = 0
    """Requests that are worked on at once, ``latency_s`` each; the others queue. 0 for all."""
    rate: float = 0.0
    """Requests a second above which 429 is answered; 0 for no limit."""
    burst_s: float = 0.1
    """Seconds' worth of that rate that may come at once."""
    limit_headers: str = "none"
    """Whose headers tell of that limit, on every answer: ``openai``, ``anthropic``, ``seconds`` or
    ``none``."""
    retry_after_s: float | None = None
    """``Retry-After`` of a 429."""
    faults: tuple[str, ...] = ()
    """Faults to mix in, of ``FAULTS``."""
    fault_rate: float = 0.0
    """Share of requests that get a fault."""
    max_faults: int = 3
    """Faults at most for one and the same prompt, so that every prompt gets through in the end."""
    status: int = 200
    """Answer every request with this status where it is not 200."""
    message: str = "told to answer"
    """Words of that answer, before the status."""
    refuses_parameters: bool = False
    refuses_seed: bool = False
    connect_status: int = 404
    """Status for those who take the server for a proxy and want a tunnel."""
    key: str | None = None
    """Bearer token that is asked for, or ``None``."""
    logprobs: str = "none"


@dataclass(slots=True)
class Counts:
    n_requests: int = 0
    n_answered: int = 0
    n_rate_limited: int = 0
    n_faults: int = 0
    n_in_flight: int = 0
    most_in_flight: int = 0
    n_open: int = 0
    """Requests, those that fail included, whose asker still waits for the end of an answer."""
    most_open: int = 0
    n_late: int = 0
    """Replies whose asker was gone by then."""
    n_repeated: int = 0
    """Requests for a body that had been answered well before."""
    first_s: float = 0.0
    last_s: float = 0.0
    answered: set[bytes] = field(default_factory=set)
    hung: Counter[bytes] = field(default_factory=Counter)
    """Requests that were never answered, by :func:`identity_of`."""

    def as_json(self) -> dict[str, float]:
        """Everything but the sets."""
        counts = asdict(replace(self, answered=set(), hung=Counter()))
        del counts["answered"], counts["hung"]
        return {**counts, "n_distinct": len(self.answered)}


AS_ASKED = "the one asked for"
NO_MODEL = "no such field"


@dataclass(frozen=True, slots=True)
class Say:
    """An answer as it is to be given."""

    text: str
    finish_reason: str = "stop"
    model: object = AS_ASKED
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the completion, such as ``id``, or others in the place of its own."""
    of_choice: Mapping[str, Any] = field(default_factory=dict)
    """The same of its choice, such as ``logprobs``."""

    def model_fields(self, payload: Mapping[str, Any]) -> dict[str, object]:
        if self.model is NO_MODEL:
            return {}
        return {"model": payload["model"] if self.model is AS_ASKED else self.model}


@dataclass(frozen=True, slots=True)
class Refuse:
    """An error as it is to be given."""

    status: int
    message: str


Script = Callable[[dict[str, Any]], "Say | Refuse | str | None"]


def scripted_reply(prompt: str) -> str:
    for mark, reply in _REPLIES.items():
        if mark in prompt:
            return reply(prompt)
    return vdc_reply(prompt)


def vdc_reply(prompt: str) -> str:
    digest = hashlib.blake2b(prompt.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    if "\n\nPredicted Answer: " in prompt or "\n\nCandidate caption: " in prompt:
        score = digest[0] % 6
        return str({"pred": "yes" if score >= 3 else "no", "score": score})
    return f"Answer {digest.hex()}."


def vcapsbench_reply(prompt: str) -> str:
    """An answer to a prompt of VCapsBench."""
    digest = _digest(prompt)
    return f"{('Yes', 'Yes', 'No', 'Unanswerable')[digest % 4]}@@@The caption says so, {digest}."


def capquiz_reply(prompt: str) -> str:
    """A letter for a prompt of CapQuiz."""
    return "ABCDEF"[_digest(prompt) % 6]


def vidcapbench_reply(prompt: str) -> str:
    """A grade, or an answer, to a prompt of VidCapBench."""
    digest = _digest(prompt)
    if prompt.endswith("\nYour Result:"):
        # The analysis names other scores, as judges do.
        return json.dumps({"score": digest % 4 - 1, "analysis": "Not 2 nor -1: 1 of 0."})
    return f"Answer {digest}."


def gveval_reply(prompt: str) -> str:
    """Scores for a prompt of G-VEval, after a reason that holds other numbers."""
    digest = _digest(prompt)
    reason = "Frame 1 of 3 shows 2 people; I would not say 50."
    if "Wrap Accuracy score in" not in prompt:
        return f"{reason} The final score is ${digest % 101}$."
    names = ("Accuracy", "Completeness", "Conciseness", "Relevance")
    scores = [(digest >> 7 * index) % 101 for index in range(4)]
    return f"{reason} " + " ".join(
        f"The {name} score is {mark}{score}{mark}."
        for name, mark, score in zip(names, "αβψδ", scores, strict=True)
    )


def video_rating_reply(prompt: str) -> str:
    """Ratings for a prompt of the judge that sees the video."""
    digest = _digest(prompt)
    names = ("trustworthiness", "coverage", "overall")
    ratings = {name: 1 + (digest >> 7 * index) % 5 for index, name in enumerate(names)}
    return json.dumps({"analysis": "It misses 2 of 3 dogs.", "scores": ratings})


def _digest(prompt: str) -> int:
    encoded = prompt.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=4).digest(), "big")


_REPLIES: dict[str, Callable[[str], str]] = {
    "{{accuracy_score}}": gveval_reply,
    "The final score is ${{score}}$": gveval_reply,
    "chatbot to answer questions": vidcapbench_reply,
    "\nYour Result:": vidcapbench_reply,
    "@@@": vcapsbench_reply,
    "F. Cannot be determined": capquiz_reply,
    "expert Video Understanding Evaluator": video_rating_reply,
    **dict.fromkeys(captioner_papers.MARKS, captioner_papers.reply),
}
"""Words of a benchmark's judge prompt, and what answers it; VDC's where none is in the prompt."""


class JudgeServer:
    """The server in a thread of its own; a context manager.

    Args:
        behaviour: How requests are treated.
        reply: Text of a reply from the last message's text.
        port: Port on 127.0.0.1, 0 for any free one.
    """

    def __init__(
        self,
        behaviour: Behaviour | None = None,
        reply: Callable[[str], str] = scripted_reply,
        port: int = 0,
    ) -> None:
        self.behaviour = behaviour or Behaviour()
        self.counts = Counts()
        self.reply = reply
        self.port = port
        self.bodies: list[dict[str, Any]] = []
        self.keep_bodies = False
        self.script: Script | None = None
        """Decides request by request, in the place of ``reply``."""
        self.more_usage: Callable[[dict[str, Any]], dict[str, object]] | None = None
        """What stands in the usage of a reply beside the two counts, from the request's payload."""
        self.models = json.dumps({"error": {"message": "no such path: /v1/models"}}), 404
        """What a request for the list of models gets, and its status."""
        self._failed: Counter[bytes] = Counter()
        self._random = random.Random(0)
        self._tokens = 0.0
        self._filled_s = 0.0
        self._queue: deque[Callable[[], bool]] = deque()
        self._n_working = 0
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._transports: set[asyncio.Transport] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        """Base URL for ``LMMS_CAPTIONS_JUDGE_URL``."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> JudgeServer:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def serve_forever(self, seconds: float) -> None:
        """Run in this thread, for so long at most."""
        self._loop.call_later(seconds, self._loop.stop)
        self._run()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        make = self._loop.create_server(lambda: _Connection(self), "127.0.0.1", self.port)
        server = self._loop.run_until_complete(make)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._end(server))
        self._loop.close()

    async def _end(self, server: asyncio.Server) -> None:
        server.close()
        # A connection that was just accepted is known only once its task is done.
        accepting = asyncio.all_tasks() - {asyncio.current_task()}
        if accepting:
            await asyncio.wait(accepting)
        for transport in list(self._transports):
            transport.abort()
        await asyncio.sleep(0)

    def handle(
        self, connection: _Connection, method: str, path: str, key: str, body: bytes
    ) -> None:
        """Answer one request, now or after the latency."""
        if path == "/stats":
            connection.send(200, json.dumps(self.counts.as_json()))
        elif path == "/control":
            self.behaviour = replace(self.behaviour, **json.loads(body))
            connection.send(200, "{}")
        elif method == "POST" and path.partition("?")[0].endswith("/chat/completions"):
            self._chat(connection, key, body)
        elif method == "GET" and path.endswith("/models"):
            text, status = self.models
            connection.send(status, text)
        else:
            status = self.behaviour.connect_status if method == "CONNECT" else 404
            connection.send(status, json.dumps({"error": {"message": f"no such path: {path}"}}))

    def _chat(self, connection: _Connection, key: str, body: bytes) -> None:
        counts, behaviour = self.counts, self.behaviour
        now_s = time.monotonic()
        counts.n_requests += 1
        counts.first_s = counts.first_s or now_s
        counts.last_s = now_s
        digest = hashlib.blake2b(body, digest_size=16).digest()
        if behaviour.key is not None and key != f"Bearer {behaviour.key}":
            message = f"Incorrect API key provided: {key}"
            connection.send(401, json.dumps({"error": {"message": message}}))
        elif behaviour.status != 200:
            message = f"{behaviour.message} {behaviour.status}"
            connection.send(behaviour.status, json.dumps({"error": {"message": message}}))
        elif (refusal := self._refusal(body)) is not None:
            connection.send(400, json.dumps({"error": {"message": refusal}}))
        elif not self._has_token(now_s):
            counts.n_rate_limited += 1
            self._send_429(connection)
        elif self._faulty(digest):
            counts.n_faults += 1
            self._fail(connection, body, self._random.choice(behaviour.faults))
        elif isinstance(played := self.script and self.script(json.loads(body)), str):
            counts.n_faults += 1
            self._fail(connection, body, played)
        elif isinstance(played, Refuse):
            counts.n_faults += 1
            error = {"message": played.message, "code": played.status}
            connection.send(played.status, json.dumps({"error": error}))
        else:
            counts.n_repeated += digest in counts.answered
            if self.keep_bodies:
                self.bodies.append(json.loads(body))
            say = Say(self.reply(last_text(json.loads(body)))) if played is None else played
            self._later(connection, lambda: self._answer(connection, body, digest, say))

    def _refusal(self, body: bytes) -> str | None:
        behaviour = self.behaviour
        if behaviour.logprobs == "refuse" and b'"logprobs":true' in body:
            return "logprobs are not supported with this model"
        if behaviour.refuses_parameters and b'"max_tokens":' in body:
            return "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
        if behaviour.refuses_parameters and b'"temperature":' in body:
            return "Unsupported value: 'temperature' does not support 0 with this model."
        if behaviour.refuses_seed and b'"seed":' in body:
            return 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'
        return None

    def _answer(self, connection: _Connection, body: bytes, digest: bytes, say: Say) -> None:
        self.counts.n_answered += 1
        self.counts.answered.add(digest)
        connection.send(200, self._completion(body, say))

    def _completion(self, body: bytes, say: Say) -> str:
        text = say.text
        choice: dict[str, Any] = {"index": 0, "message": {"role": "assistant", "content": text}}
        if self.behaviour.logprobs in ("whole", "digits") and b'"logprobs":true' in body:
            choice["logprobs"] = {"content": logprobs_of(text, self.behaviour.logprobs)}
        usage: dict[str, object] = {
            "prompt_tokens": len(body) // 4,
            "completion_tokens": len(text) // 4 + 1,
        }
        choices = [{**choice, "finish_reason": say.finish_reason, **say.of_choice}]
        named = say.model_fields(json.loads(body))
        if self.more_usage is not None:
            usage |= self.more_usage(json.loads(body))
        return json.dumps({**named, "choices": choices, "usage": usage, **say.extra})

    def _later(self, connection: _Connection, act: Callable[[], None]) -> None:
        counts, behaviour = self.counts, self.behaviour
        latency_s = behaviour.latency_s
        if behaviour.tail and self._random.random() < behaviour.tail:
            latency_s *= behaviour.tail_factor
        counts.n_in_flight += 1
        counts.most_in_flight = max(counts.most_in_flight, counts.n_in_flight)

        def done() -> None:
            counts.n_in_flight -= 1
            if connection.closed:
                counts.n_late += 1
            else:
                act()
            if behaviour.slots:
                self._n_working -= 1
                self._work()

        def begin() -> bool:
            if behaviour.slots and connection.closed:
                # As llama.cpp does: nobody waits for this one any more.
                counts.n_in_flight -= 1
                counts.n_late += 1
                return False
            self._loop.call_later(latency_s, done)
            return True

        self._queue.append(begin)
        self._work()

    def _work(self) -> None:
        """Begin with what is queued while there is a slot."""
        while self._queue and (not self.behaviour.slots or self._n_working < self.behaviour.slots):
            self._n_working += self._queue.popleft()()

    def _has_token(self, now_s: float) -> bool:
        rate = self.behaviour.rate
        if not rate:
            return True
        most = max(1.0, rate * self.behaviour.burst_s)
        self._tokens = min(most, self._tokens + (now_s - self._filled_s) * rate)
        self._filled_s = now_s
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def limit_headers(self) -> str:
        behaviour = self.behaviour
        if behaviour.limit_headers == "none" or not behaviour.rate:
            return ""
        most = max(1.0, behaviour.rate * behaviour.burst_s)
        elapsed_s = time.monotonic() - self._filled_s
        left = min(most, self._tokens + elapsed_s * behaviour.rate)
        counts = {"requests": (most, left, (most - left) / behaviour.rate)}
        headers = headers_of(behaviour.limit_headers, counts, datetime.now(timezone.utc))
        return "".join(f"{name}: {value}\r\n" for name, value in headers.items())

    def _faulty(self, digest: bytes) -> bool:
        behaviour = self.behaviour
        if not behaviour.faults or self._failed[digest] >= behaviour.max_faults:
            return False
        faulty = self._random.random() < behaviour.fault_rate
        self._failed[digest] += faulty
        return faulty

    def _fail(self, connection: _Connection, body: bytes, fault: str) -> None:
        if fault == "429":
            self._send_429(connection)
        elif fault.isdecimal():
            connection.send(int(fault), json.dumps({"error": {"message": "told to fail"}}))
        elif fault == "filter":
            told = "The prompt triggered our content filter"
            error: dict[str, object] = {"message": told, "code": "content_filter"}
            connection.send(400, json.dumps({"error": error}))
        elif fault == "flagged":
            error = {"message": "Your input was flagged for violence", "code": 403}
            connection.send(403, json.dumps({"error": error}))
        elif fault == "hang":
            self.counts.hung[identity_of(body)] += 1
        elif fault == "drop":
            connection.drop()
        elif fault == "cut":
            connection.send(200, self._completion(body, Say("cut")), cut=True)
        elif fault == "garbage":
            connection.send(200, "<html>bad gateway</html>")
        else:
            texts = {"nonsense": "I would rather talk about the weather.", "empty": ""}
            reason = "length" if fault == "length" else "stop"
            text = texts.get(fault, "{'pred': 'yes', 'sco")
            self.counts.n_answered += 1
            self._later(
                connection, lambda: connection.send(200, self._completion(body, Say(text, reason)))
            )

    def _send_429(self, connection: _Connection) -> None:
        wait_s = self.behaviour.retry_after_s
        headers = "" if wait_s is None else f"Retry-After: {wait_s:g}\r\n"
        connection.send(429, json.dumps({"error": {"message": "too many requests"}}), headers)

    def on_open(self, transport: asyncio.Transport) -> None:
        """Remember a connection, to end it with the server."""
        self._transports.add(transport)

    def on_close(self, transport: asyncio.Transport) -> None:
        """Forget a connection."""
        self._transports.discard(transport)


class _Connection(asyncio.Protocol):
    """Just enough HTTP/1.1 with keep-alive; costs a fraction of a web framework's CPU."""

    def __init__(self, server: JudgeServer) -> None:
        self._server = server
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self._is_open = False
        """Whether a request was not answered yet."""
        self.closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.on_open(transport)

    def connection_lost(self, _exc: Exception | None) -> None:
        self.closed = True
        self._end_request()
        if self._transport is not None:
            self._server.on_close(self._transport)

    def eof_received(self) -> None:
        self._end_request()

    def _begin_request(self) -> None:
        counts = self._server.counts
        self._is_open = True
        counts.n_open += 1
        counts.most_open = max(counts.most_open, counts.n_open)

    def _end_request(self) -> None:
        self._server.counts.n_open -= self._is_open
        self._is_open = False

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self._buffer[:end].decode("latin-1").split("\r\n")
            fields = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
            total = end + 4 + int(fields.get("content-length", 0))
            if len(self._buffer) < total:
                return
            body = self._buffer[end + 4 : total]
            self._buffer = self._buffer[total:]
            key = next((li[15:] for li in head if li.lower().startswith("authorization: ")), "")
            method, path, _ = head[0].split(" ", 2)
            self._begin_request()
            self._server.handle(self, method, path, key, body)

    def send(self, status: int, text: str, headers: str = "", *, cut: bool = False) -> None:
        """Send a response; ``cut`` ends the connection in the middle of it."""
        payload = text.encode()
        self._end_request()
        if self._transport is None or self.closed:
            return
        headers += self._server.limit_headers()
        head = (
            f"HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(payload)}\r\n{headers}\r\n"
        ).encode()
        self._transport.write(head + (payload[: len(payload) // 2] if cut else payload))
        if cut:
            self._transport.close()

    def drop(self) -> None:
        """End the connection without a word."""
        if self._transport is not None:
            self._transport.abort()


def logprobs_of(text: str, tokenizer: str) -> list[dict[str, Any]]:
    """Log-probabilities as OpenAI gives them: of every token 0.75, and 0.25 of the number below it.

    Args:
        text: The reply.
        tokenizer: ``whole`` for numbers of up to three digits as one token, or ``digits``.
    """
    pieces = re.findall(r"[0-9]{1,3}|[^0-9]+" if tokenizer == "whole" else r"[0-9]|[^0-9]+", text)
    content = []
    for piece in pieces:
        other = str(int(piece) - 1) if piece.isdecimal() and int(piece) else "so"
        chances = {piece: 0.75, other: 0.25}
        top = [_token(name, math.log(chance)) for name, chance in chances.items()]
        content.append({**top[0], "top_logprobs": top})
    return content


def _token(text: str, logprob: float) -> dict[str, Any]:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode("utf-8", "replace"))}


def identity_of(body: bytes) -> bytes:
    payload = json.loads(body)
    asked = json.dumps([payload["messages"], payload.get("seed")])
    return hashlib.blake2b(asked.encode(), digest_size=16).digest()


def headers_of(
    kind: str, counts: Mapping[str, tuple[float, float, float]], now: datetime
) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, (most, left, reset_s) in counts.items():
        said = {"limit": f"{int(most)}", "remaining": f"{int(left)}"}
        if kind == "openai":
            said["reset"] = _duration(reset_s)
            headers |= {f"x-ratelimit-{what}-{name}": value for what, value in said.items()}
        elif kind == "anthropic":
            moment = (now + timedelta(seconds=reset_s)).strftime("%Y-%m-%dT%H:%M:%SZ")
            said["reset"] = moment
            headers["Date"] = format_datetime(now, usegmt=True)
            headers |= {f"anthropic-ratelimit-{name}-{what}": v for what, v in said.items()}
        elif name == "requests":
            said["reset"] = f"{int(reset_s)}"
            headers |= {f"ratelimit-{what}": value for what, value in said.items()}
    return headers


def _duration(seconds: float) -> str:
    """A duration as OpenAI writes it.

    >>> _duration(0.12), _duration(1.0), _duration(360.0)
    ('120ms', '1s', '6m0s')
    """
    if seconds < 1.0:
        return f"{round(1e3 * seconds)}ms"
    minutes, rest_s = divmod(round(seconds, 3), 60.0)
    return (f"{int(minutes)}m" if minutes else "") + f"{rest_s:g}s"


def last_text(payload: dict[str, Any]) -> str:
    """Words of a request's last message."""
    content = payload["messages"][-1]["content"]
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part.get("type") == "text")


def main() -> None:
    """Serve for a bounded time."""
    parser = argparse.ArgumentParser(description="An OpenAI-compatible judge for loopback.")
    parser.add_argument("--port", type=int, default=8400)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds until a reply")
    parser.add_argument("--tail", type=float, default=0.0, help="share of replies 20 times as slow")
    parser.add_argument("--rate", type=float, default=0.0, help="requests a second, then 429")
    parser.add_argument("--faults", default="", help=f"comma-separated, of {', '.join(FAULTS)}")
    parser.add_argument("--fault-rate", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=3600.0, help="end after so long")
    arguments = parser.parse_args()
    behaviour = Behaviour(
        latency_s=arguments.latency,
        tail=arguments.tail,
        rate=arguments.rate,
        faults=tuple(name for name in arguments.faults.split(",") if name),
        fault_rate=arguments.fault_rate,
    )
    server = JudgeServer(behaviour, port=arguments.port)
    print(f"serving on {server.url}", flush=True)
    server.serve_forever(arguments.seconds)


if __name__ == "__main__":
    main()

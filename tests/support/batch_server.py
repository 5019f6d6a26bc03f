"""A stand-in of a provider's Batch API on loopback, with scripted fates and faults."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from judge_server import Say, last_text, logprobs_of, scripted_reply

if TYPE_CHECKING:
    from typing_extensions import Self

Line = Callable[[str], bytes]
Fate = Callable[[int, dict[str, Any]], tuple[int, dict[str, Any]] | str | Line | None]


class BatchServer:
    """The endpoints ``/files`` and ``/batches``; a context manager.

    A batch is answered when it is first looked at after ``n_polls`` looks, unless it is held.
    """

    def __init__(self) -> None:
        self.key: str | None = None
        self.n_polls = 1
        """Looks at a batch until it has ended."""
        self.held = False
        """Whether batches stay in progress."""
        self.ends: list[str] = []
        """Status that each batch ends with, in their order; ``completed`` where there is none."""
        self.fate: Fate = lambda _batch, _body: None
        """Of a request in a batch of that number: ``None`` is answered, a pair is an error's status
        and body, ``missing`` has no line, any other text is the code of an error, and a function
        makes the line from the request's ``custom_id``."""
        self.end: Callable[[list[dict[str, Any]]], dict[str, Any]] = lambda _: {}
        """Fields of the state that a batch ends with, from its requests' bodies."""
        self.script: Callable[[dict[str, Any]], Say] | None = None
        """What a request is answered with, in the place of ``reply``."""
        self.most_requests = 0
        """Requests of a batch above which it is refused as too much, 0 for no limit."""
        self.lose_answers: Counter[str] = Counter()
        """Path to how many of its POSTs are done without an answer."""
        self.reply: Callable[[str], str] = scripted_reply
        self.paid: Counter[str] = Counter()
        """Text of a request to how often it was answered, and billed."""
        self.sizes: list[int] = []
        """Requests of each batch that was not refused."""
        self.requests: list[str] = []
        """Method and path of all calls."""
        self.batches: dict[str, dict[str, Any]] = {}
        self.files: dict[str, bytes] = {}
        self._looks: Counter[str] = Counter()
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"owner": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        """Base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, bytes] | None:
        """Status and body of an answer, ``None`` to drop the connection."""
        with self._lock:
            self.requests.append(f"{method} {path}")
            place = path.removeprefix("/v1").partition("?")[0]
            if method == "POST" and place in ("/files", "/batches"):
                made = self._take(body) if place == "/files" else self._create(json.loads(body))
                if self.lose_answers[place]:
                    self.lose_answers[place] -= 1
                    return None
                return 200, json.dumps(made).encode()
            parts = place.strip("/").split("/")
            if parts == ["batches"]:
                page = {"data": list(reversed(self.batches.values())), "has_more": False}
                return 200, json.dumps(page).encode()
            if parts[0] == "batches" and parts[1] in self.batches:
                return 200, json.dumps(self._look(parts[1])).encode()
            if parts[0] == "files" and parts[1] in self.files:
                return 200, self.files[parts[1]]
        return 404, json.dumps({"error": {"message": f"No such object: {place}"}}).encode()

    def _take(self, form: bytes) -> dict[str, Any]:
        boundary = form.split(b"\r\n", 1)[0]
        parts = form.split(boundary)
        assert any(b'name="purpose"' in part and b"\r\n\r\nbatch\r\n" in part for part in parts)
        content = next(part for part in parts if b'name="file"' in part)
        name = f"file-{len(self.files)}"
        self.files[name] = content.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
        return {"id": name}

    def _create(self, order: dict[str, Any]) -> dict[str, Any]:
        assert order["endpoint"] == "/v1/chat/completions"
        assert order["completion_window"] == "24h"
        lines = [json.loads(line) for line in self.files[order["input_file_id"]].splitlines()]
        assert len({line["custom_id"] for line in lines}) == len(lines)
        assert all(line["url"] == "/v1/chat/completions" for line in lines)
        assert len({line["body"]["model"] for line in lines}) == 1
        name = f"batch-{len(self.batches)}"
        state = {"id": name, "status": "validating", "metadata": order["metadata"], **order}
        if self.most_requests and len(lines) > self.most_requests:
            error = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}
            state.update(status="failed", errors={"data": [error]})
        else:
            self.sizes.append(len(lines))
            state["number"] = len(self.sizes) - 1
        self.batches[name] = state
        return dict(state)

    def _look(self, name: str) -> dict[str, Any]:
        state = self.batches[name]
        self._looks[name] += 1
        if state["status"] in ("validating", "in_progress"):
            state["status"] = "in_progress"
            if not self.held and self._looks[name] > self.n_polls:
                self._end(state)
        return state

    def _end(self, state: dict[str, Any]) -> None:
        number = state["number"]
        bodies = [
            json.loads(raw)["body"] for raw in self.files[state["input_file_id"]].splitlines()
        ]
        end = {
            "status": self.ends[number] if number < len(self.ends) else "completed",
            **self.end(bodies),
        }
        status = end["status"]
        if status == "failed":
            error = {"code": "invalid_request", "message": "told to refuse"}
            state.update(status=status, errors={"data": [error]})
            return
        outputs: list[bytes] = []
        errors: list[bytes] = []
        for raw in self.files[state["input_file_id"]].splitlines():
            line = json.loads(raw)
            fate = self.fate(number, line["body"])
            head = {"id": f"r-{len(outputs) + len(errors)}", "custom_id": line["custom_id"]}
            if fate is None:
                response = {"status_code": 200, "body": self._completion(line["body"])}
                outputs.append(_line({**head, "response": response, "error": None}))
            elif callable(fate):
                outputs.append(fate(line["custom_id"]))
            elif isinstance(fate, tuple):
                response = {"status_code": fate[0], "body": fate[1]}
                errors.append(_line({**head, "response": response, "error": None}))
            elif fate != "missing":
                error = {"code": fate, "message": f"told so: {fate}"}
                errors.append(_line({**head, "response": None, "error": error}))
        for kind, lines in (("output", outputs), ("error", errors)):
            if lines:
                file = f"{state['id']}-{kind}"
                # Providers keep no order.
                self.files[file] = b"\n".join(reversed(lines)) + b"\n"
                state[f"{kind}_file_id"] = file
        state.update(end)

    def _completion(self, body: dict[str, Any]) -> dict[str, Any]:
        prompt = last_text(body)
        self.paid[f"{prompt} {body.get('seed')}"] += 1
        say = Say(self.reply(prompt)) if self.script is None else self.script(body)
        text = say.text
        usage = {
            "prompt_tokens": len(json.dumps(body, separators=(",", ":"))) // 4,
            "completion_tokens": len(text) // 4 + 1,
        }
        choice: dict[str, Any] = {"message": {"role": "assistant", "content": text}}
        if body.get("logprobs"):
            choice["logprobs"] = {"content": logprobs_of(text, "whole")}
        choices = [{**choice, "finish_reason": say.finish_reason}]
        return {**say.model_fields(body), "choices": choices, "usage": usage}


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode()


class _Handler(BaseHTTPRequestHandler):
    owner: BatchServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._handle("GET")

    def do_POST(self) -> None:
        self._handle("POST")

    def _handle(self, method: str) -> None:
        body = self._body()
        key = self.owner.key
        given = self.headers.get("Authorization", "")
        if key is not None and given != f"Bearer {key}":
            message = {"error": {"message": f"Incorrect API key provided: {given}"}}
            answer: tuple[int, bytes] | None = (401, json.dumps(message).encode())
        else:
            answer = self.owner.answer(method, self.path, body)
        if answer is None:
            self.close_connection = True
            self.connection.close()
            return
        self.send_response(answer[0])
        self.send_header("Content-Length", str(len(answer[1])))
        self.end_headers()
        self.wfile.write(answer[1])

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "") == "chunked":
            chunks = []
            while size := int(self.rfile.readline(), 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(chunks)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by the library
        pass

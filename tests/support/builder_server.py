"""A scripted server for ``build``: writer, solver, viewer and judge, with planted faults.

It speaks OpenAI's API, tells clips apart by their pictures, and writes questions about objects in
them, which it answers as planted (``planted_questions.py``): so many can be answered without the
clip, so many are wrong, unstable, duplicates, or of a wrong form. Chosen requests get a malformed
reply, an error, or none.
Run it as a program, or start a :class:`BuilderServer` in a thread.

    python tests/support/builder_server.py --port 8500 --latency 0.2 --blind 0.2
    curl http://127.0.0.1:8500/stats
"""

from __future__ import annotations

import argparse
import hashlib
import json
import threading
import time
from ast import literal_eval
from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from builder_replies import Asked, Told, asked_of, reply_to
from judge_server import Behaviour, JudgeServer, Refuse, Say
from planted_questions import Shares

if TYPE_CHECKING:
    from typing_extensions import Self

Form = Literal[
    "no JSON", "wrong keys", "six options", "2,000 questions", "loop", "empty", "400", "500", "hang"
]
FORMS: Final[tuple[Form, ...]] = get_args(Form)
Spoil = Callable[[Asked, int], "Form | None"]


def spoil_nothing(_asked: Asked, _number: int) -> Form | None:
    """Leave every reply as it is."""
    return None


class Builder:
    """The script of a server, and a count of what it was asked.

    Args:
        told: What is planted.
        spoil: Which replies are spoilt.
    """

    def __init__(self, told: Told | None = None, spoil: Spoil = spoil_nothing) -> None:
        self.told = told or Told()
        self.spoil = spoil
        self.hang_from: tuple[str, int] | None = None
        """Step, and the number of its requests behind which nothing is answered any more."""
        self.hung = threading.Event()
        """Set once a request hangs."""
        self.n_structured = 0
        """Requests for a reply of a schema."""
        self.steps: Counter[str] = Counter()
        """Requests by step, those that are asked again too."""
        self._numbers: dict[tuple[str, str], dict[bytes, int]] = {}

    def __call__(self, payload: dict[str, Any]) -> Say | Refuse | str:
        """See :data:`.judge_server.Script`."""
        asked = asked_of(payload)
        self.steps[asked.step] += 1
        if self.hung.is_set() or self._is_over(asked.step):
            self.hung.set()
            return "hang"
        numbers = self._numbers.setdefault((asked.step, asked.model), {})
        form = self.spoil(asked, numbers.setdefault(asked.identity, len(numbers)))
        if form in ("hang", "500"):
            return form
        if form == "400":
            return Refuse(400, "told to refuse")
        text = reply_to(asked, self.told)
        if "response_format" in payload:
            self.n_structured += 1
            text = json.dumps({"items": _items(text)})
        return Say(text) if form is None else spoilt(text, form)

    def _is_over(self, step: str) -> bool:
        return self.hang_from is not None and (
            step == self.hang_from[0] and self.steps[step] > self.hang_from[1]
        )

    def answer_again(self) -> None:
        """Hang no more, and count anew."""
        self.hang_from = None
        self.hung.clear()
        self.steps.clear()


def spoilt(text: str, form: Form) -> Say:
    """A reply of a form that nobody asked for.

    Args:
        text: What would be said.
        form: What is said instead.
    """
    items = _items(text)
    match form:
        case "wrong keys":
            return Say(json.dumps([{"frage": "Was?", "antwort": "Das."} for _ in items]))
        case "six options":
            six = [{**item, "options": [*item.get("options", []), "a sixth"]} for item in items]
            return Say(json.dumps(six))
        case "2,000 questions":
            many = [items[place % len(items)] for place in range(2000)]
            numbered = [
                {**item, "question": f"{item.get('question')} ({place})"}
                for place, item in enumerate(many)
            ]
            return Say(json.dumps(numbered))
        case "loop":
            return Say(json.dumps([items[0]] * 300)[:-20], "length")
        case "empty":
            return Say("")
        case _:
            return Say("I am sorry, I cannot see a video here.")


def _items(text: str) -> list[dict[str, Any]]:
    """The objects of a reply that is a list of them, or one that is none."""
    try:
        items = literal_eval(text)
    except (ValueError, SyntaxError):
        items = None
    if isinstance(items, list) and items and isinstance(items[0], tuple):
        items = [{"question": question, "answer": answer} for question, answer in items]
    is_list = isinstance(items, list) and items and isinstance(items[0], dict)
    return items if is_list else [{"question": "What is this?", "answer": text}]


class BuilderServer(JudgeServer):
    """The server in a thread of its own; a context manager.

    Args:
        builder: What is said.
        behaviour: How requests are treated.
        port: Port on 127.0.0.1, 0 for any free one.
    """

    def __init__(
        self, builder: Builder | None = None, behaviour: Behaviour | None = None, port: int = 0
    ) -> None:
        super().__init__(behaviour, port=port)
        self.builder = builder or Builder()
        self.script = self.builder
        self.answered_s: dict[bytes, float] = {}
        """When each body's first reply was sent, in seconds of the monotonic clock."""
        self.repeated: Counter[bytes] = Counter()
        """Requests for a body whose reply had been sent before."""

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def n_repeated(self, *, before_s: float = inf) -> int:
        """Requests that were sent again although their reply had been sent before a moment."""
        return sum(n for body, n in self.repeated.items() if self.answered_s[body] < before_s)

    def handle(self, connection: Any, method: str, path: str, key: str, body: bytes) -> None:
        """Answer one request; ``/steps`` gets the number of requests by step."""
        if path == "/steps":
            connection.send(200, json.dumps(self.builder.steps))
            return
        digest = hashlib.blake2b(body, digest_size=16).digest()
        if digest in self.answered_s:
            self.repeated[digest] += 1
        super().handle(connection, method, path, key, body)

    def _answer(self, connection: Any, body: bytes, digest: bytes, say: Say) -> None:
        self.answered_s.setdefault(digest, time.monotonic())
        super()._answer(connection, body, digest, say)


def main() -> None:
    """Serve for a bounded time."""
    parser = argparse.ArgumentParser(description="A scripted writer, solver, viewer and judge.")
    parser.add_argument("--port", type=int, default=8500)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds until a reply")
    parser.add_argument("--rate", type=float, default=0.0, help="requests a second, then 429")
    parser.add_argument("--slots", type=int, default=0, help="requests that are worked on at once")
    parser.add_argument("--seconds", type=float, default=3600.0, help="end after so long")
    parser.add_argument("--questions", type=int, default=20, help="of a writer's reply")
    parser.add_argument("--seed", type=int, default=0, help="of what is planted")
    shares = Shares()
    for each in fields(Shares):
        name = each.name.replace("_", "-")
        parser.add_argument(f"--{name}", type=float, default=getattr(shares, each.name))
    options = parser.parse_args()
    planted = {each.name: getattr(options, each.name) for each in fields(Shares)}
    told = Told(Shares(**planted), seed=options.seed, n_questions=options.questions)
    behaviour = Behaviour(latency_s=options.latency, rate=options.rate, slots=options.slots)
    server = BuilderServer(Builder(told), behaviour, port=options.port)
    print(f"serving on {server.url}", flush=True)
    server.serve_forever(options.seconds)


if __name__ == "__main__":
    main()

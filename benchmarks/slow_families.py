r"""Inputs that look for slowness: families of texts, each of them growing.

A family is a beginning, a unit again and again, and an end, made from the signs of a reader's own
grammar. It is read at 1 kB, 10 kB and 100 kB, and just above the length that readers take. Then it
checks that no read takes more than 50 ms of processor time per 100 kB, that twice the length does
not take more than three times as long, and that nothing is raised. Every pattern of ours that
meets a server's words, a caption, or a line of a file is a reader here.

    python benchmarks/replies.py --slow 15000 --seed 0
"""

from __future__ import annotations

import io
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from math import inf, nan
from typing import Final

from hard_replies import READERS
from lmms_eval_captions.judges.endpoint.answers.logprobs import number_tokens
from lmms_eval_captions.judges.endpoint.answers.reasoning import strip_reasoning
from lmms_eval_captions.judges.endpoint.answers.refusals import refused_parameter
from lmms_eval_captions.judges.endpoint.batch.results import read_results
from lmms_eval_captions.judges.endpoint.dialects.openai import OPENAI
from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.endpoint.store.line import read_line
from lmms_eval_captions.judges.endpoint.store.slug import slug
from lmms_eval_captions.judges.endpoint.urls import redact_url
from lmms_eval_captions.judges.errors import JudgeError
from lmms_eval_captions.judges.protocols.lexical import best_sentence, recall
from lmms_eval_captions.judges.protocols.number_distribution import number_distribution
from lmms_eval_captions.judges.protocols.prompt_folder import Prompts
from lmms_eval_captions.judges.protocols.reading import MOST_CHARACTERS
from lmms_eval_captions.lmms_eval_tasks.signature import Signature
from lmms_eval_captions.model_wrappers.no_caption import says_nothing
from time_limit import TooSlowError, time_limit

MOST_MS: Final = 50.0
"""Processor time of one read, per 100 kB."""
MOST_GROWTH: Final = 3.0
"""Times as long that twice the length may take; 2 is linear, 4 the square."""
GIVE_UP_S: Final = 2.0
_LENGTHS: Final = (1_000, 10_000, MOST_CHARACTERS - 1, MOST_CHARACTERS + 1, 100_000)
_TIMED_LENGTH: Final = 10_000
"""Characters; a shorter text may take as long as one of this length."""
_GROWTH_FROM_MS: Final = 4.0
"""What takes less at full length is not looked at for its growth: clocks are too coarse."""
_BEST_OF: Final = 4
"""Times that a read which looks slow is timed: the machine may have been busy."""
_SHOWN: Final = 5

_BLANKS: Final = (" ", "\n", "\t", "\r\n", "\u00a0", "\u3000", "\u200b", "\x0b", "\x1f", "\u2028")
_SIGNS: Final = (
    *("{", "}", "[", "]", "(", ")", "<", ">", "'", '"', "`", "```", "\\", "\\\\", "\\'", '\\"'),
    *("$", "\\$", "$$", "\\[", "\\]", "\\(", "\\boxed{", "\\text{", "@", "@@", "@@@", "*", "**"),
    *("_", "#", "//", "|", ":", "=", "==", ",", ".", "..", "-", "--", "\u2212", "/", "%", "->"),
    *("?", "!", ";", "~", "^", "&", "+", "\u00b1", "\u00d7", "\u2192", "\u2260", "\x00", "\ud800"),
)
_DIGITS: Final = ("0", "1", "59", "1.", ".5", "-1", "+1", "1,", "1e", "1e999", "9" * 40, "\uff11")
_WORDS: Final = (
    *("score", "Score: ", "score is ", "final score", "The final score is $", "out of ", "/100"),
    *("pred", "'pred': ", "'score': ", '"score": 1, ', "yes", "no", "Yes@@@", "unanswerable"),
    *("Answer: ", "The answer is ", "answer", "option ", "A", "B. ", "(C) ", "a", "F", "is "),
    *("not ", "n't ", "if ", "or ", "either yes or no ", "wait ", "example ", "for ", "but "),
    *("and ", "Accuracy", "α", "β", "ψ", "δ", "The Accuracy score is α", "{{accuracy_score}}"),
    *("more than ", "<think>", "</think>", "<seed:think>", "<thinking", "[THINK]", "[/THINK]"),
    *("\u25c1think\u25b7", "<|channel|>analysis", "<|channel|>final<|message|>", "<|end|>", "<|"),
    *("<reasoning>", "unknown ", "parameter ", "'seed'", "seed ", "not supported", "logprobs"),
    *("max_tokens", "Unrecognized request argument supplied: ", "does not support ", "'msg': '"),
    *("temperature", "https://", "user:pass@", "?key=", "é", "e\u0301", "\u0130", "\u017f", "😀"),
    *("ﬀ", "中", "。", "|unscored:1/", "|clips:unavailable", "|", "_samples_", ".jsonl", "a.b"),
    *("word ", "x"),
)
TOKENS: Final = (*_BLANKS, *_SIGNS, *_DIGITS, *_WORDS)
_HEADS: Final = (
    *("", "", "", "{", "[", '{"score": ', "{'pred': 'yes', 'score': 4, 'reason': '", "Yes@@@", "$"),
    *("The final score is $", "The Accuracy score is α", "Answer: ", "A. ", "<think>", "score"),
    *("```json\n", '"', "'", "unknown parameter", "B", "1", "yes", "Score:", "\\boxed{"),
)
_TAILS: Final = (
    *("", "", "", "!", "\n", " ", "}", "]", "$", "@@@", "yes", " 4", "B", "</think>", "'", '"'),
    *("The final score is $80$.", "{'pred': 'yes', 'score': 4}", "\\", "x", "score 2", "seed"),
)


@dataclass(frozen=True, slots=True)
class Family:
    """Texts of any length."""

    head: str
    unit: str
    tail: str

    def text(self, length: int) -> str:
        """The text of so many characters, or a few more where head and tail need them."""
        middle = max(0, length - len(self.head) - len(self.tail))
        repeated = self.unit * (middle // len(self.unit) + 1)
        return self.head + repeated[:middle] + self.tail

    @classmethod
    def draw(cls, rng: random.Random, index: int) -> Family:
        """A family whose unit begins with the token of that number."""
        parts = [TOKENS[index % len(TOKENS)]]
        while rng.random() < 0.5 and len(parts) < 4:
            parts.append(rng.choice(TOKENS))
        return cls(rng.choice(_HEADS), "".join(parts), rng.choice(_TAILS))


def _quietly(read: Callable[[str], object]) -> Callable[[str], object]:
    """A reader whose own errors are an answer."""

    def act(text: str) -> None:
        try:
            read(text)
        except JudgeError:
            return

    return act


def _completion(text: str) -> bytes:
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    return json.dumps({"choices": [choice]}).encode()


def _fail(text: str) -> object:
    raw = text.encode("utf-8", "replace")
    return OPENAI.failure(
        400, raw, "http://127.0.0.1/v1", headers={"Retry-After": text}, api_key="sk"
    )


def _distribute(text: str) -> object:
    """Tokens of a text as a server lists them, and the distributions of its first numbers.

    A token takes more than forty times its letters in an answer, so a tenth of the text is much.
    """
    text = text[: len(text) // 10]
    pieces = [text[start : start + 4] for start in range(0, len(text), 4)]
    listed = [
        {"token": piece, "logprob": -0.1, "top_logprobs": [{"token": piece, "logprob": -0.1}]}
        for piece in pieces
    ]
    tokens = number_tokens({"content": listed}, text) or ()
    for number in islice(re.finditer("[0-9]+", text), 4):
        number_distribution(tokens, number[0], number.start(), lowest=0, highest=100)
    return tokens


def _ask(caption: str) -> object:
    """A caption on its way to the judge."""
    messages = Prompts().load("vdc_answer").render(caption=caption, question="What is it?")
    request = Request("vdc:1", "judge", messages, {}, 0, 1.0, lambda: "")
    return says_nothing(caption), request.key(request.body(0))


def _store_lines(text: str) -> object:
    return read_line(text.encode("utf-8", "replace") + b"\n")


def _read_with(reader: Callable[[Reply], object], reason: str | None) -> Callable[[str], object]:
    return lambda text: reader(Reply(text, reason))


def _signature(text: str) -> object:
    """What ``check`` reads of a signature, and what a group makes of it."""
    signature = Signature.parse(text)
    return signature.unavailable, signature.unscored, str(Signature.merge([signature], [1]))


SUBJECTS: Final[dict[str, Callable[[str], object]]] = {
    **{name: _read_with(reader, "stop") for name, reader in READERS.items()},
    **{f"{name} cut": _read_with(reader, None) for name, reader in READERS.items()},
    "reasoning": strip_reasoning,
    "log-probabilities": _distribute,
    "refusals": refused_parameter,
    "server's words": _fail,
    "completion": _quietly(
        lambda text: OPENAI.read_reply(text.encode("utf-8", "replace"), "http://127.0.0.1", "sk")
    ),
    "reply of a completion": lambda text: OPENAI.read_reply(
        _completion(text), "http://127.0.0.1", "sk"
    ),
    "lines of a batch": lambda text: read_results(
        [io.BytesIO(text.encode("utf-8", "replace"))], "http://127.0.0.1", "sk"
    ),
    "stored reply": lambda text: Reply.from_json(Reply(text).to_json()),
    "lines of a store": _store_lines,
    "caption": _ask,
    "lexical stand-in": lambda text: (best_sentence(text, "What is it?"), recall("a dog", text)),
    "model's name": slug,
    "url": redact_url,
    "signature": _signature,
}
"""What reads a text that somebody else wrote."""


@dataclass
class Pace:
    """What was measured of one subject."""

    n_families: int = 0
    slowest_ms: float = 0.0
    """Per 100 kB, over texts of 10,000 characters and more."""
    growth: float = nan
    """Largest factor from 50 kB to 100 kB."""
    failures: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def fail(self, check_name: str, family: Family, what: str) -> None:
        """Count a failure and keep the first ones."""
        self.failures[check_name] += 1
        if self.failures[check_name] <= _SHOWN:
            self.examples.append(f"{check_name}: {family!r}: {what}")


def _time_ms(read: Callable[[str], object], text: str) -> float:
    """Processor time of one read by this thread."""
    start_s = time.thread_time()
    try:
        with time_limit(GIVE_UP_S):
            read(text)
    except TooSlowError:
        return inf
    return (time.thread_time() - start_s) * 1000


def _best_ms(read: Callable[[str], object], text: str, most_ms: float) -> float:
    """The best of some times, or the first that is short enough."""
    best_ms = inf
    for _ in range(_BEST_OF):
        best_ms = min(best_ms, _time_ms(read, text))
        if best_ms <= most_ms or best_ms == inf:
            break
    return best_ms


def look_at(read: Callable[[str], object], family: Family, pace: Pace) -> None:
    """Read one family at all its lengths."""
    pace.n_families += 1
    for length in _LENGTHS:
        text = family.text(length)
        per_100_kb = 100_000 / max(len(text), _TIMED_LENGTH)
        try:
            best_ms = _best_ms(read, text, MOST_MS / per_100_kb) * per_100_kb
        except Exception as error:  # noqa: BLE001 - whatever a reader raises is looked for
            pace.fail("raised", family, f"{len(text):,} characters: {error!r:.200}")
            return
        if len(text) >= _TIMED_LENGTH:
            pace.slowest_ms = max(pace.slowest_ms, best_ms)
        if best_ms > MOST_MS:
            what = f"{len(text):,} characters: {best_ms:.0f} ms per 100 kB"
            pace.fail("slow", family, what)
            return
    _look_at_growth(read, family, pace)


def _look_at_growth(read: Callable[[str], object], family: Family, pace: Pace) -> None:
    # Readers that take no more than so much are compared within that.
    for length in (MOST_CHARACTERS - 1, 100_000):
        whole, half = family.text(length), family.text(length // 2)
        whole_ms = _time_ms(read, whole)
        if whole_ms < _GROWTH_FROM_MS:
            continue
        growth = inf
        for _ in range(_BEST_OF):
            growth = min(growth, whole_ms / max(1e-6, _time_ms(read, half)))
            if growth <= MOST_GROWTH:
                break
            whole_ms = min(whole_ms, _time_ms(read, whole))
        pace.growth = growth if pace.growth != pace.growth else max(pace.growth, growth)
        if growth > MOST_GROWTH:
            pace.fail("grows", family, f"{growth:.1f} times from {length // 2:,} to {length:,}")


def run_families(count: int, seed: int) -> dict[str, Pace]:
    """So many families over all subjects in turn; the same ones for the same seed."""
    rngs = {name: random.Random(f"{seed} {name}") for name in SUBJECTS}
    paces = {name: Pace() for name in SUBJECTS}
    names = tuple(SUBJECTS)
    for index in range(count):
        name = names[index % len(names)]
        family = Family.draw(rngs[name], index // len(names))
        look_at(SUBJECTS[name], family, paces[name])
    return paces


def report_families(paces: dict[str, Pace]) -> bool:
    """Print a table and the first failures; whether every check held."""
    print(f"{'reader':24}{'families':>9}{'ms per 100 kB':>15}{'growth':>8}{'failures':>10}")
    for name, pace in paces.items():
        row = f"{name:24}{pace.n_families:>9,}{pace.slowest_ms:>15.1f}{pace.growth:>8.1f}"
        print(f"{row}{pace.failures.total():>10,}")
    for name, pace in paces.items():
        for example in pace.examples:
            print(f"{name}: {example}")
    return not any(pace.failures for pace in paces.values())

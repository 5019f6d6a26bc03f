"""How much of VDC's prompts replicas find in their prefix caches, before and after, simulated.

The real engine asks VDC's real questions about made captions of 60 to 200 words, on a simulated
clock: its loop, its slots, its order and its choice of a replica are those of a run, and what is
replaced is the wire alone. Behind it stand servers as vLLM is one: they take up what waits in steps
of so many tokens, compute what their cache does not hold, 16 tokens a block, and reply after a
while; a block can be found from the end of the step that computed it, until it is the one that was
longest unused of a cache that is full.

    python benchmarks/prefix_caches.py [--tokenizer tokenizer.json] [--cache-tokens 48000]

``before``: each request to the replica that is least busy, no question ahead of the others.
``after``: all about one caption to one replica while its load allows, the first question ahead
where that pays. ``after, untold``: the same where the servers do not say what they found, as vLLM
does without ``--enable-prompt-tokens-details``, so that no question goes ahead. What could be
shared is what one cache without an end would find.

Exits with 1 where ``after`` the last number of replicas share less than 85% of that, or one of them
has more than 1.1 times the mean of the requests. The questions are read below
``LMMS_CAPTIONS_DATA``, as ``judging.py`` reads them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import selectors
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, Protocol
from unittest.mock import patch

from judge_server import vdc_reply
from judging import Captioned, made_captions
from lmms_eval_captions.judges.endpoint.config import EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.http.client import ChatClient
from lmms_eval_captions.judges.protocols.judge_config import JudgeConfig
from lmms_eval_captions.judges.protocols.vdc import judge_question
from lmms_eval_captions.lmms_eval_tasks.judged import caption_digest

BLOCK_TOKENS: Final = 16
CHARS_PER_TOKEN: Final = 4
"""Of a token where no tokenizer is given."""
STEP_TOKENS: Final = 8192
"""Most tokens that a server computes in one step, as vLLM has it by default."""
STEP_S: Final = 0.02
"""Seconds of a step, beside those of its tokens."""
TOKENS_PER_S: Final = 10_000
"""Prompt tokens that a server computes in a second."""
REPLY_S: Final = 0.3
"""Seconds from the end of a prompt's step to the end of its reply."""
LEAST_SHARED: Final = 0.85
MOST_BUSY: Final = 1.1
FEWEST_WORDS, MOST_WORDS = 60, 200
_JUDGE: Final = JudgeConfig(model="benchmark")

Blocks = tuple[int, ...]
"""What tells each block of a prompt, with all before it, from others."""
Tokens = Callable[[str], Sequence[object]]


class Prompts:
    """Blocks of the prompts that were asked.

    Args:
        tokens: The tokens of a text.
    """

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._numbers: dict[tuple[int, tuple[object, ...]], int] = {}

    def blocks(self, body: Mapping[str, Any]) -> tuple[Blocks, int]:
        """The whole blocks of a request's prompt, and its number of tokens."""
        text = "\n".join(f"{m['role']}\n{m['content']}" for m in body["messages"])
        tokens = self._tokens(text)
        blocks, before = [], 0
        for end in range(BLOCK_TOKENS, len(tokens) + 1, BLOCK_TOKENS):
            block = (before, tuple(tokens[end - BLOCK_TOKENS : end]))
            before = self._numbers.setdefault(block, len(self._numbers) + 1)
            blocks.append(before)
        return tuple(blocks), len(tokens)


class BlockCache:
    """The blocks of a server; the one that is longest unused gives way.

    Args:
        n_blocks: How many it holds.
    """

    def __init__(self, n_blocks: int) -> None:
        self._n_blocks = n_blocks
        self._blocks: OrderedDict[int, None] = OrderedDict()

    def n_found(self, blocks: Blocks) -> int:
        """Blocks of a prompt's beginning that are there."""
        n = next((n for n, block in enumerate(blocks) if block not in self._blocks), len(blocks))
        # The end of a prompt before its beginning, which is worth more.
        for block in reversed(blocks[:n]):
            self._blocks.move_to_end(block)
        return n

    def add(self, blocks: Blocks) -> None:
        """Keep the blocks of a prompt that was computed."""
        for block in reversed(blocks):
            self._blocks[block] = None
            self._blocks.move_to_end(block)
        while len(self._blocks) > self._n_blocks:
            self._blocks.popitem(last=False)


@dataclass
class Server:
    """One replica: computes prompts in steps, and replies."""

    cache: BlockCache
    prompts: Prompts
    tells: bool = True
    """Whether its replies say what was found in the cache."""
    steps: list[list[Blocks]] = field(default_factory=list)
    """The prompts of each step, as they came."""
    _waiting: list[tuple[Blocks, int, asyncio.Future[int]]] = field(default_factory=list)
    _is_working: bool = False

    async def answer(self, body: Mapping[str, Any]) -> dict[str, object]:
        """A chat completion."""
        blocks, n_tokens = self.prompts.blocks(body)
        computed = asyncio.get_running_loop().create_future()
        self._waiting.append((blocks, n_tokens, computed))
        if not self._is_working:
            self._is_working = True
            asyncio.get_running_loop().call_soon(self._step)
        n_cached = await computed
        await asyncio.sleep(REPLY_S)
        message = {"role": "assistant", "content": vdc_reply(body["messages"][-1]["content"])}
        return {
            "model": body["model"],
            "choices": [{"message": message, "finish_reason": "stop"}],
            "usage": {
                "prompt_tokens": n_tokens,
                "completion_tokens": 8,
                "prompt_tokens_details": {"cached_tokens": BLOCK_TOKENS * n_cached}
                if self.tells
                else None,
            },
        }

    def _step(self) -> None:
        taken, n_computed = [], 0
        while self._waiting and n_computed < STEP_TOKENS:
            blocks, n_tokens, computed = self._waiting.pop(0)
            n_cached = self.cache.n_found(blocks)
            n_computed += n_tokens - BLOCK_TOKENS * n_cached
            taken.append((blocks, n_cached, computed))
        self.steps.append([blocks for blocks, *_ in taken])
        seconds = STEP_S + n_computed / TOKENS_PER_S
        asyncio.get_running_loop().call_later(seconds, self._end_step, taken)

    def _end_step(self, taken: Sequence[tuple[Blocks, int, asyncio.Future[int]]]) -> None:
        for blocks, n_cached, computed in taken:
            self.cache.add(blocks)
            computed.set_result(n_cached)
        self._is_working = bool(self._waiting)
        if self._waiting:
            self._step()


@dataclass(frozen=True)
class Run:
    """What came of one way of asking."""

    name: str
    n_replicas: int
    steps: Sequence[Sequence[Sequence[Blocks]]]
    """Of each replica, the prompts of each of its steps."""
    seconds: float
    """Of the simulated clock."""
    head_start: str

    @property
    def prompts(self) -> list[Blocks]:
        """All that were asked."""
        return [blocks for replica in self.steps for step in replica for blocks in step]

    @property
    def busiest(self) -> float:
        """Requests of the busiest replica, as a multiple of the mean."""
        loads = [sum(map(len, replica)) for replica in self.steps]
        return max(loads) * len(loads) / sum(loads)

    def shared(self, n_blocks: int, n_constant: int = 0) -> tuple[float, float]:
        """What is found in caches of a size, as a share of what one without an end would find.

        Args:
            n_blocks: That each replica's cache holds.
            n_constant: Blocks at the beginning of prompts that are not the captions'.

        Returns:
            Of all blocks, and of those behind the constant ones.
        """
        n_found = n_own = 0
        for replica in self.steps:
            cached = BlockCache(n_blocks)
            for step in replica:
                found = list(map(cached.n_found, step))
                n_found += sum(found)
                n_own += sum(max(0, n - n_constant) for n in found)
                for blocks in step:
                    cached.add(blocks)
        return n_found / self._most(0), n_own / self._most(n_constant)

    def _most(self, n_constant: int) -> int:
        """Blocks that one cache without an end would find."""
        prompts = [blocks[n_constant:] for blocks in self.prompts]
        return sum(map(len, prompts)) - len({block for blocks in prompts for block in blocks})


def main(argv: Sequence[str] | None = None) -> int:
    """Simulate, and print a table; 1 where too little is shared, else 0."""
    arguments = _arguments(argv)
    captions = _captions(arguments.questions)
    tokens = _tokens_of(arguments.tokenizer)
    n_questions = sum(len(questions) for _, questions in captions)
    print(
        f"{n_questions:,} questions of {len(captions):,} captions, {arguments.concurrency} in "
        f"flight, caches of {arguments.cache_tokens:,} tokens, tokens of "
        f"{arguments.tokenizer or f'{CHARS_PER_TOKEN} characters'}\n\n"
        "| replicas | | shared of what could be | of the captions alone | with a cache of "
        f"{' and '.join(f'{n:,}' for n in arguments.other_tokens)} | busiest / mean | calls/s "
        "(simulated) | first question ahead |\n|---|---|---|---|---|---|---|---|",
        flush=True,
    )
    runs = []
    for n_replicas in arguments.replicas:
        # One replica that tells nothing is asked as before.
        for name in ("before", *(["after, untold"] if n_replicas > 1 else []), "after"):
            run = _simulated(name, n_replicas, captions, tokens, arguments)
            print(_row(run, arguments), flush=True)
            runs.append(run)
    return _verdict(runs, arguments)


def _verdict(runs: Sequence[Run], arguments: argparse.Namespace) -> int:
    last = runs[-1]
    shared, _ = last.shared(arguments.cache_tokens // BLOCK_TOKENS)
    is_good = shared >= LEAST_SHARED and last.busiest <= MOST_BUSY
    print(
        f"\n{last.n_replicas} replicas after: {shared:.1%} of what could be shared is (at least "
        f"{LEAST_SHARED:.0%} is asked for), the busiest has {last.busiest:.3f} times the mean (at "
        f"most {MOST_BUSY}): {'as it should be' if is_good else 'NOT as it should be'}"
    )
    return 0 if is_good else 1


def _row(run: Run, arguments: argparse.Namespace) -> str:
    prompts = run.prompts
    # What the prompts of one step all begin with; those of the other begin otherwise.
    n_constant = max(
        _n_common([p for p in prompts if p[0] == first]) for first in {p[0] for p in prompts}
    )
    n_blocks = arguments.cache_tokens // BLOCK_TOKENS
    others = ", ".join(f"{run.shared(n // BLOCK_TOKENS)[0]:.1%}" for n in arguments.other_tokens)
    shared, own = run.shared(n_blocks, n_constant)
    return (
        f"| {run.n_replicas} | {run.name} | {shared:.1%} | {own:.1%} | {others} "
        f"| {run.busiest:.3f} | {len(prompts) / run.seconds:,.0f} | {run.head_start} |"
    )


def _n_common(prompts: Sequence[Blocks]) -> int:
    first = prompts[0]
    return next((n for n, b in enumerate(first) if any(p[n : n + 1] != (b,) for p in prompts)), 0)


def _simulated(
    name: str,
    n_replicas: int,
    captions: Sequence[Captioned],
    tokens: Tokens,
    arguments: argparse.Namespace,
) -> Run:
    prompts = Prompts(tokens)
    n_blocks = arguments.cache_tokens // BLOCK_TOKENS
    tells = name != "after, untold"
    servers = [Server(BlockCache(n_blocks), prompts, tells) for _ in range(n_replicas)]
    urls = tuple(f"http://replica-{number}:8000/v1" for number in range(n_replicas))
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder, clock.instead(), _wired_to(servers):
        config = EngineConfig(urls=urls, store=Path(folder), concurrency=arguments.concurrency)
        with Engine(config) as engine:
            futures = [
                engine.submit(
                    [
                        partial(judge_question, question=q, caption=caption, config=_JUDGE, run=0)
                        for q in questions
                    ],
                    about=None if name == "before" else caption_digest(caption),
                )
                for caption, questions in captions
            ]
            clock.go()
            unscored = [j.reason for future in futures for j in future.result() if j.reason]
            seconds = engine.meter.seconds
            state, why = engine.head_start
    if unscored:
        raise RuntimeError(f"{len(unscored)} questions are unscored: {unscored[0]}")
    told = "no" if name == "before" else f"{state}: {why}"
    return Run(name, n_replicas, [server.steps for server in servers], seconds, told)


class Clock:
    """A clock that stands until it is let go, and then leaps from one event to the next."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self._goes = threading.Event()

    def go(self) -> None:
        """Begin."""
        self._goes.set()

    @contextmanager
    def instead(self) -> Iterator[None]:
        """A context in which engines go by this clock."""
        with (
            patch("asyncio.new_event_loop", partial(_Loop, self)),
            patch("time.monotonic", lambda: self.now_s),
        ):
            yield

    def pass_by(self, seconds: float | None) -> None:
        """Let time pass, or wait for a moment where there is nothing to wait for."""
        if self._goes.is_set() and seconds:
            self.now_s += seconds
        elif seconds is None or seconds > 0:
            time.sleep(0.001)


class _Selector(selectors.DefaultSelector):
    """Waits for nothing but the simulated clock."""

    clock: Clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if not events:
            self.clock.pass_by(timeout)
        return events


class _Loop(asyncio.SelectorEventLoop):
    """An event loop that goes by a simulated clock."""

    def __init__(self, clock: Clock) -> None:
        selector = _Selector()
        selector.clock = clock
        self._simulated = clock
        super().__init__(selector)

    def time(self) -> float:
        return self._simulated.now_s


class _Replica(Protocol):
    index: int


@contextmanager
def _wired_to(servers: Sequence[Server]) -> Iterator[None]:
    """A context in which clients reach simulated servers in the place of a network's."""

    async def once(
        _client: ChatClient, replica: _Replica, body: bytes, _timeout_s: float
    ) -> tuple[int, Mapping[str, str], bytes]:
        completion = await servers[replica.index].answer(json.loads(body))
        return 200, {}, json.dumps(completion).encode()

    with patch.object(ChatClient, "_once", once):
        yield


def _captions(n_questions: int) -> list[Captioned]:
    """Captions of the gold answers, of drawn lengths, and the real questions about them."""
    lengths = random.Random(0)
    captions = []
    for caption, questions in made_captions(n_questions):
        words = caption.split()
        n_words = lengths.randint(FEWEST_WORDS, MOST_WORDS)
        captions.append((" ".join((words * (1 + n_words // len(words)))[:n_words]), questions))
    return captions


def _tokens_of(path: Path | None) -> Tokens:
    """The tokens of a text, by a tokenizer whose tokens do not go beyond words, or by letters."""
    if path is None:
        return lambda text: [text[i : i + CHARS_PER_TOKEN] for i in range(0, len(text), 4)]
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))

    @cache
    def of_word(word: str) -> tuple[int, ...]:
        return tuple(tokenizer.encode(word, add_special_tokens=False).ids)

    return lambda text: [token for word in re.findall(r"\S+", text) for token in of_word(word)]


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=20_000, help="the first so many")
    parser.add_argument("--concurrency", type=int, default=64, help="requests in flight")
    parser.add_argument("--cache-tokens", type=int, default=48_000, help="of each replica")
    parser.add_argument("--other-tokens", type=int, nargs="*", default=[12_000, 192_000])
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--tokenizer", type=Path, help="tokenizer.json, such as T5's")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())

"""How much of its prompts a server finds in its prefix cache, by the order of the questions.

VDC's questions about made captions are asked of a vLLM server that is running, in three orders: as
this engine asks (the questions of a caption next to each other, the next caption's behind them),
one caption at a time, and shuffled. Each order has captions of its own, so that none finds what
another has left; the rounds take turns. Each request is asked once, readable or not.

    vllm serve MODEL --enable-prefix-caching --generation-config vllm --max-model-len 4096
    python benchmarks/prefixes.py server --model MODEL --url http://127.0.0.1:8000/v1

``--order constant-first`` asks with VDC's prompts in our order of the papers' words
(``LMMS_CAPTIONS_PROMPT_ORDER``).

A cache that holds all captions of a round is as good in every order. In a whole benchmark it does
not: take more captions than it holds, or give the server a smaller one with
``--num-gpu-blocks-override``. Shares, and ratios within one run, are what the table is for.

The questions are read below ``LMMS_CAPTIONS_DATA``, as ``benchmarks/judging.py`` reads them.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from judging import Captioned, made_captions
from lmms_eval_captions.judges.endpoint.config import EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.protocols.judge_config import JudgeConfig
from lmms_eval_captions.judges.protocols.prompt_folder import Prompts
from lmms_eval_captions.judges.protocols.vdc import judge_question
from lmms_eval_captions.judges.settings import PROMPT_ORDERS

_ALL_QUESTIONS: Final = 100_000
_COUNTERS: Final = {
    "asked": "vllm:prefix_cache_queries_total",
    "hit": "vllm:prefix_cache_hits_total",
    "prompt": "vllm:prompt_tokens_total",
    "written": "vllm:generation_tokens_total",
}


@dataclass(frozen=True)
class Round:
    """What one order took of the server."""

    seconds: float
    n_calls: int
    hit_share: float
    """Share of the prompts' tokens that were found in the prefix cache."""
    tokens_per_s: float
    """Prompt and reply tokens together."""


def main(argv: Sequence[str]) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser("prefixes.py server", description=__doc__.splitlines()[0])
    parser.add_argument("--url", default="http://127.0.0.1:8000/v1")
    parser.add_argument("--model", required=True, help="the name that the server answers to")
    parser.add_argument("--captions", type=int, default=8, help="of each order in each round")
    parser.add_argument("--questions", type=int, default=10, help="about each caption, at most")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--max-tokens", type=int, default=32, help="longest reply")
    parser.add_argument(
        "--order",
        choices=PROMPT_ORDERS,
        default=PROMPT_ORDERS[0],
        help="of the words of each prompt",
    )
    arguments = parser.parse_args(argv)
    orders: dict[str, Callable[..., None]] = {
        "as this engine asks": _together,
        "one caption at a time": _one_by_one,
        "shuffled": _shuffled,
    }
    captions = (
        (caption, questions[: arguments.questions])
        for caption, questions in made_captions(_ALL_QUESTIONS)
    )
    taken: dict[str, list[Round]] = {name: [] for name in orders}
    for _ in range(arguments.rounds):
        for name, order in orders.items():
            chosen = [next(captions) for _ in range(arguments.captions)]
            taken[name].append(_measure(order, chosen, arguments))
    n_cache = _cache_tokens(arguments.url)
    print(
        f"{arguments.model}, {arguments.captions} captions of at most {arguments.questions} "
        f"questions, prompts in the order {arguments.order}, {arguments.concurrency} in flight, "
        f"a cache of {n_cache:,} tokens, median of {arguments.rounds}\n\n"
        "| order | calls | seconds | calls/s | tokens/s | found in the prefix cache |\n"
        "|---|---|---|---|---|---|"
    )
    for name, rounds in taken.items():
        seconds = statistics.median(r.seconds for r in rounds)
        calls = statistics.median(r.n_calls for r in rounds)
        tokens = statistics.median(r.tokens_per_s for r in rounds)
        hits = statistics.median(r.hit_share for r in rounds)
        print(
            f"| {name} | {calls:.0f} | {seconds:.1f} | {calls / seconds:.1f} | {tokens:,.0f} "
            f"| {hits:.1%} |",
            flush=True,
        )
    return 0


def _measure(
    order: Callable[..., None], captions: Sequence[Captioned], arguments: argparse.Namespace
) -> Round:
    before = _counters(arguments.url)
    started_s = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        config = EngineConfig(
            urls=(arguments.url,),
            store=Path(folder),
            concurrency=arguments.concurrency,
            n_rereads=0,
            api_key=os.environ.get("OPENAI_API_KEY"),
        )
        judge = JudgeConfig(
            model=arguments.model,
            max_tokens=arguments.max_tokens,
            prompts=Prompts(order=arguments.order),
        )
        with Engine(config) as engine:
            order(engine, captions, judge)
            n_calls = engine.meter.n_calls
    seconds = time.perf_counter() - started_s
    after = _counters(arguments.url)
    spent = {name: after[name] - before[name] for name in after}
    return Round(
        seconds,
        n_calls,
        spent["hit"] / spent["asked"] if spent["asked"] else 0.0,
        (spent["prompt"] + spent["written"]) / seconds,
    )


def _chains(captions: Sequence[Captioned], judge: JudgeConfig) -> list[list[partial[Any]]]:
    return [
        [
            partial(judge_question, question=question, caption=caption, config=judge, run=0)
            for question in questions
        ]
        for caption, questions in captions
    ]


def _together(engine: Engine, captions: Sequence[Captioned], judge: JudgeConfig) -> None:
    for future in [engine.submit(chains) for chains in _chains(captions, judge)]:
        future.result()


def _one_by_one(engine: Engine, captions: Sequence[Captioned], judge: JudgeConfig) -> None:
    for chains in _chains(captions, judge):
        engine.submit(chains).result()


def _shuffled(engine: Engine, captions: Sequence[Captioned], judge: JudgeConfig) -> None:
    single = [chain for chains in _chains(captions, judge) for chain in chains]
    random.Random(0).shuffle(single)
    for future in [engine.submit([chain]) for chain in single]:
        future.result()


def _metrics(url: str) -> str:
    address = re.sub(r"/v1/?$", "/metrics", url)
    with urllib.request.urlopen(address, timeout=30) as reply:  # noqa: S310 # nosec B310
        return str(reply.read().decode())


def _cache_tokens(url: str) -> int:
    """Tokens that the server's cache holds, 0 where it does not say."""
    told = re.search(r"^vllm:cache_config_info\{(.*)\}", _metrics(url), re.MULTILINE)
    labels = dict(re.findall(r'(\w+)="(\d+)"', told[1])) if told else {}
    return int(labels.get("num_gpu_blocks", 0)) * int(labels.get("block_size", 0))


def _counters(url: str) -> dict[str, float]:
    """The server's own counts."""
    text = _metrics(url)
    return {
        name: sum(map(float, re.findall(rf"^{re.escape(metric)}(?:\{{.*\}})? (\S+)$", text, re.M)))
        for name, metric in _COUNTERS.items()
    }

"""Measures the judge engine on VDC's questions, beside the ways the published scripts judge.

Everything is asked of ``judge_server.py`` in a process of its own on this machine. One command
prints the table of the README:

    python benchmarks/judging.py                       # VDC's questions below LMMS_CAPTIONS_DATA
    python benchmarks/judging.py --questions 20000     # the first 20,000 of them

Captions are made from the gold answers (about 170 words), so that requests have a real run's
size. The slow ways are measured for ``--slow-seconds`` each and are compared by calls a second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.protocols.prompt import Prompts
from lmms_eval_captions.judges.protocols.vdc import Question, judge_question
from lmms_eval_captions.judges.settings import read_data_settings
from lmms_eval_captions.lmms_eval_tasks.judging.judged_caption import caption_digest
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import read_questions
from lmms_eval_captions.model_wrappers.caption_files.columns import ASPECTS

CONFIG = JudgeConfig(model="benchmark")
Captioned = tuple[str, list[Question]]
Asked = tuple[str, Question]
"""A caption, and one of the questions about it."""


@dataclass(frozen=True)
class Row:
    """One way of judging, measured."""

    name: str
    n_calls: int
    wall_s: float
    cpu_s: float
    peak_mib: float

    def text(self, ideal: float) -> str:
        """A line of the table."""
        rate = self.n_calls / self.wall_s
        cpu_ms = 1e3 * self.cpu_s / self.n_calls if self.n_calls else 0.0
        share = f"{rate / ideal:.1%}" if self.n_calls else "-"
        return (
            f"| {self.name} | {self.n_calls:,} | {self.wall_s:.1f} | {rate:,.0f} | {share} "
            f"| {cpu_ms:.2f} | {self.peak_mib:,.0f} |"
        )


def main() -> None:
    """Measure and print."""
    arguments = _arguments()
    captions = list(made_captions(arguments.questions))
    n_questions = sum(len(questions) for _, questions in captions)
    ideal = arguments.concurrency / arguments.latency
    print(
        f"{n_questions:,} questions of {len(captions):,} captions, "
        f"{arguments.latency * 1e3:.0f} ms per reply, {arguments.concurrency} in flight: "
        f"at most {ideal:,.0f} calls/s\n\n"
        "| way | calls | seconds | calls/s | of the ideal | CPU ms per call | peak MiB |\n"
        "|---|---|---|---|---|---|---|",
        flush=True,
    )
    with serving(arguments.port, arguments.latency), tempfile.TemporaryDirectory() as folder:
        url = f"http://127.0.0.1:{arguments.port}/v1"
        for name, way in _ways(arguments, captions, url, Path(folder)):
            print(_in_a_process(name, way).text(ideal), flush=True)


def _ways(
    arguments: argparse.Namespace, captions: list[Captioned], url: str, folder: Path
) -> Iterator[tuple[str, Callable[[], int]]]:
    ours = partial(_ours, url=url, concurrency=arguments.concurrency)
    half = [caption for index, caption in enumerate(captions) if index % 2]
    asked = [(caption, question) for caption, questions in captions for question in questions]
    slow = partial(_while_there_is_time, asked, arguments.slow_seconds)
    yield "this engine", partial(ours, captions, store=folder / "cold")
    yield "this engine, again from the store", partial(ours, captions, store=folder / "cold")
    yield "(fills half a store)", partial(ours, half, store=folder / "half")
    yield "this engine, half in the store", partial(ours, captions, store=folder / "half")
    yield "official SDK, as many in flight", partial(_sdk, slow, url, arguments.concurrency)
    yield "one at a time in 4 threads", partial(_threads, slow, url, 4)
    yield "one at a time", partial(_threads, slow, url, 1)


def _ours(captions: Sequence[Captioned], *, url: str, concurrency: int, store: Path) -> int:
    with Engine(EngineConfig(urls=(url,), store=store, concurrency=concurrency)) as engine:
        futures = [
            engine.submit(
                [
                    partial(judge_question, question=q, caption=caption, config=CONFIG, run=0)
                    for q in questions
                ],
                about=caption_digest(caption),
            )
            for caption, questions in captions
        ]
        n_unscored = sum(j.reason is not None for future in futures for j in future.result())
        if n_unscored:
            raise RuntimeError(f"{n_unscored} questions are unscored")
        return engine.meter.n_calls


def _while_there_is_time(asked: Sequence[Asked], seconds: float) -> Iterator[Asked]:
    """The questions in turn, until so many seconds are over."""
    end_s = time.monotonic() + seconds
    return takewhile(lambda _: time.monotonic() < end_s, asked)


def _sdk(questions: Callable[[], Iterator[Asked]], url: str, concurrency: int) -> int:
    """The same requests with the official SDK's asynchronous client, at the same concurrency."""
    from openai import AsyncOpenAI

    async def run() -> int:
        client, left = AsyncOpenAI(base_url=url, api_key="none", max_retries=0), questions()

        async def ask(messages: list[Any]) -> str:
            completion = await client.chat.completions.create(
                model="sdk", messages=messages, temperature=0, max_tokens=256, seed=0
            )
            return completion.choices[0].message.content or ""

        async def judge_in_turn() -> int:
            n_calls = 0
            for caption, question in left:
                await ask(_match_messages(question, await ask(_answer_messages(caption, question))))
                n_calls += 2
            return n_calls

        n_calls = sum(await asyncio.gather(*(judge_in_turn() for _ in range(concurrency))))
        await client.close()
        return n_calls

    return asyncio.run(run())


def _threads(questions: Callable[[], Iterator[Asked]], url: str, n_threads: int) -> int:
    """One blocking request after the other in each thread, as the published scripts do it."""
    from openai import OpenAI

    client, left = OpenAI(base_url=url, api_key="none", max_retries=0), questions()

    def ask(messages: list[Any]) -> str:
        completion = client.chat.completions.create(
            model="serial", messages=messages, temperature=0, max_tokens=256
        )
        return completion.choices[0].message.content or ""

    def judge_in_turn(_: int) -> int:
        n_calls = 0
        for caption, question in left:
            ask(_match_messages(question, ask(_answer_messages(caption, question))))
            n_calls += 2
        return n_calls

    with ThreadPoolExecutor(n_threads) as pool:
        return sum(pool.map(judge_in_turn, range(n_threads)))


def _answer_messages(caption: str, question: Question) -> list[Any]:
    return Prompts().load("vdc_answer").render(caption=caption, question=question.question)


def _match_messages(question: Question, answer: str) -> list[Any]:
    return (
        Prompts()
        .load("vdc_match")
        .render(question=question.question, answer=question.answer, predicted_answer=answer)
    )


def made_captions(n_questions: int) -> Iterator[Captioned]:
    """Captions of the gold answers, with as many of the published questions in all."""
    settings = read_data_settings()
    for aspect in ASPECTS:
        for pairs in read_questions(settings, aspect).values():
            if n_questions <= 0:
                return
            questions = [Question(pair["question"], pair["answer"]) for pair in pairs]
            yield made_caption(aspect, questions), questions[:n_questions]
            n_questions -= len(questions)


def made_caption(aspect: str, questions: Sequence[Question]) -> str:
    """A caption of the gold answers, some 170 words."""
    words = ". ".join(question.answer for question in questions)
    return f"{aspect}: {words}. {words}."


def _in_a_process(name: str, way: Callable[[], int]) -> Row:
    """Run in a fork of its own, so that CPU time and peak memory are that way's alone."""
    read, write = os.pipe()
    if os.fork() == 0:
        started_s, cpu_s = time.perf_counter(), time.process_time()
        try:
            n_calls = way()
            used = resource.getrusage(resource.RUSAGE_SELF)
            measured = {
                "n_calls": n_calls,
                "wall_s": time.perf_counter() - started_s,
                "cpu_s": time.process_time() - cpu_s,
                "peak_mib": used.ru_maxrss / 1024,
            }
            os.write(write, json.dumps(measured).encode())
        except BaseException:  # noqa: BLE001 - a fork must not return into its parent's code
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write)
    os.wait()
    measured = json.loads(os.read(read, 4096) or b"null")
    if measured is None:
        raise SystemExit(f"{name} failed, see above")
    return Row(name, **measured)


class serving:  # noqa: N801 - used as a statement
    """``judge_server.py`` in a process of its own for as long as the block runs."""

    def __init__(self, port: int, latency_s: float) -> None:
        script = Path(__file__).parents[1] / "tests/support/judge_server.py"
        line = [sys.executable, str(script), "--port", str(port), "--latency", str(latency_s)]
        self._process = subprocess.Popen([*line, "--seconds", "3600"], stdout=subprocess.DEVNULL)
        self._url = f"http://127.0.0.1:{port}/stats"

    def __enter__(self) -> None:
        for _ in range(100):
            try:
                urllib.request.urlopen(self._url).close()  # noqa: S310 - our own server # nosec B310
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise SystemExit("the server did not start")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the judge engine.")
    parser.add_argument("--questions", type=int, default=10**9, help="at most so many")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds until a reply")
    parser.add_argument("--concurrency", type=int, default=256, help="requests in flight")
    parser.add_argument("--slow-seconds", type=float, default=20.0, help="for each slow way")
    parser.add_argument("--port", type=int, default=8411)
    return parser.parse_args()


if __name__ == "__main__":
    main()

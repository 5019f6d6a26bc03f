"""What a real vLLM server finds in its prefix cache, before and after, and what is counted of it.

The table is printed; ``make test-real`` shows it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from judging import Captioned, made_captions
from lmms_eval_captions.judges.endpoint.config import EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.head_start import HeadStart
from lmms_eval_captions.judges.endpoint.progress.totals import Totals
from lmms_eval_captions.judges.protocols.judge_config import JudgeConfig
from lmms_eval_captions.judges.protocols.prompt_folder import Prompts
from lmms_eval_captions.judges.protocols.vdc import judge_question
from lmms_eval_captions.judges.settings import PromptOrder
from prefix_server import _counters
from small_model import NAME
from vllm_server import KEY, VllmServer

pytestmark = pytest.mark.real

_CAPTIONS: Final = 24
"""Of each way: from 12 on the head start is decided about."""
_QUESTIONS: Final = 8
_IN_FLIGHT: Final = 16
_NEVER_UNREADABLE: Final = 0
_TIMEOUT_S: Final = 900.0


class Taken(NamedTuple):
    """What one way of asking took of the server."""

    hits: float
    """Prompt tokens that the server says it found in its cache."""
    prompts: float
    """All of them."""
    tokens_per_s: float
    totals: Totals


@pytest.fixture(scope="module")
def captions(
    shared_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Iterator[Captioned]]:
    """Captions with published questions, each used once: none finds what another way has left."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "vdc").mkdir()
    (folder / "vdc/VDCScore_qa").symlink_to(shared_data / "vdc_qa")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMMS_CAPTIONS_DATA", str(folder))
        yield made_captions(100_000)


def _ask(
    server: VllmServer, captions: Sequence[Captioned], folder: Path, order: PromptOrder = "paper"
) -> Taken:
    judge = JudgeConfig(
        model=NAME, max_tokens=12, timeout_s=_TIMEOUT_S, prompts=Prompts(order=order)
    )
    config = EngineConfig(
        urls=(server.url,), store=folder, concurrency=_IN_FLIGHT, n_rereads=_NEVER_UNREADABLE,
        api_key=KEY,
    )  # fmt: skip
    before, started_s = _counters(server.url), time.perf_counter()
    with Engine(config) as engine:
        futures = [
            engine.submit(
                [
                    partial(judge_question, question=one, caption=caption, config=judge, run=0)
                    for one in questions
                ],
                about=caption.encode(),
            )
            for caption, questions in captions
        ]
        for future in futures:
            future.result()
        totals = engine.totals()
    seconds = time.perf_counter() - started_s
    after = _counters(server.url)
    spent = {name: after[name] - before[name] for name in after}
    return Taken(
        spent["hit"], spent["prompt"], (spent["prompt"] + spent["written"]) / seconds, totals
    )


def test_first_questions_ahead_and_constant_words_first_find_more(
    real_server: VllmServer,
    captions: Iterator[Captioned],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each finds more than before, and what the server says of each reply adds up to its counts."""

    def some() -> list[Captioned]:
        chosen = itertools.islice(captions, _CAPTIONS)
        return [(caption, questions[:_QUESTIONS]) for caption, questions in chosen]

    with monkeypatch.context() as without:
        without.setattr(HeadStart, "begin", lambda *_: False)
        before = _ask(real_server, some(), tmp_path / "before")
    after = _ask(real_server, some(), tmp_path / "after")
    constant = _ask(real_server, some(), tmp_path / "constant", "constant-first")
    with capsys.disabled():
        print("\n| way | found in the prefix cache | tokens/s | calls |")  # noqa: T201
        for name, taken in (
            ("all questions at once", before),
            ("first question ahead, where it pays", after),
            ("the same, constant first", constant),
        ):
            share = taken.hits / taken.prompts
            print(  # noqa: T201
                f"| {name} | {share:.1%} | {taken.tokens_per_s:,.0f} | {taken.totals.calls} |"
            )
    for taken in (before, after, constant):
        assert sum(taken.totals.cached_tokens.values()) == pytest.approx(taken.hits, rel=0.02)
    shares = [taken.hits / taken.prompts for taken in (before, after, constant)]
    assert shares[1] >= shares[0] - 0.01
    assert shares[2] > shares[1] + 0.1

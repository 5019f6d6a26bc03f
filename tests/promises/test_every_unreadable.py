"""Every benchmark, at every step: unreadable replies are kept, and asked anew where that is set.

See ``test_every_failure.py`` for what is lost when.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from batch_server import BatchServer
from conftest import ServerFactory
from judge_server import JudgeServer, Say, last_text
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.vdc import hooks as vdc
from lmms_eval_captions.model_wrappers.no_caption import NoCaption
from test_every_batch_failure import NAMES, batches  # noqa: F401 - a fixture
from test_every_failure import (
    BENCHMARKS,
    N_VIDEOS,
    TOLD,
    Benchmark,
    _check,
    _judge,
    _set,
    bench,  # noqa: F401 - a fixture
    sample,  # noqa: F401 - a fixture of that one
)
from told_judge import FREE_TEXT, Key, attempt_of, key_of

FIVE: Final = [one for one in BENCHMARKS if one.name in NAMES or one.name == "vidcapbench_ae"]
CELLS: Final = [
    pytest.param(benchmark, step, id=f"{benchmark.name}-{step}")
    for benchmark in BENCHMARKS
    for step in benchmark.steps
]
BATCH_CELLS: Final = [
    pytest.param(benchmark, step, id=f"{benchmark.name}-{step}")
    for benchmark in FIVE
    for step in benchmark.steps
]
ADVICE: Final = {
    "unreadable": "{n} unreadable: such replies are kept, and a rerun asks nothing unless "
    "LMMS_CAPTIONS_ASK_AGAIN=1 is set, which asks them again; or name another judge "
    "(LMMS_CAPTIONS_JUDGE).",
    "refused": "{n} refused by the endpoint: a rerun asks them again, and another judge",
    "outage": "{n} not answered: run the same command again to go on; verdicts are kept, only",
}


class Unreadable:
    """Says what it is told to, but for one request, which it cannot be read on for a while.

    Args:
        target: The request.
        readable_from: The attempt from which it says what it is told to there, too.
    """

    def __init__(self, target: Key, *, readable_from: int) -> None:
        self._target = target
        self._readable_from = readable_from
        self.attempts: list[int] = []
        """Attempts at the target that came."""
        self.others: list[Key] = []
        """All other requests that came."""

    def __call__(self, payload: dict[str, Any]) -> Say:
        key, attempt = key_of(payload), attempt_of(payload)
        if key == self._target:
            self.attempts.append(attempt)
            if attempt < self._readable_from:
                free = key.step in FREE_TEXT
                return Say("<think>Hm.</think>\n" if free else "Let us talk of the weather.")
        else:
            self.others.append(key)
        if not TOLD.is_consistent(key, last_text(payload)):
            return Say("This is not what the first step said.")
        return Say(TOLD.text(key))


@contextmanager
def _run(
    server: JudgeServer | BatchServer,
    patch: pytest.MonkeyPatch,
    target: Key,
    *,
    again: bool,
    readable_from: int = 100,
) -> Iterator[Unreadable]:
    """A run of its own process, as it were, on what is in the store."""
    SESSION.close()
    patch.setenv("LMMS_CAPTIONS_ASK_AGAIN", "1" if again else "0")
    server.script = judge = Unreadable(target, readable_from=readable_from)
    yield judge
    SESSION.close()


def _ask_again_and_again(
    benchmark: Benchmark, step: str, server: JudgeServer | BatchServer, patch: pytest.MonkeyPatch
) -> None:
    """Runs with the variable and without, until the reply can be read, and what each sends."""
    patch.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    _set(benchmark, patch)
    target = benchmark.target(step, 1 if benchmark.n_asks > 1 else 0)
    lost = benchmark.lost({target})
    # A second step is asked once the first one can be read.
    after = [key for key in benchmark.order() if key[:3] == target[:3]]
    after = after[after.index(target) + 1 :]
    everything = [key for key in benchmark.order() if key != target and key not in after]
    runs = [
        (False, [0, 1, 2, 3], everything, 4),
        (False, [], [], 4),
        (True, [4, 5, 6, 7], [], 8),
        (False, [], [], 8),
        (True, [8, 9, 10, 11], [], 12),
    ]
    for again, attempts, others, n_asked in runs:
        with _run(server, patch, target, again=again) as judge:
            reasons = _check(benchmark, _judge(benchmark), lost)
        assert (judge.attempts, sorted(judge.others)) == (attempts, sorted(others))
        assert all(f"unreadable reply, asked {n_asked} times" in one for one in reasons.values())
    with _run(server, patch, target, again=True, readable_from=13) as judge:
        _check(benchmark, _judge(benchmark), set())
    assert (judge.attempts, judge.others) == ([12, 13], after)
    for again in (False, True):
        with _run(server, patch, target, again=again) as judge:
            _check(benchmark, _judge(benchmark), set())
        assert (judge.attempts, judge.others) == ([], [])


@pytest.mark.parametrize(("benchmark", "step"), CELLS)
def test_what_was_unreadable_is_asked_anew_where_that_is_set(
    benchmark: Benchmark,
    step: str,
    bench: pytest.MonkeyPatch,  # noqa: F811 - a fixture
    serve: ServerFactory,
) -> None:
    """Four further samples per run, which later runs read and do not send; without it, none."""
    _ask_again_and_again(benchmark, step, serve(logprobs="whole"), bench)


@pytest.mark.parametrize(("benchmark", "step"), BATCH_CELLS)
def test_what_was_unreadable_is_asked_anew_in_batches_too(
    benchmark: Benchmark,
    step: str,
    batches: pytest.MonkeyPatch,  # noqa: F811 - a fixture
) -> None:
    """The same through the Batch API."""
    with BatchServer() as server:
        _ask_again_and_again(benchmark, step, server, batches)


@pytest.mark.parametrize("benchmark", FIVE, ids=lambda benchmark: benchmark.name)
def test_a_caption_that_is_not_there_is_told_apart_from_what_a_rerun_mends(
    benchmark: Benchmark,
    bench: pytest.MonkeyPatch,  # noqa: F811 - a fixture
    serve: ServerFactory,
    logged: list[str],
) -> None:
    """Missing captions and unreadable replies have their own counts and their own advice."""
    server = serve(logprobs="whole")
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    server.script = lambda _: Say("<think>Hm.</think>\n")
    items = []
    for video in range(N_VIDEOS):
        doc = benchmark.doc(video)
        caption = doc.pop("caption", "A caption.") if video else NoCaption("the clip is broken")
        items.append(benchmark.process(doc, [caption])["unscored"])
    n_units = len(benchmark.units())
    assert vdc.aggregate_unscored(items) == n_units
    [told] = [line for line in logged if "questions are unscored. Why: " in line]
    n_missing = n_units // N_VIDEOS
    assert f"{n_missing} x no caption: the clip is broken" in told
    assert f"{n_missing} of missing captions: repair the clips or add the rows" in told
    assert ADVICE["unreadable"].format(n=n_units - n_missing) in told
    assert "run the same command" not in told

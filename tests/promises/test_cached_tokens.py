"""Every benchmark: tokens that an endpoint had in its cache are counted, stored, priced and shown.

See ``test_every_failure.py`` for what is asked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from conftest import ServerFactory
from ended_runs import Tracker, judge, results_of
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN
from lmms_eval_captions.lmms_eval_tasks.summary.screen import screen_of
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN
from test_every_failure import (
    BENCHMARKS,
    N_VIDEOS,
    Benchmark,
    Judge,
    _caption,
    _set,
    bench,  # noqa: F401 - a fixture
    sample,  # noqa: F401 - a fixture of that one
)

N_CACHED: Final = 16
"""Tokens of every prompt."""
JUDGE: Final = "judge-with-prices"
"""Of no other test: what a process has spent adds up, and of theirs no price is known."""
PRICES: Final = f"models: {{{JUDGE}: {{input: 2, cached_input: 0.5, output: 0}}}}"


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_a_run_counts_prices_and_shows_what_the_cache_had(
    benchmark: Benchmark,
    bench: pytest.MonkeyPatch,  # noqa: F811 - a fixture
    serve: ServerFactory,
    tmp_path: Path,
) -> None:
    """At all steps, in the judging document and on the last screen; a rerun asks for none."""
    server = serve(logprobs="whole")
    server.script = Judge()
    server.more_usage = lambda _: {"prompt_tokens_details": {"cached_tokens": N_CACHED}}
    (tmp_path / "prices.yaml").write_text(PRICES)
    bench.setenv("LMMS_CAPTIONS_PRICES", str(tmp_path / "prices.yaml"))
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_JUDGE", JUDGE)
    _set(benchmark, bench)
    task, n_cached = benchmark.name.partition("+")[0], N_CACHED * len(benchmark.order())
    for number in range(2):
        JUDGE_RUN.close()
        THIS_RUN.clear()
        docs = list(map(benchmark.doc, range(N_VIDEOS)))
        captions = [doc.pop("caption", _caption(video)) for video, doc in enumerate(docs)]
        folder = tmp_path / f"out{number}"
        folder.mkdir()
        tracker = Tracker(folder)
        tracker.save(results_of({task: judge(task, captions, docs)}))
        judging = tracker.read("judging")["judging"]
        shown = " ".join(screen_of(THIS_RUN.finished[-1]).split())
        if number:
            assert (judging["cached_tokens"], judging["tokens"], judging["usd"]) == ({}, {}, 0.0)
            assert "cache" not in shown.partition("replies from the store")[0]
            continue
        n_input, _ = judging["tokens"][JUDGE]
        assert judging["cached_tokens"] == {JUDGE: n_cached}
        assert judging["usd"] == pytest.approx((2 * (n_input - n_cached) + 0.5 * n_cached) / 1e6)
        assert f"({n_cached / n_input:.1%} of it from the endpoint's cache)" in shown

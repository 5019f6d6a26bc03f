"""All benchmarks with a judge that cannot see: what is asked in words is judged."""

from __future__ import annotations

import time
from typing import Any

import pytest

from conftest import ServerFactory
from judge_server import Refuse, Say
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from test_every_batch_failure import (
    Provider,
    batches,  # noqa: F401 - a fixture
)
from test_every_failure import (
    BENCHMARKS,
    Benchmark,
    Judge,
    _change_engine,
    _check,
    _judge,
    _set,
    bench,  # noqa: F401 - a fixture
    sample,  # noqa: F401 - a fixture of that one
)

WORDS = "image input is not supported - hint: if this is unexpected, you may need to provide mmproj"
SHOWING = ("msvd_eval_combined", "own_gveval_ref_free", "own_vllm_judge")


class _WithoutSight(Judge):
    """Refuses pictures as llama.cpp does."""

    n_shown = 0

    def __call__(self, payload: dict[str, Any]) -> Say | Refuse | str:
        if "image_url" in str(payload["messages"]):
            self.n_shown += 1
            return Refuse(500, WORDS)
        return super().__call__(payload)


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_only_what_shows_pictures_is_lost_and_nothing_waits(
    benchmark: Benchmark,
    bench: pytest.MonkeyPatch,  # noqa: F811 - the fixture
    serve: ServerFactory,
) -> None:
    """Each benchmark is judged after another that shows pictures, with the same engine."""
    server = serve(logprobs="whole")
    server.script = judge = _WithoutSight()
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_JUDGE_CONCURRENCY", "1")
    _change_engine(bench, outage_patience_s=300.0)
    _set(benchmark, bench)
    started_s = time.monotonic()
    showing = next(one for one in BENCHMARKS if one.name == SHOWING[0])
    reasons = _check(showing, _judge(showing), set(showing.units()))
    assert all(WORDS in reason for reason in reasons.values())
    lost = set(benchmark.units()) if benchmark.name in SHOWING else set()
    _check(benchmark, _judge(benchmark), lost)
    assert judge.n_shown == 1
    assert time.monotonic() - started_s < 60


class _ProviderWithoutSight(Provider):
    """Refuses pictures in its batches."""

    def _fate(self, number: int, body: dict[str, Any]) -> Any:
        fate = super()._fate(number, body)
        return (
            (400, {"error": {"message": WORDS}}) if "image_url" in str(body["messages"]) else fate
        )


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_only_what_shows_pictures_is_lost_in_batches(
    benchmark: Benchmark,
    batches: pytest.MonkeyPatch,  # noqa: F811 - the fixture
) -> None:
    """A batch holds what is asked in words, and what is not."""
    showing = next(one for one in BENCHMARKS if one.name == SHOWING[0])
    with _ProviderWithoutSight(benchmark.order()[0], "nothing") as server:
        batches.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
        _set(benchmark, batches)
        shown, items = _judge(showing), _judge(benchmark)
        reasons = _check(showing, shown, set(showing.units()))
        assert all(WORDS in reason for reason in reasons.values())
        _check(benchmark, items, set(benchmark.units()) if benchmark.name in SHOWING else set())
        SESSION.close()

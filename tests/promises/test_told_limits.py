"""Every benchmark at a limit that its judge's headers tell of: all is judged, as it was told."""

from __future__ import annotations

import pytest

from conftest import ServerFactory
from test_every_failure import (
    BENCHMARKS,
    Benchmark,
    Judge,
    _check,
    _judge,
    _set,
    bench,  # noqa: F401 - a fixture
    sample,  # noqa: F401 - a fixture of that one
)


@pytest.mark.parametrize("headers", ["openai", "anthropic"])
@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_a_limit_that_is_told_leaves_nothing_unscored(
    benchmark: Benchmark,
    headers: str,
    bench: pytest.MonkeyPatch,  # noqa: F811 - a fixture
    serve: ServerFactory,
) -> None:
    """With refusals on the way to it, each question has the verdict that the judge was told."""
    server = serve(logprobs="whole", rate=40.0, burst_s=0.5, limit_headers=headers)
    server.script = judge = Judge()
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_JUDGE_CONCURRENCY", "16")
    _set(benchmark, bench)
    _check(benchmark, _judge(benchmark), set())
    assert sorted(judge.sent) == sorted(benchmark.order())

"""Every benchmark judged through Anthropic's API, with the numbers that its judge was told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any, Final

import pytest

from aggregated import signature_of_items
from anthropic_server import KEY, Answer, AnthropicServer, message, plain
from judge_server import last_text
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.vdc import hooks as vdc
from test_every_failure import (
    ACCR,
    BENCHMARKS,
    TOLD,
    Benchmark,
    Unit,
    _judge,
    _vcapsbench_numbers,
    bench,  # noqa: F401 - a fixture
    sample,  # noqa: F401 - a fixture of that one
)
from told_judge import key_of


def _plain_scores(runs: list[list[Unit]]) -> dict[str, list[float]]:
    """G-VEval's numbers where no log-probabilities are given: those that the judge wrote."""
    means = {
        name: [fmean(TOLD.scores(*unit)[place] for unit in run) for run in runs]
        for place, name in enumerate(ACCR)
    }
    return {**means, "avg": [fmean(values) for values in zip(*means.values(), strict=True)]}


def _first_ask(unit: Unit) -> str:
    """The three asks of VCapsBench are the same request without a seed."""
    return TOLD.ask(unit[0], unit[1], 0)


_NUMBERS: Final[dict[str, Callable[[list[list[Unit]]], dict[str, list[float]]]]] = {
    "vcapsbench": partial(_vcapsbench_numbers, answer_to=_first_ask),
    "msvd_eval_ref_only": _plain_scores,
    "msvd_eval_combined": _plain_scores,
    "own_gveval_ref_free": _plain_scores,
}


def _say(payload: dict[str, Any]) -> Answer:
    asked = plain(payload)
    key = key_of(asked)
    consistent = TOLD.is_consistent(key, last_text(asked))
    return message(TOLD.text(key) if consistent else "This is not what the first step said.")


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_a_benchmark_has_the_numbers_that_the_judge_was_told(
    benchmark: Benchmark,
    bench: pytest.MonkeyPatch,  # noqa: F811 - a fixture
) -> None:
    """All is judged, the signature says what was not sent, and a rerun asks nothing."""
    with AnthropicServer(_say) as server:
        bench.setenv("LMMS_CAPTIONS_JUDGE_API", "anthropic")
        bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
        bench.setenv("ANTHROPIC_API_KEY", KEY)
        for name, value in benchmark.env:
            bench.setenv(name, value)
        first = _scores(benchmark)
        n_sent = len(server.payloads)
        SESSION.close()
        again = _scores(benchmark)
        assert (len(server.payloads), server.refused) == (n_sent, [])
    assert n_sent == len(benchmark.order())
    told = replace(benchmark, numbers=_NUMBERS.get(benchmark.name, benchmark.numbers))
    runs = [[unit for unit in told.units() if unit[2] == 0]] * told.n_runs
    values = told.numbers(runs)
    expected = {name: fmean(values[name]) for name in told.aggregations}
    assert first == again == pytest.approx(expected, nan_ok=True)


def _scores(benchmark: Benchmark) -> dict[str, float]:
    items = _judge(benchmark)
    scores = {name: hook(items[name]) for name, hook in benchmark.aggregations.items()}
    assert vdc.aggregate_unscored(items["unscored"]) == 0
    signature = signature_of_items(items["unscored"])
    assert "|seed:refused|" in signature
    assert ("|logprobs:refused|" in signature) == ("gveval" in benchmark.steps)
    return scores

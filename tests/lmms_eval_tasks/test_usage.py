"""What lmms-eval's usage table and its limit of tokens see of judging."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from lmms_eval.models.model_utils import usage_metrics

from lmms_eval_captions.judges.endpoint.outcome import Usage
from lmms_eval_captions.lmms_eval_tasks.usage import report_usage


class OtherLock:
    """Can be taken, and then there is no history to add to."""

    def __init__(self) -> None:
        self._taken = 0

    def __enter__(self) -> None:
        self._taken += 1
        if self._taken == 2:
            raise AttributeError("no such history")

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def nothing_used() -> Iterator[None]:
    """A run that has used nothing, and leaves nothing behind."""
    usage_metrics.reset_usage_metrics()
    yield
    usage_metrics.reset_usage_metrics()


def test_every_call_is_counted() -> None:
    """38 calls about one caption are 38, not one; their tokens are counted once."""
    report_usage("vdc_camera", "judge", Usage(38, 5000, 300))
    report_usage("capquiz", "judge", Usage(1, 10, 2))
    report_usage("capquiz", "judge", Usage())
    summary = usage_metrics.summarize_usage_metrics()
    assert summary["total"]["n_api_calls"] == 39
    assert summary["by_task"]["vdc_camera"] == {
        "input_tokens": 5000,
        "output_tokens": 300,
        "reasoning_tokens": 0,
        "total_tokens": 5300,
        "n_api_calls": 38,
    }
    assert summary["by_source"]["judge"]["total_tokens"] == 5312


def test_the_limit_of_tokens_is_kept() -> None:
    """``--max_tokens`` sees the judge's tokens as they come."""
    usage_metrics.set_budget(1000)
    report_usage("vdc_camera", "judge", Usage(38, 900, 99))
    assert not usage_metrics.is_budget_exceeded()
    report_usage("vdc_camera", "judge", Usage(38, 1, 0))
    assert usage_metrics.is_budget_exceeded()


def test_an_unknown_lmms_eval_counts_tokens_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its history has another name, a caption is one call, and nothing is raised."""
    monkeypatch.setattr(usage_metrics, "_USAGE_LOCK", OtherLock())
    report_usage("capquiz", "judge", Usage(2, 10, 2))
    assert usage_metrics.get_running_totals()["total_tokens"] == 12


def test_a_whole_benchmark_with_a_limit_takes_seconds() -> None:
    """300 captions of 38 calls are added up once a caption, not once a call."""
    usage_metrics.set_budget(10**12)
    start_s = time.perf_counter()
    for _ in range(300):
        report_usage("vdc_camera", "judge", Usage(38, 1000, 100))
    assert usage_metrics.summarize_usage_metrics()["total"]["n_api_calls"] == 11_400
    assert time.perf_counter() - start_s < 20

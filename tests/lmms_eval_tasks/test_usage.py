"""Judging in lmms-eval's usage table and its limit of tokens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lmms_eval.models.model_utils import usage_metrics

from lmms_eval_captions.judges.endpoint.request import Usage
from lmms_eval_captions.lmms_eval_tasks.judging.session import log_usage


@pytest.fixture(autouse=True)
def nothing_used() -> Iterator[None]:
    """A run that has used nothing, and leaves nothing behind."""
    usage_metrics.reset_usage_metrics()
    yield
    usage_metrics.reset_usage_metrics()


def test_every_call_is_counted() -> None:
    """38 calls about one caption are 38, not one; their tokens are counted once."""
    log_usage("vdc_camera", "judge", Usage(38, 5000, 300))
    log_usage("capquiz", "judge", Usage(1, 10, 2))
    log_usage("capquiz", "judge", Usage())
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
    log_usage("vdc_camera", "judge", Usage(38, 900, 99))
    assert not usage_metrics.is_budget_exceeded()
    log_usage("vdc_camera", "judge", Usage(38, 1, 0))
    assert usage_metrics.is_budget_exceeded()

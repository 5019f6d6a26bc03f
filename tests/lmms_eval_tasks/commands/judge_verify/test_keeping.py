"""What a verification leaves for runs of the judge, and for the next one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conftest import ServerFactory
from impostors import honest, quantised_twin
from judge_server import Say
from lmms_eval_captions.judges.settings import read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks
from lmms_eval_captions.lmms_eval_tasks.verified_judges import JudgeStanding, VerifiedJudges
from reading_judge import ReadingJudge


def _standing(name: str) -> JudgeStanding:
    """What a run of a benchmark says of its judge."""
    settings, benchmark = read_judge_settings(), all_benchmarks()[name]
    return VerifiedJudges().standing(benchmark, benchmark.judge_config(settings), settings)


def test_a_judge_that_fails_by_its_name_has_no_fingerprint_any_more(
    verify: Any, serve: ServerFactory
) -> None:
    """No anchor was asked, and still no earlier pass of any benchmark holds; a new one is told."""

    def other(payload: dict[str, Any]) -> Say:
        return replace(ReadingJudge()(payload), model="another-model")

    server = serve()
    assert verify(server, honest(), "--tasks", "vdc").code == 0
    assert _standing("vdc").fingerprint
    assert verify(server, other, "--tasks", "capquiz").code == 1
    for name in ("vdc", "capquiz"):
        standing = _standing(name)
        assert standing.fingerprint == ""
        assert "failed its verification today: model" in standing.warning


def test_a_judge_that_fails_one_benchmark_has_failed_all(verify: Any, serve: ServerFactory) -> None:
    """One model answers for all of them; each passes again by its own verification."""
    server = serve()
    first = verify(server, honest(), "--tasks", "vdc,capquiz")
    assert first.code == 0
    assert verify(server, quantised_twin(3, differs=0.3), "--tasks", "vdc", "--anew").code == 1
    for name in ("vdc", "capquiz"):
        standing = _standing(name)
        assert standing.fingerprint == ""
        assert "anchors get another verdict" in standing.warning
    again = verify(server, honest(), "--tasks", "vdc,capquiz", "--anew")
    assert again.last == first.last
    assert _standing("capquiz").warning == ""

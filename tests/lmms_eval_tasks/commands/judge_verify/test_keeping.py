"""What a verification leaves for runs of the judge, and for the next one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import ServerFactory
from impostors import SALT, Script, honest, quantised_twin
from judge_server import Say
from lmms_eval_captions.judges.settings import read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.keeping import KeptJudge
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.plan import Options, Plan
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.subjects import subjects_of
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.verify import JudgeVerification
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


def test_verifications_at_the_same_time_keep_what_each_found_out(
    serve: ServerFactory, bench: pytest.MonkeyPatch
) -> None:
    """Both were begun before either was over."""
    server = serve()
    server.script = honest()
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    settings = read_judge_settings()
    plans = [
        Plan.of(subjects_of(name, settings), settings, Options()) for name in ("vdc", "capquiz")
    ]
    for plan in plans:
        assert JudgeVerification(plan).run().state == "passed"
    assert _standing("vdc").fingerprint
    assert _standing("capquiz").fingerprint
    record = KeptJudge.of("judge", settings).record
    assert record is not None
    assert set(record.benchmarks) == {"vdc", "capquiz"}


def _path(tmp_path: Path) -> Path:
    (path,) = (tmp_path / "cache" / "judge_verify").glob("*.json")
    return path


def _kept(tmp_path: Path) -> Any:
    return json.loads(_path(tmp_path).read_text())


def _version(name: str, chars_per_token: int) -> Script:
    """The honest judge under another name, with another tokenizer."""
    judge = ReadingJudge(salt=SALT, n_tokens=lambda text: len(text) // chars_per_token)
    return lambda payload: replace(judge(payload), model=name)


def test_a_new_record_has_nothing_of_the_one_that_is_put_aside(
    verify: Any, serve: ServerFactory, tmp_path: Path
) -> None:
    """Names, tokens, and other benchmarks are the new judge's, who passes from then on."""
    server = serve()
    verify(server, _version("judge-2024-05-13", 4), "--tasks", "vdc,capquiz")
    new = _version("judge-2024-08-06", 3)
    assert verify(server, new, "--tasks", "vdc", "--first").code == 0
    record = _kept(tmp_path)["record"]
    assert record["served"] == ["judge-2024-08-06"]
    assert list(record["benchmarks"]) == list(record["fingerprints"]) == ["vdc"]
    assert _standing("capquiz") == JudgeStanding()
    again = verify(server, new, "--tasks", "vdc", "--anew")
    assert again.code == 0, again.last


def test_a_new_record_is_of_the_judge_that_answers_now(verify: Any, serve: ServerFactory) -> None:
    """No reply that the endpoint gave before stands in it, also within a day."""
    server = serve()
    verify(server, honest(), "--tasks", "vdc")
    twin = quantised_twin(2, differs=0.12)
    first = verify(server, twin, "--tasks", "vdc", "--first")
    assert first.code == 0, first.last
    assert first.n_asked > 200
    again = verify(server, twin, "--tasks", "vdc", "--anew")
    assert again.last == first.last


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("benchmarks", "vdc", "verified_s"), None),
        (("benchmarks", "vdc", "verified_s"), "yesterday"),
        (("benchmarks", "vdc", "verified_s"), True),
        (("benchmarks", "vdc", "state"), "splendid"),
        (("benchmarks", "vdc", "protocol"), "1"),
        (("benchmarks", "vdc", "prompts"), None),
        (("benchmarks", "vdc", "differs"), ["a"]),
        (("benchmarks", "vdc", "fingerprint"), ["a"]),
        (("benchmarks", "vdc", "fingerprint"), "a|judge:b"),
        (("benchmarks", "vdc"), None),
        (("benchmarks",), []),
    ],
)
def test_odd_types_in_what_is_kept_are_a_warning_for_runs_and_an_error_here(
    keys: tuple[str, ...], value: object, verify: Any, serve: ServerFactory, tmp_path: Path
) -> None:
    """Neither ends a run; --first puts the file aside."""
    server = serve()
    first = verify(server, honest(), "--tasks", "vdc")
    document = _kept(tmp_path)
    within = document
    for key in keys[:-1]:
        within = within[key]
    within[keys[-1]] = value
    _path(tmp_path).write_text(json.dumps(document))
    standing = _standing("vdc")
    assert standing.fingerprint == ""
    assert "delete it, and verify the judge again" in standing.warning
    told = verify(server, None, "--tasks", "vdc")
    assert (told.code, told.n_asked) == (2, 0)
    assert verify(server, None, "--tasks", "vdc", "--first").last == first.last
    assert _standing("vdc").fingerprint


@pytest.mark.parametrize(
    ("key", "value"),
    [("fingerprints", {}), ("probes", {"tokens": {"prose": "x"}}), ("benchmarks", {"vdc": {}})],
)
def test_a_damaged_record_ends_a_verification_before_anything_is_asked(
    key: str, value: object, verify: Any, serve: ServerFactory, tmp_path: Path
) -> None:
    """With what to do; so does one that has no verdict on some anchors."""
    server = serve()
    verify(server, honest(), "--tasks", "vdc")
    whole = _kept(tmp_path)
    _path(tmp_path).write_text(json.dumps({**whole, "record": {**whole["record"], key: value}}))
    told = verify(server, None, "--tasks", "vdc")
    assert (told.code, told.n_asked) == (2, 0)
    whole["record"]["benchmarks"]["vdc"]["verdicts"].popitem()
    _path(tmp_path).write_text(json.dumps(whole))
    told = verify(server, None, "--tasks", "vdc")
    assert (told.code, told.n_asked) == (2, 0)
    assert "no verdict on 1 of 200 anchors" in told.err


def test_a_verification_of_tomorrow_is_not_fresh(
    verify: Any, serve: ServerFactory, tmp_path: Path
) -> None:
    """Its age is not known: no fingerprint, and a warning."""
    verify(serve(), honest(), "--tasks", "vdc")
    document = _kept(tmp_path)
    document["benchmarks"]["vdc"]["verified_s"] += 86_400
    _path(tmp_path).write_text(json.dumps(document))
    standing = _standing("vdc")
    assert standing.fingerprint == ""
    assert "yet to come" in standing.warning

"""``judge verify`` against scripted endpoints, from its arguments to its exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import ServerFactory
from judge_server import JudgeServer
from lmms_eval_captions.cli.main import main
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.verification.decision import WITH_RECORD, decide
from reading_judge import IMPOSTORS, ReadingJudge, Script, whole_request

Verify = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def verify(
    bench: pytest.MonkeyPatch, serve: ServerFactory, capsys: pytest.CaptureFixture[str]
) -> Verify:
    """Run the command against a judge; returns the exit code and the JSON result."""

    def run(script: Script, *arguments: str, server: JudgeServer | None = None) -> Any:
        server = server or serve()
        server.script = script
        bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
        capsys.readouterr()
        code = main(["judge", "verify", "--format", "json", *arguments])
        return code, json.loads(capsys.readouterr().out)

    return run


@pytest.fixture
def record(tmp_path: Path, verify: Verify) -> Path:
    """Record of the honest judge."""
    path = tmp_path / "record.json"
    assert verify(ReadingJudge(), "-o", str(path))[0] == 0
    return path


def test_the_honest_judge_passes_with_every_anchor_right(verify: Verify) -> None:
    """All five benchmarks, without a record."""
    code, result = verify(ReadingJudge())
    assert (code, result["verdict"], result["reasons"]) == (0, "passed", [])
    anchors = {"anchors": 60, "missing": 0, "different": 0}
    names = ("vdc", "vidcapbench", "vcapsbench", "capquiz", "msvd_eval")
    assert result["benchmarks"] == dict.fromkeys(names, anchors)
    assert {each["state"] for each in result["findings"]} == {"ok"}


def test_a_judge_that_varies_a_little_passes_next_to_its_record(
    verify: Verify, record: Path
) -> None:
    """2% of its verdicts change by chance."""
    assert verify(ReadingJudge(flips=0.02), "--against", str(record))[0] == 0


@pytest.mark.parametrize("impostor", IMPOSTORS)
def test_impostors_fail(impostor: str, verify: Verify, record: Path) -> None:
    """By their verdicts or by a probe, next to the record of the honest judge."""
    code, result = verify(IMPOSTORS[impostor](), "--against", str(record))
    assert (code, result["verdict"]) == (1, "failed")
    by_probe = {
        "another name": "model",
        "prompts without their end": "truncation",
        "prompts without their middle": "truncation",
        "temperature 1": "temperature",
        "cache by prompt": "cached replies",
        "cache by prompt, with new ids": "cached replies",
        "cache without numbers": "cached replies",
    }
    if impostor in by_probe:
        assert by_probe[impostor] in result["reasons"]


def test_replies_of_an_earlier_verification_do_not_hide_a_weaker_model(
    verify: Verify, tmp_path: Path
) -> None:
    """A gateway that caches whole requests, under new ids, is asked with another seed."""
    trusted = ReadingJudge(cache_key=whole_request, renews_ids=True)
    record = tmp_path / "record.json"
    assert verify(trusted, "-o", str(record))[0] == 0
    weaker = ReadingJudge(model=1, errs=0.4, renews_ids=True).with_cache_of(trusted)
    code, result = verify(weaker, "--against", str(record))
    assert code == 1
    assert "vdc" in result["reasons"][0]


@pytest.mark.parametrize("impostor", ["a weaker model", "always yes"])
def test_bad_judges_fail_without_a_record(impostor: str, verify: Verify) -> None:
    """Fewer than 85% of the anchors are right."""
    assert verify(IMPOSTORS[impostor]())[0] == 1


def test_few_differences_among_few_anchors_are_undecided(verify: Verify, record: Path) -> None:
    """Exit code 3, and the reason."""
    judge = ReadingJudge(model=3, errs=0.07)
    code, result = verify(judge, "--against", str(record), "--tasks", "capquiz")
    assert (code, result["verdict"]) == (3, "undecided")
    assert "too few anchors to tell" in result["reasons"][0]


def test_a_verification_asks_anew(verify: Verify, serve: ServerFactory) -> None:
    """A second one does not take the replies of the first."""
    server = serve()
    counts = []
    for _ in range(2):
        verify(ReadingJudge(), "--tasks", "capquiz", server=server)
        counts.append(server.counts.n_requests)
    assert counts[1] == 2 * counts[0]


def test_an_interrupted_verification_resumes(
    verify: Verify, serve: ServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The anchors' replies are used again; the probes ask anew."""
    server = serve()

    def interrupt(_: Engine) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "totals", interrupt)
        with pytest.raises(KeyboardInterrupt):
            verify(ReadingJudge(), "--tasks", "capquiz", server=server)
    n_before = server.counts.n_requests
    assert verify(ReadingJudge(), "--tasks", "capquiz", server=server)[0] == 0
    assert server.counts.n_requests - n_before == 12


def test_a_benchmark_without_anchors_is_refused(
    bench: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such as one of another package."""
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", "http://127.0.0.1:9/v1")
    assert main(["judge", "verify", "--tasks", "own_gveval_ref_free"]) == 2
    assert "own_gveval_ref_free has no anchors" in capsys.readouterr().err


def test_a_judge_that_always_missed_the_same_codes_passes_next_to_its_record(
    verify: Verify, tmp_path: Path
) -> None:
    record = tmp_path / "record.json"
    truncated = ReadingJudge(visible=lambda prompt: prompt[:5000])
    assert verify(truncated, "-o", str(record))[1]["reasons"] == ["truncation"]
    assert verify(truncated, "--against", str(record))[0] == 0


def test_a_record_without_the_benchmark_or_of_other_anchors_is_an_error(
    verify: Verify, record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 before anything is asked."""
    document = json.loads(record.read_text())
    del document["benchmarks"]["vdc"]
    document["benchmarks"]["capquiz"]["prompts"] = "1,anchors:000000"
    record.write_text(json.dumps(document))
    assert main(["judge", "verify", "--tasks", "vdc", "--against", str(record)]) == 2
    assert "expected a record of vdc" in capsys.readouterr().err
    assert main(["judge", "verify", "--tasks", "capquiz", "--against", str(record)]) == 2
    assert "made with other prompts or anchors" in capsys.readouterr().err


def test_a_record_that_cannot_be_written_is_an_error_before_anything_is_asked(
    bench: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2; nothing listens at the address."""
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", "http://127.0.0.1:9/v1")
    assert main(["judge", "verify", "-o", str(tmp_path)]) == 2
    assert "the record cannot be written" in capsys.readouterr().err


def test_a_record_without_verdicts_decides_nothing(verify: Verify, record: Path) -> None:
    document = json.loads(record.read_text())
    for each in document["benchmarks"].values():
        each["verdicts"] = {}
    record.write_text(json.dumps(document))
    code, result = verify(ReadingJudge(), "--against", str(record))
    assert (code, result["reasons"]) == (
        3,
        ["300 of 300 anchors have no reply to compare"],
    )


def test_power_and_false_alarms_of_the_test() -> None:
    """Honest judges fail in under 2%, others that differ on 15% pass in under 5% of all cases."""
    from scipy.stats import binom

    n = 300
    odds = {"passed": [0.0, 0.0], "failed": [0.0, 0.0], "undecided": [0.0, 0.0]}
    for n_different in range(n + 1):
        state = decide(n, n_different, WITH_RECORD, n_tests=6)
        for index, share in enumerate((0.02, 0.15)):
            odds[state][index] += binom.pmf(n_different, n, share)
    assert odds["failed"][0] < 0.02 < 0.95 < odds["passed"][0]
    assert odds["passed"][1] < 0.05 < 0.95 < odds["failed"][1]

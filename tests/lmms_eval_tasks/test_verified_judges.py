"""What is kept of verified judges, and what a run says of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.verified_judges import (
    FRESH_DAYS,
    JudgeStanding,
    VerifiedBenchmark,
    kept_path,
    read_kept,
    standing_of,
    write_kept,
)

_DAY_S = 86_400.0
NOW_S = 1_800_000_000.0
PASSED = VerifiedBenchmark(
    state="passed", fingerprint="01234567", verified_s=NOW_S - 2 * _DAY_S, protocol=1
)


def test_a_judge_that_passed_lately_has_its_fingerprint() -> None:
    """And no warning."""
    assert standing_of(PASSED, "judge", now_s=NOW_S) == JudgeStanding("01234567")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            replace(PASSED, state="failed", differs="truncation"),
            "failed its verification 2 days ago",
        ),
        (replace(PASSED, state="failed", differs="truncation"), "truncation"),
        (replace(PASSED, state="failed"), "its verdicts differ"),
        (replace(PASSED, verified_s=NOW_S - (FRESH_DAYS + 5) * _DAY_S), "verified 35 days ago"),
    ],
)
def test_one_that_failed_or_was_verified_long_ago_has_a_warning(
    found: VerifiedBenchmark, words: str
) -> None:
    """With the command that settles it, and no fingerprint."""
    standing = standing_of(found, "judge", now_s=NOW_S)
    assert standing.fingerprint == ""
    assert words in standing.warning
    assert "lmms-eval-captions judge verify" in standing.warning


def test_one_that_is_undecided_has_neither() -> None:
    """Nothing is known of it."""
    assert standing_of(replace(PASSED, state="undecided"), "judge", now_s=NOW_S) == JudgeStanding()


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    """Of each model at each endpoint a file of its own, whatever the order of the addresses."""
    urls = ("http://127.0.0.1:8000/v1", "https://api.example.org/v1")
    path = kept_path(tmp_path, "org/judge", urls)
    assert path == kept_path(tmp_path, "org/judge", urls[::-1])
    others = [("org/judge", urls[:1]), ("org-judge", urls), ("org/judge-2", urls)]
    assert path not in {kept_path(tmp_path, model, where) for model, where in others}
    assert read_kept(path) == ({}, None)
    write_kept(path, model="org/judge", endpoints=urls, benchmarks={"vdc": PASSED}, record={"a": 1})
    assert read_kept(path) == ({"vdc": PASSED}, {"a": 1})


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"benchmarks": {"vdc": {}}}'])
def test_a_damaged_file_is_told_with_what_to_do(text: str, tmp_path: Path) -> None:
    """Its path, and to verify again."""
    path = tmp_path / "judge.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"judge\.json.*verify the judge again"):
        read_kept(path)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """With the setting that names another."""
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="LMMS_CAPTIONS_CACHE"):
        write_kept(
            tmp_path / "file" / "a.json", model="a", endpoints=(), benchmarks={}, record=None
        )

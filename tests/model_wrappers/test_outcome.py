"""What is counted and said of a run of captioning."""

from __future__ import annotations

import pytest

from lmms_eval_captions.model_wrappers.outcome import Outcome


def test_a_clip_is_logged_once_and_every_document_counted(logged: list[str]) -> None:
    """Five tasks that ask about one broken clip give one warning and five failures."""
    outcome = Outcome()
    for number in range(5):
        outcome.fail("broken.mp4", f"task{number}", 3, "it is broken", (number,))
    assert [line.strip() for line in logged] == ["WARNING no caption for broken.mp4: it is broken"]
    assert len(outcome.failures) == 5
    assert outcome.no_caption(4).reason == "broken.mp4: it is broken"
    assert outcome.no_caption(5).reason == "the captioner gave none"


def test_one_reason_for_thousands_of_clips_does_not_fill_the_log(logged: list[str]) -> None:
    """An endpoint that takes no more requests is the reason for every clip that is left."""
    outcome = Outcome()
    for number in range(1000):
        outcome.fail(f"{number}.mp4", "task", number, "answered 401: wrong key", (number,))
    outcome.fail("other.mp4", "task", 1000, "it is broken", (1000,))
    assert len(logged) == 22
    assert "for the same reason" in logged[20]
    assert "other.mp4: it is broken" in logged[21]
    assert len(outcome.failures) == 1001


@pytest.mark.parametrize(("n_failures", "more"), [(20, ""), (21, "and 1 more"), (25, "and 5 more")])
def test_the_report_names_the_first_failures(n_failures: int, more: str, logged: list[str]) -> None:
    """All are counted, twenty are named, and how many there are besides."""
    outcome = Outcome()
    for number in range(n_failures):
        outcome.fail(f"clip{number}.mp4", "task", number, "broken", (number,))
    outcome.report()
    report = logged[-1]
    assert f"{n_failures} document(s) have no caption" in report
    assert report.count("task[") == 20
    assert more in report
    assert ("more" in report) == bool(more)


def test_nothing_is_reported_of_a_run_without_captions(logged: list[str]) -> None:
    """Neither a rate nor a failure is made up."""
    outcome = Outcome()
    assert outcome.shares() == ""
    outcome.report()
    assert logged == []

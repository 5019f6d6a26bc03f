"""Captions as lmms-eval takes them."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

import pytest

from lmms_eval_captions.judges.errors import CaptionError
from lmms_eval_captions.model_wrappers.caption_jobs import Caption
from lmms_eval_captions.model_wrappers.generation import Generation
from lmms_eval_captions.model_wrappers.no_caption import NoCaption
from lmms_eval_captions.model_wrappers.ordering import PlannedCaption
from lmms_eval_captions.model_wrappers.outcome import Outcome
from lmms_eval_captions.model_wrappers.results import Results


def _planned(*positions: int, until: tuple[str, ...] = ()) -> PlannedCaption:
    path = Path(f"/clips/{positions[0]}.mp4")
    return PlannedCaption(
        path, "Describe.", Generation(until=until), "task", positions[0], positions
    )


def test_every_request_gets_its_own_answer() -> None:
    """In the order of the requests, whatever order captions came in; twins share one."""
    results = Results(Outcome())
    results.keep(_planned(2, 0), Caption("two and zero", 5, 7))
    results.keep(_planned(1, until=("##",)), "one ## and more")
    zero, one, two, three = results.finish(4)
    assert [result.text for result in (zero, one, two, three)] == [
        "two and zero", "one ", "two and zero", ""
    ]  # fmt: skip
    assert zero.token_counts.to_dict() == {"input_tokens": 5, "output_tokens": 7}
    assert one.token_counts is None
    assert isinstance(three.text, NoCaption)
    assert results.outcome.n_captions == 2


def test_a_caption_that_failed_is_told_from_an_empty_one() -> None:
    """A failure has its reason, and no token in and none out; an empty caption is a caption."""
    results = Results(Outcome())
    late: Future[Caption] = Future()
    late.set_exception(CaptionError("no reply"))
    results.keep(_planned(0), late)
    results.fail(_planned(1), "out of memory")
    results.keep(_planned(2), "")
    failed, broken, empty = results.finish(3)
    assert [result.text.reason for result in (failed, broken)] == [
        "0.mp4: no reply", "1.mp4: out of memory"
    ]  # fmt: skip
    nothing = {"input_tokens": 0, "output_tokens": 0}
    assert failed.token_counts.to_dict() == broken.token_counts.to_dict() == nothing
    assert not isinstance(empty.text, NoCaption)
    assert empty.token_counts is None


def test_a_mistake_in_a_future_ends_the_run() -> None:
    """What is no error of ours is not taken for a clip's."""
    results = Results(Outcome())
    late: Future[Caption] = Future()
    late.set_exception(KeyError("a mistake"))
    results.keep(_planned(0), late)
    with pytest.raises(KeyError, match="a mistake"):
        results.finish(1)

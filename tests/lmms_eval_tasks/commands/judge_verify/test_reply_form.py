"""What a judge's replies look like, and beside those of another one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.asking import HeardReply
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.reply_form import (
    StepForm,
    form_findings,
    forms_of,
)


def _heard(
    texts: Sequence[str], reason: str = "stop", *, readable: bool = True
) -> list[HeardReply]:
    return [HeardReply("vdc_match", Reply(text, reason), readable, 0) for text in texts]


def test_shares_and_length_are_of_first_replies() -> None:
    """Two of four think, one refuses; a fresh sample does not count."""
    heard = _heard(["<think>a</think>yes!", "[THINK]b[/THINK]yes", "I'm sorry, but no", "yes."])
    again = HeardReply("vdc_match", Reply("a very long reply indeed"), is_readable=False, attempt=1)
    form = forms_of([*heard, again])["vdc_match"]
    lengths = [len(each.reply.text) for each in heard]
    assert form == StepForm(
        n=4, readable=1.0, chars=sum(lengths) / 4, reasoning=0.5, refused=0.25, cut=0.0
    )


PLAIN = forms_of(_heard(["{'pred': 'yes', 'score': 5}"] * 40))


@pytest.mark.parametrize(
    ("heard", "names"),
    [
        pytest.param(_heard(["{'pred': 'no', 'score': 0}"] * 40), [], id="the same"),
        pytest.param(_heard(["yes" * 40] * 40), ["form of replies"], id="four times as long"),
        pytest.param(_heard(["ok"] * 40), ["form of replies"], id="a tenth as long"),
        pytest.param(
            _heard(["{'pred': 'yes', 'score': 5}"] * 40, readable=False),
            ["form of replies"], id="cannot be read",
        ),
        pytest.param(
            _heard(["{'pred': 'yes', 'score': 5}"] * 34)
            + _heard(["<think>x</think>{'pred': 'yes'}"] * 6),
            ["form of replies"], id="15% think",
        ),
        pytest.param(
            _heard(["{'pred': 'yes', 'score': 5}"] * 38)
            + _heard(["<think>x</think>{'pred': 'yes'}"] * 2),
            [], id="5% think",
        ),
        pytest.param(
            _heard(["{'pred': 'yes', 'score': 5}"] * 40, "length"),
            ["output cut", "form of replies"], id="all are cut",
        ),
    ],
)  # fmt: skip
def test_what_differs_is_named(heard: list[HeardReply], names: list[str]) -> None:
    """A tenth of the replies, or twice the length, is a difference."""
    found = form_findings(forms_of(heard), PLAIN)
    assert [each.name for each in found if each.state == "differs"] == names


def test_without_a_record_the_look_is_told() -> None:
    """And nothing heard is nothing told."""
    (told,) = form_findings(PLAIN, None)
    assert told.state == "ok"
    assert "100% readable, 27 characters" in told.evidence
    assert form_findings({}, None) == []


@pytest.mark.parametrize("turned", [False, True])
def test_a_handful_of_replies_fails_nothing(*, turned: bool) -> None:
    """Shares of fewer than 30, here or in the record, are not known."""
    few = forms_of(_heard(["yes" * 40] * 29, "length", readable=False))
    now, before = (PLAIN, few) if turned else (few, PLAIN)
    states = {each.name: each.state for each in form_findings(now, before)}
    assert states == {
        "form of replies": "unknown",
        **({} if turned else {"output cut": "unknown"}),
    }

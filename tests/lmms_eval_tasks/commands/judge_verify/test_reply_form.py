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


PLAIN = forms_of(_heard(["{'pred': 'yes', 'score': 5}"] * 20))


@pytest.mark.parametrize(
    ("heard", "names"),
    [
        pytest.param(_heard(["{'pred': 'no', 'score': 0}"] * 20), [], id="the same"),
        pytest.param(_heard(["yes" * 40] * 20), ["form of replies"], id="four times as long"),
        pytest.param(_heard(["ok"] * 20), ["form of replies"], id="a tenth as long"),
        pytest.param(
            _heard(["{'pred': 'yes', 'score': 5}"] * 20, readable=False),
            ["form of replies"], id="cannot be read",
        ),
        pytest.param(
            _heard(["{'pred': 'yes', 'score': 5}"] * 17)
            + _heard(["<think>x</think>{'pred': 'yes'}"] * 3),
            ["form of replies"], id="15% think",
        ),
        pytest.param(
            _heard(["{'pred': 'yes', 'score': 5}"] * 19)
            + _heard(["<think>x</think>{'pred': 'yes'}"]),
            [], id="5% think",
        ),
        pytest.param(
            _heard(["{'pred': 'yes', 'score': 5}"] * 20, "length"),
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

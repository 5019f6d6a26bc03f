"""The signature prints, parses and merges, and loses nothing on the way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.lmms_eval_tasks.signature import (
    SERVED,
    Share,
    Signature,
)

COUNTS = st.integers(0, 10**17)
"""The sum of four of them is a count of 18 digits, too."""
SHARES = st.builds(Share, COUNTS, COUNTS)
NAMES = st.from_regex(r"[a-z][a-z_0-9]{0,20}", fullmatch=True).filter(
    lambda name: name not in ("judge", "runs", "protocol", "unscored", "empty", SERVED)
)
VALUES = st.text(max_size=30).filter(lambda value: "%7C" not in value)
"""Also with bars, colons and ends of lines: a judge's name is whatever its user calls it."""


@st.composite
def _tasks(draw: st.DrawFn) -> Signature:
    fields = {
        "judge": draw(VALUES),
        "runs": str(draw(st.integers(0, 99))),
        "protocol": str(draw(st.integers(0, 99))),
        **draw(st.dictionaries(NAMES, VALUES, max_size=4)),
        "unscored": str(draw(SHARES)),
    }
    empty = draw(st.none() | SHARES)
    if empty is not None and empty.n:
        fields["empty"] = str(empty)
    return Signature(draw(NAMES), fields)


TASKS = _tasks()


@given(TASKS)
def test_a_task_s_signature_is_read_back_as_it_was(signature: Signature) -> None:
    """Whatever stands in its values, no field is lost, made up, or moved."""
    again = Signature.parse(str(signature))
    assert again == signature
    assert list(again.fields) == list(signature.fields)
    assert str(again) == str(signature)


@given(st.lists(TASKS, min_size=1, max_size=4), st.data())
def test_a_group_s_signature_is_read_back_as_it_was(
    signatures: list[Signature], data: st.DataObject
) -> None:
    """It has no task's name, joined values, and may be merged again."""
    sizes = [data.draw(st.integers(1, 100)) for _ in signatures]
    group = Signature.merge(signatures, sizes)
    assert Signature.parse(str(group)) == group
    assert (group.task, group.unscored) == ("", None)
    for name in ("judge", "runs", "protocol"):
        values = dict.fromkeys(signature.fields[name] for signature in signatures)
        assert group.fields[name] == "+".join(values)
    shares = [Share.parse(signature.fields.get("empty", "")) for signature in signatures]
    n_empty = sum(share.n for share in shares if share)
    assert group.fields.get("empty") == (f"{n_empty}/{sum(sizes)}" if n_empty else None)
    assert Signature.merge([group], [sum(sizes)]) == group


@given(st.text())
def test_any_text_is_parsed(text: str) -> None:
    signature = Signature.parse(text)
    assert Signature.parse(str(signature)).fields == signature.fields


@pytest.mark.parametrize(
    ("text", "unscored"),
    [
        pytest.param("t|unscored:3/9|v:1", Share(3, 9), id="shares"),
        pytest.param("t|unscored:3|v:1", None, id="no whole"),
        pytest.param("t|unscored:-1/9", None, id="negative"),
        pytest.param(f"t|unscored:{'9' * 5000}/1", None, id="beyond counting"),
        pytest.param("judge:j|runs:1+3", None, id="a group"),
        pytest.param("no captions were judged", None, id="no signature"),
    ],
)
def test_the_share_of_unscored_questions_is_read(text: str, unscored: Share | None) -> None:
    """A count that is none says nothing."""
    assert Signature.parse(text).unscored == unscored


def test_metrics_that_could_not_be_computed_are_named() -> None:
    """``con`` without a tokenizer is ``nan`` on purpose; a judge of such a name is no metric."""
    signature = Signature.parse("t|judge:unavailable-7b|con:unavailable|unscored:0/1")
    assert signature.unavailable == {"con"}

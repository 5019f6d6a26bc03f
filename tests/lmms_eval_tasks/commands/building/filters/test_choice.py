"""Which questions stay, and where their answers stand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.choice import (
    choose_balanced,
    shortlist,
    spread_answers,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Work, kept


def _work(per_video: int) -> Work:
    options = SimpleNamespace(per_video=per_video, seed=0, videos=Path())
    return cast("Work", SimpleNamespace(options=options, rng=_rng))


def _rng(*about: object) -> Any:
    import random

    return random.Random(str(about))


def _rows(counts: dict[str, dict[str, int]]) -> list[Row]:
    """Clip to category to the number of its questions."""
    return [
        {"video": clip, "id": f"{clip}/{name}/{k}", "category": name, "rank": k, "answer": "yes"}
        for clip, names in counts.items()
        for name, n in names.items()
        for k in range(n)
    ]


def _choose(rows: list[Row], per_video: int) -> list[Row]:
    return choose_balanced(
        _work(per_video),
        rows,
        group=lambda row: str(row["category"]),
        order=lambda row: row["rank"],
    )


def test_each_category_has_its_share_over_the_clips() -> None:
    """Two questions of each of three clips, out of three categories: two of each category."""
    rows = _rows({clip: {"a": 5, "b": 5, "c": 5} for clip in ("x", "y", "z")})
    chosen = kept(_choose(rows, 2))
    assert Counter(row["category"] for row in chosen) == {"a": 2, "b": 2, "c": 2}
    assert Counter(row["video"] for row in chosen) == {"x": 2, "y": 2, "z": 2}


def test_of_a_category_the_first_in_order_are_taken() -> None:
    """The hardest, say."""
    chosen = kept(_choose(_rows({"x": {"a": 3, "b": 3}}), 4))
    assert sorted(row["id"] for row in chosen) == ["x/a/0", "x/a/1", "x/b/0", "x/b/1"]


def test_the_rarer_answer_is_taken_first() -> None:
    """Nine yes and three no of one category: of six chosen, three are no."""
    rows = [
        {"video": "x", "id": str(k), "category": "a", "answer": "no" if k % 4 == 3 else "yes"}
        for k in range(12)
    ]
    chosen = choose_balanced(
        _work(6),
        rows,
        group=lambda row: str(row["category"]),
        order=lambda row: int(row["id"]),
        balance=lambda row: str(row["answer"]),
    )
    assert Counter(row["answer"] for row in kept(chosen)) == {"yes": 3, "no": 3}


@given(
    st.dictionaries(
        st.sampled_from("uvwxyz"),
        st.dictionaries(st.sampled_from("abcd"), st.integers(0, 6), min_size=1),
        min_size=1,
    ),
    st.integers(1, 9),
)
def test_a_clip_gives_as_many_as_it_has_and_no_more_than_is_asked(
    counts: dict[str, dict[str, int]], per_video: int
) -> None:
    """Every row is still there, in its order, with a reason where it was dropped."""
    rows = _rows(counts)
    made = _choose(rows, per_video)
    assert [row["id"] for row in made] == [row["id"] for row in rows]
    for clip, names in counts.items():
        n = sum(row["video"] == clip for row in kept(made))
        assert n == min(per_video, sum(names.values()))
    short = shortlist(
        _work(per_video), rows, group=lambda row: str(row["category"]), order=lambda row: row["id"]
    )
    assert len(kept(short)) == sum(
        min(2 * per_video, sum(names.values())) for names in counts.values()
    )


@pytest.mark.parametrize("n", [1, 5, 23, 100])
def test_right_options_stand_equally_often_at_each_place(n: int) -> None:
    """Counts of the five places differ by one at most; the options are the same ones."""
    rows = [{"video": "x", "id": str(k), "options": list("abcde"), "answer": "a"} for k in range(n)]
    made = spread_answers(_work(n), rows)
    places = Counter(row["options"].index("a") for row in made)
    counts = [places[place] for place in range(5)]
    assert max(counts) - min(counts) <= 1
    assert all(sorted(row["options"]) == list("abcde") for row in made)
    assert made == spread_answers(_work(n), rows)

"""Groups of questions hold every index once, or are unreadable."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.protocols.building.clusters import read_clusters, read_groups


@pytest.mark.parametrize(
    ("text", "n", "expected"),
    [
        pytest.param("[[[0, 2], [1]], [[3]]]", 4, (((0, 2), (1,)), ((3,),)), id="as-asked"),
        pytest.param("```json\n[[[0],\n [1]]]\n``` [0] is alone.", 2, (((0,), (1,)),), id="prose"),
        pytest.param('{"clusters": [[[0]], [["1"]]]}', 2, (((0,),), ((1,),)), id="in-an-object"),
        pytest.param("[[[0]]] = [[[0]]]", 1, (((0,),),), id="restated"),
        pytest.param("[[[0, 1, 2, 3]]]", 5, (((0, 1, 2, 3),), ((4,),)), id="one-missing"),
        pytest.param("[[[0, 1, 2]]]", 5, None, id="two-of-five-missing"),
        pytest.param("[[[0, 1, 2, 3]]]", 4, (((0, 1, 2, 3),),), id="none-missing"),
        pytest.param("[[[0, 1], [1]], [[0], [2]]]", 3, (((0, 1),), ((2,),)), id="repeated"),
        pytest.param("[[[0, 1, 2, 3, 4, 5]]]", 5, (((0, 1, 2, 3, 4),),), id="one-unknown"),
        pytest.param("[[[0, 1, 2, 3, 4, 5, 6]]]", 5, None, id="two-unknown-of-five"),
        pytest.param("[[[0, 1, 2, 3, 4, 9, 9]]]", 5, None, id="unknown-twice"),
        pytest.param("[[[0, 1, 2, 3, 4, -1]]]", 5, (((0, 1, 2, 3, 4),),), id="negative"),
        pytest.param("[[[0]], [[1]]] [[[0, 1]]]", 2, None, id="two-answers"),
        pytest.param("[[0], [1]]", 2, None, id="two-levels"),
        pytest.param("[[[0]], [1]]", 2, None, id="mixed-levels"),
        pytest.param("[[[[0]], [[1]]]]", 2, None, id="four-levels"),
        pytest.param("[[[0], [1]], [[2]", 3, None, id="cut"),
        pytest.param("[[[0.0], [1.5]]]", 2, None, id="fractions"),
        pytest.param("[[[true]]]", 1, None, id="true"),
        pytest.param('[[["a"]]]', 1, None, id="words"),
        pytest.param("[[[]]]", 1, None, id="empty-list"),
        pytest.param("[]", 1, None, id="nothing"),
        pytest.param("They all differ.", 2, None, id="no-json"),
        pytest.param("", 2, None, id="empty"),
    ],
)
def test_clusters_have_three_levels(
    text: str, n: int, expected: tuple[tuple[tuple[int, ...], ...], ...] | None
) -> None:
    """A missing index is a group of its own; more than a fifth missing or unknown is no answer."""
    assert read_clusters(Reply(text, "stop"), n) == expected


@pytest.mark.parametrize(
    ("text", "n", "expected"),
    [
        pytest.param("[[0, 2], [1]]", 3, ((0, 2), (1,)), id="as-asked"),
        pytest.param("[[0], [], [1, 0]]", 3, None, id="a-third-missing"),
        pytest.param("[[0, 1, 2], [3, 0]]", 5, ((0, 1, 2), (3,), (4,)), id="repeated-and-missing"),
        pytest.param("[[[0, 1], [2]]]", 3, None, id="three-levels"),
        pytest.param("[[[0, 1], [2]], [[3", 4, None, id="three-levels-cut"),
        pytest.param("[0, 1, 2]", 3, None, id="one-level"),
    ],
)
def test_groups_have_two_levels(
    text: str, n: int, expected: tuple[tuple[int, ...], ...] | None
) -> None:
    """Read by the same rules."""
    assert read_groups(Reply(text, "stop"), n) == expected


@given(
    st.lists(st.lists(st.lists(st.integers(-3, 30), max_size=4), max_size=4), max_size=6),
    st.integers(1, 25),
)
def test_every_index_stands_exactly_once(groups: list[list[list[int]]], n: int) -> None:
    """Whatever a list names, it is a partition of the indices or unreadable."""
    named = [index for group in groups for part in group for index in part]
    missing = set(range(n)) - set(named)
    unknown = [index for index in named if not 0 <= index < n]
    read = read_clusters(Reply(json.dumps(groups), "stop"), n)
    if read is not None:
        assert sorted(i for group in read for part in group for i in part) == list(range(n))
        assert all(part for group in read for part in group)
        assert max(len(missing), len(unknown)) <= n / 5

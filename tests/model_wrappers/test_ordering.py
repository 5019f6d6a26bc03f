"""The order in which captions are written."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.model_wrappers.caption_jobs import DocVisuals, Visuals
from lmms_eval_captions.model_wrappers.generation import Generation
from lmms_eval_captions.model_wrappers.ordering import (
    PlannedCaption,
    make_batches,
    merge_twins,
    size_bytes,
)

NOTHING = partial(Visuals, ())

planned = st.builds(
    PlannedCaption,
    source=st.sampled_from(
        [*map(Path, "abcd"), *(DocVisuals("t", "test", n, NOTHING) for n in range(2))]
    ),
    prompt=st.sampled_from("pq"),
    generation=st.sampled_from([Generation(), Generation(max_new_tokens=5)]),
    task=st.just("t"),
    doc_id=st.integers(0, 9),
    positions=st.just((0,)),
)


@given(st.lists(planned, max_size=30), st.integers(1, 5))
def test_batches_hold_every_request_once(some: list[PlannedCaption], batch_size: int) -> None:
    """No request is lost or doubled, settings are not mixed, and a clip's prompts are together."""
    numbered = [
        PlannedCaption(
            asked.source, asked.prompt, asked.generation, asked.task, asked.doc_id, (position,)
        )
        for position, asked in enumerate(some)
    ]
    merged = merge_twins(numbered)
    assert len({(asked.source, asked.prompt, asked.generation) for asked in merged}) == len(merged)
    batches = make_batches(
        merged, batch_size, cost=lambda source: ord(source.name) if isinstance(source, Path) else -1
    )
    positions = [p for batch in batches for asked in batch for p in asked.positions]
    assert sorted(positions) == list(range(len(some)))
    assert all(len({asked.generation for asked in batch}) == 1 for batch in batches)
    assert all(len({type(asked.source) for asked in batch}) == 1 for batch in batches)
    assert all(1 <= len(batch) <= batch_size for batch in batches)
    runs = [(asked.generation, asked.source) for batch in batches for asked in batch]
    changes = sum(before != after for before, after in pairwise(runs))
    assert changes == max(0, len(set(runs)) - 1)


@given(st.lists(planned, max_size=30), st.integers(1, 5))
def test_a_clip_is_in_one_batch(some: list[PlannedCaption], batch_size: int) -> None:
    """Prompts of one clip stay together for captioners that encode it once, up to eight."""
    merged = merge_twins(some)
    batches = make_batches(merged, batch_size, cost=lambda _: 0, together=8)
    assert sorted(map(repr, merged)) == sorted(repr(asked) for batch in batches for asked in batch)
    n_prompts = Counter((asked.generation, asked.source) for asked in merged)
    for about, n in n_prompts.items():
        held = [batch for batch in batches if any((a.generation, a.source) == about for a in batch)]
        assert len(held) == -(-n // 8)
    for batch in batches:
        assert len(batch) <= batch_size or len({asked.source for asked in batch}) == 1


def test_clips_fill_a_batch_as_far_as_they_fit() -> None:
    """Two clips of two prompts are a batch of four, and the third clip waits."""
    asked = [
        PlannedCaption(Path(clip), prompt, Generation(), "t", 0, (0,))
        for prompt in "xy"
        for clip in "abc"
    ]
    batches = make_batches(asked, 5, cost=lambda _: 0, together=8)
    assert [[str(one.source) for one in batch] for batch in batches] == [
        ["a", "a", "b", "b"],
        ["c", "c"],
    ]


def test_random_captions_are_drawn_for_each_request() -> None:
    """Equal requests share a caption only where it is not drawn at random."""
    drawn = Generation(do_sample=True, temperature=0.7)
    same = [PlannedCaption(Path("a"), "p", drawn, "t", 0, (n,)) for n in range(3)]
    assert len(merge_twins(same)) == 3


def test_a_clip_that_is_not_there_costs_nothing(tmp_path: Path) -> None:
    """The size of a file is its cost, and a missing file is no error here."""
    (tmp_path / "clip.mp4").write_bytes(b"12345")
    assert [size_bytes(tmp_path / name) for name in ("clip.mp4", "gone.mp4")] == [5, 0]

"""What prompts share, counted another way: character by character, over all earlier prompts."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.lmms_eval_tasks.commands.estimate.shared_prefix import (
    SharedPrefix,
    shared_prefix,
)
from prompt_orders import common_beginning

CAPTIONS = st.lists(st.lists(st.text("ab", min_size=1, max_size=40), max_size=6), max_size=5)


def _by_hand(captions: Sequence[Sequence[str]]) -> tuple[list[int], list[int]]:
    """Length, and shared characters, of each different prompt of a caption."""
    different = [list(dict.fromkeys(prompts)) for prompts in captions]
    constant = common_beginning([prompt for prompts in different for prompt in prompts])
    lengths: list[int] = []
    shared: list[int] = []
    for prompts in different:
        for place, prompt in enumerate(prompts):
            own = [common_beginning([prompt, earlier]) for earlier in prompts[:place]]
            longest = max(map(len, [constant, *own]))
            shared.append(longest if lengths else 0)
            lengths.append(len(prompt))
    return lengths, shared


@given(CAPTIONS, st.integers(min_value=1, max_value=4))
def test_counts_are_those_of_a_plain_loop(captions: list[list[str]], per_token: int) -> None:
    """Tokens, shared tokens and full blocks of any texts."""
    lengths, shared = _by_hand(captions)
    found = shared_prefix(captions, chars_per_token=per_token)
    assert found.n_prompts == len(lengths)
    assert found.n_tokens == pytest.approx(sum(lengths) / per_token)
    assert found.n_shared == pytest.approx(sum(shared) / per_token)
    blocks = [
        min(own, length - 1) // per_token // 16 for own, length in zip(shared, lengths, strict=True)
    ]
    assert found.n_in_blocks == 16 * sum(blocks)
    assert 0 <= found.n_in_blocks <= found.n_shared <= found.n_tokens
    assert found.n_constant <= found.n_shared


@given(CAPTIONS)
def test_tokens_and_texts_are_counted_alike(captions: list[list[str]]) -> None:
    """A text and the numbers of its characters give the same."""
    encoded = [[tuple(map(ord, prompt)) for prompt in prompts] for prompts in captions]
    assert shared_prefix(encoded) == shared_prefix(captions)


def test_a_caption_is_shared_by_its_questions_alone() -> None:
    """Worked by hand: the first prompt of all shares nothing, another caption what is constant."""
    constant, captions = "c" * 32, ("x" * 16, "y" * 16)
    prompts = [[f"{constant}{caption}{n:04}" for n in range(3)] for caption in captions]
    found = shared_prefix(prompts)
    # Questions 0000, 0001 and 0002 begin with the same three digits.
    assert found.n_shared == 2 * (48 + 3) + 32 + 2 * (48 + 3)
    assert found.n_in_blocks == 2 * 48 + 32 + 2 * 48
    assert found.n_constant == 5 * 32
    assert found.share == found.n_shared / (6 * 52)


def test_nothing_asked_has_no_share() -> None:
    """Without prompts the shares are no numbers; sums are those of their parts."""
    assert isnan(shared_prefix([]).share)
    assert isnan(SharedPrefix().share_in_blocks)
    assert isnan(SharedPrefix().share_constant)
    one = shared_prefix([["abc", "abd"]])
    assert one + SharedPrefix() == one
    assert (one + one).share == one.share

"""How much of what a judge reads stood at the beginning of an earlier prompt.

A server that caches prefixes need not read that again. Pure: prompts go in, numbers come out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import nan
from typing import Final

Text = str | tuple[int, ...]
"""A prompt: its characters, or its tokens."""

BLOCK: Final = 16
"""Tokens of a block of vLLM's cache: what is shared counts in whole blocks there."""


@dataclass(frozen=True, slots=True)
class SharedPrefix:
    """How many of the tokens of some prompts an earlier prompt began with, too."""

    n_prompts: int = 0
    n_tokens: float = 0.0
    """Of all prompts together."""
    n_constant: float = 0.0
    """Those that all prompts begin with, in every prompt but the first."""
    n_shared: float = 0.0
    """Those, and what a prompt begins with as an earlier one about the same caption does."""
    n_in_blocks: float = 0.0
    """Of what is shared, what fills blocks of ``BLOCK`` tokens."""

    def __add__(self, other: SharedPrefix) -> SharedPrefix:
        return SharedPrefix(
            self.n_prompts + other.n_prompts,
            self.n_tokens + other.n_tokens,
            self.n_constant + other.n_constant,
            self.n_shared + other.n_shared,
            self.n_in_blocks + other.n_in_blocks,
        )

    @property
    def share(self) -> float:
        """Share of the tokens that is shared, in [0, 1]; ``nan`` without prompts."""
        return self.n_shared / self.n_tokens if self.n_tokens else nan

    @property
    def share_in_blocks(self) -> float:
        """The same of what fills blocks."""
        return self.n_in_blocks / self.n_tokens if self.n_tokens else nan

    @property
    def share_constant(self) -> float:
        """The same of what all prompts begin with."""
        return self.n_constant / self.n_tokens if self.n_tokens else nan


def shared_prefix(
    captions: Iterable[Sequence[Text]], *, chars_per_token: float = 1.0
) -> SharedPrefix:
    """What prompts of one kind share, if a cache holds those of a caption until its last question.

    Args:
        captions: For each caption the prompts about it, in the order in which they are asked; all
            texts, or all tokens. Equal prompts about a caption count once: they are asked once, or
            share everything.
        chars_per_token: Length of a token where the prompts are texts.

    >>> found = shared_prefix(["ab1 ab2".split(), "ac1 ac2".split()])
    >>> found.n_tokens, found.n_constant, found.n_shared
    (12.0, 3.0, 5.0)
    """
    constant: Text | None = None
    lengths: list[tuple[int, int]] = []
    for prompts in captions:
        for prompt, n_same in _with_earlier(prompts):
            constant = prompt if constant is None else constant[: _n_common(constant, prompt)]
            lengths.append((len(prompt), n_same))
    n_constant = len(constant or ())
    # Nothing came before the very first.
    shared = [max(n_constant, n_same) if place else 0 for place, (_, n_same) in enumerate(lengths)]
    in_tokens = [
        # The last token is read in any case: what follows is predicted from it.
        int(min(n_same, n - 1) / chars_per_token)
        for (n, _), n_same in zip(lengths, shared, strict=True)
    ]
    return SharedPrefix(
        n_prompts=len(lengths),
        n_tokens=sum(n for n, _ in lengths) / chars_per_token,
        n_constant=max(0, len(lengths) - 1) * n_constant / chars_per_token,
        n_shared=sum(shared) / chars_per_token,
        n_in_blocks=float(sum(n // BLOCK * BLOCK for n in in_tokens)),
    )


def _with_earlier(prompts: Sequence[Text]) -> Iterator[tuple[Text, int]]:
    """The different prompts, each with how far it is like the most similar earlier one."""
    earlier: list[Text] = []
    for prompt in prompts:
        # In sorted order those with the longest common beginning stand next to each other.
        place = bisect_left(earlier, prompt)
        beside = earlier[max(0, place - 1) : place + 1]
        if prompt in beside:
            continue
        yield prompt, max((_n_common(prompt, other) for other in beside), default=0)
        earlier.insert(place, prompt)


def _n_common(first: Text, second: Text) -> int:
    """How many of their characters or tokens both begin with; halving is quicker than a loop."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low

"""Several prompts about the same clips: what stands before the prompts is processed once."""

from __future__ import annotations

import copy
import threading
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from transformers import BatchFeature, PretrainedConfig

    from lmms_eval_captions.model_wrappers.caption_jobs import CaptionJob
    from lmms_eval_captions.model_wrappers.hf.inputs import Part


class Tokenizer(Protocol):
    """What is used of a ``transformers.PreTrainedTokenizerBase``."""

    pad_token_id: int | None

    def get_added_vocab(self) -> Mapping[str, int]:
        """Tokens at which a text is split before anything else."""

    def __call__(self, text: str, *, add_special_tokens: bool) -> Mapping[str, Any]:
        """Tokens of a text."""

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of tokens."""


@dataclass(frozen=True, slots=True, eq=False)
class SharedPart:
    """Jobs whose inputs begin alike, clip by clip: with the clip, and the text around it."""

    jobs: Sequence[int]
    """Positions in the batch."""
    prefixes: BatchFeature
    """How the inputs begin, padded on the left: one row for each clip (or set of clips)."""
    rows: Sequence[int]
    """Of each job, its row of the prefixes."""
    tails: Sequence[Sequence[int]]
    """Of each job, the tokens after its prefix: text alone, at least one."""

    def n_inputs(self) -> list[int]:
        """Tokens that each job's caption goes on from, padding not counted."""
        lengths = self.prefixes["attention_mask"].sum(dim=1).tolist()
        return [
            int(lengths[row]) + len(tail) for row, tail in zip(self.rows, self.tails, strict=True)
        ]

    def shortest_and_longest(self) -> SharedPart:
        """The two jobs whose tails differ most in length."""
        by_length = sorted(range(len(self.jobs)), key=lambda place: len(self.tails[place]))
        chosen = [by_length[0], by_length[-1]]
        return SharedPart(
            jobs=[self.jobs[place] for place in chosen],
            prefixes=self.prefixes,
            rows=[self.rows[place] for place in chosen],
            tails=[self.tails[place] for place in chosen],
        )


class ProcessorOfThread(threading.local):
    """A processor for each thread: tokenizers refuse to be set up by two at once."""

    def __init__(self, processor: Any) -> None:  # noqa: ANN401 (a ``ProcessorMixin``)
        super().__init__()
        self.own = copy.deepcopy(processor)


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Jobs on the same clips."""

    jobs: Sequence[int]
    tails: Sequence[Sequence[int]]
    texts: Sequence[str]
    """What the tails are the tokens of."""


def visual_ids(config: PretrainedConfig) -> frozenset[int]:
    """Tokens in whose place pictures, videos and sounds are seen or heard."""
    named = (
        getattr(config, f"{kind}_token_{word}", None)
        for kind in ("image", "video", "vision", "audio", "media")
        for word in ("id", "index")
    )
    return frozenset(value for value in named if isinstance(value, int))


def share(
    jobs: Sequence[CaptionJob],
    texts: Callable[[CaptionJob], str],
    parts: Callable[[Sequence[CaptionJob]], Sequence[Part]],
    *,
    tokenizer: Tokenizer,
    visual_ids: Collection[int],
) -> list[SharedPart] | None:
    """The inputs of jobs of which some are about the same clips, each clip processed once.

    Token for token what the processor makes of every job alone: what follows the last special token
    that the texts have in common is tokenized by itself, and must come out as the processor has it:
    so the first job's is compared, and the others' tokenized behind what the processor put there.

    Args:
        jobs: Of one batch.
        texts: A job's conversation as one text, as the processor takes it.
        parts: The inputs of jobs, by the processor.
        tokenizer: The processor's.
        visual_ids: Tokens in whose place pictures and videos are seen.

    Returns:
        ``None`` where no clip has several jobs, or where prompts do not come after the clips.
    """
    together: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, job in enumerate(jobs):
        together[tuple(id(clip) for clip in job.clips)].append(index)
    if len(together) == len(jobs) or () in together:
        return None
    groups: list[_Group] = []
    for indices in together.values():
        split = _split([texts(jobs[index]) for index in indices], tokenizer)
        if split is None:
            return None
        token, ends = split
        tails = [_tokens_after(token, end, tokenizer) for end in ends]
        if not all(tails):
            return None
        groups.append(_Group(indices, tails, ends))
    shared = [
        _cut(part, [groups[row] for row in part.jobs], tokenizer, visual_ids)
        for part in parts([jobs[group.jobs[0]] for group in groups])
    ]
    usable = [part for part in shared if part is not None]
    return usable if len(usable) == len(shared) else None


def _split(texts: Sequence[str], tokenizer: Tokenizer) -> tuple[str, list[str]] | None:
    """The last special token that all texts have in common, and what follows it in each."""
    common = _common_start(texts)
    at = max(
        (
            (common.rfind(token) + len(token), token)
            for token in tokenizer.get_added_vocab()
            if token in common
        ),
        default=None,
    )
    if at is None:
        return None
    end, token = at
    ends = [text[end:] for text in texts]
    # Some processors add or drop a blank there, depending on what follows.
    blanks = {text[: len(text) - len(text.lstrip())] for text in ends}
    return (token, ends) if len(blanks) == 1 else None


def _tokens_after(token: str, text: str, tokenizer: Tokenizer) -> list[int]:
    """Tokens of a text after a special one, so that it does not count as the beginning.

    Returns:
        Nothing where the special token is not one by itself.
    """
    first, *ids = tokenizer(token + text, add_special_tokens=False)["input_ids"]
    return list(ids) if first == tokenizer.get_added_vocab()[token] else []


def _go_on(group: _Group, before: Sequence[int], tokenizer: Tokenizer) -> bool:
    """Whether the texts are tokenized as they are behind what the processor has put before them.

    Args:
        group: Texts and their tokens.
        before: What the inputs begin with.
        tokenizer: The processor's.
    """
    names = {number: token for token, number in tokenizer.get_added_vocab().items()}
    at = next((at for at in reversed(range(len(before))) if before[at] in names), None)
    if at is None:
        return False
    lead = list(before[at + 1 :])
    said, token = tokenizer.decode(lead), names[before[at]]
    return not lead or all(
        _tokens_after(token, said + text, tokenizer) == [*lead, *tail]
        for text, tail in zip(group.texts, group.tails, strict=True)
    )


def _common_start(texts: Sequence[str]) -> str:
    first, last = min(texts), max(texts)
    n_equal = next(
        (n for n, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), None
    )
    return first if n_equal is None else first[:n_equal]


def _cut(
    part: Part, groups: Sequence[_Group], tokenizer: Tokenizer, visual_ids: Collection[int]
) -> SharedPart | None:
    """The inputs of each group's first job without its tail; ``None`` where it does not end so."""
    ids, mask = part.inputs["input_ids"], part.inputs["attention_mask"]
    aligned = {name for name, value in part.inputs.items() if _is_aligned(value, ids)}
    if any(
        _has_positions(value, ids) for name, value in part.inputs.items() if name not in aligned
    ):
        return None
    lengths = []
    for row, group in enumerate(groups):
        tail = torch.tensor(group.tails[0])
        length = int(mask[row].sum()) - len(tail)
        is_padded_left = bool(mask[row, -(length + len(tail)) :].all())
        if length < 1 or not is_padded_left or not torch.equal(ids[row, -len(tail) :], tail):
            return None
        if set(group.tails[0]) & set(visual_ids):
            return None
        if not _go_on(group, ids[row, : -len(tail)].tolist(), tokenizer):
            return None
        lengths.append(length)
    prefixes = type(part.inputs)(dict(part.inputs.items()))
    for name in aligned:
        fill = (tokenizer.pad_token_id or 0) if name == "input_ids" else 0
        value = part.inputs[name]
        cut = value.new_full((len(groups), max(lengths)), fill)
        for row, (group, length) in enumerate(zip(groups, lengths, strict=True)):
            n_tail = len(group.tails[0])
            cut[row, -length:] = value[row, -(length + n_tail) : -n_tail]
        prefixes[name] = cut
    return SharedPart(
        jobs=[job for group in groups for job in group.jobs],
        prefixes=prefixes,
        rows=[row for row, group in enumerate(groups) for _ in group.jobs],
        tails=[tail for group in groups for tail in group.tails],
    )


def _is_aligned(value: object, ids: torch.Tensor) -> bool:
    """Whether a value says something of every token, as masks and kinds of tokens do."""
    return (
        isinstance(value, torch.Tensor)
        and value.shape == ids.shape
        and not value.is_floating_point()
    )


def _has_positions(value: object, ids: torch.Tensor) -> bool:
    """Whether a value says something of every token in a form that is not known here."""
    return isinstance(value, torch.Tensor) and ids.shape in (value.shape[:2], value.shape[-2:])

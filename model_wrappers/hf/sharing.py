"""Several prompts about one clip: the common prefix is read once, its cache copied per prompt.

The recipe is transformers' own ("re-use a cache to continue generation"). Prefixes are cut from
what the processor makes of each clip's first prompt; the other prompts' tokens follow them.
"""

from __future__ import annotations

import copy
import inspect
import threading
from collections import defaultdict
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import torch
from loguru import logger
from transformers import BatchFeature, GenerationConfig, cache_utils
from transformers.cache_utils import DynamicCache
from transformers.generation.utils import GenerateDecoderOnlyOutput

from lmms_eval_captions.model_wrappers.hf.inputs import Part, Showing, make_parts, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lmms_eval_captions.model_wrappers.caption_jobs import CaptionJob
    from lmms_eval_captions.model_wrappers.hf.prompts import Processor
    from lmms_eval_captions.model_wrappers.model_args import Generation


MOST_TOGETHER: Final = 8
"""Prompts of one clip that are asked at once; VDC has five."""
_PLAIN: Final = tuple(
    getattr(cache_utils, name)
    for name in ("DynamicLayer", "DummyLayer")
    if hasattr(cache_utils, name)
)
"""Cache layers that keep everything; transformers 5.19 has only one of them."""
_CACHE: Final = (
    "cache"
    if "cache" in {field.name for field in fields(GenerateDecoderOnlyOutput)}
    else "past_key_values"
)
"""Name of the cache in ``generate``; transformers 5.24 renamed it."""
_TOLERANCE: Final = {torch.float32: 1e-3, torch.float64: 1e-3}
_HALF_TOLERANCE: Final = 0.1
"""Largest difference between logits, in shares of their spread; half precision rounds by 0.02."""
_KINDS: Final = ("image", "video", "vision", "audio", "media")


class _NotShareableError(Exception):
    """A model cannot share prefixes; the text says why."""


@dataclass(frozen=True, slots=True, eq=False)
class SharedPart:
    """Jobs whose inputs begin alike, clip by clip."""

    jobs: Sequence[int]
    """Indices in the batch."""
    prefixes: BatchFeature
    """Beginning of the inputs, padded on the left: one row for each clip."""
    rows: Sequence[int]
    """Row of each job's prefix."""
    tails: Sequence[Sequence[int]]
    """Tokens of each job after its prefix: only text, at least one."""

    def n_inputs(self) -> list[int]:
        """Return the tokens of each job's input, without padding."""
        lengths = self.prefixes["attention_mask"].sum(dim=1).tolist()
        return [int(lengths[row]) + len(t) for row, t in zip(self.rows, self.tails, strict=True)]


AnyPart = Part | SharedPart


class PrefixSharing:
    """Inputs of jobs, shared if several are about one clip and the model allows it.

    Without sharing, at most ``batch_size`` jobs go through the model at once.
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401 (models have no common type with ``generate``)
        processor: Processor,
        showing: Showing,
        *,
        batch_size: int,
        is_wanted: bool,
    ) -> None:
        self._model, self._processor, self._showing = model, processor, showing
        self._batch_size = batch_size
        self._of_thread = threading.local()
        names = [f"{kind}_token_{word}" for kind in _KINDS for word in ("id", "index")]
        self._visual_ids = {getattr(model.config, name, None) for name in names}
        self.is_possible: bool | None = None if is_wanted else False
        """``None`` until it was tried."""
        self.reason = "" if is_wanted else "share_prefix=false"

    def prepare(self, jobs: Sequence[CaptionJob], generation: Generation) -> list[AnyPart]:
        """Return the inputs of a batch; called in several threads."""
        # Tokenizers refuse to be used by two threads at once.
        if not hasattr(self._of_thread, "processor"):
            self._of_thread.processor = copy.deepcopy(self._processor)
        processor = self._of_thread.processor
        shared: list[SharedPart] | None = None
        if self.is_possible is not False and generation.num_beams == 1:
            shared = self._shared(processor, jobs)
        return list(shared) if shared else self._apart(processor, jobs)

    def usable(
        self, parts: Sequence[AnyPart], jobs: Sequence[CaptionJob], settings: GenerationConfig
    ) -> Sequence[AnyPart]:
        """Return prepared parts, or the same jobs apart if the model cannot share."""
        shared = [part for part in parts if isinstance(part, SharedPart)]
        if shared and self.is_possible is None:
            self.reason = self._objection(shared[0], jobs, settings)
            self.is_possible = not self.reason
            if self.reason:
                logger.info(
                    "each prompt of a clip is asked apart: prefixes cannot be shared ({})",
                    self.reason,
                )
        return self._apart(self._processor, jobs) if shared and not self.is_possible else parts

    def generate(self, part: SharedPart, settings: GenerationConfig) -> list[torch.Tensor]:
        """Return each job's new tokens, padded to the longest of its call."""
        new: dict[int, torch.Tensor] = {}
        for indices, n_prompt, written in self._written(part, settings):
            new.update(zip(indices, written[:, n_prompt:], strict=True))
        return [new[index] for index in range(len(part.jobs))]

    def _apart(self, processor: Processor, jobs: Sequence[CaptionJob]) -> list[AnyPart]:
        """Return every job with its clip, at most ``batch_size`` together."""
        return [
            Part([at + index for index in part.jobs], part.inputs)
            for at in range(0, len(jobs), self._batch_size)
            for part in make_parts(processor, jobs[at : at + self._batch_size], self._showing)
        ]

    def _shared(self, processor: Processor, jobs: Sequence[CaptionJob]) -> list[SharedPart] | None:
        """Return inputs that process each clip once, token for token those of every job alone.

        ``None`` if no clip has several jobs, or what a processor makes of the first prompt does not
        end in the tokens in which the prompts differ.
        """
        by_clips: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for index, job in enumerate(jobs):
            by_clips[tuple(id(clip) for clip in job.clips)].append(index)
        groups = list(by_clips.values())
        # Some processors add or drop a blank after a clip, depending on what follows.
        if len(groups) == len(jobs) or any(job.prompt[:1].isspace() for job in jobs):
            return None
        tokens = [self._tokens(processor, [jobs[index] for index in group]) for group in groups]
        firsts = [jobs[group[0]] for group in groups]
        shared: list[SharedPart] = []
        for part in make_parts(processor, firsts, self._showing):
            prefixes = self._cut(part.inputs, [tokens[group] for group in part.jobs])
            if prefixes is None:
                return None
            shared.append(
                SharedPart(
                    jobs=[index for group in part.jobs for index in groups[group]],
                    prefixes=prefixes,
                    rows=[row for row, group in enumerate(part.jobs) for _ in groups[group]],
                    tails=[
                        ids[n:] for group in part.jobs for own, n in [tokens[group]] for ids in own
                    ],
                )
            )
        return shared

    def _tokens(
        self, processor: Processor, jobs: Sequence[CaptionJob]
    ) -> tuple[list[list[int]], int]:
        """Return the tokens of prompts before clips are filled in, and how many all begin with."""
        texts = [text_of(processor, job, self._showing) for job in jobs]
        ids = [processor.tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
        differ = (n for n, column in enumerate(zip(*ids, strict=False)) if len(set(column)) > 1)
        n_shortest = min(map(len, ids))
        return ids, min(next(differ, n_shortest), n_shortest - 1)

    def _cut(
        self, inputs: BatchFeature, prompts: Sequence[tuple[list[list[int]], int]]
    ) -> BatchFeature | None:
        """Return inputs without each row's tail; ``None`` if they do not end in it."""
        tokenizer = self._of_thread.processor.tokenizer
        ids, mask = inputs["input_ids"], inputs["attention_mask"]
        tensors = {k: v for k, v in inputs.items() if isinstance(v, torch.Tensor)}
        aligned = {
            k for k, v in tensors.items() if v.shape == ids.shape and not v.is_floating_point()
        }
        # Some inputs say something of every token in other forms, such as cross-attention masks.
        if any(
            ids.shape in (v.shape[:2], v.shape[-2:]) for k, v in tensors.items() if k not in aligned
        ):
            return None
        ends: list[tuple[int, int]] = []
        for row, (tokens, n_common) in enumerate(prompts):
            tails = [own[n_common:] for own in tokens]
            n_tail, n_row = len(tails[0]), int(mask[row].sum())
            row_ids = ids[row, -n_row:].tolist()
            ends_in_tail = n_tail < n_row and row_ids[-n_tail:] == tails[0]
            # The token before the tail is the prompt's own, or the processor's.
            is_own = row_ids[-n_tail - 1 : -n_tail] == tokens[0][n_common - 1 : n_common]
            if not is_own and not _follow(tokenizer, row_ids[:-n_tail], tails):
                return None
            is_padded_left = bool(mask[row, -n_row:].all())
            has_visuals = any(self._visual_ids.intersection(tail) for tail in tails)
            if not n_common or not ends_in_tail or not is_padded_left or has_visuals:
                return None
            ends.append((n_row, n_tail))
        prefixes = type(inputs)(dict(inputs.items()))
        longest = max(n_row - n_tail for n_row, n_tail in ends)
        pad = tokenizer.pad_token_id or 0
        for name in aligned:
            cut = tensors[name].new_full((len(ends), longest), pad if name == "input_ids" else 0)
            for row, (n_row, n_tail) in enumerate(ends):
                cut[row, n_tail - n_row :] = tensors[name][row, -n_row:-n_tail]
            prefixes[name] = cut
        return prefixes

    def _objection(
        self, part: SharedPart, jobs: Sequence[CaptionJob], settings: GenerationConfig
    ) -> str:
        """Return why prefixes cannot be shared; empty if they can.

        The first logits of the shortest and longest prompt are compared with those of full inputs.
        """
        by_length = sorted(range(len(part.jobs)), key=lambda index: len(part.tails[index]))
        chosen = [by_length[0], by_length[-1]]
        tried = SharedPart(
            jobs=[part.jobs[index] for index in chosen],
            prefixes=part.prefixes,
            rows=[part.rows[index] for index in chosen],
            tails=[part.tails[index] for index in chosen],
        )
        once = _greedy(settings)
        once.output_logits = True
        differences = []
        try:
            for indices, _, written in self._written(tried, once):
                for row, index in enumerate(indices):
                    [full] = make_parts(self._processor, [jobs[tried.jobs[index]]], self._showing)
                    inputs = on_device(full.inputs, self._model)
                    wanted = self._model.generate(**inputs, generation_config=once).logits[0][0]
                    ours, theirs = written.logits[0][row].double(), wanted.double()
                    spread = (theirs - theirs.mean()).norm()
                    differences.append(float((ours - theirs).norm() / spread))
        except torch.OutOfMemoryError:
            raise
        except _NotShareableError as error:
            return str(error)
        except (RuntimeError, ValueError, TypeError, AttributeError, LookupError) as error:
            return f"{type(error).__name__}: {error}"
        if max(differences) > _TOLERANCE.get(self._model.dtype, _HALF_TOLERANCE):
            return f"its logits differ by {max(differences):.2g} of their spread"
        return ""

    def _written(
        self, part: SharedPart, settings: GenerationConfig
    ) -> Iterator[tuple[list[int], int, Any]]:
        """Yield the jobs of each call, the length of its prompts, and what was generated."""
        model = self._model
        prefixes = on_device(part.prefixes, model)
        cache = getattr(
            model.generate(**prefixes, generation_config=_greedy(settings)), _CACHE, None
        )
        if not isinstance(cache, DynamicCache):
            raise _NotShareableError(f"its cache is a {type(cache).__name__}")
        if cache.get_seq_length() != prefixes["input_ids"].shape[1]:
            raise _NotShareableError("it does not keep one key for each token of its inputs")
        follows = _next_position(model, prefixes)
        # Shorter tails are padded in front, which only attention to everything before can ignore: a
        # sliding window or a state would count the padding.
        is_plain = all(type(layer) in _PLAIN for layer in cache.layers)
        alike: dict[int, list[int]] = defaultdict(list)
        for index, tail in enumerate(part.tails):
            alike[0 if is_plain else len(tail)].append(index)
        n_most = max(self._batch_size, MOST_TOGETHER)
        for same in alike.values():
            for indices in (same[at : at + n_most] for at in range(0, len(same), n_most)):
                rows = torch.tensor([part.rows[index] for index in indices], device=model.device)
                own = copy.deepcopy(cache)
                own.reorder_cache(rows)
                tails = [part.tails[index] for index in indices]
                tokens = _continued(prefixes, rows, tails, follows)
                written = model.generate(**tokens, **{_CACHE: own}, generation_config=settings)
                yield indices, tokens["input_ids"].shape[1], written


def on_device(inputs: BatchFeature, model: Any) -> BatchFeature:  # noqa: ANN401
    """Return a copy of inputs on the model's device; the originals stay where they are."""
    moved: BatchFeature = copy.copy(inputs).to(model.device, dtype=model.dtype)
    return moved


def _greedy(settings: GenerationConfig) -> GenerationConfig:
    """Return settings for one token."""
    greedy: GenerationConfig = copy.deepcopy(settings)
    greedy.max_new_tokens, greedy.do_sample = 1, False
    greedy.temperature = greedy.top_p = greedy.top_k = None
    greedy.return_dict_in_generate = True
    return greedy


def _next_position(model: Any, prefixes: BatchFeature) -> torch.Tensor | None:  # noqa: ANN401
    """Return the position after each prefix, (axes,) rows, 1; ``None`` if no model takes it.

    With several axes (M-RoPE), text does not continue where the tokens of a clip end.
    """
    if "position_ids" not in inspect.signature(model.forward).parameters:
        return None
    ids = prefixes["input_ids"]
    longer = {
        name: torch.cat([value, value.new_full((len(ids), 1), int(name == "attention_mask"))], 1)
        for name, value in prefixes.items()
        if isinstance(value, torch.Tensor) and value.shape == ids.shape
    }
    positions = model._prepare_position_ids_for_generation(
        longer["input_ids"], {**prefixes, **longer}
    )
    return positions[..., -1:]


def _continued(
    prefixes: BatchFeature,
    rows: torch.Tensor,
    tails: Sequence[Sequence[int]],
    follows: torch.Tensor | None,
) -> dict[str, torch.Tensor]:
    """Return prefixes, then padding, then tails."""
    ids, mask = prefixes["input_ids"][rows], prefixes["attention_mask"][rows]
    longest = max(len(tail) for tail in tails)
    # Padding repeats a token of the row: only repetition penalties look at it.
    padded = [[tail[0]] * (longest - len(tail)) + list(tail) for tail in tails]
    steps = torch.arange(longest, device=ids.device) - torch.tensor(
        [longest - len(tail) for tail in tails], device=ids.device
    ).unsqueeze(1)
    tokens = {
        "input_ids": torch.cat([ids, torch.tensor(padded, device=ids.device)], dim=1),
        "attention_mask": torch.cat([mask, (steps >= 0).to(mask.dtype)], dim=1),
    }
    if follows is not None:
        own = rows if follows.shape[-2] > 1 else rows.new_zeros(len(rows))
        tokens["position_ids"] = follows.index_select(-2, own) + steps.clamp(min=0)
    return tokens


def _follow(tokenizer: Any, before: Sequence[int], tails: Sequence[list[int]]) -> bool:  # noqa: ANN401
    """Return if tails are tokenized alike after what a processor has put before them."""
    special = set(tokenizer.get_added_vocab().values())
    at = max((index for index, token in enumerate(before) if token in special), default=len(before))
    lead = list(before[at:])
    texts = (tokenizer.decode([*lead, *tail]) for tail in tails)
    ids = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    return bool(lead) and ids == [[*lead, *tail] for tail in tails]

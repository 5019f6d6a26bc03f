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
from transformers import cache_utils
from transformers.cache_utils import DynamicCache
from transformers.generation.utils import GenerateDecoderOnlyOutput

from lmms_eval_captions.model_wrappers.hf.inputs import Part, Showing, make_parts, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from transformers import BatchFeature, GenerationConfig

    from lmms_eval_captions.model_wrappers.caption_jobs import CaptionJob
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


class NotShareableError(Exception):
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

    Args:
        model: A model that generates.
        processor: Its processor.
        showing: Arguments of the processor.
        batch_size: Most jobs at once if nothing is shared.
        is_wanted: If prefixes are shared at all.
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401 (models have no common type with ``generate``)
        processor: Any,  # noqa: ANN401 (nor have processors)
        showing: Showing,
        *,
        batch_size: int,
        is_wanted: bool,
    ) -> None:
        self._model, self._processor, self._showing = model, processor, showing
        self._batch_size = batch_size
        self._most_rows = max(batch_size, MOST_TOGETHER)
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
        if self.is_possible is not False and generation.num_beams == 1:
            shared = self._shared(processor, jobs)
            if shared:
                return list(shared)
        return self._apart(processor, jobs)

    def usable(
        self, parts: Sequence[AnyPart], jobs: Sequence[CaptionJob], settings: GenerationConfig
    ) -> Sequence[AnyPart]:
        """Return prepared parts, or the same jobs apart if the model cannot share."""
        shared = [part for part in parts if isinstance(part, SharedPart)]
        if shared and self.is_possible is None:
            self._try(shared[0], jobs, settings)
        if shared and not self.is_possible:
            return self._apart(self._processor, jobs)
        return parts

    def give_up(self, reason: str) -> None:
        """Ask each prompt apart from now on, and log why."""
        self.is_possible, self.reason = False, reason
        logger.info("each prompt of a clip is asked apart: prefixes cannot be shared ({})", reason)

    def generate(self, part: SharedPart, settings: GenerationConfig) -> list[torch.Tensor]:
        """Return each job's new tokens, padded to the longest of its call.

        Raises:
            NotShareableError: If the model keeps no cache that can be continued.
        """
        new: dict[int, torch.Tensor] = {}
        for places, n_prompt, written in self._written(part, settings):
            new.update(zip(places, written[:, n_prompt:], strict=True))
        return [new[place] for place in range(len(part.jobs))]

    def _apart(self, processor: Any, jobs: Sequence[CaptionJob]) -> list[AnyPart]:  # noqa: ANN401
        """Return every job with its clip, at most ``batch_size`` together."""
        return [
            Part([at + index for index in part.jobs], part.inputs)
            for at in range(0, len(jobs), self._batch_size)
            for part in make_parts(processor, jobs[at : at + self._batch_size], self._showing)
        ]

    def _shared(self, processor: Any, jobs: Sequence[CaptionJob]) -> list[SharedPart] | None:  # noqa: ANN401
        """Return inputs that process each clip once.

        They are token for token those of every job alone: the text after the last special token
        that prompts have in common is tokenized by itself, which must equal the processor's tokens
        of the first prompt.

        Returns:
            ``None`` if no clip has several jobs, or prompts do not come after the clips.
        """
        together: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for index, job in enumerate(jobs):
            together[tuple(id(clip) for clip in job.clips)].append(index)
        if len(together) == len(jobs):
            return None
        tokenizer = processor.tokenizer
        groups: list[tuple[list[int], list[list[int]], list[str]]] = []
        for indices in together.values():
            token, ends = _split(
                [text_of(processor, jobs[i], self._showing) for i in indices], tokenizer
            )
            tails = [_tokens_after(token, end, tokenizer) for end in ends]
            if not token or not all(tails):
                return None
            groups.append((indices, tails, ends))
        firsts = [jobs[indices[0]] for indices, _, _ in groups]
        shared: list[SharedPart] = []
        for part in make_parts(processor, firsts, self._showing):
            own = [groups[row] for row in part.jobs]
            prefixes = self._cut(part, own, tokenizer)
            if prefixes is None:
                return None
            shared.append(
                SharedPart(
                    jobs=[job for indices, _, _ in own for job in indices],
                    prefixes=prefixes,
                    rows=[row for row, (indices, _, _) in enumerate(own) for _ in indices],
                    tails=[tail for _, tails, _ in own for tail in tails],
                )
            )
        return shared

    def _cut(
        self,
        part: Part,
        groups: Sequence[tuple[list[int], list[list[int]], list[str]]],
        tokenizer: Any,  # noqa: ANN401
    ) -> BatchFeature | None:
        """Return inputs without each row's tail; ``None`` if they do not end in it."""
        ids, mask = part.inputs["input_ids"], part.inputs["attention_mask"]
        tensors = {k: v for k, v in part.inputs.items() if isinstance(v, torch.Tensor)}
        aligned = {
            k for k, v in tensors.items() if v.shape == ids.shape and not v.is_floating_point()
        }
        # Some inputs say something of every token in other forms, such as cross-attention masks.
        if any(
            ids.shape in (v.shape[:2], v.shape[-2:]) for k, v in tensors.items() if k not in aligned
        ):
            return None
        lengths = [
            int(n) - len(tails[0]) for n, (_, tails, _) in zip(mask.sum(1), groups, strict=True)
        ]
        for row, (_, tails, ends) in enumerate(groups):
            n_tail = len(tails[0])
            ends_in_tail = ids[row, -n_tail:].tolist() == tails[0]
            is_padded_left = bool(mask[row, -(lengths[row] + n_tail) :].all())
            if lengths[row] < 1 or not ends_in_tail or not is_padded_left:
                return None
            if not self._visual_ids.isdisjoint(tails[0]):
                return None
            if not _continue(tails, ends, ids[row, :-n_tail].tolist(), tokenizer):
                return None
        prefixes = type(part.inputs)(dict(part.inputs.items()))
        for name in aligned:
            fill = (tokenizer.pad_token_id or 0) if name == "input_ids" else 0
            cut = tensors[name].new_full((len(groups), max(lengths)), fill)
            for row, (length, (_, tails, _)) in enumerate(zip(lengths, groups, strict=True)):
                n_tail = len(tails[0])
                cut[row, -length:] = tensors[name][row, -(length + n_tail) : -n_tail]
            prefixes[name] = cut
        return prefixes

    def _try(
        self, part: SharedPart, jobs: Sequence[CaptionJob], settings: GenerationConfig
    ) -> None:
        """Compare the first logits of the shortest and longest prompt with those of full inputs."""
        by_length = sorted(range(len(part.jobs)), key=lambda place: len(part.tails[place]))
        chosen = [by_length[0], by_length[-1]]
        tried = SharedPart(
            jobs=[part.jobs[place] for place in chosen],
            prefixes=part.prefixes,
            rows=[part.rows[place] for place in chosen],
            tails=[part.tails[place] for place in chosen],
        )
        try:
            off = self._largest_difference(tried, jobs, settings)
        except torch.OutOfMemoryError:
            raise
        except NotShareableError as error:
            self.give_up(str(error))
        except (RuntimeError, ValueError, TypeError, AttributeError, LookupError) as error:
            self.give_up(f"{type(error).__name__}: {error}")
        else:
            if off <= _TOLERANCE.get(self._model.dtype, _HALF_TOLERANCE):
                self.is_possible = True
            else:
                self.give_up(f"its logits differ by {off:.2g} of their spread")

    def _largest_difference(
        self, part: SharedPart, jobs: Sequence[CaptionJob], settings: GenerationConfig
    ) -> float:
        """Return the difference of first logits between shared and full inputs."""
        once = _greedy(settings, 1)
        once.output_logits = True
        differences = []
        for places, _, written in self._written(part, once):
            for row, place in enumerate(places):
                [full] = make_parts(self._processor, [jobs[part.jobs[place]]], self._showing)
                inputs = on_device(full.inputs, self._model)
                wanted = self._model.generate(**inputs, generation_config=once).logits[0][0]
                differences.append(_difference(written.logits[0][row], wanted))
        return max(differences)

    def _written(
        self, part: SharedPart, settings: GenerationConfig
    ) -> Iterator[tuple[list[int], int, Any]]:
        """Yield the jobs of each call, the length of its prompts, and what was generated."""
        model = self._model
        prefixes = on_device(part.prefixes, model)
        encoded = model.generate(**prefixes, generation_config=_greedy(settings, 1))
        cache = getattr(encoded, _CACHE, None)
        if not isinstance(cache, DynamicCache):
            raise NotShareableError(f"its cache is a {type(cache).__name__}")
        if cache.get_seq_length() != prefixes["input_ids"].shape[1]:
            raise NotShareableError("it does not keep one key for each token of its inputs")
        follows = _next_position(model, prefixes)
        for places in self._calls(part, cache):
            rows = torch.tensor([part.rows[place] for place in places], device=model.device)
            own = copy.deepcopy(cache)
            own.reorder_cache(rows)
            tokens = _continued(prefixes, rows, [part.tails[place] for place in places], follows)
            written = model.generate(**tokens, **{_CACHE: own}, generation_config=settings)
            yield places, tokens["input_ids"].shape[1], written

    def _calls(self, part: SharedPart, cache: DynamicCache) -> Iterator[list[int]]:
        """Yield jobs that go through the model at once.

        Shorter tails are padded in front, which only attention to everything before can ignore: a
        sliding window or a state would count the padding.
        """
        is_plain = all(type(layer) in _PLAIN for layer in cache.layers)
        alike: dict[int, list[int]] = defaultdict(list)
        for place, tail in enumerate(part.tails):
            alike[0 if is_plain else len(tail)].append(place)
        for places in alike.values():
            for at in range(0, len(places), self._most_rows):
                yield places[at : at + self._most_rows]


def on_device(inputs: BatchFeature, model: Any) -> BatchFeature:  # noqa: ANN401
    """Return a copy of inputs on the model's device; the originals stay where they are."""
    moved: BatchFeature = copy.copy(inputs).to(model.device, dtype=model.dtype)
    return moved


def _greedy(settings: GenerationConfig, n_new: int) -> GenerationConfig:
    greedy: GenerationConfig = copy.deepcopy(settings)
    greedy.max_new_tokens, greedy.do_sample = n_new, False
    greedy.temperature = greedy.top_p = greedy.top_k = None
    greedy.return_dict_in_generate = True
    return greedy


def _difference(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    ours, theirs = ours.double(), theirs.double()
    return float((ours - theirs).norm() / (theirs - theirs.mean()).norm())


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


def _split(texts: Sequence[str], tokenizer: Any) -> tuple[str, list[str]]:  # noqa: ANN401
    """Return the last special token that all texts have in common, and each text after it."""
    first, last = min(texts), max(texts)
    differ = (n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    common = first[: next(differ, len(first))]
    tokens = tokenizer.get_added_vocab()
    found = max(((common.rfind(t) + len(t), t) for t in tokens if t in common), default=(0, ""))
    ends = [text[found[0] :] for text in texts]
    # Some processors add or drop a blank there, depending on what follows.
    blanks = {text[: len(text) - len(text.lstrip())] for text in ends}
    return (found[1], ends) if len(blanks) == 1 else ("", ends)


def _tokens_after(token: str, text: str, tokenizer: Any) -> list[int]:  # noqa: ANN401
    """Return the tokens of a text after a special one; none if that is not one token."""
    first, *ids = tokenizer(token + text, add_special_tokens=False)["input_ids"] or [None]
    return list(ids) if first == tokenizer.get_added_vocab().get(token) else []


def _continue(
    tails: Sequence[list[int]],
    texts: Sequence[str],
    before: Sequence[int],
    tokenizer: Any,  # noqa: ANN401
) -> bool:
    """Return if texts have the same tokens after what the processor has put before them."""
    names = {number: token for token, number in tokenizer.get_added_vocab().items()}
    at = next((at for at in reversed(range(len(before))) if before[at] in names), None)
    if at is None:
        return False
    lead = list(before[at + 1 :])
    if not lead:
        return True
    said, token = tokenizer.decode(lead), names[before[at]]
    return all(
        _tokens_after(token, said + text, tokenizer) == [*lead, *tail]
        for text, tail in zip(texts, tails, strict=True)
    )

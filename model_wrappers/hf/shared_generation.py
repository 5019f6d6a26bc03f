"""Generating from shared prefixes: a clip is encoded once, for all prompts about it."""

from __future__ import annotations

import copy
import inspect
from collections import defaultdict
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

import torch
from transformers import cache_utils
from transformers.cache_utils import DynamicCache
from transformers.generation.utils import GenerateDecoderOnlyOutput

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from transformers import BatchFeature, GenerationConfig

    from lmms_eval_captions.model_wrappers.hf.shared_prefix import SharedPart

_PLAIN: Final = tuple(
    getattr(cache_utils, name)
    for name in ("DynamicLayer", "DummyLayer")
    if hasattr(cache_utils, name)
)
"""Layers that keep everything; transformers 5.19, which vLLM 0.32 brings, has not both."""
_CACHE: Final = (
    "cache"
    if "cache" in {field.name for field in fields(GenerateDecoderOnlyOutput)}
    else "past_key_values"
)
"""What ``generate`` takes and returns keys and values as; transformers 5.24 gave it a new name."""
_N_TRIED: Final = 4
"""Tokens that are written both ways before a model's prefixes are shared."""
_TOLERANCE: Final = {torch.float32: 1e-3, torch.float64: 1e-3}
_HALF_TOLERANCE: Final = 0.1
"""Largest difference between logits, as a share of their spread; half precision rounds by 0.02."""


class NotShareableError(Exception):
    """A model whose prefixes cannot be shared; its text says why."""


def on_device(inputs: BatchFeature, model: Any) -> BatchFeature:  # noqa: ANN401
    """A copy where the model is: ``to`` moves inputs themselves, which would stay there.

    So what did not fit the memory leaves it before a part is tried.
    """
    moved: BatchFeature = copy.copy(inputs).to(model.device, dtype=model.dtype)
    return moved


def generate_shared(
    model: Any,  # noqa: ANN401 (models have no common type with ``generate``)
    part: SharedPart,
    settings: GenerationConfig,
    *,
    most_rows: int,
) -> list[torch.Tensor]:
    """The new tokens of each job, in order, padded where others of its call write more.

    Args:
        model: What generates.
        part: The jobs.
        settings: For ``generate``; not with beams, which move the rows of a cache.
        most_rows: Most jobs that go through the model at once.

    Raises:
        NotShareableError: If the model keeps no cache that can be continued.
    """
    new: dict[int, torch.Tensor] = {}
    for places, n_prompt, written in _written(model, part, settings, most_rows):
        new.update(zip(places, written[:, n_prompt:], strict=True))
    return [new[place] for place in range(len(part.jobs))]


def why_not(
    model: Any,  # noqa: ANN401
    part: SharedPart,
    wholes: Sequence[BatchFeature],
    settings: GenerationConfig,
) -> str | None:
    """In words why a model's captions would differ, ``None`` where prefixes can be shared.

    The first tokens of each job are written both ways and their logits compared: models that look
    at the prompt while they read the clip differ from the first token on.

    Args:
        model: What generates.
        part: One or a few jobs.
        wholes: The inputs of each of them alone, in order.
        settings: Of the task.
    """
    tried = copy.deepcopy(settings)
    tried.max_new_tokens, tried.do_sample = _N_TRIED, False
    tried.temperature = tried.top_p = tried.top_k = None
    tried.output_logits = tried.return_dict_in_generate = True
    try:
        for places, n_prompt, written in _written(model, part, tried, len(part.jobs)):
            for row, place in enumerate(places):
                inputs = on_device(wholes[place], model)
                whole = model.generate(**inputs, generation_config=tried)
                n_whole = inputs["input_ids"].shape[1]
                ours, theirs = written.sequences[row, n_prompt:], whole.sequences[0, n_whole:]
                for step in range(_n_comparable(ours, theirs)):
                    off = _difference(written.logits[step][row], whole.logits[step][0])
                    if not off <= _TOLERANCE.get(model.dtype, _HALF_TOLERANCE):
                        return f"its logits differ by {off:.2g} of their spread"
    except torch.OutOfMemoryError:
        raise
    except NotShareableError as error:
        return str(error)
    except (RuntimeError, ValueError, TypeError, AttributeError, LookupError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def _n_comparable(ours: torch.Tensor, theirs: torch.Tensor) -> int:
    """Steps that were taken after equal tokens."""
    n_both = min(len(ours), len(theirs))
    differ = (ours[:n_both] != theirs[:n_both]).nonzero()
    return int(differ[0]) + 1 if len(differ) else n_both


def _difference(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    ours, theirs = ours.double(), theirs.double()
    return float((ours - theirs).norm() / (theirs - theirs.mean()).norm())


def _written(
    model: Any,  # noqa: ANN401
    part: SharedPart,
    settings: GenerationConfig,
    most_rows: int,
) -> Iterator[tuple[list[int], int, Any]]:
    """Call by call: the places of its jobs, the length of its prompts, and what was generated."""
    prefixes = on_device(part.prefixes, model)
    cache = _encoded(model, prefixes, settings)
    follows = _next_position(model, prefixes)
    calls = list(_calls(part, cache, most_rows))
    for number, places in enumerate(calls):
        own = cache if number == len(calls) - 1 else copy.deepcopy(cache)
        rows = torch.tensor([part.rows[place] for place in places], device=model.device)
        own.reorder_cache(rows)
        tokens = _continued(prefixes, rows, [part.tails[place] for place in places], follows)
        written = model.generate(**tokens, **{_CACHE: own}, generation_config=settings)
        yield places, tokens["input_ids"].shape[1], written


def _encoded(
    model: Any,  # noqa: ANN401
    prefixes: BatchFeature,
    settings: GenerationConfig,
) -> DynamicCache:
    """Keys and values of the prefixes."""
    once = copy.deepcopy(settings)
    once.max_new_tokens, once.do_sample = 1, False
    once.temperature = once.top_p = once.top_k = None
    once.return_dict_in_generate = True
    encoded = model.generate(**prefixes, generation_config=once)
    cache = getattr(encoded, _CACHE, None)
    if not isinstance(cache, DynamicCache):
        raise NotShareableError(f"it keeps what it has read as {type(cache).__name__}")
    if cache.get_seq_length() != prefixes["input_ids"].shape[1]:
        raise NotShareableError("it does not keep one key for each token of its inputs")
    return cache


def _next_position(model: Any, prefixes: BatchFeature) -> torch.Tensor | None:  # noqa: ANN401
    """Where a token right after each prefix stands, (axes,) rows, 1; ``None`` if no model is told.

    With several axes (M-RoPE), text does not go on where the tokens of a clip end.
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


def _calls(part: SharedPart, cache: DynamicCache, most_rows: int) -> Iterator[list[int]]:
    """Places of jobs that go through the model at once.

    Tails are padded in front, which only attention to everything before does not mind: a sliding
    window or a state would count the padding.
    """
    is_plain = all(type(layer) in _PLAIN for layer in cache.layers)
    alike: dict[int, list[int]] = defaultdict(list)
    for place, tail in enumerate(part.tails):
        alike[0 if is_plain else len(tail)].append(place)
    for places in alike.values():
        for at in range(0, len(places), most_rows):
            yield places[at : at + most_rows]


def _continued(
    prefixes: BatchFeature,
    rows: torch.Tensor,
    tails: Sequence[Sequence[int]],
    follows: torch.Tensor | None,
) -> dict[str, torch.Tensor]:
    """Prefixes, then padding, then tails."""
    ids, mask = prefixes["input_ids"][rows], prefixes["attention_mask"][rows]
    longest = max(len(tail) for tail in tails)
    # Padding takes a token that the row has anyhow: none is looked at but by repetition penalties.
    padded = [[tail[0]] * (longest - len(tail)) + list(tail) for tail in tails]
    more = torch.tensor(padded, device=ids.device)
    lengths = torch.tensor([len(tail) for tail in tails], device=ids.device)
    seen = torch.arange(longest, device=ids.device) >= longest - lengths[:, None]
    tokens = {
        "input_ids": torch.cat([ids, more], dim=1),
        "attention_mask": torch.cat([mask, seen.to(mask.dtype)], dim=1),
    }
    if follows is not None:
        first = follows.index_select(
            -2, rows if follows.shape[-2] > 1 else rows.new_zeros(len(rows))
        )
        steps = torch.arange(longest, device=ids.device) - (longest - lengths[:, None])
        tokens["position_ids"] = first + steps.clamp(min=0)
    return tokens

"""Estimate of a build's requests, tokens and cost, by a formula; nothing is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lmms_eval_captions.construction.build import check_folders
from lmms_eval_captions.construction.categories import read_categories
from lmms_eval_captions.construction.media import find_videos
from lmms_eval_captions.construction.pipeline import Kind, Options, Planned
from lmms_eval_captions.judges.endpoint.cost import load_prices
from lmms_eval_captions.judges.endpoint.replies import CHARS_PER_TOKEN, PICTURE_TOKENS
from lmms_eval_captions.judges.protocols.prompt import Prompts, file_and_key
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.lmms_eval_tasks.text_table import text_table

_REQUEST_CHARS: Final = 120
"""Characters of a request in addition to its texts."""


def estimate_table(kind: Kind, options: Options, settings: JudgeSettings) -> Iterator[str]:
    """Yield the estimate as lines: requests, tokens and cost by prompt and model."""
    check_folders(options)
    n_clips = len(find_videos(options.videos, options.limit))
    n_categories = len(read_categories(kind, options.categories))
    prompts, prices = Prompts(settings.prompts), load_prices(settings.prices)
    prompts.check()
    rows: list[tuple[str, ...]] = [
        ("prompt", "model", "calls", "input tokens", "output tokens", "cost")
    ]
    totals, costs = [0.0, 0.0, 0.0], []
    side = round(options.frame_pixels**0.5)
    for planned in kind.plan(options, n_categories):
        n = n_clips * planned.n_requests / len(planned.models)
        for model in planned.models:
            price = prices.price(model.name)
            picture_tokens = price.picture_tokens(side, side) if price else PICTURE_TOKENS
            n_input = n * _input_tokens(planned, prompts, options.n_frames * picture_tokens)
            n_output = n * planned.output_chars / CHARS_PER_TOKEN
            usd = prices.cost_usd(model.name, input_tokens=n_input, output_tokens=n_output)
            rows.append((planned.prompts[0], model.name, *_cells((n, n_input, n_output), usd)))
            totals = [total + x for total, x in zip(totals, (n, n_input, n_output), strict=True)]
            costs.append(usd)
    known = [usd for usd in costs if usd is not None]
    rows.append(("all", "", *_cells(totals, sum(known) if len(known) == len(costs) else None)))
    yield from text_table(rows, n_left=2)
    yield ""
    yield (
        f"{kind.name} of {n_clips:,} clips, {options.n_frames} frames each, at most "
        f"{options.per_video} questions per clip{'' if kind.categories else ' and aspect'}; prices "
        f"of {prices.as_of}."
    )
    yield (
        "Assumes readable replies of typical length and that no question is dropped. "
        f"{CHARS_PER_TOKEN:g} characters per token. Stored replies of an earlier run cost nothing. "
        "--max-cost is a limit that is never exceeded."
    )


def _input_tokens(planned: Planned, prompts: Prompts, frame_tokens: float) -> float:
    n_chars = _REQUEST_CHARS + planned.input_chars
    for name in planned.prompts:
        file, key = file_and_key(name)
        content = prompts.read(file).get(key) or next(iter(prompts.read(file).values()))
        texts = [content] if isinstance(content, str) else [each["content"] for each in content]
        n_chars += sum(map(len, texts))
    return n_chars / CHARS_PER_TOKEN + planned.has_frames * frame_tokens


def _cells(counts: tuple[float, ...] | list[float], usd: float | None) -> tuple[str, ...]:
    return *(f"{n:,.0f}" for n in counts), "price unknown" if usd is None else f"${usd:,.2f}"

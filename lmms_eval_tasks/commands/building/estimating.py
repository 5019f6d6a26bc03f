"""What a build would take, before anything is sent.

The pipeline itself runs, on some of the clips: each request is counted in the place of being sent,
and answered as it typically would be.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.endpoint.cost import Prices, load_prices
from lmms_eval_captions.judges.endpoint.replies import (
    CHARS_PER_TOKEN,
    PICTURE_TOKENS,
    pictures_in,
)
from lmms_eval_captions.judges.endpoint.request import Request
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.lmms_eval_tasks.commands.building.building import build, check_folders
from lmms_eval_captions.lmms_eval_tasks.commands.building.crew import Rehearsal
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.sighted import REHEARSED
from lmms_eval_captions.lmms_eval_tasks.commands.building.kinds.kind import Kind
from lmms_eval_captions.lmms_eval_tasks.commands.building.options import Options
from lmms_eval_captions.lmms_eval_tasks.commands.building.videos import find_videos
from lmms_eval_captions.lmms_eval_tasks.text_table import text_table

_MOST_CLIPS: Final = 8
"""Clips that are rehearsed; those of a large folder stand for the others."""


@dataclass(slots=True)
class Count:
    """What is asked of one model with one prompt."""

    n_requests: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0


@dataclass(frozen=True, slots=True)
class BuildEstimate:
    """What a build would take."""

    counts: Mapping[tuple[str, str], Count]
    """Prompt and model to what is asked, in the order of asking."""
    n_clips: int
    n_rehearsed: int


def estimate_build(kind: Kind, options: Options, settings: JudgeSettings) -> BuildEstimate:
    """Count what a build would ask; no model is asked, and nothing is written.

    Every request of the typical pipeline is counted: what is dropped on the way, and asked once
    more, depends on the clips and models.

    Raises:
        SettingsError: If the options cannot be used.
        DataError: If there are no clips, or none can be read.
    """
    check_folders(options)
    n_clips = len(find_videos(options.videos, options.limit))
    n_rehearsed = min(n_clips, _MOST_CLIPS)
    prices = load_prices(settings.prices)
    counts: dict[tuple[str, str], Count] = {}

    def add(request: Request, reply: str) -> None:
        prompt = request.protocol.partition(":")[0]
        count = counts.setdefault((prompt, request.model), Count())
        scale = n_clips / n_rehearsed
        count.n_requests += scale
        count.input_tokens += scale * _input_tokens(request, prices, options)
        count.output_tokens += scale * len(reply) / CHARS_PER_TOKEN

    with tempfile.TemporaryDirectory() as folder:
        rehearsed = replace(options, data=Path(folder), limit=n_rehearsed, stage=None, until=None)
        build(kind, rehearsed, settings, Rehearsal(add))
    return BuildEstimate(counts, n_clips, n_rehearsed)


def estimate_table(
    estimate: BuildEstimate, kind: Kind, options: Options, prices: Prices
) -> Iterator[str]:
    """The estimate as lines."""
    rows = [("prompt", "model", "calls", "input tokens", "output tokens", "cost")]
    total = Count()
    costs: list[float | None] = []
    for (prompt, model), count in estimate.counts.items():
        usd = prices.cost_usd(
            model, input_tokens=count.input_tokens, output_tokens=count.output_tokens
        )
        costs.append(usd)
        rows.append((prompt, model, *_cells(count, usd)))
        total.n_requests += count.n_requests
        total.input_tokens += count.input_tokens
        total.output_tokens += count.output_tokens
    known = [usd for usd in costs if usd is not None]
    rows.append(("all", "", *_cells(total, sum(known) if len(known) == len(costs) else None)))
    yield from text_table(rows, n_left=2)
    yield ""
    yield (
        f"{kind.name} of {estimate.n_clips:,} clips, {options.n_frames} frames each, at most "
        f"{options.per_video} questions of a clip"
        f"{' and aspect' if not kind.categories else ''}; prices of {prices.as_of}."
    )
    if estimate.n_rehearsed < estimate.n_clips:
        yield f"Counted on the first {estimate.n_rehearsed} clips, which stand for all."
    yield (
        "Replies are assumed to be of typical length and to be readable; as if no question were "
        f"dropped, and one in {REHEARSED} were looked at again. {CHARS_PER_TOKEN:g} characters per "
        "token. What an earlier run of the build has asked costs nothing again. --max-cost is a "
        "limit that is never passed."
    )


def _cells(count: Count, usd: float | None) -> tuple[str, str, str, str]:
    return (
        f"{count.n_requests:,.0f}",
        f"{count.input_tokens:,.0f}",
        f"{count.output_tokens:,.0f}",
        "price unknown" if usd is None else f"${usd:,.2f}",
    )


def _input_tokens(request: Request, prices: Prices, options: Options) -> float:
    n_pictures, n_letters = pictures_in(request.messages)
    side = round(options.frame_pixels**0.5)
    price = prices.price(request.model)
    per_picture = PICTURE_TOKENS if price is None else price.picture_tokens(side, side)
    return (len(request.body(0)) - n_letters) / CHARS_PER_TOKEN + n_pictures * per_picture

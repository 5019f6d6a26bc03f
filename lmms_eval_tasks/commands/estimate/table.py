"""An estimate as text: a table, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lmms_eval_captions.judges.endpoint.lexical_client import is_offline
from lmms_eval_captions.judges.endpoint.prices import JudgeMode, Prices
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.counting import (
    CHARS_PER_TOKEN,
    N_ASKS,
    TYPICAL_ANSWER,
    Row,
    output_tokens,
)
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.estimate import Estimate
from lmms_eval_captions.lmms_eval_tasks.text_table import text_table

_HEADER: Final = (
    "task", "judge", "runs", "questions", "calls", "input tokens", "output tokens", "cost",
    "in batches",
)  # fmt: skip
_N_TEXT_COLUMNS: Final = 2
_MODES: Final[tuple[JudgeMode, ...]] = ("now", "batch")


def table_of(made: Estimate, prices: Prices) -> list[str]:
    """The lines of an estimate: a row a task, their sum, what was assumed, what went wrong."""
    rows = [_cells(row, prices, stored=made.captions is not None) for row in made.rows]
    if len(made.rows) > 1:
        rows.append(_sum(made.rows, prices, stored=made.captions is not None))
    header = [*_HEADER, *(["in the store"] if made.captions is not None else [])]
    lines = text_table([header, *rows], n_left=_N_TEXT_COLUMNS)
    return [*lines, "", *_assumptions(made, prices)] if made.rows else []


def _cells(row: Row, prices: Prices, *, stored: bool) -> list[str]:
    return [
        row.task,
        row.model,
        f"{row.runs}",
        *_counts([row]),
        *(_dollars(row.cost_usd(prices, mode)) for mode in _MODES),
        *([f"{row.n_stored:,}"] if stored else []),
    ]


def _sum(rows: Sequence[Row], prices: Prices, *, stored: bool) -> list[str]:
    costs = [[row.cost_usd(prices, mode) for row in rows] for mode in _MODES]
    return [
        "all",
        "",
        "",
        *_counts(rows),
        *(_dollars(None if None in cost else sum(c for c in cost if c)) for cost in costs),
        *([f"{sum(row.n_stored for row in rows):,}"] if stored else []),
    ]


def _counts(rows: Sequence[Row]) -> list[str]:
    return [
        f"{sum(row.n_questions for row in rows):,}",
        f"{sum(row.n_calls for row in rows):,}",
        f"{sum(row.input_tokens for row in rows):,.0f}",
        f"{sum(row.output_tokens for row in rows):,.0f}",
    ]


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:,.2f}"


def _assumptions(made: Estimate, prices: Prices) -> list[str]:
    protocols = sorted(set().union(*(row.protocols for row in made.rows)))
    outputs = ", ".join(f"{name} {output_tokens(name)}" for name in protocols)
    return [
        f"Captions: {_captions(made)}.",
        f"Input: the real questions in the real prompts, {CHARS_PER_TOKEN:g} characters a token; a "
        f"first step's answer, part of the second step's prompt, has {len(TYPICAL_ANSWER)}.",
        f"Output tokens a reply: {outputs or 'none'}.",
        "Calls are exact but for replies that cannot be read (asked again, 3 times at most). Input "
        "tokens may be off by 20%, output tokens by half, by far more for a judge that reasons; "
        "without --captions it is the length of captions that moves the most.",
        f"Prices of {prices.as_of}; in batches (LMMS_CAPTIONS_JUDGE_MODE=batch) at "
        f"{prices.batch_factor:g} of them.",
        *_remarks(made, prices),
    ]


def _captions(made: Estimate) -> str:
    if made.captions is None:
        lengths = ", ".join(
            f"{row.task} {row.caption_chars / max(1, row.n_captions):,.0f}" for row in made.rows
        )
        return f"a typical number of characters each ({lengths}); --captions FILE counts yours"
    n_captions = sum(row.n_captions for row in made.rows)
    n_missing = sum(row.n_missing for row in made.rows)
    mean_chars = sum(row.caption_chars for row in made.rows) / max(1, n_captions)
    text = f"the {n_captions:,} of {made.captions}, {mean_chars:,.0f} characters on average"
    if n_missing:
        text += f"; {n_missing:,} videos have none there, their questions are left out"
    return text


def _remarks(made: Estimate, prices: Prices) -> Iterator[str]:
    n_pictures = sum(row.n_pictures for row in made.rows)
    if n_pictures:
        yield f"{n_pictures:,} pictures, each counted as the most tokens it can have."
    if made.ask_again:
        n_again = sum(row.n_again for row in made.rows)
        counted = "" if made.captions else " (counted with --captions alone)"
        yield (
            f"LMMS_CAPTIONS_ASK_AGAIN=1: {n_again:,} of the calls{counted} are for what the store "
            f"holds unreadable replies to alone; each of them may become {N_ASKS}."
        )
    unknown = {row.model for row in made.rows if row.cost_usd(prices, "now") is None}
    if unknown:
        names = ", ".join(sorted(unknown))
        yield f"No price is known of {names}: give one in LMMS_CAPTIONS_PRICES."
    if any(is_offline(row.model) for row in made.rows):
        yield "The judge lexical sends nothing: name another one with --judge."

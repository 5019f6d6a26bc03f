"""What a build was billed for, over all its runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from loguru import logger

from lmms_eval_captions.judges.endpoint.progress import Totals
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.data.files import read_jsonl

_FILE: Final = "spending.jsonl"


def add_spending(folder: Path, stage: str, cost: Totals) -> None:
    """Write down what a stage was billed for in a run, whatever ended it."""
    row = {
        "stage": stage,
        "calls": cost.calls,
        "tokens": {model: list(counts) for model, counts in cost.tokens.items()},
        "usd": cost.usd,
        "prices_date": cost.prices_date,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / _FILE).open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(row)}\n")
    except OSError as error:
        logger.warning("{}: cannot be written: {}", folder / _FILE, error)


def spent(folder: Path) -> str:
    """What all runs of a build were billed for, in a sentence.

    Args:
        folder: That of the stages' files. A run that was killed (SIGKILL) did not write down what
            its last stage cost.
    """
    path = folder / _FILE
    try:
        rows = read_jsonl(path) if path.is_file() else []
    except DataError as error:
        return f"Cost: not known, {error}"
    calls = sum(_number(row.get("calls")) for row in rows)
    tokens = [
        pair
        for row in rows
        if isinstance(row.get("tokens"), dict)
        for pair in dict(row["tokens"]).values()  # type: ignore[call-overload] # checked
    ]
    n_in, n_out = (sum(_number(pair[k]) for pair in tokens) for k in (0, 1))
    costs = [row.get("usd") for row in rows]
    dates = sorted({str(row["prices_date"]) for row in rows if row.get("prices_date")})
    price = (
        f"${sum(map(_number, costs)):,.2f} by the prices of {', '.join(dates)}"
        if rows and None not in costs
        else "price unknown (LMMS_CAPTIONS_PRICES)"
    )
    return (
        f"Cost of all runs: {calls:,.0f} calls, {n_in:,.0f} tokens in, {n_out:,.0f} out"
        f"{f'; {price}' if rows else ''}"
    )


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0

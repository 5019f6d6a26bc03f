"""Rows of which a later run would have more: what kept the judge from answering passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lmms_eval_captions.lmms_eval_tasks.reasons import kind_of

if TYPE_CHECKING:
    import pyarrow as pa

_PASSING: Final = frozenset({"passing", "never", "limit"})


def n_again(table: pa.Table) -> int:
    """How many scored rows a later run would ask again.

    Args:
        table: With the column ``why_unscored``.
    """
    reasons = table.column("why_unscored").drop_null().value_counts()
    return sum(
        each["counts"].as_py() for each in reasons if kind_of(each["values"].as_py()) in _PASSING
    )

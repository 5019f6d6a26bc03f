"""Verdicts of several captioners or judges on the questions that all have a verdict on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.analysis.task_table import TaskTable, Verdicts
from lmms_eval_captions.judges.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

_SIDE: Final = "side"


@dataclass(frozen=True, slots=True)
class Counts:
    """Captions and questions that all sides have, and those left out."""

    n_videos: int = 0
    n_captions: int = 0
    n_questions: int = 0
    """Questions that all sides have a verdict on."""
    n_other_captions: int = 0
    """Captions that not all sides have."""
    n_other_questions: int = 0
    """Questions about shared captions that were not asked of all sides."""
    n_unscored: int = 0
    """Questions on which a side has no verdict in any judge run."""
    n_other_answers: int = 0
    """Shared captions whose questions have other gold answers or categories on some side."""

    def left_out(self) -> str:
        """Describe what was left out; empty if nothing was.

        >>> Counts(n_other_captions=2, n_unscored=1).left_out()
        '2 captions that not all have, 1 question without a verdict in one of them'
        """
        counted = (
            (self.n_other_captions, "caption", "that not all have"),
            (self.n_other_questions, "question", "not asked of all"),
            (self.n_unscored, "question", "without a verdict in one of them"),
        )
        return ", ".join(
            f"{n:,} {what}{'' if n == 1 else 's'} {why}" for n, what, why in counted if n
        )


def align(several: Sequence[Verdicts]) -> tuple[list[Verdicts], Counts]:
    """Cut verdicts down to the questions that all sides have a verdict on.

    Captions are matched by task and video, questions by their text; repeated ones by their order. A
    question without a verdict in any judge run of one side is left out of all.

    Args:
        several: The same task or group of at least one captioner or judge.

    Raises:
        DataError: If they are of different tasks.
    """
    tasks = [table.task for table in several[0].tables]
    for verdicts in several:
        if sorted(table.task for table in verdicts.tables) != sorted(tasks):
            names = "; ".join(", ".join(t.task for t in each.tables) for each in several)
            raise DataError(
                f"{several[0].name}: expected the same tasks in all runs, got {names}; compare the "
                "tasks that all have with --tasks"
            )
    total = dict.fromkeys(asdict(Counts()), 0)
    aligned: list[list[TaskTable]] = [[] for _ in several]
    videos: set[str] = set()
    for task in tasks:
        tables = [next(t for t in each.tables if t.task == task) for each in several]
        kept, counts = align_task(tables)
        for side, table in zip(aligned, kept, strict=True):
            side.append(table)
        videos.update(kept[0].rows["video"])
        total = {name: total[name] + n for name, n in asdict(counts).items()}
    sides = [replace(v, tables=tuple(t)) for v, t in zip(several, aligned, strict=True)]
    return sides, Counts(**{**total, "n_videos": len(videos)})


def align_task(tables: Sequence[TaskTable]) -> tuple[list[TaskTable], Counts]:
    """Cut the tables of one task down to what all of them have, see :func:`align`."""
    import pandas as pd

    n_sides, benchmark = len(tables), tables[0].benchmark
    rows = pd.concat(
        [table.rows.assign(**{_SIDE: side}) for side, table in enumerate(tables)],
        ignore_index=True,
    )
    caption = rows.groupby(["video", "copy"], sort=False).ngroup()
    # A caption that was left out (missing=drop) has no judge run.
    is_judged = ~rows["is_dropped"] & rows["run"].notna()
    n_judged = rows[_SIDE].where(is_judged).groupby(caption).transform("nunique")
    is_shared = is_judged & (n_judged == n_sides)
    n_shared = caption[is_shared].nunique()
    n_other_captions = caption[is_judged].nunique() - n_shared
    rows, caption = rows[is_shared], caption[is_shared]
    n_videos = rows["video"].nunique()
    if not benchmark.counts_ahead:
        # The judge's replies say what was asked: there is nothing to match questions by.
        n_questions = int((rows["question_index"].notna() & (rows[_SIDE] == 0)).sum())
        counts = Counts(n_videos, n_shared, n_questions, n_other_captions)
        return _split(tables, rows), counts
    is_question = rows["question_index"].notna()
    key = rows.groupby([caption, rows["question"].fillna(""), "occurrence"], sort=False).ngroup()
    n_asked = rows[_SIDE].where(is_question).groupby(key).transform("nunique")
    n_other_questions = key[is_question & (n_asked < n_sides)].nunique()
    is_asked = is_question & (n_asked == n_sides)
    columns = tables[0].head["values"]
    n_values = {columns[name]: metric.n_values for name, metric in benchmark.metrics.items()}
    # The asked questions of a sample stand for those that it left out, which stay.
    is_left_out = rows["weight"].eq(0) if "weight" in rows else pd.Series(False, rows.index)
    scored = {}
    for name, n in n_values.items():
        rows[name], scored[name] = _scored_by_all(
            rows[name], n, rows[_SIDE], key, n_sides, is_left_out
        )
    is_scored = scored[columns[benchmark.headline]]
    n_unscored = key[is_asked & ~is_scored].nunique()
    n_other_answers = _n_other_answers(rows, caption, is_question & (n_asked < n_sides))
    kept = is_asked & is_scored
    counts = Counts(
        n_videos, n_shared, key[kept].nunique(), n_other_captions, n_other_questions, n_unscored,
        n_other_answers,
    )  # fmt: skip
    # Captions stay although none of their questions does: their words and tokens count.
    is_empty = ~kept.groupby([caption, rows[_SIDE]]).transform("any")
    first = ~rows.duplicated([_SIDE, "caption"])
    blank = is_empty & first
    rows.loc[blank, ["question_index", "question", *n_values]] = None
    return _split(tables, rows[kept | blank]), counts


def _scored_by_all(
    column: pd.Series[Any],
    n_values: int,
    side: pd.Series[Any],
    key: pd.Series[Any],
    n_sides: int,
    is_left_out: pd.Series[bool],
) -> tuple[pd.Series[Any], pd.Series[Any]]:
    """Return the values that every side has in some judge run, and whether there is any.

    A question may have several values, such as the dimensions of G-VEval.
    """
    import pandas as pd

    singles = (
        [column]
        if n_values == 1
        else [
            column.map(lambda value, k=k: None if value is None else value[k])
            for k in range(n_values)
        ]
    )
    kept, is_scored = [], pd.Series(False, column.index)
    for single in singles:
        has_value = (
            side.where(single.notna() | is_left_out).groupby(key).transform("nunique") == n_sides
        )
        is_scored |= has_value
        kept.append(single.astype(object).where(has_value, None))
    if n_values == 1:
        return kept[0], is_scored
    lists = [list(values) for values in zip(*kept, strict=True)]
    return pd.Series(lists, column.index, dtype=object), is_scored


def _n_other_answers(rows: pd.DataFrame, caption: pd.Series[Any], is_other: pd.Series[Any]) -> int:
    """Count captions of which the same was asked, with other gold answers or categories."""
    differs = rows["questions_digest"].groupby(caption).transform("nunique") > 1
    has_same = ~is_other.groupby(caption).transform("any")
    return int(caption[differs & has_same].nunique())


def _split(tables: Sequence[TaskTable], rows: pd.DataFrame) -> list[TaskTable]:
    return [
        table.only(rows[rows[_SIDE] == side].drop(columns=_SIDE))
        for side, table in enumerate(tables)
    ]

"""Scores tables: rows in, rows with their scores out, in the same order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isnan, nan, prod
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.judges.errors import DataError, JudgeStoppedError
from lmms_eval_captions.lmms_eval_tasks.commands.score.again import is_open
from lmms_eval_captions.lmms_eval_tasks.commands.score.rows import Row, rows_of
from lmms_eval_captions.lmms_eval_tasks.judged_caption import caption_score
from lmms_eval_captions.lmms_eval_tasks.scorer.scorer import CaptionScore, Scorer
from lmms_eval_captions.lmms_eval_tasks.signature import Signature
from lmms_eval_captions.model_wrappers.no_caption import NoCaption

if TYPE_CHECKING:
    import pyarrow as pa

    from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
    from lmms_eval_captions.lmms_eval_tasks.commands.score.spec import ScoreSpec
    from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord

HALVES: Final = ("first_half", "second_half")
"""Columns of the headline by every other question, or judge run: how sure a clip's score is."""


def schema_of(spec: ScoreSpec) -> pa.Schema:
    """The columns of scored rows.

    ``clip_id``; ``caption``, where some are written; a score for each metric, null where there is
    none; ``n_questions`` (times judge runs) and ``n_unscored``; ``why_unscored``, null where all
    are scored; ``is_empty``; ``is_open``, whether a later run may have more; the ``verdicts`` that
    the headline reads, shape (runs, values); :data:`HALVES`; ``parts``, what the clip adds to the
    ratios of each metric, see :func:`parts_of`, from which scores of any set of clips follow;
    ``judged_by``, the signature without its counts.
    """
    import pyarrow as pa

    benchmark = spec.protocol.benchmark
    is_label = bool(benchmark.metrics[benchmark.headline].labels)
    verdict = pa.string() if is_label else pa.float64()
    return pa.schema(
        [
            ("clip_id", pa.string()),
            *([] if spec.captioning is None else [("caption", pa.string())]),
            *((name, pa.float64()) for name in benchmark.metrics),
            ("n_questions", pa.int32()),
            ("n_unscored", pa.int32()),
            ("why_unscored", pa.string()),
            ("is_empty", pa.bool_()),
            ("is_open", pa.bool_()),
            ("verdicts", pa.list_(pa.list_(verdict))),
            *((name, pa.float64()) for name in HALVES),
            ("parts", pa.list_(pa.list_(pa.float64()))),
            ("judged_by", pa.string()),
        ]
    )


class TableScorer:
    """Scores the rows of tables by one spec. Close it, or use it as a context manager.

    Args:
        spec: What is scored; captions that are not there are written before.
        progress: Whether to draw a bar of the questions.

    Raises:
        SettingsError: If the settings cannot be used.
    """

    def __init__(self, spec: ScoreSpec, *, progress: bool = False) -> None:
        self.spec = spec
        self.schema = schema_of(spec)
        self._scorer = Scorer(
            spec.protocol_name, progress=progress, spent_usd=spec.spent_usd, **spec.settings
        )

    def __enter__(self) -> TableScorer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def spent_usd(self) -> float:
        """US dollars of the limit of cost that are spent."""
        return self._scorer.spent_usd

    def submit(self, table: pa.Table) -> Callable[[], pa.Table]:
        """Hand the rows of a table in; never waits.

        Returns:
            A function that waits for them: as many rows, in the same order, with the columns of
            :func:`schema_of`. It raises :class:`JudgeStoppedError` where the judge is asked
            nothing more: rows without scores are no result then.
        """
        waits = [self._submit(row) for row in rows_of(table, self.spec)]

        def scored() -> pa.Table:
            rows = [wait() for wait in waits]
            stopped = self._scorer.stopped
            if stopped is not None:
                raise JudgeStoppedError(stopped)
            return self._table(rows)

        return scored

    def close(self) -> None:
        """Stop: nothing more is sent, and everything answered is on disk."""
        self._scorer.close()

    def _submit(self, row: Row) -> Callable[[], dict[str, object]]:
        problem = row.problem
        if row.clip is not None:
            try:
                wait = self._scorer.submit(self._scorer.document(row.clip), row.caption)
            except DataError as error:
                # The clip's name stands beside it.
                problem = str(error).removeprefix(f"clip {row.clip_id!r}: ")
            else:
                return lambda: self._scored(wait(), row)
        return lambda: {
            "clip_id": row.clip_id,
            "caption": _text(row.caption),
            "why_unscored": problem,
            "is_empty": False,
            # The benchmark's own data may be there the next time; the row is as it is.
            "is_open": not self.spec.protocol.needs,
        }

    def _scored(self, score: CaptionScore, row: Row) -> dict[str, object]:
        benchmark, record = self._scorer.benchmark, score.record
        return {
            "clip_id": score.clip_id,
            "caption": _text(row.caption),
            **{name: _number(value) for name, value in score.scores.items()},
            "n_questions": score.n_questions,
            "n_unscored": score.n_unscored,
            "why_unscored": max(score.reasons, key=score.reasons.__getitem__, default=None),
            "is_empty": bool(record.n_empty),
            "is_open": is_open(score.reasons) or self._lacks_a_metric(record),
            "verdicts": record.values[benchmark.headline],
            **dict(zip(HALVES, map(_number, halves_of(benchmark, record)), strict=True)),
            "parts": parts_of(benchmark, record),
            "judged_by": _judged_by(record),
        }

    def _lacks_a_metric(self, record: CaptionRecord) -> bool:
        """Whether one cannot be computed here that could be where the command was called."""
        return any(
            name not in self.spec.unavailable and metric.unavailable([record]) is not None
            for name, metric in self._scorer.benchmark.metrics.items()
        )

    def _table(self, rows: Sequence[Mapping[str, object]]) -> pa.Table:
        import pyarrow as pa

        return pa.Table.from_pylist([dict(row) for row in rows], schema=self.schema)


def halves_of(benchmark: Benchmark[Any, Any], record: CaptionRecord) -> tuple[float, float]:
    """The headline's score by every other question; of one question, by every other judge run."""
    metric = benchmark.metrics[benchmark.headline]
    runs = record.values[benchmark.headline]
    first, second = [[list(run) for run in runs] for _ in range(2)]
    n = metric.n_values
    if any(len(run) > n for run in runs):
        for half, other in ((first, 1), (second, 0)):
            for run in half:
                for at in range(other * n, len(run), 2 * n):
                    run[at : at + n] = [None] * min(n, len(run) - at)
        return caption_score(metric, record, first), caption_score(metric, record, second)
    return caption_score(metric, record, runs[::2]), caption_score(metric, record, runs[1::2])


def parts_of(benchmark: Benchmark[Any, Any], record: CaptionRecord) -> list[list[float]]:
    """What a caption adds to each metric's ratios, numerator and denominator in turn.

    Returns:
        Shape (n_runs * n_metrics, 2 * n_ratios of the metric), run by run.
    """
    n_runs = max(map(len, record.values.values()), default=0)
    return [
        [
            float(number)
            for pair in metric.ratios([record.values[name][run]], [record])[0]
            for number in pair
        ]
        for run in range(n_runs)
        for name, metric in benchmark.metrics.items()
        if metric.ratios is not None
    ]


def totals_of(benchmark: Benchmark[Any, Any], sums: Sequence[Sequence[float]]) -> dict[str, float]:
    """Each metric from its parts over clips, mean over judge runs.

    Args:
        benchmark: Which one.
        sums: Those of :func:`parts_of` added up place by place.

    Returns:
        ``nan`` for a metric without a value.
    """
    names = [name for name, metric in benchmark.metrics.items() if metric.ratios is not None]
    totals = {}
    for place, name in enumerate(names):
        values = [_ratio(numbers) for numbers in sums[place :: len(names)]]
        totals[name] = benchmark.metrics[name].scale * fmean(values) if values else nan
    return totals


def _ratio(numbers: Sequence[float]) -> float:
    tops, bottoms = numbers[::2], numbers[1::2]
    return prod(tops) / prod(bottoms) if all(bottoms) else nan


def _judged_by(record: CaptionRecord) -> str:
    fields = {
        "judge": record.judge,
        "runs": str(record.runs),
        "protocol": str(record.protocol),
        **record.extras,
    }
    return str(Signature(record.task, fields))


def _text(caption: str | None) -> str | None:
    """Null for a caption that is not there."""
    return None if isinstance(caption, NoCaption) else caption


def _number(value: float) -> float | None:
    """Null for a score that is not there."""
    return None if isnan(value) else value

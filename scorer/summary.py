"""Summary of all scores: totals, their spread, the worst clips, and those to keep."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isnan, nan, prod
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.reasons import grouped
from lmms_eval_captions.lmms_eval_tasks.signature import Share
from lmms_eval_captions.scorer.keeping import keep_error, kept_clips, model_error, score_reliability
from lmms_eval_captions.scorer.parquet import (
    MADE_OF,
    column_sum,
    counted,
    new_file,
    origin_of,
    reading,
    unfinished,
    writing,
)
from lmms_eval_captions.scorer.table import HALVES

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
    from lmms_eval_captions.metrics.intervals import Interval
    from lmms_eval_captions.scorer.table import ScoreSpec

    Floats = NDArray[np.float64]

QUANTILES: Final = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
WORST_FILE: Final = "worst.parquet"
KEPT_FILE: Final = "kept.parquet"
Document = dict[str, Any]
_LIST_COLUMNS: Final = ("clip_id", "score")
_READ: Final = ("n_questions", "n_unscored", "why_unscored", "is_empty", "parts", "judged_by")


@dataclass(slots=True)
class _Scores:
    """Scores of all clips, in the order of the files and of their rows."""

    headline: list[Floats] = field(default_factory=list)
    """Clips' scores, ``nan`` if they have none."""
    halves: list[Floats] = field(default_factory=list)
    """Shape (n_clips, 2): scores by every other question, or judge run."""
    n_questions: list[Floats] = field(default_factory=list)
    """Questions times judge runs of each clip, ``nan`` if it was not asked about."""
    sums: list[Floats] = field(default_factory=list)
    """Sums of the clips' ``parts``."""
    part_sizes: list[int] = field(default_factory=list)
    n: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    """Why questions are unscored, or rows not asked about, to the number of rows."""
    judged_by: Counter[str] = field(default_factory=Counter)
    """Signature without counts, to the number of clips."""

    def add(self, table: pa.Table, headline: str) -> None:
        """Add the rows of a table."""
        self.headline.append(_numbers(table, headline))
        self.halves.append(np.stack([_numbers(table, name) for name in HALVES], axis=1))
        self.n_questions.append(_numbers(table, "n_questions"))
        self.n["rows"] += table.num_rows
        self.n["unasked"] += table.column("n_questions").null_count
        for name in ("n_questions", "n_unscored", "is_empty"):
            self.n[name] += column_sum(table, name)
        for name, counts in (("why_unscored", self.reasons), ("judged_by", self.judged_by)):
            for value in table.column(name).drop_null().value_counts().to_pylist():
                counts[value["values"]] += value["counts"]
        parts = table.column("parts").drop_null().combine_chunks()
        if len(parts):
            self.part_sizes = [len(part) for part in parts[0].as_py()]
            numbers = np.asarray(parts.flatten().flatten(), dtype=np.float64)
            self.sums.append(numbers.reshape(len(parts), -1).sum(axis=0))

    def totals(self, benchmark: Benchmark[Any, Any]) -> dict[str, float]:
        """Return each metric from its parts over clips, mean over judge runs; ``nan`` if none."""
        metrics = {name: metric for name, metric in benchmark.metrics.items() if metric.ratios}
        numbers = np.sum(self.sums, axis=0) if self.sums else np.empty(0)
        ratios = [
            prod(part[::2]) / prod(part[1::2]) if all(part[1::2]) else nan
            for part in np.split(numbers, np.cumsum(self.part_sizes)[:-1])
            if len(part)
        ]
        by_metric = {name: ratios[at :: len(metrics)] for at, name in enumerate(metrics)}
        return {
            name: float(metrics[name].scale * fmean(values)) if values else nan
            for name, values in by_metric.items()
        }

    def first_share(self, n_metrics: int) -> float:
        """Return the share of a clip's questions, or judge runs, in its first half, over clips."""
        n_runs = max(1, len(self.part_sizes) // max(1, n_metrics))
        counts = np.concatenate(self.n_questions)
        n = counts[counts > 0] / n_runs
        n = np.where(n > 1, n, n_runs)
        n = n[n > 1]  # the others have one half
        return float(np.mean(np.ceil(n / 2) / n)) if len(n) else 0.5


def summarise(
    files: Sequence[Path],
    spec: ScoreSpec,
    folder: Path,
    *,
    worst: float,
    keep: float | None,
    max_unscored: float,
) -> Document:
    """Return the summary of files of scores; writes the lists of clips.

    Args:
        files: Files of scores, at least one.
        spec: The spec that they were scored by.
        folder: Folder of the lists.
        worst: Share of the clips in the list of the worst, in (0, 1].
        keep: Share of the clips in the list of those to keep, in (0, 1], ``None`` for no list.
        max_unscored: Largest share of unscored questions that still gives totals, in [0, 1].

    Raises:
        DataError: If a file cannot be read, or a list cannot be written.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    benchmark = spec.protocol.benchmark
    metric = benchmark.metrics[benchmark.headline]
    scores, names = _Scores(), []
    for table in _tables(files, ["clip_id", benchmark.headline, *HALVES, *_READ]):
        scores.add(table, benchmark.headline)
        names += table.column("clip_id").chunks
    # More than 2 GiB of names are no array of pa.string().
    clip_ids = pa.chunked_array(names, pa.string()).cast(pa.large_string()).combine_chunks()
    values = np.concatenate(scores.headline) if scores.headline else np.empty(0)
    known = values[~np.isnan(values)]
    reliability = _reliability(
        scores, sum(m.ratios is not None for m in benchmark.metrics.values())
    )
    n = scores.n
    is_enough = not (
        Share(n["n_unscored"], n["n_questions"]).exceeds(max_unscored)
        or Share(n["unasked"], n["rows"]).exceeds(max_unscored)
    )
    totals = scores.totals(benchmark) if is_enough else {}
    n_different = pc.count_distinct(clip_ids, mode="only_valid").as_py()
    shares = (values - metric.lowest) / metric.span
    goodness = shares if metric.higher_is_better else 1.0 - shares
    lists: dict[str, Document | None] = {}
    for name, order, share in (("worst", 1 - goodness, worst), ("kept", goodness, keep)):
        error_of = reliability if name == "kept" else None
        path = folder / {"worst": WORST_FILE, "kept": KEPT_FILE}[name]
        lists[name] = (
            None if share is None else _list(path, clip_ids, values, order, share, error_of)
        )
    return {
        "protocol": spec.protocol_name,
        "headline": benchmark.headline,
        "higher_is_better": metric.higher_is_better,
        "n_rows": n["rows"],
        "n_scored": len(known),
        "n_questions": n["n_questions"],
        "n_unscored": n["n_unscored"],
        "n_empty": n["is_empty"],
        "n_unasked": n["unasked"],
        "n_repeated": len(clip_ids) - clip_ids.null_count - n_different,
        "reasons": dict(grouped(scores.reasons).most_common(5)),
        "totals": {name: _known(totals.get(name, nan)) for name in benchmark.metrics},
        "quantiles": {f"{q:g}": float(np.quantile(known, q)) for q in QUANTILES if len(known)},
        "reliability": {
            name: _known(value) if isinstance(value, float) else value
            for name, value in asdict(reliability).items()
        },
        **lists,
        "judged_by": [text for text, _ in scores.judged_by.most_common(5)],
    }


def is_list(path: Path) -> bool:
    """Return whether a file is a list as it was written: a user's copy of one may say so, too."""
    import pyarrow.parquet as pq

    made_of = origin_of(path)
    if made_of is None or made_of.get("list") != path.name:
        return False
    metadata = pq.read_metadata(path)
    names = tuple(metadata.schema.names)
    return names == _LIST_COLUMNS and made_of.get("n_clips") == metadata.num_rows


def _tables(files: Sequence[Path], columns: Sequence[str]) -> Iterator[pa.Table]:
    import pyarrow.parquet as pq

    for path in files:
        with reading(path), pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                yield file.read_row_group(group, columns=columns)


def _numbers(table: pa.Table, name: str) -> Floats:
    column: Any = table.column(name)
    return np.asarray(column.cast("float64").fill_null(nan), dtype=np.float64)


def _reliability(scores: _Scores, n_metrics: int) -> Interval:
    if not scores.halves:
        return score_reliability(np.empty(0), np.empty(0))
    halves = np.concatenate(scores.halves)
    return score_reliability(halves[:, 0], halves[:, 1], first_share=scores.first_share(n_metrics))


def _list(
    path: Path,
    clip_ids: pa.Array,
    scores: Floats,
    order: Floats,
    share: float,
    reliability: Interval | None,
) -> Document | None:
    """Write a list of clips, in the order of the shards, and return what the summary says of it.

    Args:
        path: The file.
        clip_ids: Names of all clips.
        scores: Their scores.
        order: Clips with the highest of these are in the list.
        share: Share of the clips with a score.
        reliability: That of the scores, for the error of a list of clips to keep, else ``None``.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    mask, n_tied_left = kept_clips(clip_ids, order, keep=share)
    if not mask.any():
        return None
    values = scores[mask]
    columns = (clip_ids.filter(pa.array(mask)), pa.array(values))
    made_of = json.dumps({"list": path.name, "n_clips": len(values)}).encode()
    table = pa.table(dict(zip(_LIST_COLUMNS, columns, strict=True)), metadata={MADE_OF: made_of})
    with writing(path):
        with new_file(unfinished(path)) as file:
            pq.write_table(table, file, compression="zstd")
        unfinished(path).replace(path)
    error = None
    if reliability is not None:
        ends = keep_error(order, reliability, keep=share) or (None,) * 3
        n_clips = int(np.sum(~np.isnan(order)))
        error = dict(zip(("share", "low", "high"), ends, strict=True))
        error |= {"n_kept": len(values), "n_clips": n_clips}
    return {
        "file": path.name,
        "share": share,
        "n_clips": len(values),
        "edge": float(values[np.argmin(order[mask])]),
        "mean": float(values.mean()),
        "n_tied_left": n_tied_left,
        "error": error,
    }


def words_of(summary: Document) -> list[str]:
    """Return the summary for people, a line for each fact."""
    headline, n_rows = summary["headline"], summary["n_rows"]
    if not n_rows:
        return [f"{summary['protocol']}: there was nothing to score, the files have no rows"]
    lines = [_counts_words(summary)]
    if summary["n_repeated"]:
        n_repeated = counted(summary["n_repeated"], "row")
        lines.append(f"{n_repeated} with a clip_id that another row has, too")
    lines += [f"  {counted(n, 'row')}: {reason}" for reason, n in summary["reasons"].items()]
    totals = summary["totals"].items()
    values = ", ".join(f"{name} {'nan' if v is None else f'{v:.2f}'}" for name, v in totals)
    lines.append(f"over all clips: {values}")
    lines += [f"  judged by {text}" for text in summary["judged_by"]]
    if summary["totals"][headline] is None and summary["n_scored"]:
        lines.append(
            "  nan: more questions are unscored, or rows not asked about, than "
            "LMMS_CAPTIONS_MAX_UNSCORED allows"
        )
    if summary["quantiles"]:
        spread = ", ".join(f"{float(q):.0%} {v:.1f}" for q, v in summary["quantiles"].items())
        lines.append(f"clips by {headline}, quantiles: {spread}")
        lines.append(_reliability_words(summary["reliability"]))
    if summary["worst"] is not None:
        lines.append(_list_words("worst", "up to", summary["worst"], headline))
    if summary["kept"] is not None:
        lines.append(f"kept: {_list_words('best', 'from', summary['kept'], headline)}")
        lines.append(_error_words(summary["kept"]))
    return lines


def _counts_words(summary: Document) -> str:
    n_scored, n_unscored, n_empty = (
        summary[name] for name in ("n_scored", "n_unscored", "n_empty")
    )
    words = [
        f"{summary['protocol']}: {n_scored:,} of {counted(summary['n_rows'], 'clip')} "
        f"{'has' if n_scored == 1 else 'have'} a score; "
        f"{n_unscored:,} of {counted(summary['n_questions'], 'question')} {_are(n_unscored)} "
        "unscored"
    ]
    if n_empty:
        words.append(f"{counted(n_empty, 'caption')} {_are(n_empty)} empty")
    if summary["n_unasked"]:
        words.append(f"{counted(summary['n_unasked'], 'row')} could not be asked about")
    return ", ".join(words)


def _reliability_words(reliability: Mapping[str, float | None]) -> str:
    value, low, high = (reliability[name] for name in ("value", "low", "high"))
    if value is None:
        return (
            "reliability of the scores: unknown; it takes two questions or judge runs of ten clips "
            "that differ"
        )
    ends = "" if low is None or high is None else f" (95% CI {low:.2f}-{high:.2f})"
    return f"reliability of the scores: {value:.2f}{ends}"


def _list_words(kind: str, edge: str, listed: Document, headline: str) -> str:
    n_tied = listed["n_tied_left"]
    have = "has" if n_tied == 1 else "have"
    ties = f"; {n_tied:,} more {have} that score, a hash of the name decides" if n_tied else ""
    n_clips = counted(listed["n_clips"], "clip")
    return (
        f"the {kind} {listed['share']:.4g}, {n_clips}: {headline} {edge} {listed['edge']:.1f}, "
        f"mean {listed['mean']:.1f}{ties} ({listed['file']})"
    )


def _error_words(kept: Document) -> str:
    error = kept["error"]
    if error is None or error["share"] is None:
        return "  error: unknown, as the reliability of the scores is"
    n_dropped = error["n_clips"] - error["n_kept"]
    others = error["share"] * error["n_kept"] / n_dropped if n_dropped else 0.0
    return (
        f"  error: {error['share']:.1%} of the kept clips ({error['low']:.1%} to "
        f"{error['high']:.1%}) would not be kept by their true scores, give or take "
        f"{model_error(kept['share']):.0%} for the model"
        + (f"; of the others {others:.1%} would be" if n_dropped else "")
    )


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def _known(value: float) -> float | None:
    """Return a number, ``None`` for ``nan``, which JSON lacks."""
    return None if isnan(value) else value

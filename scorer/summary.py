"""Summary of all scores: totals, their spread, the worst clips, and those to keep."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isnan, nan, prod
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.judging.reasons import grouped
from lmms_eval_captions.lmms_eval_tasks.signature import Share
from lmms_eval_captions.scorer.keeping import keep_error, kept_clips, model_error, score_reliability
from lmms_eval_captions.scorer.parquet import (
    MADE_OF,
    column_sum,
    counted,
    new_file,
    reading,
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
LIST_FILES: Final[Mapping[str, str]] = {"worst": "worst.parquet", "kept": "kept.parquet"}
"""List of clips to its file."""
Document = dict[str, Any]


def summarise(
    files: Sequence[Path],
    spec: ScoreSpec,
    folder: Path,
    shares: Mapping[str, float | None],
    *,
    max_unscored: float,
) -> Document:
    """Return the summary of at least one file of scores; writes the lists of clips.

    Args:
        files: Files of scores, at least one.
        spec: The spec that they were scored by.
        folder: Folder of the lists.
        shares: ``worst`` and ``kept`` to the share of the clips in the list, in (0, 1]; ``None``
            for no list, and a file of an earlier run is removed.
        max_unscored: Largest share of unscored questions that still gives totals, in [0, 1].
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    benchmark = spec.protocol.benchmark
    metric = benchmark.metrics[benchmark.headline]
    rows, parts, texts = _read(files, benchmark.headline)
    n_questions, n_unscored = (column_sum(rows, name) for name in ("n_questions", "n_unscored"))
    n_unasked = rows["n_questions"].null_count
    # More than 2 GiB of names are no array of pa.string().
    clip_ids = rows["clip_id"].cast(pa.large_string()).combine_chunks()
    values = _numbers(rows, benchmark.headline)
    known = values[~np.isnan(values)]
    first, second = (_numbers(rows, name) for name in HALVES)
    first_share = _first_share(_numbers(rows, "n_questions"), len(parts), benchmark)
    reliability = score_reliability(first, second, first_share=first_share)
    is_enough = not (
        Share(n_unscored, n_questions).exceeds(max_unscored)
        or Share(n_unasked, len(rows)).exceeds(max_unscored)
    )
    totals = _totals(parts, benchmark) if is_enough else {}
    n_different = pc.count_distinct(clip_ids, mode="only_valid").as_py()
    goodness = (values - metric.lowest) / metric.span
    goodness = goodness if metric.higher_is_better else 1.0 - goodness
    lists: dict[str, Document | None] = {}
    for name, order in (("worst", 1 - goodness), ("kept", goodness)):
        path, share = folder / LIST_FILES[name], shares[name]
        error_of = reliability if name == "kept" else None
        lists[name] = (
            None if share is None else _list(path, clip_ids, values, order, share, error_of)
        )
        if lists[name] is None:
            path.unlink(missing_ok=True)
    return {
        "protocol": spec.protocol_name,
        "headline": benchmark.headline,
        "higher_is_better": metric.higher_is_better,
        "n_rows": len(rows),
        "n_scored": len(known),
        "n_questions": n_questions,
        "n_unscored": n_unscored,
        "n_empty": column_sum(rows, "is_empty"),
        "n_unasked": n_unasked,
        "n_repeated": len(clip_ids) - clip_ids.null_count - n_different,
        "reasons": dict(grouped(texts["why_unscored"]).most_common(5)),
        "totals": {name: _known(totals.get(name, nan)) for name in benchmark.metrics},
        "quantiles": {f"{q:g}": float(np.quantile(known, q)) for q in QUANTILES if len(known)},
        "reliability": {
            name: _known(value) if isinstance(value, float) else value
            for name, value in asdict(reliability).items()
        },
        **lists,
        "judged_by": [text for text, _ in texts["judged_by"].most_common(5)],
    }


def _read(
    files: Sequence[Path], headline: str
) -> tuple[pa.Table, list[Floats], dict[str, Counter[str]]]:
    """Return numbers and names of all rows; the sum of each part; texts to their numbers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = ["clip_id", headline, *HALVES, "n_questions", "n_unscored", "is_empty"]
    texts: dict[str, Counter[str]] = {"why_unscored": Counter(), "judged_by": Counter()}
    tables: list[pa.Table] = []
    sums, sizes = np.zeros(1), list[int]()
    for path in files:
        with reading(path), pq.ParquetFile(path) as file:
            tables.append(file.read_row_groups([], columns=columns))
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, columns=[*columns, *texts, "parts"])
                tables.append(table.select(columns))
                for name, counts in texts.items():
                    for value in table[name].drop_null().value_counts().to_pylist():
                        counts[value["values"]] += value["counts"]
                parts = table["parts"].drop_null().combine_chunks()
                if len(parts):
                    sizes = [len(part) for part in parts[0].as_py()]
                    numbers = np.asarray(parts.flatten().flatten(), dtype=np.float64)
                    sums = sums + numbers.reshape(len(parts), -1).sum(axis=0)
    ends = np.cumsum(sizes)[:-1]
    return pa.concat_tables(tables), np.split(sums, ends) if sizes else [], texts


def _numbers(table: pa.Table, name: str) -> Floats:
    column: Any = table.column(name)
    return np.asarray(column.cast("float64").fill_null(nan), dtype=np.float64)


def _totals(parts: Sequence[Floats], benchmark: Benchmark[Any, Any]) -> dict[str, float]:
    """Return each metric from its parts over clips, mean over judge runs; ``nan`` if none."""
    metrics = {name: metric for name, metric in benchmark.metrics.items() if metric.ratios}
    ratios = [prod(x[::2]) / prod(x[1::2]) if all(x[1::2]) else nan for x in parts if len(x)]
    by_metric = {name: ratios[at :: len(metrics)] for at, name in enumerate(metrics)}
    return {
        name: float(metrics[name].scale * fmean(values)) if values else nan
        for name, values in by_metric.items()
    }


def _first_share(n_questions: Floats, n_parts: int, benchmark: Benchmark[Any, Any]) -> float:
    """Return the share of a clip's questions, or judge runs, in its first half, over clips."""
    n_metrics = sum(metric.ratios is not None for metric in benchmark.metrics.values())
    n_runs = max(1, n_parts // max(1, n_metrics))
    n = n_questions[n_questions > 0] / n_runs
    n = np.where(n > 1, n, n_runs)
    n = n[n > 1]  # the others have one half
    return float(np.mean(np.ceil(n / 2) / n)) if len(n) else 0.5


def _list(
    path: Path,
    clip_ids: pa.Array,
    scores: Floats,
    order: Floats,
    share: float,
    reliability: Interval | None,
) -> Document | None:
    """Write a list of clips, the highest by ``order``, and return what the summary says of it.

    Args:
        path: The file.
        clip_ids: Names of all clips.
        scores: Scores of all clips.
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
    columns = {"clip_id": clip_ids.filter(pa.array(mask)), "score": pa.array(values)}
    made_of = json.dumps({"list": path.name, "n_rows": len(values)}).encode()
    table = pa.table(columns, metadata={MADE_OF: made_of})
    with new_file(path) as file, writing(path):
        pq.write_table(table, file, compression="zstd")
    error: Document | None = None
    if reliability is not None:
        ends = keep_error(order, reliability, keep=share) or (None,) * 3
        error = dict(zip(("share", "low", "high"), ends, strict=True))
        error |= {"n_kept": len(values), "n_clips": int(np.sum(~np.isnan(order)))}
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
        summary[f"n_{name}"] for name in ("scored", "unscored", "empty")
    )
    words = [
        f"{summary['protocol']}: {n_scored:,} of {counted(summary['n_rows'], 'clip')} "
        f"{'has' if n_scored == 1 else 'have'} a score; "
        f"{n_unscored:,} of {counted(summary['n_questions'], 'question')} "
        f"{'is' if n_unscored == 1 else 'are'} unscored"
    ]
    if n_empty:
        words.append(f"{counted(n_empty, 'caption')} {'is' if n_empty == 1 else 'are'} empty")
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


def _known(value: float) -> float | None:
    return None if isnan(value) else value

"""What comes of all scores: totals, how clips' scores are spread, the worst, and which to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.commands.score.clip_lists import write_list
from lmms_eval_captions.lmms_eval_tasks.commands.score.counted import counted
from lmms_eval_captions.lmms_eval_tasks.commands.score.keeping import (
    KeepError,
    KeptClips,
    keep_error,
    kept_clips,
    model_error,
    score_reliability,
)
from lmms_eval_captions.lmms_eval_tasks.commands.score.score_column import (
    ClipIds,
    Scores,
    read_scores,
)
from lmms_eval_captions.lmms_eval_tasks.commands.score.table_scorer import totals_of
from lmms_eval_captions.lmms_eval_tasks.reasons import grouped
from lmms_eval_captions.lmms_eval_tasks.signature import Share

if TYPE_CHECKING:
    from lmms_eval_captions.lmms_eval_tasks.benchmark import Metric
    from lmms_eval_captions.lmms_eval_tasks.commands.score.spec import ScoreSpec
    from lmms_eval_captions.metrics.intervals import Interval

QUANTILES: Final = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
WORST_FILE: Final = "worst.parquet"
KEPT_FILE: Final = "kept.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipList:
    """The worst clips, or the best."""

    file: str
    share: float
    """Of the clips that have a score."""
    n_clips: int
    edge: float
    """The score where the list ends: the highest of the worst, the lowest of the best."""
    mean: float
    n_tied_left: int
    """Clips with the score of the edge that are not in the list, by a hash of their names."""
    error: KeepError | None = None
    """How many of the list would not be in it by their true scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What comes of all scores."""

    protocol: str
    headline: str
    higher_is_better: bool
    n_rows: int
    n_scored: int
    """Clips with a score."""
    n_questions: int
    n_unscored: int
    n_empty: int
    n_unasked: int
    n_repeated: int
    """Rows whose clip_id another row has, too."""
    reasons: dict[str, int]
    """Why questions are unscored or rows were not asked about, to rows; the most frequent ones."""
    totals: dict[str, float | None]
    """Metric to its value over all clips, as a task computes it, up to rounding; ``None`` where it
    has none."""
    quantiles: dict[str, float]
    """Of the clips' scores by the headline."""
    reliability: Interval
    """Share of the variance of clips' scores that other questions would find again."""
    worst: ClipList | None
    kept: ClipList | None
    judged_by: list[str]
    """Signatures without counts."""

    def as_json(self) -> dict[str, Any]:
        """The same for programs; numbers that are not there are ``null``."""
        document = _plain(asdict(self))
        assert isinstance(document, dict)  # noqa: S101 - of a dataclass
        return document


def summarise(
    files: Sequence[Path],
    spec: ScoreSpec,
    folder: Path,
    *,
    worst: float,
    keep: float | None,
    max_unscored: float,
) -> Summary:
    """The summary of files of scores; writes the lists of clips.

    Args:
        files: Files of scores.
        spec: What was scored.
        folder: Where the lists go.
        worst: Share of the clips that the list of the worst has, in (0, 1).
        keep: That of the list of those to keep, in (0, 1], ``None`` for no list.
        max_unscored: Largest share of unscored questions that still gives totals, in [0, 1].

    Raises:
        DataError: If a file cannot be read, or a list cannot be written.
    """
    benchmark = spec.protocol.benchmark
    metric = benchmark.metrics[benchmark.headline]
    n_metrics = sum(each.ratios is not None for each in benchmark.metrics.values())
    scores = read_scores(files, benchmark.headline, n_metrics)
    clip_ids = ClipIds(files)
    known = scores.headline[~np.isnan(scores.headline)]
    reliability = score_reliability(
        scores.halves[:, 0], scores.halves[:, 1], first_share=scores.first_share
    )
    n_rows = len(scores.headline)
    is_enough = not (
        Share(scores.n_unscored, scores.n_questions).exceeds(max_unscored)
        or Share(scores.n_unasked, n_rows).exceeds(max_unscored)
    )
    totals = totals_of(benchmark, scores.sums) if is_enough else {}
    lists = _Lists(folder, clip_ids, scores, metric, reliability)
    return Summary(
        protocol=spec.protocol_name,
        headline=benchmark.headline,
        higher_is_better=metric.higher_is_better,
        n_rows=n_rows,
        n_scored=len(known),
        n_questions=scores.n_questions,
        n_unscored=scores.n_unscored,
        n_empty=scores.n_empty,
        n_unasked=scores.n_unasked,
        n_repeated=clip_ids.n_repeated,
        reasons=dict(grouped(scores.reasons).most_common(5)),
        totals={name: _known(totals.get(name)) for name in benchmark.metrics},
        quantiles={
            f"{share:g}": float(value)
            for share, value in zip(QUANTILES, np.quantile(known, QUANTILES), strict=True)
        }
        if len(known)
        else {},
        reliability=reliability,
        worst=lists.worst(worst),
        kept=None if keep is None else lists.kept(keep),
        judged_by=[text for text, _ in scores.judged_by.most_common(5)],
    )


class _Lists:
    """Lists of clips, by scores of which more is better."""

    def __init__(
        self,
        folder: Path,
        clip_ids: ClipIds,
        scores: Scores,
        metric: Metric,
        reliability: Interval,
    ) -> None:
        self._folder = folder
        self._clip_ids = clip_ids
        self._scores = scores.headline
        shares = (scores.headline - metric.lowest) / metric.span
        self._goodness = shares if metric.higher_is_better else 1.0 - shares
        self._reliability = reliability

    def worst(self, share: float) -> ClipList | None:
        return self._written(WORST_FILE, 1.0 - self._goodness, share, is_kept=False)

    def kept(self, share: float) -> ClipList | None:
        return self._written(KEPT_FILE, self._goodness, share, is_kept=True)

    def _written(self, name: str, order: Any, share: float, *, is_kept: bool) -> ClipList | None:  # noqa: ANN401 - an array
        chosen: KeptClips = kept_clips(self._clip_ids, order, keep=share)
        if not chosen.mask.any():
            return None
        write_list(self._folder / name, chosen.mask, self._clip_ids, self._scores)
        values = self._scores[chosen.mask]
        edge = values[np.argmin(order[chosen.mask])]
        return ClipList(
            file=name,
            share=share,
            n_clips=len(values),
            edge=float(edge),
            mean=float(values.mean()),
            n_tied_left=chosen.n_tied_dropped,
            error=keep_error(order, self._reliability, keep=share) if is_kept else None,
        )


def words_of(summary: Summary) -> list[str]:
    """The summary for people, a line for each thing."""
    if not summary.n_rows:
        return [f"{summary.protocol}: there was nothing to score, the files have no rows"]
    headline = summary.headline
    total = summary.totals[headline]
    lines = [_counts_words(summary)]
    if summary.n_repeated:
        lines.append(
            f"{counted(summary.n_repeated, 'row')} with a clip_id that another row has, too"
        )
    lines += [f"  {counted(n, 'row')}: {reason}" for reason, n in summary.reasons.items()]
    values = ", ".join(
        f"{name} {'nan' if value is None else f'{value:.2f}'}"
        for name, value in summary.totals.items()
    )
    lines.append(f"over all clips: {values}")
    lines += [f"  judged by {text}" for text in summary.judged_by]
    if total is None and summary.n_scored:
        lines.append(
            "  nan: more questions are unscored, or rows not asked about, than "
            "LMMS_CAPTIONS_MAX_UNSCORED allows"
        )
    if summary.quantiles:
        spread = ", ".join(
            f"{float(share):.0%} {value:.1f}" for share, value in summary.quantiles.items()
        )
        lines.append(f"clips by {headline}, quantiles: {spread}")
        lines.append(_reliability_words(summary.reliability))
    if summary.worst is not None:
        worst = summary.worst
        lines.append(
            f"the worst {worst.share:g} of them, {counted(worst.n_clips, 'clip')}: {headline} "
            f"up to {worst.edge:.1f}, mean {worst.mean:.1f}{_ties(worst)} ({worst.file})"
        )
    if summary.kept is not None:
        lines += _kept_words(summary.kept, headline)
    return lines


def _counts_words(summary: Summary) -> str:
    n_unscored, n_empty = summary.n_unscored, summary.n_empty
    return (
        f"{summary.protocol}: {summary.n_scored:,} of {counted(summary.n_rows, 'clip')} "
        f"{'has' if summary.n_scored == 1 else 'have'} a score; "
        f"{n_unscored:,} of {counted(summary.n_questions, 'question')} "
        f"{_are(n_unscored)} unscored"
        + (f", {counted(n_empty, 'caption')} {_are(n_empty)} empty" if n_empty else "")
        + (
            f", {counted(summary.n_unasked, 'row')} could not be asked about"
            if summary.n_unasked
            else ""
        )
    )


def _reliability_words(reliability: Interval) -> str:
    if isnan(reliability.value):
        return (
            "how sure a clip's score is cannot be told: it takes two questions or judge runs of "
            "ten clips that differ"
        )
    ends = (
        ""
        if reliability.low is None or reliability.high is None
        else f" ({reliability.low:.2f} to {reliability.high:.2f})"
    )
    return f"other questions of the kind would find {reliability.value:.2f}{ends} of the variance"


def _kept_words(kept: ClipList, headline: str) -> list[str]:
    lines = [
        f"kept: the best {kept.share:g}, {counted(kept.n_clips, 'clip')}, {headline} "
        f"from {kept.edge:.1f}, mean {kept.mean:.1f}{_ties(kept)} ({kept.file})"
    ]
    error = kept.error
    if error is None or isnan(error.share):
        return [*lines, "  error: not known, as it is not how sure a clip's score is"]
    others = (
        "" if isnan(error.dropped_share) else f"; of the others {error.dropped_share:.1%} would be"
    )
    return [
        *lines,
        f"  error: {error.share:.1%} of the kept clips ({error.low:.1%} to {error.high:.1%}) would "
        f"not be kept by their true scores, give or take {model_error(kept.share):.0%} for the "
        f"model{others}",
    ]


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def _ties(listed: ClipList) -> str:
    if not listed.n_tied_left:
        return ""
    have = "has" if listed.n_tied_left == 1 else "have"
    return f"; {listed.n_tied_left:,} more {have} that score, chosen between by a hash of the name"


def _known(value: float | None) -> float | None:
    return None if value is None or isnan(value) else value


def _plain(value: object) -> object:
    """JSON has no nan."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and isnan(value) else value

"""How well metrics agree with people: Kendall's tau on the ratings of MSVD-Eval."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import isnan, nan
from pathlib import Path
from typing import Final

import numpy as np

from lmms_eval_captions.analysis.meta_eval.report import (
    PAPER,
    SEED,
    Agreement,
    Ceiling,
    Report,
)
from lmms_eval_captions.analysis.meta_eval.score_file import align, read_scores
from lmms_eval_captions.judges.endpoint.request import LEXICAL
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.protocols.gveval import ACCR, Setting
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.classic_metrics import CLASSIC, classic_scores
from lmms_eval_captions.lmms_eval_tasks.judged_caption import caption_score
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.benchmark import MSVD_EVAL, with_frames
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.data import (
    RATED,
    Item,
    collapsed,
    read_items,
)
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.scoring import is_nan, signature_of
from lmms_eval_captions.lmms_eval_tasks.submission import submit
from lmms_eval_captions.metrics.correlation import kendall_interval, kendall_tau
from lmms_eval_captions.model_wrappers.video.frame_strip import Sampling

_UNSCORED: Final = "too many candidates are unscored"
_SMOKE_TEST: Final = JudgeConfig(LEXICAL).label


def meta_eval_msvd(
    *,
    classic: bool = True,
    settings: Sequence[Setting] = (),
    score_files: Sequence[Path] = (),
    sampling: Sampling = "first_middle_last",
    n_resamples: int = 1000,
) -> Report:
    """Correlate metrics with the ratings of MSVD-Eval's published candidates.

    Args:
        classic: Whether to compute BLEU, ROUGE-L, METEOR and CIDEr (needs Java, half a minute).
        settings: Settings of G-VEval to ask the judge for.
        score_files: Files of a user's own scores. A column named after a dimension is compared
            with the ratings of that dimension, all others with the annotators' averages.
        sampling: Which frames G-VEval's judge sees.
        n_resamples: Draws of the intervals.

    Raises:
        DataError: If the ratings or a score file cannot be used.
    """
    items = read_items(data_settings())
    if not all(item.ratings and item.candidate for item in items):
        raise DataError("MSVD-Eval.json: expected a candidate and ratings for every video")
    agreement = partial(_agreement, items=items, n_resamples=n_resamples)
    rows: list[Agreement] = []
    notes: list[str] = []
    for path in score_files:
        for metric, values, note in _file_columns(path, items):
            rows.append(agreement(metric, metric if metric in ACCR else "avg", values, note=note))
    if classic:
        try:
            candidates = [item.candidate for item in items]
            scores = classic_scores(candidates, [item.references for item in items])
        except DataError as error:
            rows += [_empty(metric, "avg", "see below") for metric in CLASSIC]
            notes.append(str(error))
        else:
            rows += [agreement(metric, "avg", scores[metric]) for metric in CLASSIC]
    waiting = [(setting, _submit(items, setting, sampling)) for setting in settings]
    for setting, wait in waiting:
        records = wait()
        note = _note(records)
        notes.append(signature_of(records))
        for dimension in RATED:
            metric, values = f"G-VEval {setting} {dimension}", _expected(records, dimension)
            rows.append(
                _empty(metric, dimension, note)
                if note.startswith(_UNSCORED)
                else agreement(metric, dimension, values, note=note)
            )
    rated = dict.fromkeys(row.rating for row in rows)
    return Report(
        title=f"MSVD-Eval: {len(items)} candidates",
        counting="every rating, not their mean",
        n_ratings=sum(len(item.ratings) for item in items),
        n_resamples=n_resamples,
        rows=tuple(rows),
        ceilings=tuple(_ceiling(rating, items) for rating in rated),
        notes=tuple(dict.fromkeys(notes)),
    )


def _ceiling(rating: str, items: Sequence[Item]) -> Ceiling:
    """How well the annotators agree among themselves."""
    column = RATED.index(rating)
    ratings = [[rated[column] for rated in item.ratings] for item in items]
    return Ceiling.of(rating, ratings)


def _agreement(
    metric: str,
    rating: str,
    values: Sequence[float | None],
    *,
    items: Sequence[Item],
    n_resamples: int,
    note: str = "",
) -> Agreement:
    column = RATED.index(rating)
    pairs = [
        (value, [ratings[column] for ratings in item.ratings])
        for value, item in zip(values, items, strict=True)
        if value is not None
    ]
    if not pairs:
        return _empty(metric, rating, note or "no value")
    scores, ratings = [value for value, _ in pairs], [rated for _, rated in pairs]
    taus = {v: kendall_tau(scores, ratings, variant=v) for v in ("b", "c")}
    intervals = {
        v: kendall_interval(
            scores, ratings, variant=v, rng=np.random.default_rng(SEED), n_resamples=n_resamples
        )
        for v in ("b", "c")
    }
    (low_b, high_b), (low_c, high_c) = intervals["b"], intervals["c"]
    return Agreement(
        metric,
        rating,
        len(pairs),
        tau_b=100 * taus["b"],
        interval_b=(100 * low_b, 100 * high_b),
        tau_c=100 * taus["c"],
        interval_c=(100 * low_c, 100 * high_c),
        paper=PAPER.get(metric, ""),
        note=note or ("all values are equal" if isnan(taus["b"]) else ""),
    )


def _empty(metric: str, rating: str, note: str) -> Agreement:
    paper = PAPER.get(metric, "")
    return Agreement(metric, rating, 0, nan, (nan, nan), nan, (nan, nan), paper=paper, note=note)


def _file_columns(
    path: Path, items: Sequence[Item]
) -> Iterator[tuple[str, list[float | None], str]]:
    names = [(item.video_id, item.vname, Path(item.vname).stem) for item in items]
    for metric, scores in read_scores(path).items():
        values, n_others = align(scores, names)
        if not any(value is not None for value in values):
            raise DataError(
                f"{path}: expected scores of MSVD-Eval's videos, such as {items[0].video_id!r} or "
                f"{items[0].vname!r}; column {metric!r} has {', '.join(list(scores)[:3])}"
            )
        n_missing = values.count(None)
        parts = [f"{n_missing} candidates have no value"] if n_missing else []
        parts += [f"{n_others} values are of no candidate"] if n_others else []
        yield metric, values, "; ".join(parts)


def _submit(
    items: Sequence[Item], setting: Setting, sampling: Sampling
) -> Callable[[], list[CaptionRecord]]:
    """Ask the judge about every candidate; the result waits for it."""
    benchmark = with_frames(sampling)
    # Candidates are published: no captioner is asked for them.
    task = replace(
        benchmark.tasks[f"msvd_eval_{setting}"],
        name=f"msvd_meta_eval_{setting}",
        caption_prompt="",
    )
    waits = [
        # Parity: published candidates and references go to the judge as the released code's loader
        # has them; captions of a captioner under test go unchanged.
        submit(
            benchmark,
            {
                "video_id": item.video_id,
                "vname": item.vname,
                "setting": setting,
                "references": [collapsed(reference) for reference in item.references],
            },
            collapsed(item.candidate),
            task=task,
        )
        for item in items
    ]
    return lambda: [wait().record for wait in waits]


def _note(records: Sequence[CaptionRecord]) -> str:
    """Why there is no correlation, or what kind of judge it was."""
    if is_nan("correlation", records):
        return f"{_UNSCORED}, see the log"
    return "smoke test, not a score" if any(r.judge == _SMOKE_TEST for r in records) else ""


def _expected(records: Sequence[CaptionRecord], dimension: str) -> list[float | None]:
    """Expected score of every candidate, mean over runs."""
    metric = MSVD_EVAL.metrics[dimension]
    scores = (caption_score(metric, record, record.values[dimension]) for record in records)
    return [None if isnan(score) else score for score in scores]

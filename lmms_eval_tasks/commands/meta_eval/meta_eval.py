"""How well metrics agree with people: Kendall's tau on the ratings of MSVD-Eval."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.protocols.gveval import GVeval, Setting
from lmms_eval_captions.judges.protocols.gveval_reading import ACCR
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.commands.meta_eval.report import PAPER, SEED, Report, Row
from lmms_eval_captions.lmms_eval_tasks.commands.meta_eval.score_file import align, read_scores
from lmms_eval_captions.lmms_eval_tasks.judge_run import (
    Judged,
    judge_caption,
    judge_defaults,
)
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.classic import CLASSIC, classic_scores
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.data import (
    RATED,
    Item,
    collapsed,
    read_items,
)
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.hooks import TEMPLATE, chain, signature_extras
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.records import GVevalRecords
from lmms_eval_captions.lmms_eval_tasks.records import judging_extras
from lmms_eval_captions.lmms_eval_tasks.scoring import score_or_nan, signature_of
from lmms_eval_captions.metrics.kendall_interval import kendall_interval
from lmms_eval_captions.metrics.kendall_tau import kendall_tau
from lmms_eval_captions.model_wrappers.video.frame_strip import Sampling

if TYPE_CHECKING:
    from lmms_eval_captions.judges.endpoint.chain import Chain
    from lmms_eval_captions.judges.judge_config import JudgeConfig
    from lmms_eval_captions.judges.verdict import ScoresJudgement

_UNSCORED: Final = "too many candidates are unscored"


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
    row = partial(_row, items=items, n_resamples=n_resamples)
    rows: list[Row] = []
    notes: list[str] = []
    for path in score_files:
        for metric, values, note in _file_columns(path, items):
            rows.append(row(metric, metric if metric in ACCR else "avg", values, note=note))
    if classic:
        try:
            scores = classic_scores(items)
        except DataError as error:
            rows += [_empty(metric, "avg", "see below") for metric in CLASSIC]
            notes.append(str(error))
        else:
            rows += [row(metric, "avg", scores[metric]) for metric in CLASSIC]
    waiting = [(setting, _submit(items, setting, sampling)) for setting in settings]
    for setting, wait in waiting:
        judged = wait()
        note = _note(judged)
        notes.append(signature_of([one.unscored() for one in judged]))
        for dimension in RATED:
            metric, values = f"G-VEval {setting} {dimension}", _expected(judged, dimension)
            rows.append(
                _empty(metric, dimension, note)
                if note.startswith(_UNSCORED)
                else row(metric, dimension, values, note=note)
            )
    return Report(
        n_items=len(items),
        n_ratings=sum(len(item.ratings) for item in items),
        n_resamples=n_resamples,
        rows=tuple(rows),
        notes=tuple(dict.fromkeys(notes)),
    )


def _row(
    metric: str,
    rating: str,
    values: Sequence[float | None],
    *,
    items: Sequence[Item],
    n_resamples: int,
    note: str = "",
) -> Row:
    column = RATED.index(rating)
    pairs = [
        (value, [one[column] for one in item.ratings])
        for value, item in zip(values, items, strict=True)
        if value is not None
    ]
    if not pairs:
        return _empty(metric, rating, note or "no value")
    scores, ratings = [value for value, _ in pairs], [row for _, row in pairs]
    taus = {v: kendall_tau(scores, ratings, variant=v) for v in ("b", "c")}
    intervals = {
        v: kendall_interval(
            scores, ratings, variant=v, rng=np.random.default_rng(SEED), n_resamples=n_resamples
        )
        for v in ("b", "c")
    }
    (low_b, high_b), (low_c, high_c) = intervals["b"], intervals["c"]
    return Row(
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


def _empty(metric: str, rating: str, note: str) -> Row:
    paper = PAPER.get(metric, "")
    return Row(metric, rating, 0, nan, (nan, nan), nan, (nan, nan), paper=paper, note=note)


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
) -> Callable[[], list[GVevalRecords]]:
    """Ask the judge about every candidate; the result waits for it."""
    task = f"msvd_meta_eval_{setting}"
    waits = [_ask(item, setting, sampling, task) for item in items]
    extras, prompts = signature_extras(setting, sampling), (GVeval(setting).prompt_name,)
    return lambda: [
        GVevalRecords(task, item.video_id, 1, judged, {**extras, **judging_extras(judged, prompts)})
        for item, judged in zip(items, (wait() for wait in waits), strict=True)
    ]


def _ask(
    item: Item, setting: Setting, sampling: Sampling, task: str
) -> Callable[[], Judged[ScoresJudgement]]:
    # Parity: published candidates and references go to the judge as the released code's loader has
    # them; captions of a captioner under test go unchanged.
    candidate = collapsed(item.candidate)
    references = [collapsed(reference) for reference in item.references]

    def chains(config: JudgeConfig) -> list[Chain[ScoresJudgement]]:
        return [
            chain(
                GVeval(setting),
                candidate,
                references,
                item.vname,
                config,
                run,
                sampling=sampling,
            )
            for run in range(config.runs)
        ]

    return judge_caption(
        candidate,
        task=task,
        video_id=item.video_id,
        aspect=None,
        defaults=judge_defaults(TEMPLATE),
        chains=chains,
        silent=lambda _config: (),
    )


def _note(judged: Sequence[GVevalRecords]) -> str:
    """Why there is no correlation, or what kind of judge it was."""
    items = [one.unscored() for one in judged]
    if isnan(score_or_nan(lambda: 0.0, metric="correlation", items=items)):
        return f"{_UNSCORED}, see the log"
    configs = (records.judged.config for records in judged)
    is_smoke_test = any(config and not config.asks_endpoint for config in configs)
    return "smoke test, not a score" if is_smoke_test else ""


def _expected(judged: Sequence[GVevalRecords], dimension: str) -> list[float | None]:
    """Expected score of every candidate, mean over runs."""
    items = [one.avg() if dimension == "avg" else one.dimension(dimension) for one in judged]
    return [float(str(item["score"])) if "score" in item else None for item in items]

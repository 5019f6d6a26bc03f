"""Metrics compared with the ratings of MSVD-Eval's published candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Final

from lmms_eval_captions.analysis.meta_eval import correlating
from lmms_eval_captions.analysis.meta_eval.published_sets import RatedSet
from lmms_eval_captions.judges.endpoint.request import LEXICAL
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.protocols.gveval import ACCR, Setting
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.judging.judged_caption import JudgedCaption, caption_score
from lmms_eval_captions.lmms_eval_tasks.judging.session import submit
from lmms_eval_captions.lmms_eval_tasks.msvd_eval import benchmark as msvd_eval
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.results.scoring import is_nan, signature_of
from lmms_eval_captions.model_wrappers.video.frame_strip import Sampling

_PAPER: Final = {
    "BLEU-1": "40.7 / 41.2", "BLEU-4": "34.0 / 34.4", "ROUGE-L": "39.8 / 40.2",
    "METEOR": "45.4 / 45.9", "CIDEr": "37.3 / 37.7",
    "G-VEval ref_only avg": "60.4 / 61.1", "G-VEval ref_free avg": "59.6 / 60.3",
    "G-VEval combined avg": "62.9 / 63.7",
    "G-VEval ref_only accuracy": "60.4", "G-VEval ref_only completeness": "54.2",
    "G-VEval ref_only conciseness": "55.2", "G-VEval ref_only relevance": "52.5",
    "G-VEval ref_free accuracy": "55.3", "G-VEval ref_free completeness": "49.7",
    "G-VEval ref_free conciseness": "62.2", "G-VEval ref_free relevance": "53.4",
    "G-VEval combined accuracy": "61.4", "G-VEval combined completeness": "57.6",
    "G-VEval combined conciseness": "58.5", "G-VEval combined relevance": "53.0",
}  # fmt: skip
"""tau-b / tau-c x 100. Source: G-VEval, Tables 4 and 5 (tau-b alone)."""
_SMOKE_TEST: Final = JudgeConfig(LEXICAL).label


def meta_eval_msvd(
    *,
    classic: bool = True,
    settings: Sequence[Setting] = (),
    score_files: Sequence[Path] = (),
    sampling: Sampling = "first_middle_last",
    n_resamples: int = 1000,
) -> correlating.Document:
    """Correlate metrics with the ratings of MSVD-Eval's published candidates.

    A column of the user's that is named like a dimension is compared with the ratings of that
    dimension, all others with the annotators' averages. ``settings`` are those of G-VEval that the
    judge is asked for, ``sampling`` the frames that it sees.
    """
    items = msvd_eval.read_items(data_settings())
    if not all(item.ratings and item.candidate for item in items):
        raise DataError("MSVD-Eval.json: expected a candidate and ratings for every video")
    names = [(item.video_id, item.vname, Path(item.vname).stem) for item in items]
    notes: list[str] = []
    given = correlating.all_columns(score_files, names, items if classic else None, notes)
    columns = [(column[0] if column[0] in ACCR else "avg", column) for column in given]
    for setting, waits in [(of, _submit(items, of, sampling)) for of in settings]:
        records = [wait().record for wait in waits]
        notes.append(signature_of(records))
        columns += [
            (dimension, _judged(setting, dimension, records)) for dimension in msvd_eval.RATED
        ]
    by_rating = {
        rating: [[ratings[index] for ratings in item.ratings] for item in items]
        for index, rating in enumerate(msvd_eval.RATED)
    }
    counting = "every rating, not their mean"
    rated = RatedSet("MSVD-Eval", items, by_rating, counting, are_known=True, paper=_PAPER)
    return correlating.correlated(rated, columns, n_resamples, notes)


def _submit(
    items: Sequence[msvd_eval.Item], setting: Setting, sampling: Sampling
) -> list[Callable[[], JudgedCaption]]:
    """Ask the judge about every candidate; the returned functions wait for its verdicts."""
    benchmark = msvd_eval.MsvdEval(sampling)
    # Candidates are published: no captioner is asked for them.
    task = replace(
        benchmark.tasks[f"msvd_eval_{setting}"],
        name=f"msvd_meta_eval_{setting}",
        caption_prompt="",
    )
    return [
        # Parity: the released code's loader collapses blanks of published candidates and
        # references; captions of a captioner under test go unchanged.
        submit(
            benchmark,
            {
                "video_id": item.video_id,
                "vname": item.vname,
                "setting": setting,
                "references": [msvd_eval.collapsed(reference) for reference in item.references],
            },
            msvd_eval.collapsed(item.candidate),
            task=task,
        )
        for item in items
    ]


def _judged(
    setting: Setting, dimension: str, records: Sequence[CaptionRecord]
) -> correlating.Column:
    """Return the expected score of every candidate, mean over judge runs."""
    metric = msvd_eval.MSVD_EVAL.metrics[dimension]
    name = f"G-VEval {setting} {dimension}"
    if is_nan("correlation", records):
        return name, [None] * len(records), "too many candidates are unscored, see the log"
    scores = [caption_score(metric, record, record.values[dimension]) for record in records]
    is_smoke_test = any(record.judge == _SMOKE_TEST for record in records)
    note = "smoke test, not a score" if is_smoke_test else ""
    return name, [None if isnan(score) else score for score in scores], note

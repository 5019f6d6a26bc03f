"""A verification as tables, and as a document with every video."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from math import isnan
from typing import Final

from lmms_eval_captions.analysis.t2v_verify.findings import columns_of
from lmms_eval_captions.analysis.t2v_verify.generated import Key
from lmms_eval_captions.analysis.t2v_verify.judged import N_FRAMES
from lmms_eval_captions.analysis.t2v_verify.rating import DIMENSIONS
from lmms_eval_captions.analysis.t2v_verify.verify import Verification
from lmms_eval_captions.lmms_eval_tasks.table_formats import Part, Table, as_text

_NOTHING: Final = "-"
_NAMED: Final = 5
"""Videos without numbers that are named."""


def text_of(found: Verification) -> str:
    """What is printed."""
    parts = [_means(found)]
    if found.correlations:
        parts.append(_correlations(found))
    return as_text(parts)


def json_of(found: Verification) -> dict[str, object]:
    """Everything, with each video; a number that is not there is ``null``."""
    judge = found.judge
    return {
        "frames": found.options.n_frames,
        "fvd": None,
        "judge": None
        if judge is None
        else {"model": judge.judge, "frames": N_FRAMES, "prompt": "ours", **judge.prompts},
        "captioners": [
            {
                "generator": row.generator,
                "captioner": row.captioner,
                "n_videos": row.n_videos,
                "means": dict(row.means),
                "n_of_measure": dict(row.counts),
            }
            for row in found.means
        ],
        "correlations": [
            {
                "generator": row.generator,
                "measure": row.measure,
                "score": row.score,
                "r": None if isnan(row.r) else row.r,
                "n_captioners": row.n,
                "reason": row.reason,
            }
            for row in found.correlations
        ],
        "originals": {name: dict(values) for name, values in found.steady_originals.items()},
        "videos": [
            {
                "captioner": each.item.captioner,
                "generator": each.item.generator,
                "video": each.item.video,
                "values": each.values,
                "reason": each.reason,
                "unscored": [] if judge is None else judge.unscored.get(each.item.key, []),
            }
            for each in found.measured
        ],
        "remarks": list(found.remarks),
    }


def _means(found: Verification) -> Part:
    names = list(dict.fromkeys(name for row in found.means for name in row.means))
    has_generators = any(row.generator for row in found.means)
    rows = [
        [
            *([row.generator] if has_generators else []),
            row.captioner,
            str(row.n_videos),
            *(_cell(row.means.get(name)) for name in names),
        ]
        for row in found.means
    ]
    columns = columns_of(found.steady_originals.values())
    originals = {name: sum(values) / len(values) for name, values in columns.items()}
    n_originals = str(len(found.steady_originals))
    beginning = [""] if has_generators else []
    rows.append(
        [*beginning, "(originals)", n_originals, *(_cell(originals.get(name)) for name in names)]
    )
    header = [*(["generator"] if has_generators else []), "captioner", "videos", *names]
    dimensions = ", ".join(f"{name} {words}" for name, words in DIMENSIONS.items())
    sentences = [
        f"Means over videos; {found.options.n_frames} frames of each, evenly spaced, generated "
        "ones resized to the size of the original's. PSNR in dB, at most 100. Inter-frame: of "
        "neighbours among the frames of one video. FVD is not computed.",
        f"Ratings from 1 to 5: {dimensions}." if any(" VA" in name for name in names) else "",
    ]
    table = Table(header, rows, n_left=2 if has_generators else 1)
    return Part("Videos generated from captions", sentences, (table,), list(_remarks(found)))


def _remarks(found: Verification) -> Iterator[str]:
    without = [each for each in found.measured if each.reason is not None]
    if without:
        yield f"{len(without)} of {len(found.measured)} generated videos could not be compared:"
        for each in without[:_NAMED]:
            yield f"{'/'.join(filter(None, each.item.key))}: {each.reason}"
        if len(without) > _NAMED:
            yield f"and {len(without) - _NAMED} more, see -o"
    if found.judge is not None:
        yield (
            f"The judge {found.judge.judge} saw {N_FRAMES} frames of each video; the prompt is "
            "ours, as the paper prints none."
        )
        yield from _unscored(found.judge.unscored)
    if found.n_cut_captions:
        yield f"{found.n_cut_captions} captions are longer than CLIP reads, and lost their end."
    yield from found.remarks


def _unscored(unscored: Mapping[Key, list[str]]) -> Iterator[str]:
    reasons = Counter(reason for reasons in unscored.values() for reason in reasons)
    for reason, n in reasons.most_common(_NAMED):
        yield f"The judge's ratings of {n} videos are unscored: {reason:.200}"


def _correlations(found: Verification) -> Part:
    has_generators = any(row.generator for row in found.correlations)
    rows = [
        [
            *([row.generator] if has_generators else []),
            row.measure,
            row.score,
            "nan" if isnan(row.r) else f"{row.r:.3f}",
            str(row.n),
            row.reason,
        ]
        for row in found.correlations
    ]
    header = [
        *(["generator"] if has_generators else []),
        "measure", "score", "r", "captioners", "",
    ]  # fmt: skip
    table = Table(header, rows, n_left=3 if has_generators else 2)
    return Part("Pearson's correlation with caption scores over captioners", (), (table,))


def _cell(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.3f}"

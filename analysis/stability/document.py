"""The stability of a task or a group as one document, from which every format is made."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from lmms_eval_captions.analysis.stability.noise import Noise, noises
from lmms_eval_captions.analysis.stability.notes import judges_of, notes_of
from lmms_eval_captions.analysis.stability.opinions import Opinions
from lmms_eval_captions.analysis.stability.selected import Selected, selected
from lmms_eval_captions.analysis.stability.shares import Rows, Share, rows_of
from lmms_eval_captions.metrics.agreement import consistent_times


@dataclass(frozen=True, slots=True)
class Document:
    """What is found out of a task or a group."""

    opinions: Opinions
    rows: Rows
    times: list[int]
    """See :func:`consistent_times`."""
    selected: list[Selected]
    noises: list[Noise]
    notes: list[str]


def document_of(opinions: Opinions) -> Document:
    """All that is told of a task or a group."""
    return Document(
        opinions,
        rows_of(opinions),
        consistent_times(opinions.headline),
        list(selected(opinions)) if opinions.n_runs > 1 else [],
        list(noises(opinions)),
        list(notes_of(opinions)),
    )


def json_of(document: Document) -> dict[str, object]:
    """The document as JSON has it; percentages and metrics' units, ``null`` where not known."""
    opinions = document.opinions
    total = sum(document.times)
    return {
        "name": opinions.name,
        "benchmark": opinions.benchmark.name,
        "judges": judges_of(opinions),
        "captioners": list(opinions.captioners),
        "n_runs": opinions.n_runs,
        "n_videos": len({video for _, video, _, _ in opinions.asked}),
        "n_questions": len(opinions.asked),
        "same_verdict": [
            {
                "section": row.section,
                "group": row.name,
                "n_questions": row.n_questions,
                "captioners": {
                    name: _share(share)
                    for name, share in zip(opinions.captioners, row.captioners, strict=True)
                },
                "all_captioners": _share(row.together),
            }
            for row in document.rows.rows
        ],
        "groups_left_out": document.rows.n_others,
        "consistent_times": [
            {
                "captioners": len(opinions.captioners) - place,
                "n_questions": n,
                "proportion": 100 * n / total if total else None,
            }
            for place, n in enumerate(document.times)
        ],
        "scores": [
            {
                "captioner": score.captioner,
                "metric": score.metric,
                "full": _finite(score.full),
                "stable": _finite(score.stable),
            }
            for score in document.selected
        ],
        "noise_floor": {
            noise.metric: {
                "runs": {str(n): _finite(floor) for n, floor in noise.floors.items()},
                "largest_seen": noise.largest_seen,
                "scores": dict(zip(opinions.captioners, noise.scores, strict=True)),
            }
            for noise in document.noises
        },
        "notes": document.notes,
    }


def _share(share: Share) -> dict[str, object]:
    found = share.interval
    return {
        "percent": _finite(found.value),
        "low": found.low,
        "high": found.high,
        "n_known": share.n_known,
        "n_same": share.n_same,
        "n_videos": found.n_videos,
        "method": found.method,
        **({"note": found.note} if found.note else {}),
    }


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None

"""Whether judges rank captioners alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import isnan
from typing import Any

import numpy as np

from lmms_eval_captions.analysis.agree.findings import Ranking, Swap
from lmms_eval_captions.analysis.agree.leniency import Part, parts_of_side
from lmms_eval_captions.analysis.agree.shared_captions import SharedCaption
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.metrics.correlation import kendall_tau
from lmms_eval_captions.metrics.paired import Difference, paired_interval
from lmms_eval_captions.metrics.parts import values_of_runs


def ranking_of(
    benchmark: Benchmark[Any, Any], captions: Sequence[SharedCaption], captioners: Sequence[str]
) -> Ranking | None:
    """The captioners by the headline under both judges, over the captions that both judged.

    Returns:
        ``None`` for fewer than two captioners with a score.
    """
    metric = benchmark.headline
    own = {
        place: [caption for caption in captions if caption.captioner == place]
        for place in dict.fromkeys(caption.captioner for caption in captions)
    }
    scores = {place: _scores(benchmark, each) for place, each in own.items()}
    known = {place: pair for place, pair in scores.items() if pair is not None}
    if len(known) < 2:
        return None
    sign = 1 if benchmark.metrics[metric].higher_is_better else -1
    tables = [
        sorted(
            ((captioners[c], pair[side]) for c, pair in known.items()), key=lambda x: -sign * x[1]
        )
        for side in (0, 1)
    ]
    swaps = [
        _swap(benchmark, own, captioners, pair)
        for pair in combinations(known, 2)
        if (known[pair[0]][0] - known[pair[1]][0]) * (known[pair[0]][1] - known[pair[1]][1]) < 0
    ]
    tau = kendall_tau([a for a, _ in known.values()], [[b] for _, b in known.values()], variant="b")
    return Ranking(
        metric=metric,
        reference=tuple(tables[0]),
        other=tuple(tables[1]),
        tau_b=tau,
        swaps=tuple(swaps),
    )


def _scores(
    benchmark: Benchmark[Any, Any], captions: Sequence[SharedCaption]
) -> tuple[float, float] | None:
    """A captioner's headline under both judges, ``None`` where one has no value."""
    scale = benchmark.metrics[benchmark.headline].scale
    values = []
    for side in (0, 1):
        parts = parts_of_side(benchmark, benchmark.headline, Part("", "", captions), side)
        values.append(
            float("nan") if parts is None else values_of_runs(parts.parts, scale=scale).mean()
        )
    return None if any(map(isnan, values)) else (float(values[0]), float(values[1]))


def _swap(
    benchmark: Benchmark[Any, Any],
    captions: Mapping[int, Sequence[SharedCaption]],
    captioners: Sequence[str],
    pair: tuple[int, int],
) -> Swap:
    differences = [
        _difference(benchmark, [captions[each] for each in pair], side) for side in (0, 1)
    ]
    if differences[0].difference < 0:
        return _swap(benchmark, captions, captioners, (pair[1], pair[0]))
    names = (captioners[pair[0]], captioners[pair[1]])
    return Swap(captioners=names, reference=differences[0], other=differences[1])


def _difference(
    benchmark: Benchmark[Any, Any], captions: Sequence[Sequence[SharedCaption]], side: int
) -> Difference:
    """The first captioner's headline less the second's under a judge, on videos of both."""
    metric = benchmark.headline
    shared = set.intersection(*({caption.video for caption in each} for each in captions))
    order = sorted(shared)
    aligned = []
    for own in captions:
        kept = sorted((c for c in own if c.video in shared), key=lambda caption: caption.video)
        parts = parts_of_side(benchmark, metric, Part("", "", kept), side)
        # Whatever task comes first, every video has its place.
        places = {video: i for i, video in enumerate(() if parts is None else parts.videos)}
        taken = [places[video] for video in order if video in places]
        aligned.append(np.zeros((1, 0, 1, 1, 2)) if parts is None else parts.parts[:, taken])
    return paired_interval(aligned[0], aligned[1], scale=benchmark.metrics[metric].scale)

"""VidCapBench's training-free verification: what videos made from captions say of the captions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmms_eval_captions.analysis.t2v_verify.clip_model import ClipModel
from lmms_eval_captions.analysis.t2v_verify.findings import (
    CaptionerMeans,
    Correlation,
    captioner_means,
    correlate_scores,
)
from lmms_eval_captions.analysis.t2v_verify.generated import (
    Generated,
    find_generated,
    find_originals,
)
from lmms_eval_captions.analysis.t2v_verify.judged import JudgeRatings, ask_judge
from lmms_eval_captions.analysis.t2v_verify.measuring import (
    JUDGE,
    PEOPLE,
    Looking,
    Measured,
    measure,
    rated,
)
from lmms_eval_captions.analysis.t2v_verify.tables_of_users import (
    Ratings,
    read_captions_file,
    read_ratings_file,
    read_scores,
)
from lmms_eval_captions.judges.errors import DataError, SettingsError


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is compared."""

    generated: Path
    original: Path
    n_frames: int = 8
    """Of each video, for PSNR, SSIM and CLIP."""
    clip: str | None = None
    captions: Path | None = None
    ratings: Path | None = None
    ask_judge: bool = False
    scores: Sequence[Path] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """Everything that was found out."""

    options: Options
    measured: Sequence[Measured]
    steady_originals: Mapping[str, Mapping[str, float]]
    means: Sequence[CaptionerMeans]
    correlations: Sequence[Correlation]
    judge: JudgeRatings | None
    n_cut_captions: int
    remarks: Sequence[str]


def verify(options: Options, *, tell: Callable[[str], None]) -> Verification:
    """Compare, rate and correlate, as far as what is given allows.

    Args:
        options: What is given.
        tell: Told of each video as it is looked at.

    Raises:
        DataError: If a folder or a file cannot be used.
        SettingsError: If the CLIP model or the judge cannot be asked.

    Source:
        VidCapBench, sections 4.4 and figures 4 and 5. FVD, which the paper has too, is not
        computed: it needs the weights of an I3D network.
    """
    if options.captions is not None and options.clip is None:
        raise SettingsError("--captions: captions are compared by a CLIP model; give --clip, too")
    items = find_generated(options.generated)
    originals = find_originals(options.original, {item.video for item in items})
    # What users wrote is read before an hour of work is spent.
    people = {} if options.ratings is None else read_ratings_file(options.ratings)
    remarks = list(_strangers(people, items))
    captions = {} if options.captions is None else read_captions_file(options.captions)
    scores = read_scores(options.scores) if options.scores else {}
    clip = None if options.clip is None else ClipModel(options.clip)
    looking = Looking(options.n_frames, clip, captions)
    measured, steady = measure(items, originals, looking, tell=tell)
    judge = ask_judge(items, originals) if options.ask_judge else None
    for each in measured:
        each.values.update(rated(PEOPLE, people.get(each.item.key, ())))
        if judge is not None:
            each.values.update(rated(JUDGE, judge.ratings.get(each.item.key, ())))
    means = captioner_means(measured)
    remarks += _unequal(items)
    remarks += _without_score(items, scores)
    return Verification(
        options,
        measured,
        steady,
        means,
        correlate_scores(means, scores),
        judge,
        0 if clip is None else clip.n_cut,
        remarks,
    )


def _strangers(ratings: Ratings, items: Sequence[Generated]) -> list[str]:
    """Ratings of videos that are not there.

    Raises:
        DataError: If a captioner is not there at all, which is rather a slip of the pen.
    """
    captioners = {item.captioner for item in items}
    unknown = sorted({key[0] for key in ratings} - captioners)
    if unknown:
        raise DataError(
            f"--ratings: expected captioners {', '.join(sorted(captioners))}, got {unknown[0]!r}"
        )
    n_others = len(set(ratings) - {item.key for item in items})
    return [f"Ratings of {n_others} videos that are not there are left out."] * bool(n_others)


def _unequal(items: Sequence[Generated]) -> list[str]:
    """Whether captioners are compared over different videos."""
    videos: dict[tuple[str, str], set[str]] = {}
    for item in items:
        videos.setdefault((item.generator, item.captioner), set()).add(item.video)
    if len({frozenset(names) for names in videos.values()}) < 2:
        return []
    return ["Captioners have different videos: their means are not of the same ones."]


def _without_score(
    items: Sequence[Generated], scores: Mapping[str, Mapping[str, float]]
) -> list[str]:
    named = {captioner for values in scores.values() for captioner in values}
    captioners = {item.captioner for item in items}
    missing = sorted(captioners - named) if scores else []
    told = [f"No score is of {', '.join(missing)}."] if missing else []
    others = sorted(named - captioners)
    return [*told, *([f"Scores of {', '.join(others)} have no videos."] if others else [])]

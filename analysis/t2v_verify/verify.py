"""VidCapBench's training-free verification: what generated videos say about captions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.analysis.t2v_verify.clip_model import ClipModel, cosine
from lmms_eval_captions.analysis.t2v_verify.rating import DIMENSIONS, N_FRAMES, Key, ask_judge
from lmms_eval_captions.analysis.t2v_verify.similarity import frames_of, likeness, steadiness
from lmms_eval_captions.analysis.t2v_verify.user_files import (
    Scores,
    read_captions_file,
    read_ratings_file,
    read_scores,
)
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.data.files import files_below, index_videos
from lmms_eval_captions.metrics.correlation import correlations
from lmms_eval_captions.model_wrappers.video.endings import (
    RARE_VIDEO_ENDINGS,
    VIDEO_ENDINGS,
    without_ending,
)

if TYPE_CHECKING:
    import pandas as pd

    from lmms_eval_captions.analysis.t2v_verify.clip_model import Embedding

Document = dict[str, Any]
Measures = dict[str, float]
"""Values by the name of the measure."""
_ENDINGS: Final = VIDEO_ENDINGS | RARE_VIDEO_ENDINGS
_KEY: Final = ["captioner", "generator", "video"]
_ALL: Final = "all generators"
_FEWEST: Final = 3
"""Captioners that a correlation takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Folders, files and settings of a verification."""

    generated: Path
    original: Path
    n_frames: int = 8
    """Frames of each video, for PSNR, SSIM and CLIP."""
    clip: str | None = None
    captions: Path | None = None
    ratings: Path | None = None
    asks_judge: bool = False
    scores: Sequence[Path] = ()


def verify(options: Options, *, log: Callable[[str], None]) -> Document:
    """Compare, rate and correlate, as far as the given files allow.

    Args:
        options: See :class:`Options`.
        log: Called with the name of each video.

    Returns:
        ``captioners``: means by generator and captioner; ``correlations`` of these with scores;
        ``originals``; ``videos``; ``judge``; ``remarks``; all of JSON's types.

    Raises:
        DataError: If a folder or a file cannot be used.
        SettingsError: If the CLIP model or the judge cannot be used.

    Source:
        VidCapBench, section 4.4 and figures 4 and 5. Deviation: FVD is not computed, as it needs
        the weights of an I3D network.
    """
    import pandas as pd

    if options.captions is not None and options.clip is None:
        raise SettingsError("--captions: captions are compared by a CLIP model; give --clip, too")
    videos = _find_generated(options.generated)
    originals = _find_originals(options.original, {video for *_, video in videos})
    # The user's files are read before an hour of work is spent.
    people = [] if options.ratings is None else read_ratings_file(options.ratings)
    remarks = list(_unknown_ratings({key for key, _ in people}, videos))
    captions = {} if options.captions is None else read_captions_file(options.captions)
    scores = read_scores(options.scores) if options.scores else {}
    clip = None if options.clip is None else ClipModel(options.clip)
    values, steady, reasons = _measured(videos, originals, options.n_frames, clip, captions, log)
    judge = ask_judge(videos, originals) if options.asks_judge else None
    table = pd.DataFrame(list(values.values()), pd.MultiIndex.from_tuples(videos, names=_KEY))
    table = table.join(_rated("people", people))
    if judge is not None:
        table = table.join(_rated("judge", judge.ratings))
    means = list(_means(table))
    remarks += _remarks(videos, scores)
    if clip is not None and clip.n_cut:
        remarks.append(f"{clip.n_cut} captions are longer than CLIP reads, and lost their end.")
    return {
        "frames": options.n_frames,
        "fvd": None,
        "judge": judge
        and {"model": judge.judge, "frames": N_FRAMES, "prompt": "ours", **judge.prompts},
        "captioners": means,
        "correlations": list(_correlations(means, scores)),
        "originals": steady,
        "videos": [
            {
                **dict(zip(_KEY, key, strict=True)),
                "values": row.dropna().to_dict(),
                "reason": reasons.get(key),
                "unscored": judge.unscored.get(key, []) if judge else [],
            }
            for key, (_, row) in zip(videos, table.iterrows(), strict=True)
        ],
        "remarks": remarks,
    }


def _find_generated(folder: Path) -> dict[Key, Path]:
    """Return the videos of a folder with ``captioner/video.mp4`` or ``captioner/generator/...``."""
    if not folder.is_dir():
        raise DataError(f"--generated {folder}: no such folder")
    found: dict[Key, Path] = {}
    for path in files_below(folder):
        if path.suffix.lower() not in _ENDINGS:
            continue
        parts = path.relative_to(folder).parts
        if len(parts) not in (2, 3):
            raise DataError(
                f"{path}: expected CAPTIONER/VIDEO or CAPTIONER/GENERATOR/VIDEO below {folder}"
            )
        generator = parts[1] if len(parts) > 2 else ""
        other = found.setdefault((parts[0], generator, without_ending(path.name, _ENDINGS)), path)
        if other is not path:
            raise DataError(
                f"expected one file per generated video, {other} and {path} have the same name; "
                "remove one of them"
            )
    if not found:
        raise DataError(
            f"--generated {folder}: expected a folder per captioner with its videos, got no video"
        )
    return dict(sorted(found.items()))


def _find_originals(folder: Path, videos: set[str]) -> dict[str, Path]:
    """Return the originals of some videos, by name, from a folder and all folders below it."""
    if not folder.is_dir():
        raise DataError(f"--original {folder}: no such folder")
    index = index_videos(folder)
    originals = {video: index[video] for video in sorted(videos) if video in index}
    if not originals:
        raise DataError(
            f"--original {folder}: expected videos named like the generated ones, such as "
            f"{min(videos)!r}, got none of them"
        )
    return originals


def _measured(
    videos: Mapping[Key, Path],
    originals: Mapping[str, Path],
    n_frames: int,
    clip: ClipModel | None,
    captions: Mapping[tuple[str, str], str],
    log: Callable[[str], None],
) -> tuple[dict[Key, Measures], dict[str, Measures], dict[Key, str]]:
    """Compare generated videos with their originals, each of which is read once.

    Returns:
        Each video's measures, empty if it was not compared; the inter-frame measures of each
        original; and why a video was not compared.
    """
    values: dict[Key, Measures] = {key: {} for key in videos}
    steady: dict[str, Measures] = {}
    reasons: dict[Key, str] = {}
    for video, keys in groupby(sorted(videos, key=lambda key: key[::-1]), key=lambda key: key[2]):
        log(video)
        if video not in originals:
            reasons.update(dict.fromkeys(keys, f"no original is called {video!r:.80}"))
            continue
        try:
            original = frames_of(originals[video], n_frames)
        except DataError as error:
            reasons.update(dict.fromkeys(keys, str(error)))
            continue
        steady[video] = steadiness(original)
        embedding = None if clip is None else clip.of_frames(original)
        for key in keys:
            try:
                frames = frames_of(videos[key], n_frames)
            except DataError as error:
                reasons[key] = str(error)
                continue
            values[key] = {**likeness(frames, original), **steadiness(frames)}
            if clip is not None and embedding is not None:
                caption = captions.get((key[0], video))
                values[key] |= _by_clip(clip, clip.of_frames(frames), embedding, caption)
    return values, steady, reasons


def _by_clip(
    clip: ClipModel, generated: Embedding, original: Embedding, caption: str | None
) -> Measures:
    values = {"CLIP to original": cosine(generated, original)}
    if caption is not None:
        values["CLIP to caption"] = cosine(generated, clip.of_text(caption))
    return values


def _rated(who: str, ratings: Sequence[tuple[Key, Mapping[str, float]]]) -> pd.DataFrame:
    """Return each video's mean over raters along each dimension, and the mean of all dimensions."""
    import pandas as pd

    rows = [{**dict(zip(_KEY, key, strict=True)), **rating} for key, rating in ratings]
    means = pd.DataFrame(rows, columns=[*_KEY, *DIMENSIONS]).groupby(_KEY).mean()
    means["mean"] = means.mean(axis=1, skipna=False)
    return means.add_prefix(f"{who} ").dropna(axis=1, how="all")


def _means(table: pd.DataFrame) -> Iterator[Document]:
    """Yield means by generator and captioner; of several generators also over all of them."""
    generators = table.index.get_level_values("generator")
    names = sorted(set(generators))
    for generator in [*names, *([_ALL] if len(names) > 1 else [])]:
        own = table if generator == _ALL else table[generators == generator]
        for captioner, rows in own.groupby("captioner"):
            yield {
                "generator": generator,
                "captioner": captioner,
                "n_videos": len(rows),
                "means": rows.mean().dropna().to_dict(),
                "n_of_measure": {name: int(n) for name, n in rows.count().items() if n},
            }


def _correlations(means: Sequence[Document], scores: Scores) -> Iterator[Document]:
    """Yield the correlation of every measure with every score over the captioners that have both.

    Source:
        VidCapBench, section 4.4 and figure 5 (Pearson's r over captioners).
    """
    for generator in dict.fromkeys(row["generator"] for row in means):
        rows = [row for row in means if row["generator"] == generator]
        for measure in dict.fromkeys(name for row in rows for name in row["means"]):
            for score, values in scores.items():
                pairs = [
                    (row["means"][measure], values[row["captioner"]])
                    for row in rows
                    if measure in row["means"] and row["captioner"] in values
                ]
                r = correlations([pair[0] for pair in pairs], [pair[1] for pair in pairs]).pearson
                few = f"fewer than {_FEWEST} captioners"
                same = "all captioners have the same value"
                yield {
                    "generator": generator,
                    "measure": measure,
                    "score": score,
                    "r": None if isnan(r) else r,
                    "n_captioners": len(pairs),
                    "reason": "" if not isnan(r) else few if len(pairs) < _FEWEST else same,
                }


def _unknown_ratings(rated: set[Key], videos: Iterable[Key]) -> Iterator[str]:
    """Yield a note on ratings of missing videos; a missing captioner is rather a misspelt name."""
    captioners = {captioner for captioner, *_ in videos}
    unknown = sorted({captioner for captioner, *_ in rated} - captioners)
    if unknown:
        raise DataError(
            f"--ratings: expected captioners {', '.join(sorted(captioners))}, got {unknown[0]!r}"
        )
    n_others = len(rated - set(videos))
    if n_others:
        yield f"Ratings of missing videos, left out: {n_others}."


def _remarks(videos: Iterable[Key], scores: Scores) -> Iterator[str]:
    of_captioners: dict[tuple[str, str], set[str]] = {}
    for captioner, generator, video in videos:
        of_captioners.setdefault((captioner, generator), set()).add(video)
    if len({frozenset(names) for names in of_captioners.values()}) > 1:
        yield "Captioners have different videos: their means are not of the same ones."
    scored = {captioner for values in scores.values() for captioner in values}
    captioners = {captioner for captioner, _ in of_captioners}
    if scores and captioners - scored:
        yield f"No score of {', '.join(sorted(captioners - scored))}."
    if scored - captioners:
        yield f"Scores of {', '.join(sorted(scored - captioners))} have no videos."

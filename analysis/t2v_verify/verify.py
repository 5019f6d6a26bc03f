"""VidCapBench's training-free verification: what generated videos say about captions."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, product
from math import isfinite, isnan
from pathlib import Path
from typing import Any, Final

import pandas as pd

from lmms_eval_captions.analysis import user_table
from lmms_eval_captions.analysis.captioners import captioners_of
from lmms_eval_captions.analysis.t2v_verify import similarity
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.data.files import files_below, index_videos
from lmms_eval_captions.metrics.correlation import correlations
from lmms_eval_captions.model_wrappers.video.endings import (
    RARE_VIDEO_ENDINGS,
    VIDEO_ENDINGS,
    without_ending,
)

Document = dict[str, Any]
Measures = dict[str, float]
"""Values by the name of the measure."""
Scores = dict[str, dict[str, float]]
"""Value by name of the score and captioner."""
DIMENSIONS: Final = {
    "VA": "visual aesthetics",
    "SC": "subject consistency",
    "AR": "action relevance",
    "LC": "logical coherence",
}
"""Dimensions of ratings from 1 to 5. Source: VidCapBench, section 4.4 and table 6."""
Key = tuple[str, str, str]
"""Captioner, generator (empty if there is no such folder) and video, without its ending."""
_ENDINGS: Final = VIDEO_ENDINGS | RARE_VIDEO_ENDINGS
_KEY: Final = ["captioner", "generator", "video"]
_COLUMNS: Final = ("captioner", "video")
_ALL: Final = "all generators"
_FEWEST: Final = 3
"""Captioners that a correlation takes."""


def verify(options: Namespace, *, log: Callable[[str], None]) -> Document:
    """Compare, rate and correlate, as far as the given files allow; log the name of each video.

    ``options`` are those of the command ``t2v-verify``.

    Returns:
        ``captioners``: means by generator and captioner; ``correlations`` of these with scores;
        ``originals``; ``videos``; ``remarks``; all of JSON's types.

    Source:
        VidCapBench, section 4.4 and figures 4 and 5. Deviation: FVD is not computed, as it needs
        the weights of an I3D network.
    """
    if options.captions is not None and options.clip is None:
        raise SettingsError("--captions: captions are compared by a CLIP model; give --clip, too")
    for name in ("generated", "original"):
        if not getattr(options, name).is_dir():
            raise DataError(f"--{name} {getattr(options, name)}: no such folder")
    videos = _find_generated(options.generated)
    originals = _find_originals(options.original, {video for *_, video in videos})
    # The user's files are read before an hour of work is spent.
    people = [] if options.ratings is None else _read_ratings(options.ratings)
    captions = {} if options.captions is None else _read_captions(options.captions)
    scores = _read_scores(options.scores) if options.scores else {}
    remarks = list(_remarks(videos, {key for key, _ in people}, scores))
    clip = None if options.clip is None else similarity.ClipModel(options.clip)
    values, steady, reasons = _measured(videos, originals, options.frames, clip, captions, log)
    table = pd.DataFrame(list(values.values()), pd.MultiIndex.from_tuples(videos, names=_KEY))
    table = table.join(_rated(people))
    means = list(_means(table))
    if clip is not None and clip.n_cut:
        remarks.append(f"{clip.n_cut} captions are longer than CLIP reads, and lost their end.")
    return {
        "frames": options.frames,
        "fvd": None,
        "captioners": means,
        "correlations": list(_correlations(means, scores)),
        "originals": steady,
        "videos": [
            {
                **dict(zip(_KEY, key, strict=True)),
                "values": row.dropna().to_dict(),
                "reason": reasons.get(key),
            }
            for key, (_, row) in zip(videos, table.iterrows(), strict=True)
        ],
        "remarks": remarks,
    }


def _find_generated(folder: Path) -> dict[Key, Path]:
    videos: dict[Key, Path] = {}
    for path in files_below(folder):
        if path.suffix.lower() not in _ENDINGS:
            continue
        parts = path.relative_to(folder).parts
        if len(parts) not in (2, 3):
            raise DataError(
                f"{path}: expected CAPTIONER/VIDEO or CAPTIONER/GENERATOR/VIDEO below {folder}"
            )
        generator = parts[1] if len(parts) > 2 else ""
        other = videos.setdefault((parts[0], generator, without_ending(path.name, _ENDINGS)), path)
        if other is not path:
            raise DataError(
                f"expected one file per generated video, {other} and {path} have the same name; "
                "remove one of them"
            )
    if not videos:
        raise DataError(
            f"--generated {folder}: expected a folder per captioner with its videos, got no video"
        )
    return dict(sorted(videos.items()))


def _find_originals(folder: Path, videos: set[str]) -> dict[str, Path]:
    index = index_videos(folder)
    originals = {video: index[video] for video in sorted(videos) if video in index}
    if not originals:
        raise DataError(
            f"--original {folder}: expected videos named like the generated ones, such as "
            f"{min(videos)!r}, got none of them"
        )
    return originals


def _read_ratings(path: Path) -> list[tuple[Key, Measures]]:
    """Read ratings by people, whole numbers from 1 to 5; an empty cell is a dimension not rated."""
    ratings: dict[tuple[Key, str], Measures] = {}
    for where, row in user_table.read_user_table(path, _COLUMNS):
        key, rater = _key(row, where), _text(row, "rater", where)
        if (key, rater) in ratings:
            raise DataError(f"{where}: {rater!r:.80} rated {' '.join(key)!r:.120} twice")
        given = {name: row[name] for name in DIMENSIONS if row.get(name) not in (None, "")}
        for name, value in given.items():
            if user_table.number_of(value) not in range(1, 6):
                raise DataError(
                    f"{where}: expected a whole number from 1 to 5 under {name}, got {value!r:.80}"
                )
        ratings[key, rater] = {name: float(str(value)) for name, value in given.items()}
    if not ratings:
        raise DataError(f"{path}: expected ratings, got no row")
    return [(key, given) for (key, _), given in ratings.items()]


def _read_captions(path: Path) -> dict[tuple[str, str], str]:
    """Read captions by captioner and video."""
    rows = user_table.read_user_table(path, _COLUMNS)
    return {_key(row, where)[::2]: _text(row, "caption", where) for where, row in rows}


def _read_scores(paths: Sequence[Path]) -> Scores:
    """Read scores from a table with ``captioner`` and columns of numbers, or from results folders.

    Folders are named like the captioners; every metric of every task is a score.
    """
    if len(paths) == 1 and paths[0].suffix.lower() in (".csv", ".jsonl", ".json"):
        return user_table.read_scores(paths[0], ["captioner"], is_strict=True)
    scores: Scores = {}
    for captioner in captioners_of(paths):
        for task in captioner.runs:
            for metric, value in captioner.results(task).scores.items():
                if isfinite(value):
                    scores.setdefault(f"{task} {metric}", {})[captioner.name] = value
    return scores


def _key(row: user_table.Row, where: str) -> Key:
    generator = row.get("generator")
    return (
        _text(row, "captioner", where),
        generator.strip() if isinstance(generator, str) else "",
        without_ending(_text(row, "video", where)),
    )


def _text(row: user_table.Row, column: str, where: str) -> str:
    text = user_table.name_of(row.get(column))
    if not text:
        raise DataError(f"{where}: expected text under {column!r}, got {row.get(column)!r:.80}")
    return text


def _measured(
    videos: Mapping[Key, Path],
    originals: Mapping[str, Path],
    n_frames: int,
    clip: similarity.ClipModel | None,
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
            original = similarity.frames_of(originals[video], n_frames)
        except DataError as error:
            reasons.update(dict.fromkeys(keys, str(error)))
            continue
        steady[video] = similarity.steadiness(original)
        embedding = None if clip is None else clip.of_frames(original)
        for key in keys:
            try:
                frames = similarity.frames_of(videos[key], n_frames)
            except DataError as error:
                reasons[key] = str(error)
                continue
            values[key] = {**similarity.likeness(frames, original), **similarity.steadiness(frames)}
            if clip is not None and embedding is not None:
                made = clip.of_frames(frames)
                values[key]["CLIP to original"] = similarity.cosine(made, embedding)
                if caption := captions.get((key[0], video)):
                    values[key]["CLIP to caption"] = similarity.cosine(made, clip.of_text(caption))
    return values, steady, reasons


def _rated(ratings: Sequence[tuple[Key, Measures]]) -> pd.DataFrame:
    """Return each video's mean over raters along each dimension, and the mean of all dimensions."""
    rows = [{**dict(zip(_KEY, key, strict=True)), **given} for key, given in ratings]
    means = pd.DataFrame(rows, columns=[*_KEY, *DIMENSIONS]).groupby(_KEY).mean()
    means["mean"] = means.mean(axis=1, skipna=False)
    return means.add_prefix("people ").dropna(axis=1, how="all")


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
    of_measures: dict[tuple[str, str], Measures] = {}
    for row in means:
        for measure, value in row["means"].items():
            of_measures.setdefault((row["generator"], measure), {})[row["captioner"]] = value
    few, same = f"fewer than {_FEWEST} captioners", "all captioners have the same value"
    for (key, values), (score, scored) in product(of_measures.items(), scores.items()):
        both = [captioner for captioner in values if captioner in scored]
        r = correlations(*([of[name] for name in both] for of in (values, scored))).pearson
        yield {
            "generator": key[0],
            "measure": key[1],
            "score": score,
            "r": None if isnan(r) else r,
            "n_captioners": len(both),
            "reason": "" if not isnan(r) else few if len(both) < _FEWEST else same,
        }


def _remarks(videos: Iterable[Key], rated: set[Key], scores: Scores) -> Iterator[str]:
    """Yield notes on what does not fit; a rated captioner that is missing is a misspelt name."""
    of_captioners: dict[tuple[str, ...], set[str]] = {}
    for *key, video in videos:
        of_captioners.setdefault(tuple(key), set()).add(video)
    captioners = {captioner for captioner, *_ in videos}
    unknown = sorted({captioner for captioner, *_ in rated} - captioners)
    if unknown:
        raise DataError(
            f"--ratings: expected captioners {', '.join(sorted(captioners))}, got {unknown[0]!r}"
        )
    if n_others := len(rated - set(videos)):
        yield f"Ratings of missing videos, left out: {n_others}."
    if len({frozenset(names) for names in of_captioners.values()}) > 1:
        yield "Captioners have different videos: their means are not of the same ones."
    scored = {captioner for values in scores.values() for captioner in values}
    if scores and captioners - scored:
        yield f"No score of {', '.join(sorted(captioners - scored))}."
    if scored - captioners:
        yield f"Scores of {', '.join(sorted(scored - captioners))} have no videos."

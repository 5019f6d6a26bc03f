"""From a folder of long videos to a folder of clips: look, choose, cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isnan
from pathlib import Path
from typing import Final

import numpy as np

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.analysis import (
    analyse,
    frames_of,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.balance import choose, edges_of
from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.cutting import cut_parts
from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.isolated import Isolated
from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.parts_file import (
    Lengths,
    Part,
    PartsFile,
    SourceParts,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.rows import (
    Row,
    kept_files,
    write_rows,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.scenes import parts_of
from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.sources import (
    Source,
    find_sources,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.stillness import motion_within

STILL_BELOW: Final = 0.15
"""Motion below which a part counts as a still image. Encoded photographs have up to 0.01, with
strong grain up to 0.09; a pan of 1% of the picture's width a second has 0.3."""
_FOUND: Final = ".parts"
"""Folder below that of the clips for what was found out about each source."""


_USUAL: Final = Lengths()


@dataclass(frozen=True, slots=True)
class Options:
    """What is cut, and how much of it is kept."""

    lengths: Lengths = _USUAL
    still_below: float = STILL_BELOW
    """Pixels, as :func:`motion_within` measures them."""
    n: int | None = None
    """Clips that are wanted, ``None`` for all."""
    seed: int = 0
    """Of which clips are chosen."""
    limit: int | None = None
    """Sources that are looked at, the first by name; ``None`` for all."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of every part of every source."""

    rows: tuple[Row, ...]
    n_sources: int
    n_scenes: int


def build_clips(
    given: Path, output: Path, options: Options, *, tell: Callable[[str], None]
) -> Outcome:
    """Cut a folder's videos into clips, and write ``clips.jsonl`` beside them.

    What is done already is not done again: a run that was ended goes on where it was. A video that
    cannot be read costs itself alone.

    Args:
        given: Folder of videos, or one video.
        output: Folder of the clips; clips of earlier options are taken out of it.
        options: What is cut.
        tell: Told of each source as it is looked at.

    Raises:
        DataError: If there is no video, or the folder cannot be written.
        SettingsError: If the folder of the clips is that of the videos.

    Source:
        VidCapBench, section 3.3.1.
    """
    sources = find_sources(given, output)[: options.limit]
    folder = PartsFile(output / _FOUND, options.lengths)
    looked: list[tuple[Source, SourceParts]] = []
    with Isolated() as process:
        for place, source in enumerate(sources, start=1):
            tell(f"{place}/{len(sources)} {source.name}")
            looked.append((source, _look(source, folder, options.lengths, process)))
        rows = _chosen([row for pair in looked for row in _rows(*pair, options)], options)
        stale = kept_files(output) - {row.file for row in rows if row.file is not None}
        for name in stale:
            (output / name).unlink(missing_ok=True)
        of_source = {name: list(own) for name, own in groupby(rows, lambda row: row.source)}
        rows = [
            row
            for source, _ in looked
            for row in _cut(source, of_source.get(source.name, ()), output, process)
        ]
    write_rows(output, rows)
    return Outcome(tuple(rows), len(sources), sum(found.n_scenes for _, found in looked))


def _look(source: Source, folder: PartsFile, lengths: Lengths, process: Isolated) -> SourceParts:
    """What a source is made of: as it is kept, or by looking at all of it."""
    try:
        found = folder.load(source.stem, source.path)
        if found is None:
            found = process.call(find_parts, source.path, lengths)
            folder.save(source.stem, source.path, found)
    except (DataError, OSError) as error:
        return SourceParts(0, (), str(error))
    return found


def find_parts(path: Path, lengths: Lengths) -> SourceParts:
    """The parts of a video, each with its motion.

    Raises:
        DataError: If the video cannot be read.
    """
    import av
    import cv2

    try:
        analysis = analyse(path)
    except (av.FFmpegError, cv2.error, ValueError, MemoryError) as error:
        raise DataError(f"expected a readable video, {path} is not one: {error}") from error
    parts: list[Part] = []
    for scene in analysis.scenes:
        spans = parts_of(scene, min_s=lengths.min_s, max_s=lengths.max_s)
        parts += [
            Part(
                span,
                frames_of(span, analysis.times_s),
                motion_within(analysis.flows, span),
                bool(spans),
            )
            for span in spans or [scene]
        ]
    return SourceParts(len(analysis.scenes), tuple(parts))


def _rows(source: Source, found: SourceParts, options: Options) -> Iterator[Row]:
    """The parts of a source, before some of them are chosen."""
    if found.error is not None:
        yield Row(source.name, None, None, None, None, "unreadable", found.error)
    for part in found.parts:
        start_s, end_s = part.span
        fate, reason = _fate(part, options)
        file = source.clip_name(start_s, end_s) if fate == "kept" else None
        motion = None if isnan(part.motion) else round(part.motion, 4)
        yield Row(source.name, start_s, end_s, part.frames, motion, fate, reason, file)


def _fate(part: Part, options: Options) -> tuple[str, str]:
    if not part.is_long_enough:
        return "too short", f"the scene is shorter than {options.lengths.min_s:g} s"
    if isnan(part.motion):
        return "still", "it has no two pictures a quarter of a second apart"
    if part.motion < options.still_below:
        return "still", f"motion of {part.motion:.3f} is below {options.still_below:g} pixels"
    return "kept", ""


def _chosen(rows: Sequence[Row], options: Options) -> list[Row]:
    """The rows, where clips beyond ``n`` are left out."""
    there = [place for place, row in enumerate(rows) if row.is_kept]
    if options.n is None or len(there) <= options.n:
        return list(rows)
    edges_s = edges_of(options.lengths.min_s, options.lengths.max_s)
    rng = np.random.default_rng(options.seed)
    drawn = choose([rows[p].length_s for p in there], options.n, edges_s=edges_s, rng=rng)
    taken = {there[place] for place in drawn}
    why = "enough clips of about its length were chosen"
    return [
        row.dropped("left out", why) if row.is_kept and place not in taken else row
        for place, row in enumerate(rows)
    ]


def _cut(source: Source, rows: Sequence[Row], output: Path, process: Isolated) -> Iterator[Row]:
    """The rows of a source, once its clips are there."""
    missing = [
        (row.frames, output / row.file)
        for row in rows
        if row.file is not None and row.frames is not None and not (output / row.file).is_file()
    ]
    error = "its frames could not be read again"
    if missing:
        try:
            process.call(cut_parts, source.path, missing)
        except DataError as problem:
            error = str(problem)
    for row in rows:
        is_lost = row.file is not None and not (output / row.file).is_file()
        yield row.dropped("unreadable", error) if is_lost else row

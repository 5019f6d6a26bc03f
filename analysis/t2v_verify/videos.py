"""Generated videos compared with their originals, each original read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.analysis.t2v_verify.clip_model import (
    CLIP_TEXT,
    CLIP_VIDEO,
    ClipModel,
    cosine,
)
from lmms_eval_captions.analysis.t2v_verify.similarity import (
    Frames,
    frames_of,
    likeness,
    steadiness,
)
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.data.files import files_below, index_videos
from lmms_eval_captions.model_wrappers.video.endings import (
    RARE_VIDEO_ENDINGS,
    VIDEO_ENDINGS,
    without_ending,
)

if TYPE_CHECKING:
    from lmms_eval_captions.analysis.t2v_verify.clip_model import Embedding

_ENDINGS: Final = VIDEO_ENDINGS | RARE_VIDEO_ENDINGS
_DEEPEST: Final = 3
"""Parts of a path: captioner, generator, video."""

Key = tuple[str, str, str]
"""Captioner, generator (empty if there is no such folder) and video, without its ending."""
Measures = dict[str, float]
"""Values by the name of the measure."""


def find_generated(folder: Path) -> dict[Key, Path]:
    """Return the videos of a folder with ``captioner/video.mp4`` or ``captioner/generator/...``.

    Raises:
        DataError: If there is none, one is elsewhere, or two have the same name.
    """
    if not folder.is_dir():
        raise DataError(f"--generated {folder}: no such folder")
    found: dict[Key, Path] = {}
    for path in files_below(folder):
        if path.suffix.lower() not in _ENDINGS:
            continue
        parts = path.relative_to(folder).parts
        if not 1 < len(parts) <= _DEEPEST:
            raise DataError(
                f"{path}: expected CAPTIONER/VIDEO or CAPTIONER/GENERATOR/VIDEO below {folder}"
            )
        generator = parts[1] if len(parts) == _DEEPEST else ""
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


def find_originals(folder: Path, videos: set[str]) -> dict[str, Path]:
    """Return the originals of some videos, by name, from a folder and all folders below it.

    Raises:
        DataError: If there is no such folder, or no original.
    """
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


@dataclass(frozen=True, slots=True)
class Comparer:
    """Compares generated videos with their originals.

    Args:
        n_frames: Frames of each video.
        clip: Compares embeddings, too, if it is given.
        captions: Caption by captioner and video, for the CLIP model.
        log: Called with the name of each video.
    """

    n_frames: int
    clip: ClipModel | None
    captions: Mapping[tuple[str, str], str]
    log: Callable[[str], None]

    def measure(
        self, videos: Mapping[Key, Path], originals: Mapping[str, Path]
    ) -> tuple[dict[Key, Measures], dict[Key, str], dict[str, Measures]]:
        """Compare every generated video with its original.

        Returns:
            Each video's measures, empty if its frames were not compared; why not, by video; and
            the inter-frame measures of each original.
        """
        values: dict[Key, Measures] = {key: {} for key in videos}
        reasons: dict[Key, str] = {}
        steady: dict[str, Measures] = {}
        for video, keys in groupby(sorted(videos, key=lambda key: key[::-1]), key=lambda k: k[2]):
            self.log(video)
            if video not in originals:
                reasons.update(dict.fromkeys(keys, f"no original is called {video!r:.80}"))
                continue
            try:
                original = frames_of(originals[video], self.n_frames)
            except DataError as error:
                reasons.update(dict.fromkeys(keys, str(error)))
                continue
            steady[video] = steadiness(original)
            embedding = None if self.clip is None else self.clip.of_frames(original)
            for key in keys:
                try:
                    values[key] = self._measures(key, videos[key], original, embedding)
                except DataError as error:
                    reasons[key] = str(error)
        return values, reasons, steady

    def _measures(
        self, key: Key, path: Path, original: Frames, of_original: Embedding | None
    ) -> Measures:
        frames = frames_of(path, self.n_frames)
        values = {**likeness(frames, original), **steadiness(frames)}
        if self.clip is not None and of_original is not None:
            embedding = self.clip.of_frames(frames)
            values[CLIP_VIDEO] = cosine(embedding, of_original)
            caption = self.captions.get((key[0], key[2]))
            if caption is not None:
                values[CLIP_TEXT] = cosine(embedding, self.clip.of_text(caption))
        return values

"""The captions of a file or of a folder of sample logs, found by task, video and aspect."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from loguru import logger

from lmms_eval_captions.judges.errors import CaptionError
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.model_wrappers.caption_files.columns import (
    ANY,
    ASPECTS,
    aspect_of,
    base_name,
    captions_of,
    listed,
    plain_log,
    plain_name,
    segment_of,
    stem,
    video_of,
)
from lmms_eval_captions.model_wrappers.caption_files.paths import (
    caption_files_in,
    files_of,
    has_logs,
    newest_logs,
)
from lmms_eval_captions.model_wrappers.caption_files.tables import (
    CAPTION_KEYS,
    VIDEO_KEYS,
    CaptionRow,
    read_rows,
)
from lmms_eval_captions.model_wrappers.no_caption import GeneralCaption

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_SPELLINGS: tuple[Callable[[str], str], ...] = (str, base_name, stem, plain_name)
"""Forms in which names are compared, the strictest first."""
_Key = tuple[str, str, str]
"""Task, video and aspect."""


class CaptionTable:
    """The captions of one file, found by video and aspect.

    Of rows that give one video the same caption column, the last counts. ``column`` is the only one
    to take captions from, if given; a part of a file ``may_be_empty``.
    """

    def __init__(
        self,
        rows: Sequence[CaptionRow],
        *,
        path: Path,
        column: str | None = None,
        may_be_empty: bool = False,
    ) -> None:
        self.path = path
        self._captions: dict[str, dict[str, str]] = {}
        """Captions by video and aspect."""
        self._aspects: dict[str, str | None] = {}
        """Video to the aspect that its caption of no named one was written for."""
        self._names: list[dict[str, dict[str, None]]] = [{} for _ in _SPELLINGS]
        """Names of videos, by each of their spellings."""
        columns = list(dict.fromkeys(key for row in rows for key in row.fields))
        if column is not None and column not in columns and not may_be_empty:
            raise CaptionError(
                f"{path}: no column {column!r}; its columns are {listed(columns, 30)}"
            )
        n_repeated = n_nameless = 0
        segments: dict[_Key, tuple[object, ...]] = {}
        for row in rows:
            video = video_of(row.fields)
            captions = captions_of(row, path, column)
            if video is None:
                n_nameless += 1
            elif captions:
                n_repeated += self._is_repeated(row, video, captions, segments)
                self._captions.setdefault(video, {}).update(captions)
                for names, spelled in zip(self._names, _SPELLINGS, strict=True):
                    names.setdefault(spelled(video), {})[video] = None
                if ANY in captions:
                    self._aspects[video] = aspect_of(row.fields, column)
        if not self._captions and not may_be_empty:
            self._refuse(columns, column, has_videos=n_nameless < len(rows))
        if n_repeated or n_nameless:
            logger.warning(
                f"{path}: {n_repeated} of {len(rows)} rows repeat a video (the last one "
                f"counts), {n_nameless} name no video (left out)"
            )

    @property
    def videos(self) -> Sequence[str]:
        """Names of the videos that have a caption, as the file spells them."""
        return list(self._captions)

    def find(self, video: str, aspect: str | None = None) -> str | None:
        """Return the caption of a video, unchanged, or ``None`` if the file has none.

        The name is tried as it is, then without folders, then without a video ending too, on both
        sides, so that ``a/b/clip.mp4``, ``clip.mp4`` and ``clip`` are one video; at last without
        blanks around and in one form of Unicode.

        An aspect's own column wins over a general caption; without an aspect it is a general
        caption, else the detailed one. One that was not written for the aspect is a
        :class:`GeneralCaption`.

        Raises:
            CaptionError: If several videos of the file go by that name and their captions differ.
        """
        for names, spelled in zip(self._names, _SPELLINGS, strict=True):
            namesakes = {name: self._pick(name, aspect) for name in names.get(spelled(video), ())}
            texts = {text for text in namesakes.values() if text is not None}
            if len(texts) > 1:
                raise CaptionError(
                    f"{self.path}: {video!r} may be any of {listed(namesakes)}, whose captions "
                    "differ; name the videos in the file as the benchmark does"
                )
            if texts:
                return texts.pop()
        return None

    def find_any(self, videos: Iterable[str], aspect: object) -> str | None:
        """Return the caption of a document, whose video may have several names."""
        named = aspect if isinstance(aspect, str) else None
        texts = (self.find(video, named) for video in videos)
        text = next((text for text in texts if text is not None), None)
        if text is None:
            return None
        return GeneralCaption(whole(text)) if isinstance(text, GeneralCaption) else whole(text)

    def _pick(self, name: str, aspect: str | None) -> str | None:
        captions = self._captions[name]
        if aspect is None:
            text = captions.get(ANY, captions.get("detailed"))
            return None if text is None else str(text)
        if aspect not in captions and ANY in captions and self._aspects[name] != aspect:
            return GeneralCaption(captions[ANY])
        return captions.get(aspect, captions.get(ANY))

    def _is_repeated(
        self,
        row: CaptionRow,
        video: str,
        captions: Iterable[str],
        segments: dict[_Key, tuple[object, ...]],
    ) -> bool:
        """Return if earlier rows have captions of the video; refuse those of other segments."""
        keys = [(str(row.fields.get("task")), video, aspect) for aspect in captions]
        before = [segments[key] for key in keys if key in segments]
        segment = segment_of(row.fields)
        if any(other != segment for other in before):
            raise CaptionError(
                f"{self.path}, {row.place}: video {video!r:.80} has captions of several "
                f"segments, {before[0]} and {segment}; join them to one caption, or leave "
                "out those columns if they are versions of which the last one counts"
            )
        segments.update(dict.fromkeys(keys, segment))
        return bool(before)

    def _refuse(self, columns: Sequence[str], column: str | None, *, has_videos: bool) -> None:
        if not columns:
            raise CaptionError(f"{self.path}: no rows; expected a video and a caption in each")
        if not has_videos:
            wanted = f"video under {listed(VIDEO_KEYS)} (or a sample log's target)"
        elif column is not None:
            wanted = f"caption under {column!r}"
        else:
            own = [f"{aspect}_caption" for aspect in ASPECTS]
            wanted = f"caption under {listed([*CAPTION_KEYS, *own, 'filtered_resps'], 9)}"
        raise CaptionError(
            f"{self.path}: no row has a {wanted}; its columns are {listed(columns, 30)}; rename "
            "one, or name them: the caption's with column=NAME, the video's with video_column=NAME"
        )


def open_captions(
    path: str | Path, column: str | None = None, video_column: str | None = None
) -> Callable[[str], CaptionTable]:
    """Return a look-up from task name to that task's captions.

    Args:
        path: A caption file, or several as :func:`files_of` takes them, whose rows serve any task,
            read now; where rows name a task under ``task``, as those of our caption logs do, that
            task gets its own rows alone. Or a folder of lmms-eval sample logs, of which a task gets
            its own newest, read when first asked for.
        column: The only column to take captions from, or ``None`` to look for the known ones.
        video_column: The column that names the video, in the same way.

    Raises:
        CaptionError: If the file cannot be used, or the folder has no logs or those of several
            runs' folders. The look-up raises it for a task that has no log, or a broken one.
    """
    folder = Path(path).expanduser()
    if not folder.is_dir() or (caption_files_in(folder) and not has_logs(folder)):
        rows = _read_files(files_of(str(path)), column, video_column)
        complete = CaptionTable(rows, path=folder, column=column)

        @cache
        def of_rows(task: str) -> CaptionTable:
            own = [
                row
                for row in rows
                if isinstance(named := row.fields.get("task"), str)
                and named.strip().lower() == task.lower()
            ]
            if not own:
                return complete
            return CaptionTable(own, path=folder, column=column, may_be_empty=True)

        return of_rows
    logs = newest_logs(folder)

    @cache
    def of_task(task: str) -> CaptionTable:
        if task not in logs:
            raise CaptionError(
                f"{folder}: no sample log of task {task!r}, only of {listed(logs, 30)}; run fewer "
                "tasks, or give one file as path=, whose rows serve any task"
            )
        return CaptionTable(_rows(logs[task], video_column), path=logs[task], column=column)

    return of_task


def _rows(path: Path, video_column: str | None) -> list[CaptionRow]:
    rows = read_rows(path, video_column)
    return [row._replace(fields=plain_log(row.fields, path)) for row in rows]


def _read_files(
    paths: Sequence[Path], column: str | None, video_column: str | None
) -> list[CaptionRow]:
    """Return the rows of all files, in order; refuse two that give one video different captions.

    Within a file the last one counts, but nobody can tell which file does.
    """
    if len(paths) == 1:
        return _rows(paths[0], video_column)
    rows: list[CaptionRow] = []
    seen: dict[_Key, tuple[str, Path]] = {}
    for path in paths:
        captions: dict[_Key, str] = {}
        for row in _rows(path, video_column):
            rows.append(row._replace(place=f"{path.name}, {row.place}"))
            task, video = str(row.fields.get("task")), str(video_of(row.fields))
            own = captions_of(rows[-1], path, column)
            captions |= {(task, video, aspect): caption for aspect, caption in own.items()}
        for key, caption in captions.items():
            other, before = seen.setdefault(key, (caption, path))
            if other != caption:
                raise CaptionError(
                    f"{before} and {path} have different captions of video {key[1]!r:.80}; give "
                    "one of the two, or files of different videos or aspects"
                )
    return rows

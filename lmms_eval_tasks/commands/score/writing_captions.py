"""Captions that a table lacks, written by one of our captioners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.score.rows import NO_CAPTION
from lmms_eval_captions.lmms_eval_tasks.scorer.columns import caption_of
from lmms_eval_captions.model_wrappers.caption_clips import ClipCaptioner
from lmms_eval_captions.model_wrappers.no_caption import NoCaption

if TYPE_CHECKING:
    import pyarrow as pa

    from lmms_eval_captions.lmms_eval_tasks.commands.score.spec import Captioning, ScoreSpec


class TableCaptioner:
    """Writes the captions of tables that are not there. Close it, or use it as a context manager.

    Raises:
        SettingsError: If there is no such captioner, or its arguments cannot be used.
    """

    def __init__(self, spec: ScoreSpec, captioning: Captioning) -> None:
        self._spec = spec
        self._captioner = ClipCaptioner(
            captioning.captioner, captioning.arguments, prompt=captioning.prompt
        )

    def __enter__(self) -> TableCaptioner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fill(self, table: pa.Table) -> pa.Table:
        """The rows with a caption each, or with why there is none.

        Args:
            table: With the columns of the spec; that of the captions may be missing.
        """
        import pyarrow as pa

        name = self._spec.name_of("caption")
        n = table.num_rows
        has_captions = name in table.column_names
        captions: list[str | None] = [None] * n
        reasons: list[str | None] = [None] * n
        for at, value in enumerate(table[name].to_pylist() if has_captions else ()):
            try:
                captions[at] = caption_of(value)
            except DataError as error:
                reasons[at] = str(error)
        videos = table[self._spec.name_of("video")].to_pylist()
        due = [
            at
            for at, video in enumerate(videos)
            if captions[at] is None and reasons[at] is None and isinstance(video, str)
        ]
        clips = [self._spec.video_path(videos[at]) for at in due]
        for at, written in zip(due, self._captioner.captions(clips), strict=True):
            if isinstance(written, NoCaption):
                reasons[at] = written.reason
            else:
                captions[at] = written
        column = pa.array(captions, pa.string())
        table = (
            table.set_column(table.column_names.index(name), name, column)
            if has_captions
            else table.append_column(name, column)
        )
        return table.append_column(NO_CAPTION, pa.array(reasons, pa.string()))

    def close(self) -> None:
        """Give back the model's memory."""
        self._captioner.close()

"""The ``caption_file`` model: captions from files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loguru import logger

from lmms_eval_captions.judges.errors import CaptionError, SettingsError
from lmms_eval_captions.model_wrappers.base import CaptionModel, read_request
from lmms_eval_captions.model_wrappers.caption_files.columns import listed, video_names
from lmms_eval_captions.model_wrappers.caption_files.paths import absent_ranks
from lmms_eval_captions.model_wrappers.caption_files.records import open_captions
from lmms_eval_captions.model_wrappers.caption_files.tables import VIDEO_KEYS
from lmms_eval_captions.model_wrappers.model_args import one_of, refuse_unknown, shown_name
from lmms_eval_captions.model_wrappers.no_caption import DroppedCaption, NoCaption
from lmms_eval_captions.model_wrappers.results import no_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmms_eval.api.instance import GenerationResult, Instance

    from lmms_eval_captions.model_wrappers.caption_jobs import CaptionRequest

_LEFT = {
    "skip": "Their questions are left unscored (missing=skip)",
    "drop": "They are left out of their tasks (missing=drop)",
}
_JOIN = (
    "If the processes were on other nodes, join these nodes' folders by a plus sign, or copy their "
    "files; if they wrote none, start the captioner again"
)


class CaptionFile(CaptionModel):
    """Captions from a file, so that any captioner's output can be judged, or judged again.

    ``--model caption_file --model_args path=FILE[,column=NAME][,video_column=NAME]
    [,missing=error|skip|drop]``. No video is opened. lmms-eval's ``--use_cache`` knows the file by
    its name alone: leave it out here, or captions of an earlier version of the file come back.

    ``path`` is what :func:`open_captions` takes; a number, as lmms-eval makes of digits, counts as
    text. ``missing=error`` stops where a caption is missing, ``skip`` leaves its questions
    unscored, ``drop`` leaves it out of the task.
    """

    has_captions = True

    def __init__(
        self,
        path: object = None,
        column: object = None,
        video_column: object = None,
        missing: object = "error",
        batch_size: object = 1,  # noqa: ARG002 (lmms-eval passes these to every model)
        device: object = None,  # noqa: ARG002
        max_batch_size: object = None,  # noqa: ARG002
        **unknown: object,
    ) -> None:
        refuse_unknown(
            shown_name(type(self)),
            known=("path", "column", "video_column", "missing"),
            unknown=unknown,
        )
        super().__init__()
        if path is None or path == "":
            raise SettingsError("caption_file: expected --model_args path=FILE, got no path")
        one_of("caption_file: missing", missing, ("error", *_LEFT))
        self._missing = str(missing)
        self._path = str(path)
        self._captions_of = open_captions(
            self._path, *(None if name is None else str(name) for name in (column, video_column))
        )

    def generate_until(self, requests: Sequence[Instance]) -> list[str | GenerationResult]:
        """Return one caption per request, in order, unchanged, or a ``NoCaption``."""
        wanted = [
            read_request(request.args, self.task_dict, is_simple=self.is_simple)
            for request in requests
        ]
        captions = [
            self._captions_of(of.task).find_any(self._videos(of), of.doc.get("aspect"))
            for of in wanted
        ]
        missing = [request for request, text in zip(wanted, captions, strict=True) if text is None]
        if missing:
            self._report(missing, len(requests))
        kind = DroppedCaption if self._missing == "drop" else NoCaption
        none = kind("the caption file has none")
        return [no_result(none) if text is None else text for text in captions]

    @staticmethod
    def _videos(request: CaptionRequest) -> list[str]:
        videos = video_names(request.doc)
        if not videos:
            raise CaptionError(
                f"caption_file: document {request.doc_id} of task {request.task!r} names no video "
                f"under {', '.join(VIDEO_KEYS)}, it has {', '.join(request.doc)}; captions from a "
                "file serve tasks whose documents name their video"
            )
        return videos

    def _report(self, missing: Sequence[CaptionRequest], n_wanted: int) -> None:
        table = self._captions_of(missing[0].task)
        videos = (f"{self._videos(request)[0]} ({request.task})" for request in missing)
        absent = absent_ranks(self._path)
        whose, add = (f" ({absent})", _JOIN) if absent else ("", "Add them")
        text = (
            f"caption_file: {len(missing)} of {n_wanted} captions are missing{whose}, for "
            f"{listed(videos)}. {table.path} has captions "
            f"of {len(table.videos)} videos: {listed(table.videos, 3)}"
        )
        if self._missing == "error":
            raise CaptionError(
                f"{text}. {add}, or leave their questions unscored with missing=skip, or score "
                "the others alone with missing=drop"
            )
        logger.warning(f"{text}. {_LEFT[self._missing]}")


class CaptionFileChat(CaptionFile):
    """The same for tasks in lmms-eval's chat form."""

    is_simple = False

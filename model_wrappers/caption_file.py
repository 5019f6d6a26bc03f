"""The ``caption_file`` model: captions that were written before, looked up instead of generated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

import torch
from lmms_eval.api.model import lmms
from lmms_eval_captions.judges.errors import CaptionError, SettingsError
from lmms_eval_captions.model_wrappers.caption_columns import VIDEO_KEYS, listed, video_names
from lmms_eval_captions.model_wrappers.caption_records import open_captions
from loguru import logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_KNOWN_ARGS = ("path", "column", "missing")
_MISSING = ("error", "skip")


class Request(Protocol):
    """What this model reads of lmms-eval's request."""

    @property
    def args(self) -> tuple[object, ...]:
        """Whatever the kind of request, ends in the document's number, the task and the split."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    task: str
    videos: tuple[str, ...]
    aspect: str | None


class CaptionFile(lmms):  # type: ignore[misc] # lmms-eval ships no types
    """Captions from a file, so that any captioner's output can be judged, or judged again.

    ``--model caption_file --model_args path=FILE[,column=NAME][,missing=error|skip]``. No video is
    opened. lmms-eval's ``--use_cache`` knows the file by its name alone: leave it out here, or
    captions of an earlier version of the file come back.
    """

    is_simple = True

    def __init__(
        self,
        path: object = None,
        column: object = None,
        missing: object = "error",
        batch_size: object = None,  # noqa: ARG002 (lmms-eval passes it to every model)
        device: object = None,  # noqa: ARG002
        max_batch_size: object = None,  # noqa: ARG002
        **unknown: object,
    ) -> None:
        """Read the captions.

        Args:
            path: Caption file (JSONL, JSON or CSV, or any with ``.gz``), or a folder of lmms-eval
                sample logs. A number, as lmms-eval makes of digits, counts as text.
            column: The caption's column, by default the known ones.
            missing: ``error`` stops where a caption is missing, ``skip`` scores it as empty.
            batch_size: Not used.
            device: Not used.
            max_batch_size: Not used.
            unknown: Anything else is an error.

        Raises:
            SettingsError: If an argument is missing or unknown, or ``missing`` neither of the two.
            CaptionError: If the captions cannot be read.
        """
        super().__init__()
        if unknown:
            raise SettingsError(
                f"caption_file: unknown model_args {', '.join(sorted(unknown))}; known are "
                f"{', '.join(_KNOWN_ARGS)}"
            )
        if path is None or path == "":
            raise SettingsError("caption_file: expected --model_args path=FILE, got no path")
        if missing not in _MISSING:
            raise SettingsError(
                f"caption_file: missing={missing!r} is not one of {', '.join(_MISSING)}"
            )
        self._path = Path(str(path)).expanduser()
        self._skip_missing = missing == "skip"
        self._captions_of = open_captions(self._path, None if column is None else str(column))

    @property
    def device(self) -> torch.device:
        """Where lmms-eval gathers its counters: the device of the accelerator that it gave us."""
        accelerator = getattr(self, "accelerator", None)
        return torch.device("cpu") if accelerator is None else torch.device(accelerator.device)

    def generate_until(self, requests: Sequence[Request]) -> list[str]:
        """The caption of each request's video, unchanged, in the order of the requests.

        Raises:
            CaptionError: If a document names no video, or, unless ``missing=skip``, a video has no
                caption; before any caption is returned.
        """
        wanted = [self._wanted(request) for request in requests]
        captions = [self._find(one) for one in wanted]
        missing = [one for one, text in zip(wanted, captions, strict=True) if text is None]
        if missing:
            self._report(missing, len(wanted))
        return ["" if text is None else text for text in captions]

    def loglikelihood(self, requests: Sequence[Request]) -> NoReturn:
        """Not possible: a file of captions has no probabilities."""
        raise NotImplementedError(
            f"caption_file only looks captions up, it cannot score {len(requests)} given answers "
            "(loglikelihood); run a captioning task"
        )

    def generate_until_multi_round(self, requests: Sequence[Request]) -> NoReturn:
        """Not possible: a file has one caption a video, not a conversation."""
        raise NotImplementedError(
            f"caption_file only looks captions up, it cannot hold {len(requests)} conversations "
            "(generate_until_multi_round); run a captioning task"
        )

    def _wanted(self, request: Request) -> _Wanted:
        # Simple and chat requests differ in front; never call their hooks, which would open videos.
        doc_id, task, split = request.args[-3:]
        doc: Mapping[str, object] = self.task_dict[task][split][doc_id]
        videos = tuple(video_names(doc))
        if not videos:
            raise CaptionError(
                f"caption_file: document {doc_id} of task {task!r} names no video under "
                f"{', '.join(VIDEO_KEYS)}, it has {', '.join(doc)}; captions from a file serve "
                "tasks whose documents name their video"
            )
        aspect = doc.get("aspect")
        return _Wanted(str(task), videos, aspect if isinstance(aspect, str) else None)

    def _find(self, wanted: _Wanted) -> str | None:
        table = self._captions_of(wanted.task)
        found = (table.find(video, wanted.aspect) for video in wanted.videos)
        return next((text for text in found if text is not None), None)

    def _report(self, missing: Sequence[_Wanted], n_wanted: int) -> None:
        table = self._captions_of(missing[0].task)
        text = (
            f"caption_file: {len(missing)} of {n_wanted} captions are missing, for "
            f"{listed(f'{one.videos[0]} ({one.task})' for one in missing)}. {table.path} has "
            f"captions of {len(table)} videos: {listed(table.videos, 3)}"
        )
        if not self._skip_missing:
            raise CaptionError(
                f"{text}. Add them, or score them as empty captions with missing=skip"
            )
        logger.warning(f"{text}. They are scored as empty captions (missing=skip)")


class CaptionFileChat(CaptionFile):
    """The same for tasks in lmms-eval's chat form."""

    is_simple = False

"""Captions without a neural network: what classical computer vision can measure, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loguru import logger

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.model_wrappers.base import PlainCaptioner
from lmms_eval_captions.model_wrappers.baseline.reading import read_scene
from lmms_eval_captions.model_wrappers.baseline.sentences import describe, focus_of
from lmms_eval_captions.model_wrappers.no_caption import NoCaption
from lmms_eval_captions.model_wrappers.video.frames import read_frames

if TYPE_CHECKING:
    from pathlib import Path

    from lmms_eval_captions.model_wrappers.base import CaptionRequest
    from lmms_eval_captions.model_wrappers.baseline.reading import Observations


class CaptionBaseline(PlainCaptioner):
    """A captioner that needs no GPU and no weights.

    It tries a pipeline from clip to score with captions that depend on the clip, and gives a floor
    that a real captioner should be well above. A clip that cannot be read has no caption.

    Args:
        n_frames: Frames looked at in each clip, >= 1; below 4 nothing is said about movement that
            happens between them.
        batch_size: Taken for compatibility; clips are read one by one.
        device: Taken for compatibility; everything runs on the CPU.
        max_batch_size: Taken for compatibility.
        unknown: Refused.

    Raises:
        SettingsError: If ``n_frames`` is not a whole number of at least 1, or for an argument that
            is not one of these.
    """

    def __init__(
        self,
        n_frames: int = 16,
        batch_size: int | str = 1,
        device: str | None = None,  # noqa: ARG002
        max_batch_size: int | None = None,  # noqa: ARG002
        **unknown: object,
    ) -> None:
        super().__init__(known=("n_frames",), unknown=unknown, batch_size=batch_size)
        if not isinstance(n_frames, int) or isinstance(n_frames, bool) or n_frames < 1:
            raise SettingsError(
                f"--model_args: expected n_frames as a whole number of at least 1, got {n_frames!r}"
            )
        self.n_frames = n_frames
        self._seen: dict[Path, Observations | NoCaption] = {}

    def caption(self, request: CaptionRequest) -> str:
        """What was measured in the request's clip, first what its prompt asks for."""
        try:
            path = request.video_path()
        except DataError as error:
            logger.warning(
                "no caption for document {} of {}: {}", request.doc_id, request.task, error
            )
            return NoCaption(str(error))
        observations = self._look_at(path)
        if isinstance(observations, NoCaption):
            return observations
        return describe(observations, focus_of(request.prompt))

    def _look_at(self, path: Path) -> Observations | NoCaption:
        """What a clip shows, read once for all tasks that ask for it."""
        if path not in self._seen:
            try:
                clip = read_frames(path, self.n_frames)
                self._seen[path] = read_scene(clip.frames, clip.duration_s)
            except DataError as error:
                logger.warning("no caption for {}: {}", path, error)
                self._seen[path] = NoCaption(str(error))
        return self._seen[path]


class CaptionBaselineChat(CaptionBaseline):
    """The same captioner behind lmms-eval's chat interface."""

    is_simple = False

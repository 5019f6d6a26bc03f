"""Captions on disk before they are judged."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from pathlib import Path

from loguru import logger

from lmms_eval_captions.model_wrappers.general_caption import KIND, GeneralCaption
from lmms_eval_captions.model_wrappers.no_caption import NoCaption


class CaptionLog:
    """Appends every caption of one process to a file that the model ``caption_file`` reads.

    Args:
        cache: The cache folder; where it cannot be written, the system's temporary folder is used.
    """

    def __init__(self, cache: Path) -> None:
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        folders = [cache, Path(tempfile.gettempdir()) / "lmms-eval-captions"]
        self._places = [folder / "captions" / f"{name}.jsonl" for folder in folders]
        self._announced: Path | None = None
        self._lock = threading.Lock()

    @property
    def path(self) -> Path | None:
        """File that holds the captions so far, ``None`` before the first one was saved."""
        return self._announced

    def save(self, *, task: str, video_id: str, caption: str, aspect: str | None) -> None:
        """Append one caption, and say once where the captions are.

        Where nothing can be written, an error is logged and the run goes on: lmms-eval's samples
        still hold the caption.
        """
        row: dict[str, str | None] = {"task": task, "video_id": video_id, "caption": caption}
        if isinstance(caption, NoCaption):
            row |= {"caption": None, "reason": caption.reason}
        if aspect is not None:
            row["aspect"] = aspect
            if isinstance(caption, GeneralCaption):
                row["captions"] = KIND
        line = json.dumps(row).encode("ascii") + b"\n"
        with self._lock:
            while self._places:
                try:
                    self._append(self._places[0], line)
                except OSError as error:
                    logger.error(
                        "captions cannot be saved to {}: {}; {}",
                        self._places.pop(0),
                        error,
                        f"saving to {self._places[0]} from here on"
                        if self._places
                        else "keep them with --log_samples --output_path",
                    )
                else:
                    self._announce(self._places[0])
                    return

    def _append(self, path: Path, line: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            if os.write(descriptor, line) < len(line):
                raise OSError(28, "no space left for the whole caption")
        finally:
            os.close(descriptor)

    def _announce(self, path: Path) -> None:
        if path != self._announced:
            self._announced = path
            logger.info(
                "captions are saved to {} before they are judged; judge them again, without the "
                "model, with --model caption_file --model_args path={}",
                path,
                path,
            )

"""Captions on disk before they are judged: those of local models as each batch is written."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from loguru import logger

from lmms_eval_captions.judges.endpoint.endpoint import cache_folder
from lmms_eval_captions.model_wrappers.caption_files.ranks import rank_file
from lmms_eval_captions.model_wrappers.general_caption import KIND, GeneralCaption
from lmms_eval_captions.model_wrappers.no_caption import NoCaption
from lmms_eval_captions.model_wrappers.run_name import RunName, run_name

Identity = tuple[str, str | None]
"""Video of a document, and the aspect of its caption where a benchmark has several."""
_DIGEST_BYTES: Final = 16


class CaptionLog:
    """Appends every caption of one process to a file that the model ``caption_file`` reads.

    Several processes of one run write files of their own into one folder, which ``caption_file``
    reads as well.

    Args:
        cache: The cache folder; where it cannot be written, the system's temporary folder is used.
        run: The run's name, by default found out.
    """

    def __init__(self, cache: Path, run: RunName | None = None) -> None:
        self._run = run or run_name()
        folders = [cache, Path(tempfile.gettempdir()) / "lmms-eval-captions"]
        self._places = [folder / "captions" / self._run.name for folder in folders]
        self._announced: Path | None = None
        self._early: set[bytes] = set()
        self._lock = threading.Lock()

    @property
    def path(self) -> Path | None:
        """What ``caption_file`` takes, ``None`` before the first caption was saved.

        The file that holds the captions so far, of a run of several processes the folder.
        """
        return self._announced

    def save(self, *, task: str, video_id: str, caption: str, aspect: str | None) -> None:
        """Append one caption, unless it was saved early, and say once where the captions are.

        Where nothing can be written, an error is logged and the run goes on: lmms-eval's samples
        still hold the caption.
        """
        if self._early and _digest(task, video_id, aspect, caption) in self._early:
            return
        self._save(task, video_id, caption, aspect)

    def save_early(self, *, task: str, video_id: str, caption: str, aspect: str | None) -> None:
        """Append a caption as soon as it is written, long before lmms-eval hands it to its task.

        lmms-eval strips captions, and so does this.
        """
        stripped = caption.strip()
        digest = _digest(task, video_id, aspect, stripped)
        if digest not in self._early:
            self._early.add(digest)
            self._save(task, video_id, stripped, aspect)

    def _save(self, task: str, video_id: str, caption: str, aspect: str | None) -> None:
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
                    self._append(self._file(self._places[0]), line)
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

    def _file(self, place: Path) -> Path:
        if self._run.world_size == 1:
            return place.with_name(f"{place.name}.jsonl")
        return place / rank_file(self._run.rank, self._run.world_size)

    def _append(self, path: Path, line: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            n_written = os.write(descriptor, line)
            if n_written < len(line):
                # Half a line would have the whole file refused.
                os.ftruncate(descriptor, os.fstat(descriptor).st_size - n_written)
                raise OSError(28, "no space left for the whole caption")
        finally:
            os.close(descriptor)

    def _announce(self, place: Path) -> None:
        path = self._file(place) if self._run.world_size == 1 else place
        if path == self._announced:
            return
        self._announced = path
        run = self._run
        if run.is_shared and (run.rank if run.local_rank is None else run.local_rank):
            return  # the first process of each node says it for all there
        logger.info(
            "captions are saved to {} before they are judged; judge them again, without the "
            "model, with --model caption_file --model_args path={}{}",
            path,
            path,
            self._whose(),
        )

    def _whose(self) -> str:
        """What is said of whose captions are there, where they may not be all of the run's."""
        if not self._run.is_shared:
            return (
                f" (those of rank {self._run.rank} of {self._run.world_size}: join the paths that "
                "the processes name by a plus sign)"
            )
        if self._run.has_nodes:
            return (
                " (where the nodes do not share that folder, those of this node's processes: join "
                "the nodes' folders by a plus sign)"
            )
        return ""


class RunCaptions:
    """The captions of this process's run: one log, whoever saves first."""

    def __init__(self) -> None:
        self._identities: dict[str, Callable[[Mapping[str, Any]], Identity]] = {}
        self._n_runs = 0
        self._lock = threading.Lock()
        self._log: CaptionLog | None = None

    def begin(self) -> None:
        """Start another file at the next caption: a process may have runs of several models."""
        with self._lock:
            self._n_runs += 1
            self._log = None

    def forget(self) -> None:
        """Start another file at the next caption, as in a forked child."""
        self._lock = threading.Lock()
        self._log = None

    def log(self) -> CaptionLog:
        """Where this process saves its captions, whatever the settings of the judge."""
        with self._lock:
            if self._log is None:
                self._log = CaptionLog(cache_folder(), run_name(number=self._n_runs))
            return self._log

    @property
    def saved(self) -> Path | None:
        """Where captions of this run were saved, ``None`` where none was so far."""
        return None if self._log is None else self._log.path

    def expect(self, task: str, identity: Callable[[Mapping[str, Any]], Identity]) -> None:
        """Have the captions of a task saved as soon as they are written.

        Args:
            task: Name of the lmms-eval task.
            identity: Says of a document of the task whose caption is asked for.
        """
        self._identities[task] = identity

    def expects(self, task: str) -> bool:
        """Whether captions of a task are saved as soon as they are written."""
        return task in self._identities

    def save_early(self, task: str, doc: Mapping[str, Any], caption: str) -> None:
        """Save a caption that was just written; those of tasks that are not ours are not saved."""
        identity = self._identities.get(task)
        if identity is not None:
            video_id, aspect = identity(doc)
            self.log().save_early(task=task, video_id=video_id, caption=caption, aspect=aspect)


RUN_CAPTIONS: Final = RunCaptions()


def _digest(task: str, video_id: str, aspect: str | None, caption: str) -> bytes:
    words = json.dumps([task, video_id, aspect, caption]).encode("ascii")
    return blake2b(words, digest_size=_DIGEST_BYTES).digest()

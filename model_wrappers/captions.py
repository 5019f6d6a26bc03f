"""Captions on disk: one JSONL per run and rank, for ``caption_file`` and for reruns."""

from __future__ import annotations

import json
import os
import re
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loguru import logger

from lmms_eval_captions.judges.endpoint.endpoint import CACHE_VARIABLE, cache_folder
from lmms_eval_captions.judges.endpoint.store import slug
from lmms_eval_captions.model_wrappers.caption_files.paths import rank_file
from lmms_eval_captions.model_wrappers.caption_jobs import Caption, content_of, source_name
from lmms_eval_captions.model_wrappers.identity import as_json, clip_stamp, digest_of
from lmms_eval_captions.model_wrappers.no_caption import KIND, GeneralCaption, NoCaption
from lmms_eval_captions.model_wrappers.run_name import RunName, run_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lmms_eval_captions.model_wrappers.caption_jobs import Shown
    from lmms_eval_captions.model_wrappers.pipeline import PlannedCaption

Identity = tuple[str, str | None]
"""Video of a document, and the aspect of its caption if a benchmark has several."""
_FOLDER: Final = "captions"
_KEYED: Final = re.compile(rb'\{"key": "([0-9a-f]{32})"')


class CaptionLog:
    """The captions of one process, appended to a file that the model ``caption_file`` reads.

    Several processes of one run write files of their own into one folder, which ``caption_file``
    reads as well.

    Args:
        cache: The cache folder; if it cannot be written, the system's temporary folder is used.
        run: The run's name, by default found out.
        captioner: Folder of the captioner whose captions they are, if they may be reused.
    """

    def __init__(self, cache: Path, run: RunName | None = None, captioner: str = "") -> None:
        self._run = run or run_name()
        folders = [cache, Path(tempfile.gettempdir()) / "lmms-eval-captions"]
        self._targets = [folder / _FOLDER / captioner / self._run.name for folder in folders]
        self._announced: Path | None = None
        self._early: set[str] = set()
        self._lock = threading.Lock()

    @property
    def path(self) -> Path | None:
        """Path for ``caption_file``, ``None`` before the first caption was saved.

        The file of the captions so far; the folder in a run of several processes.
        """
        return self._announced

    def save(self, *, task: str, video_id: str, caption: str, aspect: str | None) -> None:
        """Append one caption, unless it was saved early, and log once where captions are.

        If nothing can be written, an error is logged and the run continues: lmms-eval's samples
        still hold the caption.
        """
        if not self._early or digest_of(task, video_id, aspect, caption) not in self._early:
            self._save({}, task, video_id, caption, aspect)

    def save_early(
        self, *, task: str, video_id: str, caption: str, aspect: str | None, **more: object
    ) -> None:
        """Append a caption as soon as it is written, before lmms-eval hands it to its task.

        Args:
            task: Its task.
            video_id: Its video.
            caption: As written; lmms-eval strips captions.
            aspect: Its aspect.
            more: ``key`` and ``tokens``, for reuse.
        """
        digest = digest_of(task, video_id, aspect, caption.strip())
        # Two draws may be equal, and each is kept under a key of its own.
        row = f"{digest} {more.get('key', '')}"
        if row not in self._early:
            self._early |= {digest, row}
            self._save(more, task, video_id, caption, aspect)

    def _save(
        self, more: Mapping[str, object], task: str, video_id: str, text: str, aspect: str | None
    ) -> None:
        row: dict[str, object] = {**more, "task": task, "video_id": video_id, "caption": text}
        if isinstance(text, NoCaption):
            row |= {"caption": None, "reason": text.reason}
        if aspect is not None:
            row["aspect"] = aspect
            if isinstance(text, GeneralCaption):
                row["captions"] = KIND
        line = json.dumps(row).encode("ascii") + b"\n"
        with self._lock:
            while self._targets:
                try:
                    _append(self._file(self._targets[0]), line)
                except OSError as error:
                    failed = self._targets.pop(0)
                    logger.error(
                        "captions cannot be saved to {}: {}; {}",
                        failed,
                        error,
                        f"saving to {self._targets[0]} from here on"
                        if self._targets
                        else f"set {CACHE_VARIABLE} to a folder that can be written, or keep them "
                        "with --log_samples --output_path",
                    )
                else:
                    self._announce(self._targets[0])
                    return

    def _file(self, target: Path) -> Path:
        if self._run.world_size == 1:
            return target.with_name(f"{target.name}.jsonl")
        return target / rank_file(self._run.rank, self._run.world_size)

    def _announce(self, target: Path) -> None:
        path = self._file(target) if self._run.world_size == 1 else target
        if path == self._announced:
            return
        self._announced = path
        if self._run.is_first:
            logger.info(
                "captions are saved to {} before they are judged; judge them again, without the "
                "model, with --model caption_file --model_args path={}{}",
                path,
                path,
                self._run.scope(),
            )


class RunCaptions:
    """The captions of this process's run: one log, whoever saves first."""

    def __init__(self) -> None:
        self._identities: dict[str, Callable[[Mapping[str, Any]], Identity]] = {}
        self._n_runs = 0
        self._captioner = ""
        self.forget()

    def begin(self) -> None:
        """Start another file at the next caption: a process may have runs of several models."""
        self._n_runs += 1
        self._captioner = ""
        self.forget()

    def forget(self) -> None:
        """Start another file at the next caption, as in a forked child."""
        self._lock = threading.Lock()
        self._log: CaptionLog | None = None

    def put_into(self, captioner: str) -> None:
        """Save the captions from here on in the folder of a captioner."""
        if captioner != self._captioner:
            self._captioner = captioner
            self.forget()

    def log(self) -> CaptionLog:
        """Return this process's log of captions, whatever the settings of the judge."""
        with self._lock:
            if self._log is None:
                run = run_name(number=self._n_runs)
                self._log = CaptionLog(cache_folder(), run, self._captioner)
            return self._log

    @property
    def saved(self) -> Path | None:
        """Path of the captions of this run, ``None`` if none was saved so far."""
        return None if self._log is None else self._log.path

    def expect(self, task: str, identity: Callable[[Mapping[str, Any]], Identity]) -> None:
        """Declare a task whose documents name videos of a benchmark.

        Args:
            task: Name of the lmms-eval task.
            identity: Returns the identity of the caption of a document of the task.
        """
        self._identities[task] = identity

    def identity(self, task: str, doc: Callable[[], Mapping[str, Any]]) -> Identity | None:
        """Return the identity of a document's caption, ``None`` for tasks that are not ours."""
        identify = self._identities.get(task)
        return None if identify is None else identify(doc())


RUN_CAPTIONS: Final = RunCaptions()


class KeptCaptions:
    """The captions of one captioner: those of earlier runs, and those of this one.

    They are found by the captioner's identity, the clip's stamp, and the prompt with its
    generation settings. Captions about pictures are found by what the pictures show, once they are
    read; those drawn at random also by document, number among equal draws and torch's seed.

    Args:
        folder: Folder of the captioner's files; ``None`` neither takes captions nor keeps them for
            later runs.
        identity: ``Captioner.identity()`` as text.
    """

    def __init__(self, folder: Path | None, identity: str) -> None:
        self.folder = folder
        self._identity = identity
        self._lines: dict[bytes, tuple[Path, int]] = {}
        self._stamps: dict[Path, list[object]] = {}
        for file in sorted(folder.rglob("*.jsonl")) if folder and folder.is_dir() else ():
            self._lines |= _keyed_lines(file)

    def take(
        self, planned: Iterable[PlannedCaption]
    ) -> tuple[list[tuple[PlannedCaption, Caption]], list[PlannedCaption]]:
        """Separate the captions that exist from those to write, which get their keys.

        Args:
            planned: Captions in lmms-eval's order, equal ones once.
        """
        taken: list[tuple[PlannedCaption, Caption]] = []
        left: list[PlannedCaption] = []
        for asked in planned:
            keyed = replace(asked, key=self._key(asked))
            caption = self._find(keyed.key) if isinstance(asked.source, Path) else None
            if caption is None:
                left.append(keyed)
            else:
                taken.append((keyed, caption))
        return taken, left

    def take_shown(
        self, asked: PlannedCaption, shown: Shown
    ) -> tuple[PlannedCaption, Caption | None]:
        """Do the same for pictures that were read; called in several threads."""
        if isinstance(asked.source, Path) or not asked.key:
            return asked, None
        pixels = [blake2b(clip.frames.tobytes()).hexdigest() for clip in shown.clips]
        shapes = [clip.frames.shape for clip in shown.clips]
        keyed = replace(asked, key=digest_of(asked.key, pixels, shapes, shown.content))
        return keyed, self._find(keyed.key)

    def keep(self, asked: PlannedCaption, caption: Caption, text: str) -> None:
        """Write a caption before the next one is written; an empty one is not kept for reruns.

        Args:
            asked: The caption and those that share it.
            caption: The caption with its tokens.
            text: Its text for lmms-eval.
        """
        tokens = [caption.n_input_tokens, caption.n_output_tokens]
        more = {"key": asked.key, "tokens": tokens} if asked.key and text.strip() else {}
        foreign = [(asked.task, source_name(asked.source), None)] if more else []
        for task, video_id, aspect in asked.rows or foreign:
            RUN_CAPTIONS.log().save_early(
                task=task, video_id=video_id, caption=text, aspect=aspect, **more
            )

    def _key(self, asked: PlannedCaption) -> str:
        """Return 32 hexadecimal digits, none if the file cannot be found or nothing is kept."""
        if self.folder is None:
            return ""
        clip: list[object] = []
        if isinstance(asked.source, Path):
            try:
                clip = self._stamps[asked.source]
            except KeyError:
                try:
                    clip = self._stamps[asked.source] = clip_stamp(asked.source)
                except OSError:
                    return ""
        drawn: list[object] = []
        if asked.generation.do_sample:
            import torch

            drawn = [asked.task, asked.doc_id, asked.draw, torch.initial_seed()]
        question = content_of(1, asked.prompt), asdict(asked.generation), asked.variant
        return digest_of(self._identity, clip, question, drawn)

    def _find(self, key: str) -> Caption | None:
        line = self._lines.get(bytes.fromhex(key))
        if line is None:
            return None
        try:
            with line[0].open("rb") as file:
                file.seek(line[1])
                row = json.loads(file.readline())
            text, tokens = row["caption"], row["tokens"]
            if isinstance(text, str) and all(isinstance(n, int | None) for n in tokens):
                return Caption(text, *tokens)
        except (OSError, ValueError, LookupError, TypeError):  # damaged: it is written again
            pass
        return None


def open_kept(name: str, identity: Mapping[str, object]) -> KeptCaptions:
    """Open the captions of a captioner, below the cache folder, and save those of this run there.

    Args:
        name: Beginning of the folder's name.
        identity: ``Captioner.identity()``.
    """
    text = as_json(identity)
    digest, folder = digest_of(text)[:12], cache_folder() / _FOLDER
    # The folder of a checkpoint may have been renamed.
    known = sorted(folder.glob(f"*-{digest}")) if folder.is_dir() else []
    captioner = known[0].name if known else f"{slug(name)}-{digest}"
    RUN_CAPTIONS.put_into(captioner)
    return KeptCaptions(folder / captioner, text)


def _append(path: Path, line: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        n_written = os.write(descriptor, line)
        if n_written < len(line):
            # caption_file would refuse a file with half a line.
            os.ftruncate(descriptor, os.fstat(descriptor).st_size - n_written)
            raise OSError(28, "no space left for the complete caption")
    finally:
        os.close(descriptor)


def _keyed_lines(file: Path) -> dict[bytes, tuple[Path, int]]:
    """Return the keys of a file's complete lines, and where each line begins."""
    found: dict[bytes, tuple[Path, int]] = {}
    try:
        with file.open("rb") as lines:
            at = 0
            for line in lines:
                match = _KEYED.match(line)
                if match is not None and line.endswith(b"\n"):
                    found[bytes.fromhex(match[1].decode("ascii"))] = file, at
                at += len(line)
    except OSError as error:
        logger.warning("kept captions cannot be read: {}", error)
    return found

"""Captions on disk: one JSONL per run and rank, for ``caption_file`` and for reruns."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from loguru import logger

from lmms_eval_captions.judges.endpoint.endpoint import CACHE_VARIABLE, cache_folder
from lmms_eval_captions.judges.endpoint.store import slug
from lmms_eval_captions.model_wrappers.caption_files.paths import rank_file
from lmms_eval_captions.model_wrappers.caption_jobs import Caption, content_of, source_name
from lmms_eval_captions.model_wrappers.identity import as_json, clip_stamp, digest_of
from lmms_eval_captions.model_wrappers.no_caption import KIND, GeneralCaption, NoCaption

if TYPE_CHECKING:
    from lmms_eval_captions.model_wrappers.pipeline import PlannedCaption

Identity = tuple[str, str | None]
"""Video of a document, and the aspect of its caption if a benchmark has several."""
_FOLDER: Final = "captions"
_KEYED: Final = re.compile(rb'\{"key": "([0-9a-f]{32})"')


def launcher_number(env: Mapping[str, str], name: str, default: int) -> int:
    """Return a launcher's number, or the default if it is none: others complain of that."""
    text = env.get(name, "")
    return int(text) if text.isdecimal() else default


class RunName(NamedTuple):
    """The name of a run, and the role of this process in it."""

    name: str
    rank: int = 0
    world_size: int = 1
    is_first: bool = True
    """True for the process that logs for its node, and for each without a shared name."""


def _run_name(number: int) -> RunName:
    """Return the name of the run, of this number in this process, that the process belongs to.

    The first process that asks puts the name into the store through which torch.distributed met,
    where the others find it, on any node. Without one, each process has a name of its own.
    """
    env = os.environ
    rank, world_size = launcher_number(env, "RANK", 0), launcher_number(env, "WORLD_SIZE", 1)
    # Containers that were started together have few process numbers, and the same ones.
    host = slug(socket.gethostname()) or "host"
    own = f"{time.strftime('%Y%m%d-%H%M%S')}-{host}-{os.getpid()}"
    suffix = f"-{number}" if number > 1 else ""
    if world_size == 1:
        return RunName(f"{own}{suffix}")
    # Importing it takes seconds; processes that have met have done so.
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not (distributed.is_available() and distributed.is_initialized()):
        return RunName(f"{own}{suffix}", rank, world_size)
    store = distributed.distributed_c10d._get_default_store()
    agreed: str = store.compare_set("lmms_eval_captions/run", "", own).decode("ascii")
    is_first = not launcher_number(env, "LOCAL_RANK", rank)
    return RunName(f"{agreed}{suffix}", rank, world_size, is_first)


class CaptionLog:
    """The captions of one process, appended to a file that the model ``caption_file`` reads.

    Several processes of one run write files of their own into one folder, which ``caption_file``
    reads as well. If the cache folder cannot be written, the system's temporary folder is used.
    ``captioner`` is the folder of the captioner, if its captions may be reused.
    """

    def __init__(self, cache: Path, run: RunName | None = None, captioner: str = "") -> None:
        self._run = run or _run_name(1)
        folders = [cache, Path(tempfile.gettempdir()) / "lmms-eval-captions"]
        self._targets = [folder / _FOLDER / captioner / self._run.name for folder in folders]
        self.path: Path | None = None
        """Path for ``caption_file``: the file of the captions so far, or the folder in a run of
        several processes; ``None`` before the first caption was saved."""
        self._saved: set[str] = set()
        self._lock = threading.Lock()

    def save(
        self, *, task: str, video_id: str, caption: str, aspect: str | None, **more: object
    ) -> None:
        """Append one caption, unless it is there, and log once where captions are.

        A captioner saves it as soon as it is written, with ``key`` and ``tokens`` for reuse; its
        task saves it once more, stripped by lmms-eval. If nothing can be written, an error is
        logged and the run continues: lmms-eval's samples still hold the caption.
        """
        digest = digest_of(task, video_id, aspect, caption.strip())
        # Two draws may be equal, and each is kept under a key of its own.
        own = f"{digest} {more['key']}" if more else digest
        row = {**more, "task": task, "video_id": video_id, "caption": caption}
        if isinstance(caption, NoCaption):
            row |= {"caption": None, "reason": caption.reason}
        if aspect is not None:
            row["aspect"] = aspect
            if isinstance(caption, GeneralCaption):
                row["captions"] = KIND
        line = json.dumps(row).encode("ascii") + b"\n"
        is_alone = self._run.world_size == 1
        with self._lock:
            if own in self._saved:
                return
            self._saved |= {digest, own}
            while self._targets:
                target = self._targets[0]
                file = target / rank_file(self._run.rank, self._run.world_size)
                if is_alone:
                    file = target.with_name(f"{target.name}.jsonl")
                try:
                    _append(file, line)
                except OSError as error:
                    del self._targets[0]
                    remedy = (
                        f"set {CACHE_VARIABLE} to a folder that can be written, or keep them with "
                        "--log_samples --output_path"
                    )
                    if self._targets:
                        remedy = f"saving to {self._targets[0]} from here on"
                    logger.error("captions cannot be saved to {}: {}; {}", target, error, remedy)
                    continue
                path, before = file if is_alone else target, self.path
                self.path = path
                if self._run.is_first and path != before:
                    logger.info(
                        "captions are saved to {} before they are judged; judge them again, "
                        "without the model, with --model caption_file --model_args path={}",
                        path,
                        path,
                    )
                return


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
                self._log = CaptionLog(cache_folder(), _run_name(self._n_runs), self._captioner)
            return self._log

    @property
    def saved(self) -> Path | None:
        """Path of the captions of this run, ``None`` if none was saved so far."""
        return None if self._log is None else self._log.path

    def expect(self, task: str, identity: Callable[[Mapping[str, Any]], Identity]) -> None:
        """Declare how documents of a task name the video and aspect of their caption."""
        self._identities[task] = identity

    def identity(self, task: str, doc: Callable[[], Mapping[str, Any]]) -> Identity | None:
        """Return the identity of a document's caption, ``None`` for tasks that are not ours."""
        identify = self._identities.get(task)
        return None if identify is None else identify(doc())


RUN_CAPTIONS: Final = RunCaptions()


class KeptCaptions:
    """The captions of one captioner: those of earlier runs, and those of this one.

    Those of videos are found by the captioner's identity, the clip's stamp, and the prompt with its
    generation settings; those drawn at random also by document, number among equal draws and
    torch's seed. Captions of pictures are written, but not taken from earlier runs. Without a
    folder, captions are neither taken nor kept for later runs.
    """

    def __init__(self, folder: Path | None, identity: str) -> None:
        self.folder = folder
        self._identity = identity
        self._lines: dict[str, tuple[Path, int]] = {}
        """File and position of each caption, by its key."""
        self._stamps: dict[Path, list[object]] = {}
        for file in sorted(folder.rglob("*.jsonl")) if folder and folder.is_dir() else ():
            try:
                with file.open("rb") as lines:
                    at = 0
                    for line in lines:
                        if (match := _KEYED.match(line)) and line.endswith(b"\n"):
                            self._lines[match[1].decode("ascii")] = file, at
                        at += len(line)
            except OSError as error:
                logger.warning("kept captions cannot be read: {}", error)

    def take(
        self, planned: Iterable[PlannedCaption]
    ) -> tuple[list[tuple[PlannedCaption, Caption]], list[PlannedCaption]]:
        """Separate the captions that exist from those to write, which get their keys."""
        taken: list[tuple[PlannedCaption, Caption]] = []
        left: list[PlannedCaption] = []
        for asked in planned:
            keyed = replace(asked, key=self._key(asked))
            caption = self._find(keyed.key)
            if caption is None:
                left.append(keyed)
            else:
                taken.append((keyed, caption))
        return taken, left

    def keep(self, asked: PlannedCaption, caption: Caption, text: str) -> None:
        """Write a caption before the next one is written; an empty one is not kept for reruns."""
        tokens = [caption.n_input_tokens, caption.n_output_tokens]
        more = {"key": asked.key, "tokens": tokens} if asked.key and text.strip() else {}
        foreign = [(asked.task, source_name(asked.source), None)] if more else []
        for task, video_id, aspect in asked.rows or foreign:
            log = RUN_CAPTIONS.log()
            log.save(task=task, video_id=video_id, caption=text, aspect=aspect, **more)

    def _key(self, asked: PlannedCaption) -> str:
        """Return 32 hexadecimal digits, none if the file cannot be found or nothing is kept."""
        if self.folder is None or not isinstance(asked.source, Path):
            return ""
        try:
            if asked.source not in self._stamps:
                self._stamps[asked.source] = clip_stamp(asked.source)
        except OSError:
            return ""
        clip = self._stamps[asked.source]
        drawn: list[object] = []
        if asked.generation.do_sample:
            import torch

            drawn = [asked.task, asked.doc_id, asked.draw, torch.initial_seed()]
        question = content_of(1, asked.prompt), asdict(asked.generation), asked.variant
        return digest_of(self._identity, clip, question, drawn)

    def _find(self, key: str) -> Caption | None:
        line = self._lines.get(key)
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

    ``name`` begins the folder's name; ``identity`` is ``Captioner.identity()``.
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

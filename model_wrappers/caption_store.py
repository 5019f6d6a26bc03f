"""Captions of local models, kept from run to run as they come: a run that was ended goes on."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loguru import logger

from lmms_eval_captions.judges.endpoint.endpoint import CACHE_VARIABLE, cache_folder
from lmms_eval_captions.judges.endpoint.store import ReplyStore, slug
from lmms_eval_captions.judges.errors import StoreError
from lmms_eval_captions.model_wrappers.caption_jobs import Caption, asked_about, listed
from lmms_eval_captions.model_wrappers.identity import as_json, clip_stamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lmms_eval_captions.model_wrappers.caption_jobs import Shown
    from lmms_eval_captions.model_wrappers.ordering import PlannedCaption

_DIGEST_BYTES: Final = 16
_FOLDER: Final = "kept_captions"


class KeptCaptions:
    """The captions of one captioner, under everything that moves them.

    A caption about a video is known by the file's name, size, time of change and samples of what
    it holds before it is read, one about pictures by what they show, when they are read. One that
    is drawn at random is known by its document, its number among equal draws and torch's seed, too.
    Where a store cannot be read or written, it is said once, and captions are written as if there
    were none.

    Args:
        folder: Folder of the captioner's store, ``None`` where captions are neither taken nor kept.
        identity: ``Captioner.identity()`` as text.
    """

    def __init__(self, folder: Path | None, identity: str) -> None:
        self.folder = folder
        self._identity = identity
        self._lock = threading.Lock()
        self._store: ReplyStore | None = None
        self._is_told = False
        self._stamps: dict[Path, list[object]] = {}
        if folder is None:
            return
        try:
            self._store = ReplyStore(folder)
        except StoreError as error:
            self._tell(error)

    def take(
        self, planned: Iterable[PlannedCaption]
    ) -> tuple[list[tuple[PlannedCaption, Caption]], list[PlannedCaption]]:
        """Part the captions that are here already from those to write, which get their keys.

        Args:
            planned: Captions in lmms-eval's order, equal ones once.
        """
        taken: list[tuple[PlannedCaption, Caption]] = []
        left: list[PlannedCaption] = []
        for asked in planned:
            is_drawn = asked.generation.do_sample
            drawn = [asked.task, asked.doc_id, asked.draw, _seed()] if is_drawn else []
            keyed = replace(asked, key=self._key(asked, drawn))
            caption = self._find(keyed.key) if isinstance(asked.source, Path) else None
            if caption is None:
                left.append(keyed)
            else:
                taken.append((keyed, caption))
        return taken, left

    def take_shown(
        self, asked: PlannedCaption, shown: Shown
    ) -> tuple[PlannedCaption, Caption | None]:
        """The same for what is no file, once it was read; called in several threads."""
        if isinstance(asked.source, Path) or not asked.key or self._store is None:
            return asked, None
        keyed = replace(asked, key=_digest(asked.key.hex(), _content(shown)))
        return keyed, self._find(keyed.key)

    def keep(self, asked: PlannedCaption, caption: Caption) -> None:
        """Have a caption in the system's hands before the next one is written; no empty one."""
        if self._store is None or not asked.key or not caption.text.strip():
            return
        row = json.dumps(asdict(caption)).encode("ascii")
        with self._lock:
            if self._store is None:  # closed meanwhile
                return
            try:
                self._store.put(asked.key, row)
            except StoreError as error:
                self._tell(error)
                return
            self._store.flush_if_due()

    def close(self) -> None:
        """Flush to the disk itself; captions that are under way may still come, and are dropped."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None

    def _key(self, asked: PlannedCaption, drawn: Sequence[object]) -> bytes:
        """16 bytes, none where the file cannot be found."""
        if self._store is None:
            return b""
        file: list[object] = []
        messages = asked.messages
        if isinstance(asked.source, Path):
            try:
                file = self._stamp(asked.source)
            except OSError:
                return b""
            # What a captioner is told of a prompt's marks is ours, and may be mended.
            messages = messages or asked_about(1, asked.prompt)
        told = [asked.prompt, listed(messages), asdict(asked.generation), asked.variant]
        return _digest(self._identity, file, *told, drawn)

    def _stamp(self, path: Path) -> list[object]:
        """A clip has several prompts, and is looked at once."""
        if path not in self._stamps:
            self._stamps[path] = clip_stamp(path)
        return self._stamps[path]

    def _find(self, key: bytes) -> Caption | None:
        if self._store is None or not key:
            return None
        with self._lock:
            try:
                value = self._store.get(key)
            except OSError as error:
                self._tell(error)
                return None
        return None if value is None else _read(value)

    def _tell(self, error: Exception) -> None:
        """Say once that nothing is kept; the run goes on without."""
        if not self._is_told:
            self._is_told = True
            logger.warning(
                "captions are not kept for later runs in {}: {}; a run that is ended writes them "
                "anew. Make room there, or set {} to a folder that can be written",
                self.folder,
                error.__cause__ or error,
                CACHE_VARIABLE,
            )


def open_kept(name: str, identity: Mapping[str, object], *, is_quiet: bool = False) -> KeptCaptions:
    """The kept captions of a captioner, below the cache folder.

    Args:
        name: What the captioner's folder begins with.
        identity: ``Captioner.identity()``.
        is_quiet: Whether another process says where they are kept.
    """
    text = as_json(identity)
    digest = blake2b(text.encode("ascii"), digest_size=6).hexdigest()
    folders = cache_folder() / _FOLDER
    # Of a checkpoint whose folder had another name, too.
    known = sorted(folders.glob(f"*-{digest}"))
    folder = known[0] if known else folders / f"{slug(name)}-{digest}"
    if not is_quiet:
        logger.info("captions are kept in {} as they are written", folder)
    return KeptCaptions(folder, text)


def _read(value: bytes) -> Caption | None:
    """A caption as it is kept, ``None`` for a line that is something else."""
    try:
        row = json.loads(value)
    except ValueError:
        return None
    if not isinstance(row, dict) or not isinstance(row.get("text"), str):
        return None
    counts = (row.get(name) for name in ("n_input_tokens", "n_output_tokens"))
    return Caption(row["text"], *(count if isinstance(count, int) else None for count in counts))


def _seed() -> int:
    """What draws begin with: lmms-eval's ``--seed``, by default the same in every run."""
    import torch

    seed: int = torch.initial_seed()
    return seed


def _digest(*parts: object) -> bytes:
    return blake2b(as_json(parts).encode("ascii"), digest_size=_DIGEST_BYTES).digest()


def _content(shown: Shown) -> str:
    """What a document shows and says, whatever it is called."""
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for clip in shown.clips:
        about = [clip.frames.shape, clip.is_image, clip.duration_s, clip.fps, clip.n_total]
        digest.update(as_json(about).encode("ascii"))
        digest.update(clip.timestamps_s.tobytes())
        digest.update(clip.frames.tobytes())
    digest.update(as_json(listed(shown.messages)).encode("ascii"))
    return digest.hexdigest()

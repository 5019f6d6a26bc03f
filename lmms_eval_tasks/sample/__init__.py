"""The built-in sample: clips rendered by code, with the benchmark files beside them."""

from __future__ import annotations

import errno
import os
import shutil
import time
import uuid
from typing import TYPE_CHECKING

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.registry import modules
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES

if TYPE_CHECKING:
    from pathlib import Path

SAMPLE_VERSION = 4
"""Raised with every change of a clip, question or caption, so that old folders are replaced."""

_MARKER = "SAMPLE_VERSION"
_STALE_S = 3600.0
"""Age at which a half-written folder is taken for the remains of a killed process."""


def sample_root(cache: Path) -> Path:
    """Folder of the sample below the cache folder, written when it is not there yet.

    Args:
        cache: The package's cache folder; made where it is missing.

    Returns:
        A root in the layout of ``LMMS_CAPTIONS_DATA``.

    Raises:
        DataError: As ``write_sample``.
    """
    root = cache / f"sample-v{SAMPLE_VERSION}"
    write_sample(root)
    return root


def write_sample(root: Path) -> None:
    """Write the sample's clips and benchmark files, all or nothing.

    A complete sample of this version is left as it is, one of another version is replaced. Several
    processes may call this at once, and one that is killed leaves no half-written root behind.

    Args:
        root: Folder that will hold ``vdc/`` and the folders of the other benchmarks.

    Raises:
        DataError: If the folder holds something that is not a sample, or cannot be written.
    """
    if _version(root) == str(SAMPLE_VERSION):
        return
    if _version(root) is None and root.exists() and not _is_empty_folder(root):
        raise DataError(
            f"expected no folder, an empty one or an older sample at {root}, found other files; "
            "choose another place for the sample"
        )
    _remove_stale(root)
    draft = _sibling(root)
    try:
        draft.mkdir(parents=True)
        _write_into(draft)
        _move_into_place(draft, root)
    except OSError as error:
        raise DataError(
            f"the sample cannot be written to {root} ({error.strerror or error}): make that folder "
            "writable, or name another one (of a run: LMMS_CAPTIONS_CACHE)"
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write_into(folder: Path) -> None:
    from lmms_eval_captions.lmms_eval_tasks.sample.render import write_video

    clips = folder / "clips"
    clips.mkdir()
    for scene in SCENES:
        write_video(scene, clips / f"{scene.video_id}.mp4")
    for benchmark in modules("sample"):
        benchmark.write_sample(folder, clips)
    # What the benchmarks took of them stays, whether linked or copied.
    shutil.rmtree(clips)
    (folder / _MARKER).write_text(f"{SAMPLE_VERSION}\n", encoding="utf-8")


def _move_into_place(draft: Path, root: Path) -> None:
    """Rename the draft to the root, unless another process was first."""
    for _ in range(3):
        if _renamed(draft, root) or _version(root) == str(SAMPLE_VERSION):
            return
        _move_aside(root)
    raise OSError(f"{root} comes back whenever it is moved aside")


def _renamed(draft: Path, root: Path) -> bool:
    try:
        draft.rename(root)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
            return False
        raise
    return True


def _move_aside(root: Path) -> None:
    old = _sibling(root)
    try:
        root.rename(old)
    except FileNotFoundError:
        return  # Another process moved it aside.
    shutil.rmtree(old, ignore_errors=True)


def _version(root: Path) -> str | None:
    try:
        return (root / _MARKER).read_text(encoding="utf-8").strip()
    except OSError:
        return None


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _sibling(root: Path) -> Path:
    # Not tempfile: its folders are private, and a cache may be shared between users.
    return root.parent / f".{root.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp"


def _remove_stale(root: Path) -> None:
    for path in root.parent.glob(f".{root.name}.*.tmp"):
        try:
            age_s = time.time() - path.stat().st_mtime
        except OSError:
            continue  # Its own process finished and removed it.
        if age_s > _STALE_S:
            shutil.rmtree(path, ignore_errors=True)

"""The built-in sample: clips rendered by code, with the benchmark files next to them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.locks import locked
from lmms_eval_captions.lmms_eval_tasks.registry import modules
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES

SAMPLE_VERSION: Final = 5
"""Raised with every change of a clip, question or caption, so that old folders are replaced."""
_MARKER: Final = "SAMPLE_VERSION"


def sample_root(cache: Path) -> Path:
    """Return the sample below the cache folder, a root in the layout of ``LMMS_CAPTIONS_DATA``.

    Raises:
        DataError: See :func:`write_sample`.
    """
    root = cache / f"sample-v{SAMPLE_VERSION}"
    write_sample(root)
    return root


def write_sample(root: Path) -> None:
    """Write the sample's clips and benchmark files, all or nothing.

    A complete sample of this version is kept, one of another version is replaced. Of several
    processes, one writes and the others wait. A process that is killed leaves no sample.

    Raises:
        DataError: If the folder holds something that is not a sample, or cannot be written.
    """
    if _is_complete(root):
        return
    if root.exists() and not (root / _MARKER).exists() and any(root.iterdir()):
        raise DataError(
            f"expected no folder, an empty one or an older sample at {root}, found other files; "
            "choose another folder for the sample"
        )
    with locked(root.with_name(f".{root.name}.lock"), "the sample"):
        if not _is_complete(root):
            _write(root)


def _write(root: Path) -> None:
    from lmms_eval_captions.lmms_eval_tasks.sample.render import write_video

    draft = root.with_name(f".{root.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)  # of a killed process
    clips = draft / "clips"
    try:
        clips.mkdir(parents=True)
        for scene in SCENES:
            write_video(scene, clips / f"{scene.video_id}.mp4")
        for benchmark in modules("benchmark"):
            if hasattr(benchmark, "SOURCE"):
                folder = draft / benchmark.SOURCE.video_folder
                shutil.copytree(clips, folder, copy_function=_link)
        for sample in modules("sample"):
            for name, text in sample.files().items():
                path = draft / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8", newline="\n")
        shutil.rmtree(clips)  # the benchmarks' links or copies stay
        (draft / _MARKER).write_text(f"{SAMPLE_VERSION}\n", encoding="utf-8")
        if root.exists():
            shutil.rmtree(root)
        draft.rename(root)
    except OSError as error:
        raise DataError(
            f"the sample cannot be written to {root} ({error.strerror or error}): make that folder "
            "writable, or name another one (of a run: LMMS_CAPTIONS_CACHE)"
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _is_complete(root: Path) -> bool:
    try:
        return (root / _MARKER).read_text(encoding="utf-8").strip() == str(SAMPLE_VERSION)
    except OSError:
        return False


def lines(rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows as the text of a JSON-lines file."""
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copyfile(source, target)

"""A folder that holds some of a benchmark's questions, and where the clips of these are."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.errors import DataError, NoVideosError
from lmms_eval_captions.judges.files import parse_json, read_whole
from lmms_eval_captions.judges.settings import SAMPLE

MANIFEST: Final = "split.json"
"""What says of a root of data that it is such a folder, and what it was made from."""
DATA: Final = "data"
"""Its field: ``LMMS_CAPTIONS_DATA`` where it was made; ``null`` stands for the hub."""


def is_split(root: Path) -> bool:
    """Whether a root of data holds some of a benchmark's questions."""
    return (root / MANIFEST).is_file()


def origin_of(root: Path) -> str | None:
    """Where the clips of a split are, as ``LMMS_CAPTIONS_DATA`` has it.

    Raises:
        DataError: If the manifest cannot be read.
        NoVideosError: If it names a folder that is not there.
    """
    path = root / MANIFEST
    try:
        manifest = parse_json(read_whole(path))
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: expected one JSON object ({error}); make the split anew"
        ) from error
    data = manifest.get(DATA) if isinstance(manifest, dict) else manifest
    if data is None or data == SAMPLE:
        return data
    if (
        not isinstance(data, str)
        or not Path(data).is_dir()
        or Path(data).resolve() == root.resolve()
    ):
        raise NoVideosError(
            f"{path}: expected the root of the data that hold this split's clips as {DATA!r}, got "
            f"{data!r:.200}; correct it there (null stands for the Hugging Face hub), or put the "
            f"clips below {root}"
        )
    return data

"""FOIL: captions of images beside the same with one wrong word, G-VEval's Table 7.

The shapes are those of ``foilv1.0_test_2017.json`` (``annotations``: each with ``id``,
``image_id``, ``caption`` and ``foil``, true for the wrong one; the right one has the same ``id``)
and of COCO's
``captions_val2014.json`` (``annotations`` with ``image_id`` and ``caption``), whose other captions
of the image are the references.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lmms_eval_captions.analysis.meta_eval.rated_captions import read_json_file
from lmms_eval_captions.judges.errors import DataError

FOIL: Final = "foilv1.0_test_2017.json"
COCO: Final = "captions_val2014.json"
PAPER: Final = {
    1: {"ROUGE-L": "71.1", "METEOR": "78.8", "CIDEr": "82.5"},
    4: {"ROUGE-L": "79.3", "METEOR": "82.6", "CIDEr": "90.6"},
}
"""Source: G-VEval, Table 7, accuracies in percent; its "BLEU" does not say of which order."""


@dataclass(frozen=True, slots=True)
class FoilPair:
    """A right caption and a wrong one."""

    image: str
    right: str
    wrong: str
    references: tuple[str, ...]


def read_foil(folder: Path, n_references: int) -> list[FoilPair]:
    """All pairs, in the order of the file.

    Args:
        folder: Holds both files.
        n_references: 1 for the first of the image's other captions, 4 for all of them.

    Raises:
        DataError: If a file is not there or not of the published shape.
    """
    captions: dict[object, list[str]] = {}
    for image, caption, _ in _annotations(folder / COCO):
        captions.setdefault(image, []).append(caption)
    rights: dict[object, str] = {}
    wrongs: list[tuple[object, object, str]] = []
    path = folder / FOIL
    for image, caption, row in _annotations(path):
        if not isinstance(row.get("foil"), bool) or "id" not in row:
            raise DataError(f"{path}: expected 'id' and 'foil', true or false, got {row!r:.120}")
        if row["foil"]:
            wrongs.append((row["id"], image, caption))
        else:
            rights[row["id"]] = caption
    pairs = [_pair(path, rights, captions, wrong, n_references) for wrong in wrongs]
    if not pairs:
        raise DataError(f'{path}: expected at least one caption with "foil": true, found none')
    return pairs


def _pair(
    path: Path,
    rights: Mapping[object, str],
    captions: Mapping[object, list[str]],
    wrong: tuple[object, object, str],
    n_references: int,
) -> FoilPair:
    name, image, text = wrong
    if name not in rights:
        raise DataError(f"{path}: annotation {name!r} has a foil and no caption without one")
    references = [caption for caption in captions.get(image, []) if caption != rights[name]]
    if not references:
        raise DataError(f"{path}: image {image!r} has no other caption in {COCO}")
    chosen = references[:1] if n_references == 1 else references
    return FoilPair(str(image), rights[name], text, tuple(chosen))


def _annotations(path: Path) -> Iterator[tuple[object, str, Mapping[str, object]]]:
    """Image, caption and row of each annotation."""
    document = read_json_file(path)
    rows = document.get("annotations") if isinstance(document, Mapping) else None
    if not isinstance(rows, list):
        raise DataError(f"{path}: expected an object with a list of 'annotations'")
    for row in rows:
        caption = row.get("caption") if isinstance(row, Mapping) else None
        image = row.get("image_id") if isinstance(row, Mapping) else None
        if not isinstance(caption, str) or not isinstance(image, int | str):
            raise DataError(f"{path}: expected 'image_id' and 'caption', got {row!r:.120}")
        yield image, caption, row

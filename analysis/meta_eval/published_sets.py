"""Published sets of rated captions other than MSVD-Eval: Flickr8k, VATEX-EVAL and FOIL.

Flickr8k-Expert and Flickr8k-CF (G-VEval's Table 2): ``flickr8k.json`` and
``crowdflower_flickr8k.json`` as PAC-S and G-VEval read them, ``{image id: {"image_path",
"ground_truth": [texts], "human_judgement": [{"caption", "rating"}, ...]}}``. A caption that experts
rated occurs three times in a row, once per expert; a rating may be ``NaN`` and is left out then.

VATEX-EVAL (Table 3): pickled arrays of numpy that EMScore released: ``candidates_list.pkl``
(n captions), ``gts_list.pkl`` (n x 10 references), ``human_scores.pkl`` (3 x n ratings, in any
shape that ``reshape(3, -1)`` takes) and ``video_ids.pkl`` (n names).

FOIL (Table 7): ``foilv1.0_test_2017.json`` (``annotations``: each with ``id``, ``image_id``,
``caption`` and ``foil``, true for the wrong one; the right one has the same ``id``) and COCO's
``captions_val2014.json``, whose other captions of the image are the references.
"""

from __future__ import annotations

import json
import pickle  # arrays alone are unpickled, see find_class # nosec B403
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import groupby
from math import isnan, nan
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Literal

import numpy as np

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import parse_json, read_whole

_N_ANNOTATORS: Final = 3
"""Experts that rate a caption of Flickr8k, and people that rate one of VATEX-EVAL."""
_FLICKR8K: Final = {
    "flickr8k-expert": ("Flickr8k-Expert", "flickr8k.json", {
        "BLEU-1": "32.2 / 32.3", "BLEU-4": "30.6 / 30.8", "ROUGE-L": "32.1 / 32.3",
        "METEOR": "41.5 / 41.8", "CIDEr": "43.6 / 43.9",
    }),
    "flickr8k-cf": ("Flickr8k-CF", "crowdflower_flickr8k.json", {
        "BLEU-1": "17.9 / 9.3", "BLEU-4": "16.9 / 8.7", "ROUGE-L": "19.9 / 10.3",
        "METEOR": "22.2 / 11.5", "CIDEr": "24.6 / 12.7",
    }),
}  # fmt: skip
"""Title, file and tau-b / tau-c x 100 of G-VEval's Table 2."""
_VATEX: Final = {
    1: {"BLEU-1": "12.2", "BLEU-4": "12.6", "ROUGE-L": "12.5", "METEOR": "16.4", "CIDEr": "17.3"},
    9: {"BLEU-1": "28.9", "BLEU-4": "22.4", "ROUGE-L": "23.8", "METEOR": "27.6", "CIDEr": "27.8"},
}
"""By number of references. Source: G-VEval, Table 3, which has one number per metric."""
_FOIL: Final = "foilv1.0_test_2017.json"
_COCO: Final = "captions_val2014.json"


@dataclass(frozen=True, slots=True)
class RatedCaption:
    """One candidate caption with its references and ratings."""

    source: str
    """Image or video of the caption."""
    candidate: str
    references: tuple[str, ...]
    ratings: tuple[float, ...] = ()
    """One per annotator; ``nan`` if one gave none."""


@dataclass(frozen=True, slots=True)
class RatedSet:
    """A published set of rated captions, and how its table correlates metrics with them."""

    title: str
    items: Sequence[RatedCaption]
    """In the order of the file; their indices are their names."""
    counting: str
    """Ratings that Kendall's tau is of, for the head of the report."""
    by_annotator: bool = False
    """True if the n-th rating of all items is the same person's, and tau is the mean over people,
    not one with all ratings together."""
    decimals: int | None = None
    """Decimal places that metrics are rounded to first; ``None`` for no rounding."""
    paper: Mapping[str, str] = field(default_factory=dict)
    """The paper's numbers by metric, tau-b / tau-c x 100."""


def read_flickr8k(folder: Path, name: str, ratings: Literal["each", "mean"] = "each") -> RatedSet:
    """Read Flickr8k-Expert or Flickr8k-CF.

    Args:
        folder: Holds the file.
        name: ``flickr8k-expert`` or ``flickr8k-cf``.
        ratings: ``each``: a metric is compared with every rating, as PAC-S does, whose
            rows Table 2 repeats. ``mean``: with the mean of a caption's three ratings, as G-VEval's
            released code does for its own rows; captions that lack one are left out.

    Raises:
        DataError: If the file is missing or not as published.
    """
    title, file, paper = _FLICKR8K[name]
    path = folder / file
    rows = _read_json(path)
    if not isinstance(rows, dict) or not rows:
        raise DataError(f"{path}: expected a JSON object of images, got {rows!r:.80}")
    items = [item for image, row in rows.items() for item in _of_image(path, image, row)]
    if ratings == "mean":
        items = [
            replace(item, ratings=(fmean(item.ratings),))
            for item in items
            if len(item.ratings) == _N_ANNOTATORS and not any(map(isnan, item.ratings))
        ]
    if not items:
        raise DataError(f"{path}: expected at least one rated caption, got none")
    if ratings == "mean":  # the paper's rows of these metrics are of every rating
        return RatedSet(title, items, "the mean of a caption's ratings")
    return RatedSet(title, items, "every rating", paper=paper)


def _of_image(path: Path, image: str, row: object) -> Iterator[RatedCaption]:
    where = f"{path}, image {image!r:.80}"
    of = row if isinstance(row, dict) else {}
    references, judgements = of.get("ground_truth"), of.get("human_judgement")
    if not isinstance(references, list) or set(map(type, references)) != {str}:
        raise DataError(
            f"{where}: expected a list of texts as 'ground_truth', got {references!r:.80}"
        )
    if not isinstance(judgements, list):
        raise DataError(f"{where}: expected a list as 'human_judgement', got {judgements!r:.80}")
    rated = [_judgement(judgement, where) for judgement in judgements]
    for caption, same in groupby(rated, key=lambda pair: pair[0]):
        ratings = [rating for _, rating in same]
        # Two candidates may be the same text: a candidate has at most three ratings.
        for start in range(0, len(ratings), _N_ANNOTATORS):
            some = ratings[start : start + _N_ANNOTATORS]
            if not all(map(isnan, some)):
                yield RatedCaption(image, caption, tuple(references), tuple(some))


def _judgement(value: object, where: str) -> tuple[str, float]:
    of = value if isinstance(value, dict) else {}
    caption, rating = of.get("caption"), of.get("rating", nan)
    if rating is None:
        rating = nan
    if not isinstance(caption, str) or not isinstance(rating, int | float):
        raise DataError(f"{where}: expected 'caption' and a number as 'rating', got {value!r:.120}")
    return " ".join(caption.split()), float(rating)


def read_vatex_eval(folder: Path, n_references: int) -> RatedSet:
    """Read VATEX-EVAL.

    Args:
        folder: Holds the four files.
        n_references: Number of a caption's references to use, the first ones, in [1, 9].

    Raises:
        DataError: If a file is missing or not as published.
    """
    candidates, references, ratings, videos = (
        _read_array(folder / f"{name}.pkl")
        for name in ("candidates_list", "gts_list", "human_scores", "video_ids")
    )
    n = len(candidates)
    are_texts = all(isinstance(text, str) for of in (candidates, videos) for text in of.tolist())
    if not n or len(videos) != n or not are_texts:
        raise DataError(
            f"{folder}: expected as many names in video_ids.pkl as captions in "
            f"candidates_list.pkl, got {len(videos)} and {n}"
        )
    if len(references) != n or not all(len(row) >= n_references for row in references):
        raise DataError(
            f"{folder / 'gts_list.pkl'}: expected {n} rows of at least {n_references} references, "
            f"got shape {references.shape}"
        )
    if ratings.size != _N_ANNOTATORS * n or ratings.dtype.kind not in "iuf":
        raise DataError(
            f"{folder / 'human_scores.pkl'}: expected {_N_ANNOTATORS} x {n} numbers, got shape "
            f"{ratings.shape} of {ratings.dtype}"
        )
    by_caption = ratings.reshape(_N_ANNOTATORS, -1).T.astype(np.float64).tolist()
    rows = zip(videos.tolist(), candidates.tolist(), references, by_caption, strict=True)
    return RatedSet(
        f"VATEX-EVAL, {n_references} reference{'s' if n_references > 1 else ''}",
        [
            RatedCaption(video, candidate, tuple(map(str, row[:n_references])), tuple(rated))
            for video, candidate, row, rated in rows
        ],
        "each annotator's ratings, mean over annotators",
        by_annotator=True,
        # Parity: EMScore, from which Table 3's classic rows are, rounds metrics so.
        decimals=4,
        paper=_VATEX.get(n_references, {}),
    )


_MULTIARRAY: Final = ("numpy.core.multiarray", "numpy._core.multiarray")
_MAKERS: Final = {
    **{(module, "_reconstruct"): np.empty(0).__reduce__()[0] for module in _MULTIARRAY},
    **{(module, "scalar"): np.float64(0).__reduce__()[0] for module in _MULTIARRAY},
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}
"""Callables that a pickled array is made with."""


class _ArrayUnpickler(pickle.Unpickler):
    """Unpickler of arrays, lists, texts and numbers, which calls nothing else."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - as pickle has it
        """Return a callable that an array needs.

        Raises:
            UnpicklingError: For anything else.
        """
        if (module, name) in _MAKERS:
            return _MAKERS[module, name]
        raise pickle.UnpicklingError(f"it holds {module}.{name}, which is no array of texts")


def _read_array(path: Path) -> np.ndarray[Any, Any]:
    try:
        value = _ArrayUnpickler(BytesIO(read_whole(path)), encoding="latin1").load()
        array = np.asarray(value)
    except FileNotFoundError as error:
        raise DataError(
            f"no file {path}; --data names the folder of VATEX-EVAL's four .pkl files"
        ) from error
    except (OSError, ValueError, TypeError, EOFError, AttributeError, IndexError, KeyError,
            pickle.UnpicklingError) as error:  # fmt: skip
        raise DataError(
            f"{path} cannot be read: {error}; expected a pickled array of numpy, as EMScore "
            "publishes it"
        ) from error
    if array.ndim == 0:
        raise DataError(f"{path}: expected an array, got {value!r:.80}")
    return array


def read_foil(folder: Path, n_references: int) -> list[RatedCaption]:
    """Read all pairs of FOIL, in the order of the file: the right caption, then the wrong one.

    Args:
        folder: Holds both files.
        n_references: 1 for the first of the image's other captions, 4 for all of them.

    Raises:
        DataError: If a file is missing or not as published.
    """
    captions: dict[object, list[str]] = {}
    for image, caption, _ in _annotations(folder / _COCO):
        captions.setdefault(image, []).append(caption)
    rights: dict[object, str] = {}
    wrongs: list[tuple[object, object, str]] = []
    path = folder / _FOIL
    for image, caption, row in _annotations(path):
        if not isinstance(row.get("foil"), bool) or "id" not in row:
            raise DataError(f"{path}: expected 'id' and 'foil', true or false, got {row!r:.120}")
        if row["foil"]:
            wrongs.append((row["id"], image, caption))
        else:
            rights[row["id"]] = caption
    pairs: list[RatedCaption] = []
    for name, image, text in wrongs:
        if name not in rights:
            raise DataError(f"{path}: annotation {name!r} has a foil and no caption without one")
        references = [caption for caption in captions.get(image, []) if caption != rights[name]]
        if not references:
            raise DataError(f"{path}: image {image!r} has no other caption in {_COCO}")
        chosen = tuple(references[:1] if n_references == 1 else references)
        pairs += [RatedCaption(str(image), of, chosen) for of in (rights[name], text)]
    if not pairs:
        raise DataError(f'{path}: expected at least one caption with "foil": true, got none')
    return pairs


def _annotations(path: Path) -> Iterator[tuple[object, str, Mapping[str, object]]]:
    """Yield image, caption and row of each annotation."""
    document = _read_json(path)
    rows = document.get("annotations") if isinstance(document, dict) else None
    if not isinstance(rows, list):
        raise DataError(f"{path}: expected an object with a list of 'annotations'")
    for row in rows:
        of = row if isinstance(row, dict) else {}
        caption, image = of.get("caption"), of.get("image_id")
        if not isinstance(caption, str) or not isinstance(image, int | str):
            raise DataError(f"{path}: expected 'image_id' and 'caption', got {row!r:.120}")
        yield image, caption, of


def _read_json(path: Path) -> object:
    try:
        return parse_json(read_whole(path))
    except FileNotFoundError as error:
        raise DataError(
            f"no file {path}; --data names its folder, as its authors publish it"
        ) from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}; download it again") from error


def items_text(items: Sequence[RatedCaption], names: Sequence[str] = ()) -> str:
    """Return the captions that a metric of the user's is to score, a line of JSON each.

    Args:
        items: The captions.
        names: Their names, by default their indices.
    """
    names = names or [str(index) for index in range(len(items))]
    rows = (
        {"id": name, "source": of.source, "candidate": of.candidate, "references": of.references}
        for name, of in zip(names, items, strict=True)
    )
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)

"""Published sets of rated captions other than MSVD-Eval, as ``msvd_eval/README.md`` has them.

Flickr8k-Expert and Flickr8k-CF (G-VEval's Table 2) as PAC-S reads them: a caption that experts
rated occurs three times in a row, once per expert; a rating may be ``NaN`` and is left out then.
VATEX-EVAL (Table 3): pickled arrays of numpy that EMScore released; ratings in any shape that
``reshape(3, -1)`` takes. FOIL (Table 7): the right and the wrong caption have the same ``id``.
"""

from __future__ import annotations

import json
import pickle  # arrays alone are unpickled, see find_class # nosec B403
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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


@dataclass(frozen=True, slots=True)
class RatedSet:
    """A published set of rated captions, and how its table correlates metrics with them."""

    title: str
    items: Sequence[Any]
    """Candidates with their references, in the order of the file."""
    ratings: Mapping[str, Sequence[Sequence[float]]]
    """Name of a rating to the ratings by annotators of each item; ``nan`` if one gave none."""
    counting: str
    """Ratings that Kendall's tau is of, for the head of the report."""
    sources: Sequence[str] = ()
    """Image or video of each item, which is drawn with all of its items; empty for one each."""
    are_known: bool = False
    """True if the n-th rating of all items is the same person's."""
    by_annotator: bool = False
    """True if tau is the mean over people, not one with all ratings together."""
    decimals: int | None = None
    """Decimal places that metrics are rounded to first; ``None`` for no rounding."""
    paper: Mapping[str, str] = field(default_factory=dict)
    """The paper's numbers by metric, tau-b / tau-c x 100."""


@contextmanager
def _reading(path: Path, expected: str) -> Iterator[None]:
    """Raise DataError with the expected shape if a file is missing or of another shape."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(
            f"no file {path}; --data names its folder, as its authors publish it"
        ) from error
    except (OSError, ValueError, TypeError, EOFError, AttributeError, LookupError,
            pickle.UnpicklingError) as error:  # fmt: skip
        raise DataError(f"{path} cannot be read: {error!r:.200}; expected {expected}") from error


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {value!r:.80}")
    return value


def read_flickr8k(folder: Path, name: str, ratings: Literal["each", "mean"] = "each") -> RatedSet:
    """Read Flickr8k-Expert or Flickr8k-CF from its file in a folder.

    With ``each``, a metric is compared with every rating, as PAC-S does, whose rows Table 2
    repeats; with ``mean``, with the mean of a caption's three ratings, as G-VEval's released code
    does for its own rows. Captions that lack one are left out then.
    """
    title, file, paper = _FLICKR8K[name]
    path = folder / file
    shape = (
        "{image: {'ground_truth': [texts], 'human_judgement': [{'caption': text, 'rating': "
        "number}, ...]}}"
    )
    with _reading(path, shape):
        rows: Any = parse_json(read_whole(path))
        items = [item for image, row in rows.items() for item in _of_image(image, row)]
    counting = "every rating"
    if ratings == "mean":
        # The paper's rows of these metrics are of every rating.
        counting, paper = "the mean of a caption's ratings", {}
        items = [
            replace(item, ratings=(fmean(item.ratings),))
            for item in items
            if len(item.ratings) == _N_ANNOTATORS and not isnan(sum(item.ratings))
        ]
    if not items:
        raise DataError(f"{path}: expected at least one rated caption, got none")
    by_item, sources = [of.ratings for of in items], [of.source for of in items]
    return RatedSet(title, items, {"human": by_item}, counting, sources, paper=paper)


def _of_image(image: str, row: Mapping[str, Any]) -> Iterator[RatedCaption]:
    references = tuple(map(_text, row["ground_truth"]))
    if not references:
        raise ValueError(f"image {image!r:.80} has no reference")
    rated = [
        (" ".join(_text(of["caption"]).split()), of.get("rating")) for of in row["human_judgement"]
    ]
    for caption, same in groupby(rated, key=lambda pair: pair[0]):
        ratings = [nan if rating is None else float(rating) for _, rating in same]
        # Two candidates may be the same text: a candidate has at most three ratings.
        for start in range(0, len(ratings), _N_ANNOTATORS):
            some = ratings[start : start + _N_ANNOTATORS]
            if not all(map(isnan, some)):
                yield RatedCaption(image, caption, references, tuple(some))


def read_vatex_eval(folder: Path, n_references: int) -> RatedSet:
    """Read VATEX-EVAL with the first references of each caption, 1 to 9."""
    candidates, references, ratings, videos = (
        _read_array(folder / f"{name}.pkl")
        for name in ("candidates_list", "gts_list", "human_scores", "video_ids")
    )
    n = len(candidates)
    with _reading(folder, "n captions, n x 10 references, 3 x n ratings and n video names"):
        if not n or ratings.size != _N_ANNOTATORS * n:
            raise ValueError(f"{n} captions, ratings of shape {ratings.shape}")
        by_caption = ratings.reshape(_N_ANNOTATORS, -1).T.astype(np.float64)
        first_references = (tuple(map(str, row[:n_references])) for row in references)
        texts = ([_text(text) for text in array.tolist()] for array in (videos, candidates))
        columns = (*texts, first_references, map(tuple, by_caption.tolist()))
        items = [RatedCaption(*row) for row in zip(*columns, strict=True)]
        if min(len(item.references) for item in items) < n_references:
            raise ValueError(f"references of shape {references.shape}")
    return RatedSet(
        f"VATEX-EVAL, {n_references} reference{'s' if n_references > 1 else ''}",
        items,
        {"human": [item.ratings for item in items]},
        "each annotator's ratings, mean over annotators",
        [item.source for item in items],
        are_known=True,
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
        """Return a callable that an array needs; refuse anything else."""
        if (module, name) in _MAKERS:
            return _MAKERS[module, name]
        raise pickle.UnpicklingError(f"it holds {module}.{name}, which is no array of texts")


def _read_array(path: Path) -> np.ndarray[Any, Any]:
    with _reading(path, "a pickled array of numpy, as EMScore publishes it"):
        array = np.asarray(_ArrayUnpickler(BytesIO(read_whole(path)), encoding="latin1").load())
        if array.ndim == 0:
            raise TypeError(f"not an array: {array!r:.80}")
    return array


def read_foil(folder: Path, n_references: int) -> list[RatedCaption]:
    """Read all pairs of FOIL, in the order of the file: the right caption, then the wrong one.

    References are the image's other captions, with ``n_references`` 1 only the first one.
    """
    captions: dict[object, list[str]] = {}
    for row in _annotations(folder / _COCO, "'image_id' and 'caption'"):
        captions.setdefault(row["image_id"], []).append(row["caption"])
    path = folder / _FOIL
    rows = _annotations(path, "'id', 'image_id', 'caption' and 'foil', true or false")
    with _reading(path, "'id' and 'foil', true or false, of every annotation"):
        rights = {row["id"]: row["caption"] for row in rows if not row["foil"]}
        wrongs = [(row["id"], row["image_id"], row["caption"]) for row in rows if row["foil"]]
    pairs: list[RatedCaption] = []
    for name, image, wrong in wrongs:
        if name not in rights:
            raise DataError(f"{path}: annotation {name!r} has a foil and no caption without one")
        references = [caption for caption in captions.get(image, []) if caption != rights[name]]
        if not references:
            raise DataError(f"{path}: image {image!r} has no other caption in {_COCO}")
        chosen = tuple(references[:1] if n_references == 1 else references)
        pairs += [RatedCaption(str(image), text, chosen) for text in (rights[name], wrong)]
    if not pairs:
        raise DataError(f'{path}: expected at least one caption with "foil": true, got none')
    return pairs


def _annotations(path: Path, fields: str) -> list[dict[str, Any]]:
    with _reading(path, f"an object with a list of 'annotations', each with {fields}"):
        document: Any = parse_json(read_whole(path))
        rows = [dict(row) for row in document["annotations"]]
        for row in rows:
            _text(row["caption"])
            hash(row["image_id"])
    return rows


def items_text(items: Sequence[RatedCaption], names: Sequence[str] = ()) -> str:
    """Return the captions that a metric of the user's is to score, a line of JSON each."""
    names = names or [str(index) for index in range(len(items))]
    rows = (
        {"id": name, "source": of.source, "candidate": of.candidate, "references": of.references}
        for name, of in zip(names, items, strict=True)
    )
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)

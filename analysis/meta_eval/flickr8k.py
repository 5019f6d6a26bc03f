"""Flickr8k-Expert and Flickr8k-CF: ratings of captions of images, G-VEval's Table 2.

Files: ``flickr8k.json`` and ``crowdflower_flickr8k.json`` as PAC-S and G-VEval read them:
``{image id: {"image_path", "ground_truth": [texts], "human_judgement": [{"caption",
"rating"}, ...]}}``. A caption that experts rated occurs three times in a row, once per expert; a
rating may be ``NaN`` and is left out then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from math import isnan, nan
from pathlib import Path
from statistics import fmean
from typing import Final, Literal

from lmms_eval_captions.analysis.meta_eval.rated_sets import (
    RatedCaption,
    RatedSet,
    read_json_file,
)
from lmms_eval_captions.judges.errors import DataError

_FILES: Final = {"flickr8k-expert": "flickr8k.json", "flickr8k-cf": "crowdflower_flickr8k.json"}
_TITLES: Final = {"flickr8k-expert": "Flickr8k-Expert", "flickr8k-cf": "Flickr8k-CF"}
_N_EXPERTS: Final = 3
_PAPER: Final = {
    "flickr8k-expert": {
        "BLEU-1": "32.2 / 32.3", "BLEU-4": "30.6 / 30.8", "ROUGE-L": "32.1 / 32.3",
        "METEOR": "41.5 / 41.8", "CIDEr": "43.6 / 43.9",
    },
    "flickr8k-cf": {
        "BLEU-1": "17.9 / 9.3", "BLEU-4": "16.9 / 8.7", "ROUGE-L": "19.9 / 10.3",
        "METEOR": "22.2 / 11.5", "CIDEr": "24.6 / 12.7",
    },
}  # fmt: skip
"""tau-b / tau-c x 100. Source: G-VEval, Table 2."""

Ratings = Literal["each", "mean"]


def read_flickr8k(folder: Path, name: str, ratings: Ratings = "each") -> RatedSet:
    """Read one of the two sets.

    Args:
        folder: Holds the file.
        name: ``flickr8k-expert`` or ``flickr8k-cf``.
        ratings: ``each``: a metric is compared with every rating, as PAC-S does, whose
            rows Table 2 repeats. ``mean``: with the mean of a caption's three ratings, as G-VEval's
            released code does for its own rows; captions that lack one are left out.

    Raises:
        DataError: If the file is missing or not as published.
    """
    path = folder / _FILES[name]
    rows = read_json_file(path)
    if not isinstance(rows, dict) or not rows:
        raise DataError(f"{path}: expected a JSON object of images, got {rows!r:.80}")
    items = [item for image, row in rows.items() for item in _image(path, image, row)]
    if ratings == "mean":
        items = [
            replace(item, ratings=(fmean(item.ratings),))
            for item in items
            if len(item.ratings) == _N_EXPERTS and not any(map(isnan, item.ratings))
        ]
    if not items:
        raise DataError(f"{path}: expected at least one rated caption, got none")
    counting = "the mean of a caption's ratings" if ratings == "mean" else "every rating"
    # The paper's rows of these metrics are of every rating.
    paper = _PAPER[name] if ratings == "each" else {}
    return RatedSet(_TITLES[name], items, counting=counting, paper=paper)


def _image(path: Path, image: str, row: object) -> Iterator[RatedCaption]:
    where = f"{path}, image {image!r:.80}"
    if not isinstance(row, dict) or not {"ground_truth", "human_judgement"} <= set(row):
        raise DataError(
            f"{where}: expected an object with 'ground_truth' and 'human_judgement', got "
            f"{row!r:.120}"
        )
    references, judgements = row["ground_truth"], row["human_judgement"]
    if not references or not isinstance(references, list) or set(map(type, references)) != {str}:
        raise DataError(f"{where}: expected a list of texts, got {references!r:.80}")
    if not isinstance(judgements, list):
        raise DataError(f"{where}: expected a list of judgements, got {judgements!r:.80}")
    rated = [_judgement(judgement, where) for judgement in judgements]
    for caption, same in groupby(rated, key=lambda pair: pair[0]):
        ratings = [rating for _, rating in same]
        # Two candidates may be the same text: a candidate has at most three ratings.
        for start in range(0, len(ratings), _N_EXPERTS):
            some = ratings[start : start + _N_EXPERTS]
            if not all(map(isnan, some)):
                yield RatedCaption(image, caption, tuple(references), tuple(some))


def _judgement(value: object, where: str) -> tuple[str, float]:
    caption = value.get("caption") if isinstance(value, Mapping) else None
    rating = value.get("rating") if isinstance(value, Mapping) else None
    is_number = isinstance(rating, int | float) and not isinstance(rating, bool)
    if not isinstance(caption, str) or not (is_number or rating is None):
        raise DataError(f"{where}: expected 'caption' and a number as 'rating', got {value!r:.120}")
    return " ".join(caption.split()), nan if rating is None else float(rating)

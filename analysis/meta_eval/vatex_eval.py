"""VATEX-EVAL: three people's ratings of captions of videos, G-VEval's Table 3.

Files: those that EMScore released, pickled arrays of numpy:
``candidates_list.pkl`` (n captions), ``gts_list.pkl`` (n x 10 references), ``human_scores.pkl``
(3 x n ratings, in any shape that ``reshape(3, -1)`` takes) and ``video_ids.pkl`` (n names).
"""

from __future__ import annotations

import pickle  # arrays alone are unpickled, see find_class # nosec B403
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np

from lmms_eval_captions.analysis.meta_eval.rated_sets import RatedCaption, RatedSet
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import read_whole

_CANDIDATES: Final = "candidates_list.pkl"
_REFERENCES: Final = "gts_list.pkl"
_RATINGS: Final = "human_scores.pkl"
_VIDEOS: Final = "video_ids.pkl"
_N_ANNOTATORS: Final = 3
MOST_REFERENCES: Final = 9
"""Most references of a caption in the table."""
_PAPER: Final = {
    1: {"BLEU-1": "12.2", "BLEU-4": "12.6", "ROUGE-L": "12.5", "METEOR": "16.4", "CIDEr": "17.3"},
    9: {"BLEU-1": "28.9", "BLEU-4": "22.4", "ROUGE-L": "23.8", "METEOR": "27.6", "CIDEr": "27.8"},
}
"""Source: G-VEval, Table 3, which has one number per metric."""
_ARRAY: Final = np.empty(0).__reduce__()[0]
_SCALAR: Final = np.float64(0).__reduce__()[0]
_MULTIARRAY: Final = ("numpy.core.multiarray", "numpy._core.multiarray")
_MAKERS: Final = {
    **{(module, "_reconstruct"): _ARRAY for module in _MULTIARRAY},
    **{(module, "scalar"): _SCALAR for module in _MULTIARRAY},
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


def read_vatex_eval(folder: Path, n_references: int = MOST_REFERENCES) -> RatedSet:
    """Read the rated captions.

    Args:
        folder: Holds the four files.
        n_references: Number of a caption's references to use, the first ones, in [1, 9].

    Raises:
        DataError: If a file is missing or not as published.
    """
    candidates, videos = (_texts(folder / name) for name in (_CANDIDATES, _VIDEOS))
    references, ratings = _array(folder / _REFERENCES), _array(folder / _RATINGS)
    n = len(candidates)
    if not n or len(videos) != n:
        raise DataError(
            f"{folder}: expected as many names in {_VIDEOS} as captions in {_CANDIDATES}, got "
            f"{len(videos)} and {n}"
        )
    if len(references) != n or not all(len(row) >= n_references for row in references):
        raise DataError(
            f"{folder / _REFERENCES}: expected {n} rows of at least {n_references} references, got "
            f"shape {references.shape}"
        )
    if ratings.size != _N_ANNOTATORS * n or ratings.dtype.kind not in "iuf":
        raise DataError(
            f"{folder / _RATINGS}: expected {_N_ANNOTATORS} x {n} numbers, got shape "
            f"{ratings.shape} of {ratings.dtype}"
        )
    by_caption = ratings.reshape(_N_ANNOTATORS, -1).T.astype(np.float64).tolist()
    items = [
        RatedCaption(video, candidate, tuple(map(str, row[:n_references])), tuple(rated))
        for video, candidate, row, rated in zip(
            videos, candidates, references, by_caption, strict=True
        )
    ]
    return RatedSet(
        f"VATEX-EVAL, {n_references} reference{'s' if n_references > 1 else ''}",
        items,
        counting="each annotator's ratings, mean over annotators",
        by_annotator=True,
        knows_annotators=True,
        # Parity: EMScore, from which Table 3's classic rows are, rounds metrics so.
        decimals=4,
        paper=_PAPER.get(n_references, {}),
    )


def _texts(path: Path) -> list[str]:
    values = _array(path).tolist()
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise DataError(f"{path}: expected an array of texts, got {values!r:.80}")
    return values


def _array(path: Path) -> np.ndarray[Any, Any]:
    try:
        value = _ArrayUnpickler(BytesIO(read_whole(path)), encoding="latin1").load()
        array = np.asarray(value)
    except FileNotFoundError as error:
        raise DataError(
            f"no file {path}; --data names the folder of VATEX-EVAL's {_CANDIDATES}, "
            f"{_REFERENCES}, {_RATINGS} and {_VIDEOS}"
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

"""Report of a verification: means by captioner, correlations with scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from lmms_eval_captions.analysis.t2v_verify.verify import DIMENSIONS
from lmms_eval_captions.analysis.tables import Part, number, table

_MOST_NAMED: Final = 5
"""Videos without numbers that are named."""


def part_of(found: dict[str, Any]) -> Part:
    """Return the report on a verification, see :func:`verify`."""
    import pandas as pd

    names = list(dict.fromkeys(name for row in found["captioners"] for name in row["means"]))
    sentences = [
        f"Means over videos; {found['frames']} frames of each, evenly spaced, generated ones "
        "resized to the size of the original's. PSNR in dB, at most 100. Inter-frame: of adjacent "
        "frames of one video. FVD is not computed."
    ]
    if any(name.endswith(" VA") for name in names):
        dimensions = ", ".join(f"{name} {words}" for name, words in DIMENSIONS.items())
        sentences.append(f"Ratings from 1 to 5: {dimensions}.")
    rows = [
        [_joined(row["generator"], row["captioner"]), str(row["n_videos"]),
         *(number(row["means"].get(name), 3) for name in names)]
        for row in found["captioners"]
    ]  # fmt: skip
    steady = pd.DataFrame(found["originals"].values()).mean()
    n_originals = str(len(found["originals"]))
    rows.append(["(originals)", n_originals, *(number(steady.get(name), 3) for name in names)])
    tables = [("", table(["captioner", "videos", *names], rows))]
    if found["correlations"]:
        title = "Pearson's correlation with caption scores over captioners"
        rows = [
            [_joined(row["generator"], row["measure"]), row["score"],
             row["reason"] or number(row["r"], 3), str(row["n_captioners"])]
            for row in found["correlations"]
        ]  # fmt: skip
        tables.append((title, table(["measure", "score", "r", "captioners"], rows)))
    return Part("Videos generated from captions", sentences, tables, list(_notes(found)))


def _joined(generator: str, name: str) -> str:
    return " / ".join(filter(None, (generator, name)))


def _notes(found: dict[str, Any]) -> Iterator[str]:
    missing = [video for video in found["videos"] if video["reason"]]
    if missing:
        yield f"{len(missing)} of {len(found['videos'])} generated videos could not be compared:"
        for video in missing[:_MOST_NAMED]:
            names = (video["captioner"], video["generator"], video["video"])
            yield f"{'/'.join(filter(None, names))}: {video['reason']}"
        if len(missing) > _MOST_NAMED:
            yield f"and {len(missing) - _MOST_NAMED} more, see -o"
    yield from found["remarks"]

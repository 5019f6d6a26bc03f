"""Lists of clips with their scores, as Parquet files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.score.shards import MADE_OF, origin_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lmms_eval_captions.lmms_eval_tasks.commands.score.score_column import ClipIds

_COLUMNS: Final = ("clip_id", "score")


def write_list(
    path: Path, mask: NDArray[np.bool_], clip_ids: ClipIds, scores: NDArray[np.float64]
) -> None:
    """Write the clips of a list, ``clip_id`` and ``score``, in the order of the shards.

    Args:
        path: The file.
        mask: Shape (n_clips,), which clips are in the list.
        clip_ids: Their names.
        scores: Their scores.

    Raises:
        DataError: If it cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = (clip_ids.names.filter(pa.array(mask)), pa.array(scores[mask]))
    made_of = json.dumps({"list": path.name, "n_clips": int(mask.sum())})
    table = pa.table(
        dict(zip(_COLUMNS, columns, strict=True)), metadata={MADE_OF: made_of.encode("utf-8")}
    )
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        pq.write_table(table, unfinished, compression="zstd")
        unfinished.replace(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error}; make room, and run again") from error


def is_list(path: Path) -> bool:
    """Whether a file is a list as it was written: what a user made of one may say so, too."""
    import pyarrow.parquet as pq

    made_of = origin_of(path)
    if made_of is None or made_of.get("list") != path.name:
        return False
    metadata = pq.read_metadata(path)
    names = tuple(metadata.schema.names)
    return names == _COLUMNS and made_of.get("n_clips") == metadata.num_rows

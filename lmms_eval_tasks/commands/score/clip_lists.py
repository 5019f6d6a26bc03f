"""Lists of clips with their scores, as Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_captions.judges.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lmms_eval_captions.lmms_eval_tasks.commands.score.score_column import ClipIds


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

    table = pa.table(
        {"clip_id": clip_ids.names.filter(pa.array(mask)), "score": pa.array(scores[mask])}
    )
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        pq.write_table(table, unfinished, compression="zstd")
        unfinished.replace(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error}; make room, and run again") from error

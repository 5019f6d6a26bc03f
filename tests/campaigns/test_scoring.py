"""A short share of the rows that ``score`` is killed over."""

from __future__ import annotations

from pathlib import Path

import scoring
from conftest import ServerFactory


def test_no_row_is_lost_or_doubled_by_kills(serve: ServerFactory, tmp_path: Path) -> None:
    """Killed again and again, it goes on: each row is there once, in order, with its score."""
    server = serve(latency_s=0.02)
    paths = scoring.write_shards(tmp_path / "in", n_rows=1_500, n_shards=3)
    run = scoring.score_all(
        tmp_path / "in", tmp_path, server.url.removesuffix("/v1"), concurrency=16, kill_every_s=2.0
    )
    assert not run.problems, (tmp_path / "log").read_text()[-2_000:]
    assert run.n_kills >= 1
    assert not scoring.check(paths, tmp_path / "out/scores", every=1)
    again = run.n_calls - 1_500 * scoring.N_QUESTIONS
    assert 0 <= again <= 16 * run.n_kills

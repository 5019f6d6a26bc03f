"""Nothing is asked where the answer could not be kept."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path

import pytest

from chains import chain
from conftest import EngineFactory, ServerFactory
from lmms_eval_captions.judges.endpoint.store.writable import require_writable
from lmms_eval_captions.judges.errors import StoreError


def test_a_folder_that_can_be_written_is_left_as_it_is(tmp_path: Path) -> None:
    """It is made, and nothing is left in it."""
    require_writable(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """With the setting that names another one."""
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="LMMS_CAPTIONS_CACHE") as refused:
        require_writable(tmp_path / "file" / "replies")
    assert str(tmp_path) in str(refused.value)


def test_no_request_is_sent_whose_reply_cannot_be_kept(
    serve: ServerFactory,
    make_engine: EngineFactory,
    monkeypatch: pytest.MonkeyPatch,
    logged: list[str],
) -> None:
    """It is found out before the first one, at once, and told once."""

    def refuse(**_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    server = serve()
    engine = make_engine(server.url)
    judged = engine.submit([chain(f"prompt {i}") for i in range(5)]).result(timeout=30)
    assert server.counts.n_requests == 0
    assert all(outcome.reason is not None for outcome in judged)
    [line] = [line for line in logged if "nothing more is asked" in line]
    assert "(Read-only file system): nothing is asked, as answers would be lost" in line
    assert "LMMS_CAPTIONS_CACHE" in line

"""Replies on disk survive kills, full disks and company."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval_captions.judges.errors import JudgeStoppedError, StoreError
from lmms_eval_captions.judges.request import Reply
from lmms_eval_captions.judges.shelf import Shelf
from lmms_eval_captions.judges.store import ReplyStore


def _key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def _segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jsonl"))


@given(st.dictionaries(st.binary(min_size=16, max_size=16), st.text(), max_size=20))
@settings(max_examples=30)
def test_what_is_put_is_got_now_and_after_opening_again(replies: dict[bytes, str]) -> None:
    """Any key and any text, lone surrogates and line ends included, come back as they were."""
    with tempfile.TemporaryDirectory() as name:
        for store in (ReplyStore(Path(name)), ReplyStore(Path(name))):
            for key, text in replies.items():
                if store.get(key) is None:
                    store.put(key, Reply(text, "stop", 1, 2).to_json())
            assert len(store) == len(replies)
            for key, text in replies.items():
                stored = store.get(key)
                assert stored is not None
                assert Reply.from_json(stored) == Reply(text, "stop", 1, 2)
            store.close()


def test_a_reply_says_what_was_refused_and_older_ones_are_read() -> None:
    """The parameters come back in their order; a line of an earlier version has none."""
    reply = Reply("yes", "stop", 1, 2, refused=("seed", "temperature"))
    assert Reply.from_json(reply.to_json()) == reply
    old = b'{"text":"yes","finish_reason":"stop","input_tokens":1,"output_tokens":2}'
    assert Reply.from_json(old) == Reply("yes", "stop", 1, 2)
    assert Reply("yes", "stop", 1, 2).to_json() == old


def test_an_unknown_key_gives_nothing(tmp_path: Path) -> None:
    """A store that was never written to makes no folder and holds nothing."""
    store = ReplyStore(tmp_path / "none")
    assert store.get(_key(1)) is None
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("n_lost", [1, 2, 20, 60])
def test_a_line_that_was_cut_short_is_lost_alone(tmp_path: Path, n_lost: int) -> None:
    """Whatever byte a kill ends the file at, all lines before are there, and writing goes on."""
    store = ReplyStore(tmp_path)
    for number in range(3):
        store.put(_key(number), Reply(f"reply {number}").to_json())
    store.close()
    path = _segments(tmp_path)[0]
    os.truncate(path, path.stat().st_size - n_lost)
    again = ReplyStore(tmp_path)
    assert [again.get(_key(n)) is not None for n in range(3)] == [True, True, False]
    again.put(_key(2), Reply("afresh").to_json())
    again.close()
    last = ReplyStore(tmp_path).get(_key(2))
    assert last is not None
    assert Reply.from_json(last).text == "afresh"


def test_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    """A damaged file costs its damaged lines and nothing else."""
    good = b"%s %s\n" % (_key(7).hex().encode(), Reply("good").to_json())
    (tmp_path / "a.jsonl").write_bytes(
        b"\n\x00\xff garbage\nzz" + b"z" * 30 + b" {}\n" + good + good[:40]
    )
    store = ReplyStore(tmp_path)
    assert len(store) == 1
    stored = store.get(_key(7))
    assert stored is not None
    assert Reply.from_json(stored).text == "good"


def test_a_full_disk_is_an_error_that_says_what_to_do_and_loses_nothing(tmp_path: Path) -> None:
    """A write that does not fit raises, what was there stays, and writing goes on later."""
    store = ReplyStore(tmp_path)
    store.put(_key(1), Reply("first").to_json())
    size = _segments(tmp_path)[0].stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, hard))
    try:
        with pytest.raises(StoreError, match="LMMS_CAPTIONS_CACHE"):
            store.put(_key(2), Reply("does not fit").to_json())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert store.get(_key(2)) is None
    store.put(_key(3), Reply("fits again").to_json())
    third = store.get(_key(3))
    assert third is not None
    assert Reply.from_json(third).text == "fits again"
    store.close()
    again = ReplyStore(tmp_path)
    assert [again.get(_key(n)) is not None for n in (1, 2, 3)] == [True, False, True]


def test_a_folder_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    """Where a file stands in the way of the folder, the error names the path."""
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="file"):
        ReplyStore(tmp_path / "file").put(_key(1), b"{}")


_WRITER = """
import sys
from pathlib import Path
from lmms_eval_captions.judges.request import Reply
from lmms_eval_captions.judges.store import ReplyStore
store = ReplyStore(Path(sys.argv[1]))
for number in range(int(sys.argv[2]), 10**9):
    store.put(number.to_bytes(16, "big"), Reply("x" * 200 + str(number)).to_json())
    print(number, flush=True)
"""


def test_processes_killed_while_writing_lose_nothing_they_reported(tmp_path: Path) -> None:
    """Two writers share a folder; after SIGKILL every reply that was reported written is there."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path / "store"), str(first)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for first in (0, 1_000_000)
    ]
    for writer in writers:
        assert writer.stdout is not None
        for _ in range(50):
            writer.stdout.readline()
    for writer in writers:
        writer.send_signal(signal.SIGKILL)
    reported = [int(n) for w in writers for n in w.communicate()[0].split("\n")[:-1]]
    assert len(_segments(tmp_path / "store")) == 2
    store = ReplyStore(tmp_path / "store")
    for number in reported:
        stored = store.get(_key(number))
        assert stored is not None
        assert Reply.from_json(stored).text.endswith(str(number))


def test_a_cut_line_that_ends_like_a_whole_one_is_asked_again(tmp_path: Path) -> None:
    """Replies hold braces of their own: a line may be cut right behind one."""
    key = bytes(16)
    shelf = Shelf(tmp_path, patience_s=0.0)
    folder = tmp_path / "judge"
    folder.mkdir()
    cut = b"{\"text\":\"{'pred': 'yes', 'score': 4}"
    (folder / "old.jsonl").write_bytes(key.hex().encode() + b" " + cut + b"\n")
    assert shelf.get("judge", key) is None
    asyncio.run(shelf.save("judge", key, Reply("again")))
    shelf.close()
    assert Shelf(tmp_path, patience_s=0.0).get("judge", key) == Reply("again")


def test_a_segment_that_is_gone_is_a_stop_that_names_the_folder(tmp_path: Path) -> None:
    """A cache that is deleted during a run ends judging, not the caption with a defect."""
    shelf = Shelf(tmp_path, patience_s=0.0)
    asyncio.run(shelf.save("judge", bytes(16), Reply("there")))
    shutil.rmtree(tmp_path / "judge")
    with pytest.raises(JudgeStoppedError, match=re.escape(str(tmp_path))):
        shelf.get("judge", bytes(16))

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
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loguru import logger

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.endpoint.store import ReplyStore, StoredReplies, write_line
from lmms_eval_captions.judges.errors import JudgeStoppedError, StoreError


def _key(number: int) -> bytes:
    return number.to_bytes(16, "big")


@contextmanager
def warnings_of() -> Iterator[list[str]]:
    said: list[str] = []
    sink = logger.add(lambda message: said.append(message.record["message"]), level="WARNING")
    yield said
    logger.remove(sink)


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
    good = write_line(_key(7), Reply("good").to_json())
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
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="file"):
        ReplyStore(tmp_path / "file").put(_key(1), b"{}")


_WRITER = """
import sys
from pathlib import Path
from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.endpoint.store import ReplyStore
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


def _fill(folder: Path, *, n: int = 10) -> tuple[Path, list[bytes]]:
    """A segment of an earlier run, and its lines."""
    store = ReplyStore(folder)
    for number in range(n):
        store.put(_key(number), Reply(f"reply {number}" + "." * number).to_json())
    store.close()
    path = _segments(folder)[-1]
    return path, _lines(path)


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def _read(folder: Path, n: int = 10) -> list[str | None]:
    return _held(ReplyStore(folder), n)


def _held(store: ReplyStore, n: int = 10) -> list[str | None]:
    values = [store.get(_key(number)) for number in range(n)]
    return [None if value is None else Reply.from_json(value).text.strip(".") for value in values]


_ALL: Final = [f"reply {number}" for number in range(10)]


@pytest.mark.parametrize("place", ["key", "text", "digit of a checksum", "line end"])
def test_an_altered_line_is_not_served(tmp_path: Path, place: str) -> None:
    """One flipped bit in a key, a text, a checksum or a line end never gives another reply."""
    path, lines = _fill(tmp_path)
    at = {"key": 31, "text": lines[4].index(b"reply") + 2, "digit of a checksum": 36}
    for bit in range(8):
        line = bytearray(lines[4])
        line[at.get(place, -1)] ^= 1 << bit
        path.write_bytes(b"".join(lines))
        assert _read(tmp_path) == _ALL
        path.write_bytes(b"".join([*lines[:4], bytes(line), *lines[5:]]))
        held = _read(tmp_path)
        assert held[4] is None
        assert held[:4] + held[6:] == _ALL[:4] + _ALL[6:]
        assert held[5] in ({None, "reply 5"} if place == "line end" else {"reply 5"})


def _odd_files(folder: Path) -> None:
    """Whatever may lie beside the segments under their ending."""
    (folder / "0-folder.jsonl").mkdir()
    (folder / "1-dangling.jsonl").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "2-fifo.jsonl")
    (folder / "3-empty.jsonl").touch()
    key = b"ab" * 16
    (folder / "4-foreign.jsonl").write_bytes(
        b"\n".join([key + b" [1]", key + b' "text"', key, b"\xff\xfe \x80", b"", b"{}", b"tail"])
    )
    (folder / "5-zeros.jsonl").write_bytes(bytes(100_000))
    (folder / "6-zeros.jsonl").write_bytes(bytes(100) + b"\n" + b"x" * 3000 + b"\n")


def test_what_is_no_segment_is_passed_over_and_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders, dangling links, pipes, zeros, other text and endless lines cost a warning each."""
    monkeypatch.setattr("lmms_eval_captions.judges.endpoint.store.MAX_LINE_BYTES", 1000)
    _fill(tmp_path)
    _odd_files(tmp_path)
    with warnings_of() as said:
        store = ReplyStore(tmp_path)
        assert _held(store) == _ALL
        for _ in range(3):
            store.refresh()
        store.close()
    heads = sorted(re.sub(r"/\S*/", "", line) for line in said)
    assert [line[:40] for line in heads] == [
        "0-folder.jsonl cannot be read and is pas",
        "1-dangling.jsonl cannot be read and is p",
        "100 line(s) of 5-zeros.jsonl are damaged",
        "2-fifo.jsonl cannot be read and is passe",
        "4 line(s) of 6-zeros.jsonl are damaged o",
        "5 line(s) of 4-foreign.jsonl are damaged",
    ]


_WHOLE: Final = '"finish_reason":"stop","input_tokens":1,"output_tokens":1'


@pytest.mark.parametrize(
    "value",
    [
        '{"text":5,WHOLE}',
        "{WHOLE}",
        '{"text":"a","logprobs":[[1,"2"]],WHOLE}',
        '{"text":"a","logprobs":[[1e999,"2",{}]],WHOLE}',
        '{"text":"a","refused":5,WHOLE}',
        '{"text":"a","foreign":5,WHOLE}',
        '{"text":' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"text":"a","input_tokens":' + "9" * 10_000 + "}",
        "{}",
        "{\xff}",
    ],
    ids=range(10),
)
def test_a_line_that_is_no_reply_is_asked_again(tmp_path: Path, value: str) -> None:
    """Whatever JSON a line holds, nothing is raised; what is no reply is said once."""
    (tmp_path / "judge").mkdir()
    for number, name in enumerate("ab"):
        line = write_line(_key(number), value.replace("WHOLE", _WHOLE).encode("latin-1"))
        (tmp_path / "judge" / f"{name}.jsonl").write_bytes(line)
    with warnings_of() as said:
        shelf = StoredReplies(tmp_path, patience_s=0.0)
        assert shelf.get("judge", _key(0)) is None
        assert shelf.get("judge", _key(1)) is None
        shelf.close()
    assert len(said) == 1


def test_what_is_put_is_on_the_disk_itself_within_the_rhythm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut takes the latest seconds alone; the event loop does not wait for the disk."""
    flushed: list[int] = []
    threads: set[int] = set()

    def flush(file: int) -> None:
        threads.add(threading.get_ident())
        flushed.append(os.fstat(file).st_size)

    monkeypatch.setattr("lmms_eval_captions.judges.endpoint.store.os.fsync", flush)
    monkeypatch.setattr("lmms_eval_captions.judges.endpoint.store.FLUSH_S", 0.05)
    shelf = StoredReplies(tmp_path, patience_s=0.0)
    n_bytes = 0
    for number in range(3):
        asyncio.run(shelf.save("judge", _key(number), Reply("yes")))
        n_bytes = _segments(tmp_path / "judge")[0].stat().st_size
        deadline_s = time.monotonic() + 5.0
        while not flushed or flushed[-1] < n_bytes:
            assert time.monotonic() < deadline_s
            shelf.refresh()
            time.sleep(0.01)
    assert threading.get_ident() not in threads
    n_flushes = len(flushed)
    for _ in range(10):
        shelf.refresh()
        time.sleep(0.01)
    assert len(flushed) == n_flushes
    asyncio.run(shelf.save("judge", _key(9), Reply("last")))
    shelf.close()
    assert flushed[-1] > n_bytes


def test_a_segment_that_is_gone_is_a_stop_that_names_the_folder(tmp_path: Path) -> None:
    _fill(tmp_path / "judge")
    shelf = StoredReplies(tmp_path, patience_s=0.0)
    assert not shelf.has("judge", _key(77))
    shutil.rmtree(tmp_path / "judge")
    with pytest.raises(JudgeStoppedError, match=re.escape(str(tmp_path))):
        shelf.get("judge", _key(0))
    asyncio.run(shelf.save("judge", _key(77), Reply("there")))
    shutil.rmtree(tmp_path / "judge")
    assert shelf.get("judge", _key(77)) == Reply("there")
    shelf.close()


def test_a_closed_store_has_nothing_left_to_flush(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever still waits for a reply as the engine ends may look for new ones."""
    monkeypatch.setattr("lmms_eval_captions.judges.endpoint.store.FLUSH_S", 0.0)
    store = ReplyStore(tmp_path)
    store.put(_key(1), Reply("Yes.", "stop").to_json())
    store.close()
    store.refresh()
    assert len(ReplyStore(tmp_path)) == 1

"""Replies on disk survive kills, full disks and company."""

from __future__ import annotations

import asyncio
import errno
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loguru import logger

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.endpoint.store import segment
from lmms_eval_captions.judges.endpoint.store.line import read_line, write_line
from lmms_eval_captions.judges.endpoint.store.segment import Segment
from lmms_eval_captions.judges.endpoint.store.store import ReplyStore
from lmms_eval_captions.judges.endpoint.store.stored_replies import StoredReplies
from lmms_eval_captions.judges.errors import JudgeStoppedError, StoreError


def _key(number: int) -> bytes:
    return number.to_bytes(16, "big")


@contextmanager
def warnings_of() -> Iterator[list[str]]:
    """What is logged as a warning or worse meanwhile."""
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
from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.endpoint.store import segment_writer
from lmms_eval_captions.judges.endpoint.store.store import ReplyStore
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
    shelf = StoredReplies(tmp_path, patience_s=0.0)
    folder = tmp_path / "judge"
    folder.mkdir()
    cut = b"{\"text\":\"{'pred': 'yes', 'score': 4}"
    (folder / "old.jsonl").write_bytes(key.hex().encode() + b" " + cut + b"\n")
    assert shelf.get("judge", key) is None
    asyncio.run(shelf.save("judge", key, Reply("again")))
    shelf.close()
    assert StoredReplies(tmp_path, patience_s=0.0).get("judge", key) == Reply("again")


def _fill(folder: Path, *, n: int = 10, with_checksums: bool = True) -> tuple[Path, list[bytes]]:
    """A segment of an earlier run, and its lines."""
    store = ReplyStore(folder)
    for number in range(n):
        store.put(_key(number), Reply(f"reply {number}" + "." * number).to_json())
    store.close()
    path = _segments(folder)[-1]
    if not with_checksums:
        lines = (re.sub(rb"-[0-9a-f]{8}", b" ", line, count=1) for line in _lines(path))
        path.write_bytes(b"".join(lines))
    return path, _lines(path)


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def _read(folder: Path, n: int = 10) -> list[str | None]:
    """What a store opened now holds."""
    return _held(ReplyStore(folder), n)


def _held(store: ReplyStore, n: int = 10) -> list[str | None]:
    values = [store.get(_key(number)) for number in range(n)]
    return [None if value is None else Reply.from_json(value).text.strip(".") for value in values]


_ALL: Final = [f"reply {number}" for number in range(10)]


@pytest.mark.parametrize("is_open", [False, True], ids=["before", "while-open"])
@pytest.mark.parametrize("place", ["key", "text", "digit of a checksum", "line end"])
def test_an_altered_line_is_not_served(tmp_path: Path, place: str, is_open: bool) -> None:
    """One flipped bit in a key, a text, a checksum or a line end never gives another reply."""
    path, lines = _fill(tmp_path)
    at = {"key": 31, "text": lines[4].index(b"reply") + 2, "digit of a checksum": 36}
    for bit in range(8):
        line = bytearray(lines[4])
        line[at.get(place, -1)] ^= 1 << bit
        path.write_bytes(b"".join(lines))
        store = ReplyStore(tmp_path)
        assert _held(store) == _ALL
        path.write_bytes(b"".join([*lines[:4], bytes(line), *lines[5:]]))
        held = _held(store) if is_open else _read(tmp_path)
        assert held[4] is None
        assert held[:4] + held[6:] == _ALL[:4] + _ALL[6:]
        assert held[5] in ({None, "reply 5"} if place == "line end" else {"reply 5"})
        store.close()


def test_a_key_in_capitals_is_not_served() -> None:
    """A flip of a letter's case is a damage like any other, also in lines without a checksum."""
    value = Reply("yes").to_json()
    key = bytes(15) + b"\xab"
    for line in (write_line(key, value), b"%s %s\n" % (key.hex().encode(), value)):
        assert read_line(line) == (key, value)
        assert read_line(line.replace(b"ab", b"aB", 1)) is None


def test_lines_without_a_checksum_and_with_other_ends_are_read(tmp_path: Path) -> None:
    """Stores of earlier versions, and those that went through another system, cost nothing."""
    path, lines = _fill(tmp_path, with_checksums=False)
    assert lines[0].startswith(b"0" * 32 + b' {"text"')
    assert _read(tmp_path) == _ALL
    for with_checksums in (True, False):
        path.unlink()
        path, lines = _fill(tmp_path, with_checksums=with_checksums)
        path.write_bytes(b"".join(line.replace(b"\n", b"\r\n") for line in lines))
        assert _read(tmp_path) == _ALL


@pytest.mark.parametrize("with_checksums", [True, False], ids=["checked", "unchecked"])
@pytest.mark.parametrize("is_refreshed", [True, False], ids=["refreshed", "at-once"])
@pytest.mark.parametrize("how", ["in place", "another file", "shortened", "grown", "time kept"])
def test_a_segment_that_changed_is_read_anew(
    tmp_path: Path, how: str, is_refreshed: bool, with_checksums: bool
) -> None:
    """Whatever a file is replaced by while it is open, every key has its own reply or none."""
    path, lines = _fill(tmp_path, with_checksums=with_checksums)
    store = ReplyStore(tmp_path)
    assert _held(store, 3) == _ALL[:3]
    now = list(reversed(lines))
    expected: list[str | None] = list(_ALL)
    if how == "shortened":
        now, expected = now[:4], [None] * 6 + _ALL[6:]
    elif how == "grown":
        more = write_line(_key(77), Reply("more").to_json())
        now = [more, *now]
    before = path.stat()
    if how == "another file":
        draft = tmp_path / "draft"
        draft.write_bytes(b"".join(now))
        draft.rename(path)
    else:
        path.write_bytes(b"".join(now))
    if how == "time kept":
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    if is_refreshed:
        store.refresh()
    assert _held(store) == expected
    store.close()


def _remove(folder: Path) -> None:
    shutil.rmtree(folder)


def _rename(folder: Path) -> None:
    folder.rename(folder.with_name("old"))


def _replace(folder: Path) -> None:
    _rename(folder)
    shutil.copytree(folder.with_name("old"), folder)


def _remove_file(folder: Path) -> None:
    _segments(folder)[0].unlink()


@pytest.mark.parametrize("how", [_remove, _rename, _replace, _remove_file])
@pytest.mark.parametrize("then", ["put", "refresh", "close"])
def test_what_is_written_outlives_its_folder(
    tmp_path: Path, how: Callable[[Path], None], then: str
) -> None:
    """A folder that goes while replies are written to it has them all again, and is told of."""
    folder = tmp_path / "judge"
    store = ReplyStore(folder)
    for number in range(5):
        store.put(_key(number), Reply(_ALL[number]).to_json())
    with warnings_of() as said:
        how(folder)
        if then == "refresh":
            store.refresh()
            assert _read(folder, 5) == _ALL[:5]
        if then != "close":
            for number in range(5, 10):
                store.put(_key(number), Reply(_ALL[number]).to_json())
        assert _held(store, 5) == _ALL[:5]
        store.close()
    assert _read(folder) == (_ALL if then != "close" else _ALL[:5] + [None] * 5)
    assert len(said) == 1
    assert "removed or replaced" in said[0]


def test_a_removed_folder_that_cannot_be_made_again_stops_the_writing(tmp_path: Path) -> None:
    """Nothing more is taken for saved, and what was written is kept until it can be."""
    folder = tmp_path / "judge"
    store = ReplyStore(folder)
    store.put(_key(0), Reply(_ALL[0]).to_json())
    shutil.rmtree(folder)
    folder.touch()
    time.sleep(0.06)
    for _ in range(2):
        with pytest.raises(StoreError, match="LMMS_CAPTIONS_CACHE"):
            store.put(_key(1), Reply(_ALL[1]).to_json())
    folder.unlink()
    store.put(_key(2), Reply(_ALL[2]).to_json())
    store.close()
    assert _read(folder, 3) == [_ALL[0], None, _ALL[2]]


def test_an_own_segment_that_is_cut_is_read_anew(tmp_path: Path) -> None:
    """Someone else's hand on the file being written costs what it took away."""
    store = ReplyStore(tmp_path)
    for number in range(5):
        store.put(_key(number), Reply(_ALL[number]).to_json())
    path = _segments(tmp_path)[0]
    os.truncate(path, len(b"".join(_lines(path)[:3])) + 20)
    time.sleep(0.06)
    for number in range(5, 10):
        store.put(_key(number), Reply(_ALL[number]).to_json())
    assert _held(store) == [*_ALL[:3], None, None, *_ALL[5:]]
    store.close()
    assert _read(tmp_path) == [*_ALL[:3], None, None, *_ALL[5:]]


def _fail_once(monkeypatch: pytest.MonkeyPatch, *, after: int) -> None:
    """The next reading of a file fails behind so many lines, as on a disk that is shared."""
    lines = segment._lines

    def flaky(stream: BinaryIO) -> Iterator[tuple[bytes, int]]:
        monkeypatch.setattr(segment, "_lines", lines)
        yield from islice(lines(stream), after)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(segment, "_lines", flaky)


def test_what_could_not_be_read_is_read_at_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in the middle of a file, new or changed, costs no reply behind it."""
    path, lines = _fill(tmp_path)
    with warnings_of() as said:
        _fail_once(monkeypatch, after=4)
        store = ReplyStore(tmp_path)
        assert _held(store) == _ALL[:4] + [None] * 6
        store.refresh()
        assert _held(store) == _ALL
        _fail_once(monkeypatch, after=0)
        path.write_bytes(b"".join(reversed(lines)))
        for _ in range(2):
            store.refresh()
        assert _held(store) == _ALL
        store.close()
    assert len(said) == 1
    assert "cannot be read" in said[0]


def test_an_own_segment_that_could_not_be_read_anew_is_read_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error while the file being written is read again costs none of its replies."""
    store = ReplyStore(tmp_path)
    for number in range(10):
        store.put(_key(number), Reply(_ALL[number]).to_json())
    with _segments(tmp_path)[0].open("ab") as stream:
        stream.write(b"someone else's\n")
    _fail_once(monkeypatch, after=2)
    store.refresh()
    store.refresh()
    assert _held(store) == _ALL
    store.close()


def test_a_file_that_may_be_read_at_last_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that permissions kept away is said once, and is read, in its order, when they allow."""
    path, _ = _fill(tmp_path, with_checksums=False)
    newer = write_line(_key(0), Reply("newer").to_json())
    path.with_name("~.jsonl").write_bytes(newer)
    path = path.rename(path.with_name("~~.jsonl"))
    opened = os.open

    def forbid(name: str | Path, *args: int) -> int:
        if Path(name) == path:
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(name, *args)

    with warnings_of() as said:
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", forbid)
            patch.setattr(Path, "open", lambda name, *_, **__: os.fdopen(forbid(name, 0), "rb"))
            store = ReplyStore(tmp_path)
            for _ in range(3):
                store.refresh()
            assert _held(store) == ["newer"] + [None] * 9
        store.refresh()
        assert _held(store)[1:] == _ALL[1:]
        store.close()
    assert len(said) == 1
    assert [segment.is_checked() for segment in store._segments] == [True, False]


def _two_copies(folder: Path) -> tuple[list[Path], ReplyStore]:
    """Two segments with ten replies each, newer ones in the second; and a store that read them."""
    (folder / "a.jsonl").write_bytes(
        b"".join(write_line(_key(n), Reply(f"older {n}").to_json()) for n in range(10))
        + b"damaged\n"
    )
    (folder / "b.jsonl").write_bytes(
        b"".join(write_line(_key(n), Reply(_ALL[n]).to_json()) for n in range(10))
    )
    store = ReplyStore(folder)
    return _segments(folder), store


@pytest.mark.parametrize("is_refreshed", [True, False], ids=["refreshed", "at-once"])
@pytest.mark.parametrize("how", ["cut", "altered", "removed"])
def test_an_older_copy_serves_where_the_newer_one_is_lost(
    tmp_path: Path, how: str, is_refreshed: bool
) -> None:
    """What stands whole in any segment is served, and damage that was told is not told again."""
    with warnings_of() as said:
        (_, newer), store = _two_copies(tmp_path)
        store.put(_key(77), Reply("own").to_json())
        store.put(_key(3), Reply("own").to_json())
        expected: list[str | None] = [f"older {number}" for number in range(10)]
        if how == "cut":
            os.truncate(newer, 0)
        elif how == "altered":
            newer.write_bytes(newer.read_bytes().replace(b"reply 5", b"reply 6"))
            expected = [*_ALL[:5], "older 5", *_ALL[6:]]
        else:
            newer.unlink()
        expected[3] = "own"
        if is_refreshed:
            store.refresh()
        assert _held(store) == expected
        assert store.get(_key(77)) == Reply("own").to_json()
        store.close()
    assert _read(tmp_path) in (expected, [*expected[:3], "older 3", *expected[4:]])
    assert sum("a.jsonl" in line for line in said) == 1


def test_what_was_asked_again_counts_most_when_all_is_read_anew(tmp_path: Path) -> None:
    """A copy in another segment does not take the place of a reply that this process put."""
    path, lines = _fill(tmp_path)
    path.rename(tmp_path / "~.jsonl")
    store = ReplyStore(tmp_path)
    store.put(_key(0), Reply("own").to_json())
    (tmp_path / "~.jsonl").write_bytes(b"".join(reversed(lines)))
    assert _held(store) == ["own", *_ALL[1:]]
    store.close()


def test_an_own_segment_that_is_cut_leaves_older_copies(tmp_path: Path) -> None:
    """What someone else's hand took from the file being written is found where else it stands."""
    _fill(tmp_path)
    store = ReplyStore(tmp_path)
    store.put(_key(0), Reply("own").to_json())
    [own] = [path for path in _segments(tmp_path) if b"own" in path.read_bytes()]
    os.truncate(own, 0)
    store.refresh()
    assert _held(store) == _ALL
    store.close()


def test_an_older_copy_of_ones_own_serves_after_its_folder_was_removed(tmp_path: Path) -> None:
    """Where the own segment goes together with a newer copy of a reply, its own is given."""
    store = ReplyStore(tmp_path)
    store.put(_key(0), Reply("own").to_json())
    other = ReplyStore(tmp_path)
    other.put(_key(0), Reply("other").to_json())
    other.close()
    store.refresh()
    for path in _segments(tmp_path):
        path.unlink()
    assert _held(store, 1) == ["own"]
    store.close()


def test_an_older_copy_serves_where_both_were_read_anew_before(tmp_path: Path) -> None:
    """What a file held that is removed after all were read anew is sought elsewhere as ever."""
    (older, newer), store = _two_copies(tmp_path)
    os.utime(older, ns=(0, 0))
    store.refresh()
    newer.unlink()
    assert _held(store) == [f"older {number}" for number in range(10)]
    store.close()


def test_a_reply_that_is_nowhere_else_is_sought_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests that wait for a removed file do not each have everything read again."""
    (_, newer), store = _two_copies(tmp_path)
    newer.write_bytes(newer.read_bytes() + write_line(_key(11), Reply("alone").to_json()))
    store.refresh()
    newer.unlink()
    with pytest.raises(FileNotFoundError):
        store.get(_key(11))
    monkeypatch.setattr(Segment, "read", lambda _: pytest.fail("was read"))
    with pytest.raises(FileNotFoundError):
        store.get(_key(11))
    assert _held(store) == [f"older {number}" for number in range(10)]
    store.close()


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
    monkeypatch.setattr("lmms_eval_captions.judges.endpoint.store.segment.MAX_LINE_BYTES", 1000)
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
        "2 line(s) of 6-zeros.jsonl are damaged o",
        "2-fifo.jsonl cannot be read and is passe",
        "5 line(s) of 4-foreign.jsonl are damaged",
    ]


def test_a_segment_that_does_not_change_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end that a kill left without a line end is looked at once, not four times a second."""
    (tmp_path / "a.jsonl").write_bytes(bytes(1000))
    store = ReplyStore(tmp_path)
    monkeypatch.setattr(Segment, "read", lambda _: pytest.fail("was read"))
    store.refresh()


_WHOLE: Final = '"finish_reason":"stop","input_tokens":1,"output_tokens":1'


@pytest.mark.parametrize(
    "value",
    [
        '{"text":5,WHOLE}',
        '{"text":null,WHOLE}',
        "{WHOLE}",
        '{"text":"a","finish_reason":7,"input_tokens":1,"output_tokens":1}',
        '{"text":"a","logprobs":5,WHOLE}',
        '{"text":"a","logprobs":[[1,"2"]],WHOLE}',
        '{"text":"a","logprobs":[[1e999,"2",{}]],WHOLE}',
        '{"text":"a","logprobs":[[1,"2",{"2":NaN}]],WHOLE}',
        '{"text":"a","logprobs":[[1,"2",["2"]]],WHOLE}',
        '{"text":"a","refused":5,WHOLE}',
        '{"text":"a","refused":[5],WHOLE}',
        '{"text":' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"text":"a","input_tokens":' + "9" * 10_000 + "}",
        "{}",
        "{text}",
        "{\xff}",
    ],
    ids=range(16),
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


@pytest.mark.parametrize("name", ["0-1-0.jsonl", "~-1-0.jsonl"], ids=["first", "last"])
def test_a_damaged_line_of_before_is_asked_again_once(tmp_path: Path, name: str) -> None:
    """The reply that was stored since counts, whatever the names of the files."""
    (tmp_path / "judge").mkdir()
    (tmp_path / "judge" / name).write_bytes(b'%s {"text": "yes, }\n' % _key(0).hex().encode())
    first = StoredReplies(tmp_path, patience_s=0.0)
    assert first.get("judge", _key(0)) is None
    asyncio.run(first.save("judge", _key(0), Reply("no")))
    first.close()
    second = StoredReplies(tmp_path, patience_s=0.0)
    assert second.get("judge", _key(0)) == Reply("no")
    second.close()


@pytest.mark.parametrize("tokens", ["-5", "NaN", '"7"', "1.5", "[]", "null"])
def test_odd_numbers_of_tokens_do_not_cost_a_stored_reply(tokens: str) -> None:
    """Earlier versions stored what a server called its usage; the reply is as good."""
    line = '{"text":"a","finish_reason":null,"output_tokens":3,"input_tokens":' + tokens + "}"
    assert Reply.from_json(line.encode()) == Reply("a", None, 0, 3)


def test_what_is_put_is_on_the_disk_itself_within_the_rhythm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut takes the latest seconds alone; the event loop does not wait for the disk."""
    flushed: list[int] = []
    threads: set[int] = set()

    def flush(file: int) -> None:
        threads.add(threading.get_ident())
        flushed.append(os.fstat(file).st_size)

    monkeypatch.setattr(
        "lmms_eval_captions.judges.endpoint.store.segment_writer._flush_data", flush
    )
    monkeypatch.setattr("lmms_eval_captions.judges.endpoint.store.flusher.FLUSH_S", 0.05)
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


def test_the_entry_of_a_new_segment_is_on_the_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its name in the folder, and the folder's, a flushed file is lost in a power cut."""
    flushed: set[int] = set()
    monkeypatch.setattr(os, "fsync", lambda file: flushed.add(os.fstat(file).st_ino))
    store = ReplyStore(tmp_path / "replies" / "judge")
    store.put(_key(0), Reply("yes").to_json())
    flush = store.flushing()
    assert flush is not None
    flush()
    assert {
        (tmp_path / name).stat().st_ino for name in ("replies/judge", "replies", ".")
    } <= flushed
    assert store.flushing() is None
    store.close()


def test_a_disk_that_does_not_take_what_was_written_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flush that fails is an error in the log, once, and judging goes on."""

    def flush(_: int) -> None:
        raise OSError(5, "the disk is broken")

    monkeypatch.setattr(
        "lmms_eval_captions.judges.endpoint.store.segment_writer._flush_data", flush
    )
    monkeypatch.setattr("lmms_eval_captions.judges.endpoint.store.flusher.FLUSH_S", 0.0)
    shelf = StoredReplies(tmp_path, patience_s=0.0)
    with warnings_of() as said:
        for number in range(3):
            asyncio.run(shelf.save("judge", _key(number), Reply("yes")))
            shelf.refresh()
            time.sleep(0.05)
        shelf.close()
    assert [shelf.get("judge", _key(n)) for n in range(3)] == [Reply("yes")] * 3
    assert sum("the disk did not take them" in line for line in said) == 1


def test_a_segment_that_is_gone_is_a_stop_that_names_the_folder(tmp_path: Path) -> None:
    """What other runs stored and that is deleted is no reason to pay for it at once."""
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

"""Downloads from a stand-in for the Hugging Face hub on loopback, with the real client library."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import Settings, read_settings
from lmms_eval_captions.lmms_eval_tasks.data.files import find_file, find_video
from lmms_eval_captions.lmms_eval_tasks.data.hub import fetch_file, fetch_videos, unpack
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import SOURCE as VDC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

REPO = "wchai/Video-Detailed-Caption"
HUB_MODULE = "lmms_eval_captions.lmms_eval_tasks.data.hub"


@dataclass
class StandIn:
    """The repository and what was asked of it."""

    repo: str
    files: dict[str, bytes]
    url: str = ""
    requests: list[str] = field(default_factory=list)
    """``GET path range`` of every request for content or lists, in order."""
    cut_once: set[str] = field(default_factory=set)
    """Files whose next download ends in the middle."""


class Handler(BaseHTTPRequestHandler):
    """Answers as the hub does."""

    hub: StandIn
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args: object) -> None:
        """Stay silent."""

    def do_HEAD(self) -> None:
        """Answer a request for a file's size and hash."""
        self._answer(body=False)

    def do_GET(self) -> None:
        """Answer a request for a file or the list of files."""
        path = unquote(urlsplit(self.path).path)
        if "/datasets/" in path:  # not the client's own
            self.hub.requests.append(f"GET {path} {self.headers.get('Range', '')}".strip())
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        if path.startswith(f"/api/datasets/{self.hub.repo}/tree/"):
            entries = [
                {"type": "file", "path": name, "size": len(data), "oid": _etag(data)}
                for name, data in self.hub.files.items()
            ]
            self._send(200, json.dumps(entries).encode(), {}, body=True)
        elif path.startswith(f"/datasets/{self.hub.repo}/resolve/"):
            revision, _, name = path.split("/resolve/", 1)[1].partition("/")
            self._send_file(name, revision, body=body)
        else:
            self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"}, body=body)

    def _send_file(self, name: str, revision: str, *, body: bool) -> None:
        headers = {"X-Repo-Commit": _etag(revision.encode())}
        if name not in self.hub.files:
            headers["X-Error-Code"] = "EntryNotFound"
            self._send(404, b"", headers, body=body)
            return
        data = self.hub.files[name]
        headers |= {"ETag": f'"{_etag(data)}"', "Accept-Ranges": "bytes"}
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        cut = body and name in self.hub.cut_once
        self._send(206 if start else 200, data[start:], headers, body=body, cut=cut)
        self.hub.cut_once -= {name} if cut else set()

    def _send(
        self,
        status: int,
        data: bytes,
        headers: dict[str, str],
        *,
        body: bool,
        cut: bool = False,
    ) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(key, value)
        self.end_headers()
        if body:
            self.wfile.write(data[: len(data) // 2] if cut else data)
        self.close_connection = cut


@contextmanager
def serve(repo: str, files: dict[str, bytes]) -> Iterator[StandIn]:
    """A running hub."""
    hub = StandIn(repo, files)

    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _etag(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def tar_of(members: dict[str, bytes]) -> bytes:
    """A gzipped tar file."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return stream.getvalue()


FILES = {
    "README.md": b"read me",
    "VDCScore_qa/camera.jsonl": b'{"a": []}\n',
    "videos/videos_1.tar.gz": tar_of({"videos_1/a.mp4": b"A", "videos_1/._a.mp4": b"junk"}),
    "videos/videos_2.tar.gz": tar_of({"b.MP4": b"B"}),
    "videos/videos_3.tar.gz": tar_of({"deep/down/c.d.webm": b"C"}),
}


def use(hub: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the client library, which reads its address when it is imported, talk to a hub."""
    template = f"{hub.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """A hub with the layout of VDC, for the client library, whatever the environment says."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "downloads"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serve(REPO, dict(FILES)) as served:
        use(served, monkeypatch)
        yield served


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings without local data."""
    return read_settings({"LMMS_CAPTIONS_CACHE": str(tmp_path / "cache")})


def test_a_file_is_downloaded_once(stand_in: StandIn, settings: Settings) -> None:
    """The file arrives whole, and a second look-up does not transfer it again."""
    for _ in range(2):
        path = find_file(settings, VDC, "VDCScore_qa/camera.jsonl")
        assert path.read_bytes() == FILES["VDCScore_qa/camera.jsonl"]
    assert len(stand_in.requests) == 1


def test_a_download_that_is_cut_off_is_finished(stand_in: StandIn) -> None:
    """A connection that drops midway costs a retry, not the file."""
    stand_in.cut_once.add("README.md")
    assert fetch_file(VDC, "README.md").read_bytes() == b"read me"
    assert len(stand_in.requests) == 2


@pytest.mark.parametrize("stored", ["data/deep/camera.jsonl", "camera.jsonl.gz"])
def test_a_file_is_found_by_its_base_name(stand_in: StandIn, stored: str) -> None:
    """A repository of another layout, or with the file gzipped, still serves the file."""
    stand_in.files = {stored: b"x"}
    path = fetch_file(VDC, "VDCScore_qa/camera.jsonl")
    assert path.as_posix().endswith(stored)


def test_an_absent_file_lists_what_there_is(stand_in: StandIn) -> None:
    """The error names the file, the repository, its files and the command that gets the data."""
    with pytest.raises(DataError, match=r"no file 'x\.jsonl'.*README\.md.*hf download wchai/Video"):
        fetch_file(VDC, "x.jsonl")


def test_offline_mode_is_reported_as_such(
    stand_in: StandIn, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HF_HUB_OFFLINE gives an error that names it, for files and for videos."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(DataError, match=r"camera\.jsonl.*HF_HUB_OFFLINE.*DATA"):
        find_file(settings, VDC, "VDCScore_qa/camera.jsonl")
    with pytest.raises(DataError, match=r"HF_HUB_OFFLINE.*DATA/vdc/videos"):
        find_video(settings, VDC, "a")
    assert stand_in.requests == []


def test_an_unreachable_hub_is_reported_as_such(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refused connection becomes an error with the way to local data."""
    # The client library waits 20 seconds between its attempts.
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda _seconds: None)
    with serve(REPO, {}) as gone:
        use(gone, monkeypatch)
    with pytest.raises(DataError, match=r"(?i)connect.*LMMS_CAPTIONS_DATA"):
        find_file(settings, VDC, "VDCScore_qa/camera.jsonl")


def test_videos_of_all_shards_are_found(stand_in: StandIn, settings: Settings) -> None:
    """All archives that match are unpacked, whatever folders they hold."""
    found = [find_video(settings, VDC, video) for video in ("a", "b.mp4", "c.d")]
    assert [path.read_bytes() for path in found] == [b"A", b"B", b"C"]
    assert all(path.is_relative_to(settings.cache / "data" / "vdc" / "videos") for path in found)
    with pytest.raises(DataError, match=r"no video 'z' in .*3 files"):
        find_video(settings, VDC, "z")


def test_complete_videos_need_no_hub(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once everything is unpacked, neither the hub nor the downloads are needed."""
    fetch_videos(VDC, tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "elsewhere"))
    folder = fetch_videos(VDC, tmp_path)
    assert sum(path.name == "a.mp4" for path in folder.rglob("*")) == 1


def test_a_killed_run_goes_on_where_it_stopped(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def die(*_args: object) -> None:
        raise KeyboardInterrupt

    steps: Iterator[Callable[..., None]] = iter([unpack, die])

    def next_step(*args: object) -> None:
        next(steps)(*args)

    monkeypatch.setattr(f"{HUB_MODULE}.unpack", next_step)
    with pytest.raises(KeyboardInterrupt):
        fetch_videos(VDC, tmp_path)
    unpacked: list[str] = []

    def recorded(path: Path, folder: Path) -> None:
        unpacked.append(path.name)
        unpack(path, folder)

    monkeypatch.setattr(f"{HUB_MODULE}.unpack", recorded)
    fetch_videos(VDC, tmp_path)
    assert unpacked == ["videos_2.tar.gz", "videos_3.tar.gz"]
    assert sum("videos_1.tar.gz" in request for request in stand_in.requests) == 1


def test_a_damaged_download_is_fetched_anew_once(stand_in: StandIn, tmp_path: Path) -> None:
    """An archive that lies cut in the folder of downloads costs a second transfer, not the run."""
    name = "videos/videos_1.tar.gz"
    path = fetch_file(VDC, name)
    path.write_bytes(path.read_bytes()[:-20])
    folder = fetch_videos(VDC, tmp_path)
    assert sum(path.name == "a.mp4" for path in folder.rglob("*")) == 1
    assert sum(name in request for request in stand_in.requests) == 2


def test_an_archive_that_is_broken_on_the_hub_ends_in_words(
    stand_in: StandIn, tmp_path: Path
) -> None:
    """It is transferred twice at most."""
    name = "videos/videos_1.tar.gz"
    stand_in.files[name] = stand_in.files[name][:-20]
    with pytest.raises(DataError, match="the archive is broken"):
        fetch_videos(VDC, tmp_path)
    assert sum(name in request for request in stand_in.requests) == 2


FETCH = """
import sys
from pathlib import Path
from lmms_eval_captions.lmms_eval_tasks.data.hub import fetch_videos
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import SOURCE as VDC
fetch_videos(VDC, Path(sys.argv[1]))
"""


def test_processes_share_one_download(stand_in: StandIn, tmp_path: Path) -> None:
    """Several processes that start at once transfer each archive once."""
    hub = {"HF_ENDPOINT": stand_in.url, "HF_HUB_CACHE": str(tmp_path / "downloads")}
    environment = {**os.environ, "HF_HUB_OFFLINE": "0", **hub}
    command = [sys.executable, "-c", FETCH, str(tmp_path)]
    workers = [subprocess.Popen(command, env=environment) for _ in range(3)]
    assert [worker.wait(timeout=60) for worker in workers] == [0, 0, 0]
    transfers = [request for request in stand_in.requests if request.endswith(".tar.gz")]
    assert len(transfers) == 3
    assert len(stand_in.requests) == 4

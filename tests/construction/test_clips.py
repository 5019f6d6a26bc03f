"""``build clips`` on videos whose cuts are known."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from scenedetect.platform import get_ffmpeg_path

from lmms_eval_captions.cli.main import main
from lmms_eval_captions.construction import clips
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.data.files import read_jsonl
from lmms_eval_captions.model_wrappers.video.frames import read_frames
from shots import FPS, write_shots

pytestmark = pytest.mark.skipif(
    get_ffmpeg_path() is None, reason="the program ffmpeg is not installed"
)
Calls = list[str]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    names: Calls = []

    def call(function: Callable[..., Any], *arguments: Any) -> Any:
        names.append(function.__name__)
        return function(*arguments)

    monkeypatch.setattr(clips, "in_own_process", call)
    return names


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two videos of one name, and a file that is none."""
    folder = tmp_path_factory.mktemp("long")
    write_shots(folder / "a" / "v.mp4", [(5, "moves", 1), (2, "moves", 2), (4, "still", 3)])
    write_shots(folder / "b" / "v.mp4", [(40, "moves", 4), (3.5, "moves", 5)])
    (folder / "broken.mp4").write_bytes(b"no video" * 500)
    return folder


def _content(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes() if path.suffix == ".jsonl" else b""
        for path in folder.iterdir()
        if path.is_file()
    }


def _pixels(path: Path) -> np.ndarray:
    return read_frames(path, 1_000_000).frames.astype(float)


def test_videos_are_cut_where_their_shots_change(
    source: Path, tmp_path: Path, calls: Calls
) -> None:
    """Cuts are found within two frames; short shots, stills and broken files drop out."""
    assert main(["build", "clips", str(source), "-o", str(tmp_path)]) == 0
    rows = read_jsonl(tmp_path / "clips.jsonl")
    fates = [(row["source"], row["fate"]) for row in rows]
    assert fates == [
        ("a/v.mp4", "kept"),
        ("a/v.mp4", "too short"),
        ("a/v.mp4", "still"),
        *[("b/v.mp4", "kept")] * 4,
        ("broken.mp4", "unreadable"),
    ]
    ends = [row["end_s"] for row in rows[:3]] + [row["end_s"] for row in rows[5:7]]
    assert ends == pytest.approx([5, 7, 11, 40, 43.5], abs=2 / FPS)
    kept = [row for row in rows if row["kept"]]
    lengths = [float(str(row["end_s"])) - float(str(row["start_s"])) for row in kept]
    assert lengths[1:4] == pytest.approx([40 / 3] * 3, abs=2 / FPS)
    assert all(3 <= length <= 15 for length in lengths)
    assert {row["file"] for row in kept} == {path.name for path in tmp_path.glob("*.mp4")}


def test_a_long_name_of_a_video_is_shortened(tmp_path: Path, calls: Calls) -> None:
    """Names of clips are longer than those of their sources; file systems allow 255 bytes."""
    write_shots(tmp_path / "long" / f"{'猫' * 80}.mp4", [(4, "moves", 1)])
    assert main(["build", "clips", str(tmp_path / "long"), "-o", str(tmp_path / "out")]) == 0
    assert [row["fate"] for row in read_jsonl(tmp_path / "out/clips.jsonl")] == ["kept"]
    assert len(list((tmp_path / "out").glob("猫*.mp4"))) == 1


def test_a_clip_holds_the_frames_of_its_part(source: Path, tmp_path: Path, calls: Calls) -> None:
    """Frame by frame it is the source, up to what encoding loses, and it plays as fast."""
    assert main(["build", "clips", str(source / "b"), "-o", str(tmp_path)]) == 0
    whole = _pixels(source / "b" / "v.mp4")
    for row in read_jsonl(tmp_path / "clips.jsonl"):
        first, end = (round(float(str(row[name])) * FPS) for name in ("start_s", "end_s"))
        path = tmp_path / str(row["file"])
        clip = _pixels(path)
        assert clip.shape == whole[first:end].shape
        off = np.abs(clip - whole[first:end]).mean(axis=(1, 2, 3))
        assert off.max() < 5
        # Two frames away it is another picture.
        assert np.abs(clip[2:] - whole[first : end - 2]).mean() > 1.4 * off.mean()
        with av.open(str(path)) as container:
            assert float(container.streams.video[0].average_rate or 0) == pytest.approx(
                FPS, rel=0.01
            )


def test_a_run_that_was_ended_goes_on(
    source: Path, tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads nothing twice, and leaves the clips of a run in one go."""
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    assert main(["build", "clips", str(source), "-o", str(whole)]) == 0
    n_calls = len(calls)
    in_own_process = clips.in_own_process

    def call(function: Callable[..., Any], *arguments: Any) -> Any:
        if calls.count("cut_parts"):
            raise KeyboardInterrupt
        return in_own_process(function, *arguments)

    calls.clear()
    with monkeypatch.context() as patch:
        patch.setattr(clips, "in_own_process", call)
        with pytest.raises(KeyboardInterrupt):
            main(["build", "clips", str(source), "-o", str(halves)])
    assert not (halves / "clips.jsonl").exists()
    # What a process that was killed while it wrote a clip leaves.
    name = next(path.name for path in whole.glob("*.mp4") if not (halves / path.name).exists())
    (halves / f".{Path(name).stem}.partial.mp4").write_bytes(b"half of a clip")
    assert main(["build", "clips", str(source), "-o", str(halves)]) == 0
    # The broken file is looked at again, as it may have been mended.
    assert len(calls) == n_calls + 1
    assert _content(halves) == _content(whole)
    calls.clear()
    assert main(["build", "clips", str(source), "-o", str(halves)]) == 0
    assert calls == ["find_scenes"]
    assert _content(halves) == _content(whole)


def test_other_options_look_at_nothing_again(source: Path, tmp_path: Path, calls: Calls) -> None:
    """Fewer clips are the folder's clips then; those that are not wanted any more are gone."""
    command = ["build", "clips", str(source / "b"), "-o", str(tmp_path)]
    assert main(command) == 0
    assert len(list(tmp_path.glob("*.mp4"))) == 4
    (tmp_path / "mine.mp4").write_bytes(b"put here by hand")
    calls.clear()
    assert main([*command, "--n", "2"]) == 0
    assert calls == []
    rows = read_jsonl(tmp_path / "clips.jsonl")
    kept = [row for row in rows if row["kept"]]
    assert sorted(float(str(row["end_s"])) - float(str(row["start_s"])) < 6 for row in kept) == [
        False,
        True,
    ]
    assert {path.name for path in tmp_path.glob("*.mp4")} == {
        "mine.mp4",
        *(str(row["file"]) for row in kept),
    }
    assert [row["fate"] for row in rows].count("left out") == 2


def test_a_link_in_the_place_of_a_clip_is_replaced(
    source: Path, tmp_path: Path, calls: Calls
) -> None:
    command = ["build", "clips", str(source / "b"), "-o", str(tmp_path / "clips"), "--n", "1"]
    assert main(command) == 0
    [clip] = (tmp_path / "clips").glob("*.mp4")
    clip.unlink()
    elsewhere = tmp_path / "mine.mp4"
    elsewhere.write_bytes(b"mine")
    clip.symlink_to(elsewhere)
    assert main(command) == 0
    assert elsewhere.read_bytes() == b"mine"
    assert not clip.is_symlink()
    assert clip.stat().st_size > 1000


def test_a_folder_without_a_clip_is_told(
    source: Path, tmp_path: Path, calls: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1, and why the video could not be read."""
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / "x.mp4").write_bytes((source / "broken.mp4").read_bytes())
    output = tmp_path / "out"
    assert main(["build", "clips", str(tmp_path / "videos"), "-o", str(output)]) == 1
    out = capsys.readouterr().out
    assert "x.mp4: it is no video container" in out
    assert "No clip was made" in out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--min-s", "9", "--max-s", "4"], "got 9 and 4"),
        (["--still-below", "nan"], "--still-below: expected pixels"),
    ],
)
def test_options_that_cannot_be_used_are_refused(
    options: list[str], words: str, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is looked at."""
    assert main(["build", "clips", str(source), "-o", str(tmp_path / "out"), *options]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_clips_among_their_sources_are_refused(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They would be cut again by the next run."""
    assert main(["build", "clips", str(source), "-o", str(source)]) == 2
    assert "expected another folder" in capsys.readouterr().err


def test_without_the_extra_it_is_named(
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The message is the command that helps."""
    monkeypatch.setitem(sys.modules, "scenedetect.output", None)
    assert main(["build", "clips", str(source), "-o", str(tmp_path / "out")]) == 2
    assert "pip install 'lmms-eval-captions[scenes]'" in capsys.readouterr().err


def test_clips_keep_their_sound(tmp_path: Path) -> None:
    """The track of the part, in a clip that a process of its own writes."""
    write_shots(tmp_path / "silent.mp4", [(4, "moves", 1), (5, "moves", 2)])
    sine = ["-f", "lavfi", "-i", "sine=frequency=440:duration=9"]
    command = [str(get_ffmpeg_path()), "-v", "error", "-i", str(tmp_path / "silent.mp4"), *sine]
    (tmp_path / "long").mkdir()
    subprocess.run([*command, "-c:v", "copy", str(tmp_path / "long/v.mp4")], check=True)
    output = tmp_path / "clips"
    assert main(["build", "clips", str(tmp_path / "long"), "-o", str(output)]) == 0
    lengths = []
    for path in sorted(output.glob("*.mp4")):
        with av.open(str(path)) as container:
            [audio] = container.streams.audio
            lengths.append(float((audio.duration or 0) * (audio.time_base or 0)))
    assert lengths == pytest.approx([4, 5], abs=0.1)


def test_without_ffmpeg_it_is_named(
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The program that writes clips comes with the same extra."""
    monkeypatch.setattr("scenedetect.output.is_ffmpeg_available", lambda: False)
    assert main(["build", "clips", str(source), "-o", str(tmp_path / "out")]) == 2
    assert "needs the program ffmpeg" in capsys.readouterr().err


def test_a_crash_of_the_reading_process_is_an_error_of_its_video() -> None:
    """The next video gets a new process."""
    with pytest.raises(DataError, match="crashed"):
        clips.in_own_process(os._exit, 3)
    assert clips.in_own_process(os.path.basename, "a/b") == "b"

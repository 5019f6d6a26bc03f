"""Clips as they are met in the wild: each is read, or refused in words, and the run goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import av
import numpy as np
import pytest

import hostile_clips
from caption_requests import caption_all
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.captioner import Batch, Captioner
from lmms_eval_captions.model_wrappers.video.containers import UnreadableError
from lmms_eval_captions.model_wrappers.video.decoders import read_here
from lmms_eval_captions.model_wrappers.video.decoding import decode_all, seek
from lmms_eval_captions.model_wrappers.video.frames import read_frames
from lmms_eval_captions.model_wrappers.video.sampling import Fps, Uniform

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bool]]:
    """The clips, and which of them can be read."""
    path = tmp_path_factory.mktemp("hostile")
    return path, hostile_clips.write_all(path)


class ShapeCaptioner(Captioner):
    """Says what it was shown."""

    sampling = Uniform(4)

    def caption(self, batch: Batch) -> list[str]:
        """Shapes of the clips."""
        return [f"{job.path.name} {job.clip.frames.shape}" for job in batch.jobs]


def test_every_clip_is_read_or_refused_in_words(folder: tuple[Path, dict[str, bool]]) -> None:
    """A refusal names the file and the reasons."""
    path, readable = folder
    assert len(readable) >= 20
    for name, is_readable in readable.items():
        if is_readable:
            clip = read_frames(path / name, 4)
            assert clip.frames.dtype == np.uint8, name
            assert len(clip.frames) == len(clip.timestamps_s) >= 1, name
            assert np.all(np.diff(clip.timestamps_s) >= 0), name
        else:
            with pytest.raises(DataError, match=name.removesuffix(".mp4")):
                read_frames(path / name, 4)


def test_a_folder_of_them_is_captioned_to_the_end(folder: tuple[Path, dict[str, bool]]) -> None:
    """Each clip ends with a caption or a named reason, whatever stands beside it in its batch."""
    path, readable = folder
    model = ShapeCaptioner(batch_size=5, device="cpu")
    captions = caption_all(model, [path / name for name in readable])
    for (doc_id, (name, is_readable)), caption in zip(
        enumerate(readable.items()), captions, strict=True
    ):
        assert caption.startswith(name) == is_readable, name
        reason = model.outcome.failures.get(("task", doc_id))
        assert (reason is None) == is_readable, (name, reason)
        assert is_readable or str(reason).startswith(f"{name}: expected a"), reason


def test_a_turned_clip_is_shown_the_right_way_up(folder: tuple[Path, dict[str, bool]]) -> None:
    """A quarter turn clockwise: the white left upper corner comes to the right upper one."""
    frame = read_frames(folder[0] / "portrait.mp4", 1).frames[0]
    height, width = frame.shape[:2]
    assert (height, width) == (64, 48)
    assert frame[: height // 2 - 4, -width // 4 + 2 :].mean() > 220
    assert frame[height // 2 + 4 :].mean() < 60


def test_a_variable_rate_is_sampled_by_time(folder: tuple[Path, dict[str, bool]]) -> None:
    """At one frame a second the long pauses count, not the bursts."""
    clip = read_frames(folder[0] / "variable_rate.mp4", Fps(1.0))
    assert clip.timestamps_s == pytest.approx([0, 5 / 12, 2.5, 5, 63 / 12, 10], abs=0.01)
    levels = clip.frames[:, 40:, 40:].mean(axis=(1, 2, 3))
    wanted = [hostile_clips.level(index) for index in (0, 5, 6, 7, 10, 11)]
    assert levels == pytest.approx(wanted, abs=5)


def test_a_cut_file_gives_its_start(folder: tuple[Path, dict[str, bool]]) -> None:
    """The readable start of a file that was cut off is sampled from its first to its last frame."""
    clip = read_frames(folder[0] / "cut.mp4", 3)
    assert 3 <= clip.n_total < 24
    assert clip.frames[0][40:, 40:].mean() == pytest.approx(hostile_clips.level(0), abs=5)


@pytest.mark.parametrize("codec", ["libx264", "libx265", "libvpx-vp9", "libsvtav1"])
@pytest.mark.parametrize("n_frames", [1, 5, 30, 100])
def test_seeking_gives_what_reading_from_the_start_gives(
    tmp_path: Path, codec: str, n_frames: int
) -> None:
    """Jumping over key frames and leaving out frames changes no pixel of those that are kept."""
    if codec not in av.codecs_available:
        pytest.skip(f"this build of PyAV has no encoder {codec}")
    path = hostile_clips.write_clip(
        tmp_path / "long.mp4", 100, size=(96, 64), codec=codec, key_every=17, b_frames=2
    )
    sampling = Uniform(n_frames)
    sought = seek(path, sampling, max_pixels=None, n_threads=1)
    read = decode_all(path, sampling, max_pixels=None)
    assert np.array_equal(sought.frames, read.frames)
    assert sought.timestamps_s == pytest.approx(read.timestamps_s)
    assert (sought.n_total, sought.fps) == (read.n_total, read.fps)


def test_seeking_gives_what_reading_gives_on_the_real_clip(shared_data: Path) -> None:
    """The same holds for a clip of a real encoder."""
    path = shared_data / "media" / "video1.mp4"
    sought = seek(path, Uniform(9), max_pixels=None, n_threads=1)
    read = decode_all(path, Uniform(9), max_pixels=None)
    assert np.array_equal(sought.frames, read.frames)


@pytest.mark.parametrize(
    "title", [b"", b"ID3\x03\0\0\0\0\0\x0a" + bytes(10)], ids=["plain", "titled"]
)
def test_a_list_that_looks_like_a_broadcast_opens_no_other_file(
    tmp_path: Path, title: bytes
) -> None:
    """PyAV sees MPEG-TS in it, and the FFmpeg within decord would open what the list names."""
    pytest.importorskip("decord")
    other = hostile_clips.write_clip(tmp_path / "other.mp4")
    broadcast = hostile_clips.write_clip(
        tmp_path / "own.ts", codec="mpeg2video", container_format="mpegts"
    )
    text = f"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:2,\n{other}\n#EXT-X-ENDLIST\n"
    path = tmp_path / "list.mp4"
    path.write_bytes(title + text.encode() + broadcast.read_bytes())
    with pytest.raises(UnreadableError, match="list of other files"):
        read_here(path, Uniform(2), video_reader="decord", max_pixels=None, n_threads=1)

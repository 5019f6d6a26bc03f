"""The baseline captioner behind lmms-eval's simple and chat interfaces."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest
from lmms_eval.api.instance import Instance
from loguru import logger

from lmms_eval_captions.lmms_eval_tasks.sample import render
from lmms_eval_captions.lmms_eval_tasks.sample.caption_baseline import (
    CaptionBaseline,
    CaptionBaselineChat,
)
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES
from lmms_eval_captions.model_wrappers import captioner
from lmms_eval_captions.model_wrappers.video.frames import read_frames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CAMERA_PROMPT = "Describe any camera zooms, pans, or angle changes."


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The first two clips of the sample and a file that is none."""
    folder = tmp_path_factory.mktemp("videos")
    paths = [folder / f"{scene.video_id}.mp4" for scene in SCENES[:2]]
    for scene, path in zip(SCENES[:2], paths, strict=True):
        render.write_video(scene, path)
    broken = folder / "broken.mp4"
    broken.write_bytes(b"no video")
    return [*paths, broken]


@pytest.fixture
def warnings() -> Iterator[list[str]]:
    """Warnings logged during a test."""
    lines: list[str] = []
    sink = logger.add(lambda line: lines.append(str(line)), level="WARNING", format="{message}")
    yield lines
    logger.remove(sink)


def _requests(videos: list[Path], tasks: tuple[str, ...], *, chat: bool) -> list[Instance]:
    def visual(doc: dict[str, str]) -> list[str]:
        return [doc["video"]]

    def messages(doc: dict[str, str], prompt: str) -> list[dict[str, object]]:
        content = [{"type": "video", "url": doc["video"]}, {"type": "text", "text": prompt}]
        return [{"role": "system", "content": "Be true."}, {"role": "user", "content": content}]

    instances = []
    for task in tasks:
        prompt = CAMERA_PROMPT if task == "camera" else "Describe the video."
        for doc_id in range(len(videos)):
            arguments = (
                (prompt, partial(messages, prompt=prompt), {}, doc_id, task, "test")
                if chat
                else (prompt, {}, visual, doc_id, task, "test")
            )
            metadata = {"task": task, "doc_id": doc_id, "repeats": 1}
            instances.append(Instance("generate_until", arguments, 0, metadata))
    return instances


def _captions(model: CaptionBaseline, requests: list[Instance]) -> list[str]:
    return [result.text for result in model.generate_until(requests)]


def _with_docs(model: CaptionBaseline, videos: list[Path], tasks: tuple[str, ...]) -> None:
    docs = [{"video": str(path)} for path in videos]
    model.task_dict = {task: {"test": docs} for task in tasks}


@pytest.mark.parametrize("model_class", [CaptionBaseline, CaptionBaselineChat])
def test_captions_follow_the_requests(
    model_class: type[CaptionBaseline], videos: list[Path]
) -> None:
    """One caption per request, in order, about the clip of the request."""
    model = model_class(n_frames=8)
    _with_docs(model, videos[:2], ("detailed", "camera"))
    requests = _requests(videos[:2], ("detailed", "camera"), chat=not model.is_simple)
    detailed_1, detailed_2, camera_1, camera_2 = _captions(model, requests)
    assert detailed_1.startswith("A red circle on the left moves to the right.")
    assert detailed_2.startswith("A blue square in the upper right moves down.")
    assert camera_1.startswith("The camera does not appear to move.")
    assert "blue square" in camera_2


def test_a_clip_is_read_once_for_all_tasks(
    videos: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tasks over the same clips decode each clip once."""
    read: list[Path] = []
    original: Callable[..., object] = read_frames

    def counting(path: Path, *args: object, **named: object) -> object:
        read.append(path)
        return original(path, *args, **named)

    monkeypatch.setattr(captioner, "read_frames", counting)
    model = CaptionBaseline(n_frames=4)
    _with_docs(model, videos[:2], ("detailed", "camera"))
    model.generate_until(_requests(videos[:2], ("detailed", "camera"), chat=False))
    assert sorted(read) == sorted(videos[:2])


def test_a_broken_clip_gets_an_empty_caption_and_one_warning(
    videos: list[Path], warnings: list[str]
) -> None:
    """The run goes on past a clip that cannot be read, names it once, and counts its captions."""
    model = CaptionBaseline(n_frames=4)
    order = [videos[2], videos[0]]
    _with_docs(model, order, ("detailed", "camera"))
    captions = _captions(model, _requests(order, ("detailed", "camera"), chat=False))
    assert [bool(caption) for caption in captions] == [False, True, False, True]
    assert [line.split(":")[0] for line in warnings] == [
        "no caption for broken.mp4",
        "2 document(s) have no caption, their questions are unscored",
    ]


def test_importing_reads_nothing_and_loads_no_decoder() -> None:
    """The vision modules import without decord, PyAV, OpenCV or torch."""
    code = (
        "import sys\n"
        "from lmms_eval_captions.model_wrappers.video import frames\n"
        "from lmms_eval_captions.lmms_eval_tasks.sample import vision\n"
        "from lmms_eval_captions.lmms_eval_tasks import sample\n"
        "heavy = {'decord', 'av', 'cv2', 'torch', 'lmms_eval'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

"""The baseline captioner behind lmms-eval's simple and chat interfaces."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest
from lmms_eval.api.instance import Instance

from lmms_eval_captions.lmms_eval_tasks.sample import render
from lmms_eval_captions.lmms_eval_tasks.sample.caption_baseline import (
    CaptionBaseline,
    CaptionBaselineChat,
)
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES

if TYPE_CHECKING:
    from pathlib import Path

CAMERA_PROMPT = "Describe any camera zooms, pans, or angle changes."


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The first two clips of the sample."""
    folder = tmp_path_factory.mktemp("videos")
    paths = [folder / f"{scene.video_id}.mp4" for scene in SCENES[:2]]
    for scene, path in zip(SCENES[:2], paths, strict=True):
        render.write_video(scene, path)
    return paths


def _requests(videos: list[Path], *, chat: bool) -> list[Instance]:
    def visual(doc: dict[str, str]) -> list[str]:
        return [doc["video"]]

    def messages(doc: dict[str, str], prompt: str) -> list[dict[str, object]]:
        content = [{"type": "video", "url": doc["video"]}, {"type": "text", "text": prompt}]
        return [{"role": "system", "content": "Be true."}, {"role": "user", "content": content}]

    instances = []
    for task, prompt in (("detailed", "Describe the video."), ("camera", CAMERA_PROMPT)):
        for doc_id in range(len(videos)):
            arguments = (
                (prompt, partial(messages, prompt=prompt), {}, doc_id, task, "test")
                if chat
                else (prompt, {}, visual, doc_id, task, "test")
            )
            metadata = {"task": task, "doc_id": doc_id, "repeats": 1}
            instances.append(Instance("generate_until", arguments, 0, metadata))
    return instances


@pytest.mark.parametrize("model_class", [CaptionBaseline, CaptionBaselineChat])
def test_captions_follow_the_requests(
    model_class: type[CaptionBaseline], videos: list[Path]
) -> None:
    """One caption per request, in order, about the clip of the request."""
    model = model_class(n_frames=8)
    docs = [{"video": str(path)} for path in videos]
    model.task_dict = {task: {"test": docs} for task in ("detailed", "camera")}
    requests = _requests(videos, chat=not model.is_simple)
    detailed_1, detailed_2, camera_1, camera_2 = (
        result.text for result in model.generate_until(requests)
    )
    assert detailed_1.startswith("A red circle on the left moves to the right.")
    assert detailed_2.startswith("A blue square in the upper right moves down.")
    assert camera_1.startswith("The camera does not appear to move.")
    assert "blue square" in camera_2


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

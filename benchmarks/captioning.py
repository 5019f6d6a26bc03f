"""Videos a second of ``caption_hf`` against lmms-eval's own wrapper, in one run.

Same checkpoint, clips, frames, prompt, precision and number of new tokens; both are called as
lmms-eval calls them, in turns, and the median counts. Without arguments it writes what it needs: a
small Qwen2.5-VL with random weights and 720p clips.

    python benchmarks/captioning.py
    python benchmarks/captioning.py --pretrained Qwen/Qwen2.5-VL-3B-Instruct --clip my.mp4
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import av
import numpy as np
import torch
from lmms_eval.api.instance import GenerationResult, Instance
from loguru import logger

from lmms_eval_captions.model_wrappers.caption_hf import CaptionHfChat
from zoo.qwen_vl import write_qwen2_5_vl

PROMPTS = (
    "Describe the video in detail.",
    "Describe the camera work of the video.",
    "Describe the background of the video.",
    "Describe the main object of the video.",
    "Describe the video in one sentence.",
)


class Model(Protocol):
    """What lmms-eval calls."""

    task_dict: dict[str, dict[str, list[dict[str, str]]]]

    def generate_until(self, requests: list[Instance]) -> list[GenerationResult]:
        """Captions."""


def write_clip(path: Path, *, seed: int, seconds: int, height: int) -> None:
    """A clip with moving detail, H.264 where the encoder is there."""
    width = height * 16 // 9 // 2 * 2
    codec = "libx264" if "libx264" in av.codecs_available else "mpeg4"
    random = np.random.default_rng(seed)
    big = random.integers(0, 255, (height // 8 + 64, width // 8 + 64, 3), dtype=np.uint8)
    texture = np.kron(big, np.ones((8, 8, 1), dtype=np.uint8))
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=25)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for index in range(25 * seconds):
            at = 2 * index
            picture = np.ascontiguousarray(texture[at : at + height, at : at + width])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())


def make_requests(n_clips: int, prompts: tuple[str, ...], new_tokens: int) -> list[Instance]:
    """Chat requests in lmms-eval's order: task by task."""

    def messages(prompt: str) -> Callable[[dict[str, str]], list[dict[str, object]]]:
        def doc_to_messages(doc: dict[str, str]) -> list[dict[str, object]]:
            shown = {"type": "video", "url": doc["video"]}
            return [{"role": "user", "content": [shown, {"type": "text", "text": prompt}]}]

        return doc_to_messages

    settings = {"max_new_tokens": new_tokens, "temperature": 0, "until": []}
    return [
        Instance(
            "generate_until",
            (prompt, messages(prompt), dict(settings), doc_id, f"task{number}", "test"),
            0,
            {"task": f"task{number}", "doc_id": doc_id, "repeats": 1},
        )
        for number, prompt in enumerate(prompts)
        for doc_id in range(n_clips)
    ]


def timed(model: Model, clips: list[Path], n_prompts: int, new_tokens: int) -> tuple[float, int]:
    """Seconds for all captions, and the tokens written."""
    prompts = PROMPTS[:n_prompts]
    docs = [{"video": str(path)} for path in clips]
    model.task_dict = {f"task{number}": {"test": docs} for number in range(n_prompts)}
    requests = make_requests(len(clips), prompts, new_tokens)
    started_s = time.perf_counter()
    captions = model.generate_until(requests)
    elapsed_s = time.perf_counter() - started_s
    return elapsed_s, sum(caption.token_counts.output_tokens for caption in captions)


def make_models(arguments: argparse.Namespace, pretrained: str) -> dict[str, Model]:
    """Every side of the comparison."""
    from lmms_eval.models.chat.qwen2_5_vl import Qwen2_5_VL

    device = "cuda" if torch.cuda.is_available() else "cpu"
    pixels = arguments.frame_pixels
    theirs = {
        "pretrained": pretrained,
        "device": device,
        "device_map": device,
        "max_num_frames": arguments.frames,
        "min_pixels": 28 * 28,
        "max_pixels": pixels,
    }
    models: dict[str, Model] = {"lmms-eval, batch 1": Qwen2_5_VL(**theirs, batch_size=1)}
    if arguments.batch_size > 1:
        name = f"lmms-eval, batch {arguments.batch_size}"
        models[name] = Qwen2_5_VL(**theirs, batch_size=arguments.batch_size)
    models[f"caption_hf, batch {arguments.batch_size}"] = CaptionHfChat(
        pretrained=pretrained,
        max_num_frames=arguments.frames,
        frame_pixels=pixels,
        dtype="bfloat16",  # what lmms-eval's wrapper is fixed to
        device=device,
        batch_size=arguments.batch_size,
        decode_threads=arguments.decode_threads,
    )
    return models


def compare(models: dict[str, Model], clips: list[Path], n: argparse.Namespace) -> dict[str, float]:
    """Run all sides in turns; prints a table and returns videos a second."""
    seconds: dict[str, list[float]] = {name: [] for name in models}
    tokens: dict[str, int] = {}
    for model in models.values():
        timed(model, clips[:1], 1, 4)  # warm up
    for _ in range(n.rounds):
        for name, model in models.items():
            elapsed_s, tokens[name] = timed(model, clips, n.prompts, n.new_tokens)
            seconds[name].append(elapsed_s)
    rates = {name: len(clips) / statistics.median(taken) for name, taken in seconds.items()}
    base = next(iter(rates.values()))
    for name, rate in rates.items():
        outcome = getattr(models[name], "outcome", None)
        print(
            f"{name:24} {rate:8.3f} videos/s  x{rate / base:5.2f}  "
            f"{tokens[name]} tokens written  {outcome.shares() if outcome else ''}",
            flush=True,
        )
    return rates


def main() -> None:
    """Compare, and print what was compared."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pretrained", help="a Qwen2.5-VL checkpoint; by default a tiny one")
    parser.add_argument("--clip", type=Path, help="by default clips are generated")
    parser.add_argument("--clips", type=int, default=8, help="clips, or copies of the clip")
    parser.add_argument("--height", type=int, default=720, help="of generated clips")
    parser.add_argument("--seconds", type=int, default=8, help="of generated clips")
    parser.add_argument("--prompts", type=int, default=1, help="prompts per clip, at most 5")
    parser.add_argument("--frames", type=int, default=8)
    parser.add_argument("--frame-pixels", type=int, default=112 * 112)
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--decode-threads", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write the rates here")
    arguments = parser.parse_args()
    logger.remove()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        clips = [folder / f"{index}.mp4" for index in range(arguments.clips)]
        for seed, path in enumerate(clips):
            if arguments.clip:
                shutil.copyfile(arguments.clip, path)
            else:
                write_clip(path, seed=seed, seconds=arguments.seconds, height=arguments.height)
        pretrained = arguments.pretrained or str(write_qwen2_5_vl(folder / "tiny"))
        where = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
        print(
            f"{arguments.clips} clips, {arguments.prompts} prompt(s) each, {arguments.frames} "
            f"frames, {arguments.new_tokens} new tokens, bfloat16, {where}, "
            f"{os.cpu_count()} cores, median of {arguments.rounds}"
        )
        rates = compare(make_models(arguments, pretrained), clips, arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(rates), encoding="utf-8")


if __name__ == "__main__":
    main()

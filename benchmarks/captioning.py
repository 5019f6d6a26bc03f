"""Captions a second of ``caption_hf`` and of lmms-eval's own wrapper, side by side.

Same checkpoint, clips, frames, prompts, precision and number of new tokens; both are called as
lmms-eval calls them, in turns, and the median of the rounds counts, of seconds and of CPU seconds:
where other work runs on the machine, the latter tell more. Captions are compared in a last round in
which both see the same pixels: lmms-eval's wrapper reads with decord and resizes before the
processor does, up to 4 levels off. Without arguments it writes what it needs, a small Qwen2.5-VL
with random weights and 720p clips.

    python benchmarks/captioning.py
    python benchmarks/captioning.py --pretrained Qwen/Qwen2.5-VL-3B-Instruct --clip my.mp4
    python benchmarks/captioning.py --prompts 1 5 --batch-sizes 1 4 8 --processes 1 2
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Final

import av
import numpy as np
import torch
from loguru import logger

import _support  # noqa: F401 - an import path
from caption_sides import PROMPTS, SIDES, Setting, Sides
from zoo import ARCHITECTURES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from caption_sides import Round

_HEAD: Final = (
    f"{'clips':9} {'prompts':>7} {'batch':>5} {'processes':>9}   {'captions/s':^20} {'times':>6} "
    f"{'CPU s a caption':^20} {'times':>6}  equal captions"
)


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


def make_clips(arguments: argparse.Namespace, folder: Path) -> dict[str, list[Path]]:
    """Rendered clips, and copies of the real one where it is given, by kind."""
    kinds: dict[str, list[Path]] = {}
    if arguments.clip:
        kinds["real"] = [folder / f"real{n}.mp4" for n in range(arguments.clips)]
        for path in kinds["real"]:
            shutil.copyfile(arguments.clip, path)
    if not arguments.clip or arguments.rendered:
        kinds["rendered"] = [folder / f"rendered{n}.mp4" for n in range(arguments.clips)]
        for seed, path in enumerate(kinds["rendered"]):
            write_clip(path, seed=seed, seconds=arguments.seconds, height=arguments.height)
    return kinds


def settings_of(arguments: argparse.Namespace) -> Iterator[Setting]:
    """Every combination that is asked for."""
    for n_processes, batch_size, n_prompts in product(
        arguments.processes, arguments.batch_sizes, arguments.prompts
    ):
        yield Setting(n_processes=n_processes, batch_size=batch_size, n_prompts=n_prompts)


def shown(kind: str, setting: Setting, rounds: dict[str, list[Round]]) -> str:
    """A row of the table."""
    timed = {side: rounds[side][:-1] for side in SIDES}
    n_captions = len(timed[SIDES[0]][0].captions)
    rate = {side: n_captions / statistics.median(r.wall_s for r in timed[side]) for side in SIDES}
    cpu_s = {side: statistics.median(r.cpu_s for r in timed[side]) / n_captions for side in SIDES}
    theirs, ours = (rounds[side][-1].captions for side in SIDES)
    n_equal = sum(one == other for one, other in zip(theirs, ours, strict=True))
    first, second = SIDES
    return (
        f"{kind:9} {setting.n_prompts:7} {setting.batch_size:5} {setting.n_processes:9}   "
        f"{rate[first]:9.3f} {rate[second]:9.3f}  {rate[second] / rate[first]:6.2f} "
        f"{cpu_s[first]:9.3f} {cpu_s[second]:9.3f}  {cpu_s[first] / cpu_s[second]:6.2f}  "
        f"{n_equal} of {n_captions}"
    )


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pretrained", help="a Qwen2.5-VL checkpoint; by default a tiny one")
    parser.add_argument("--clip", type=Path, help="a real clip; by default clips are rendered")
    parser.add_argument("--rendered", action="store_true", help="besides, where a clip is given")
    parser.add_argument("--clips", type=int, default=4, help="so many, or copies of the clip")
    parser.add_argument("--height", type=int, default=720, help="of rendered clips")
    parser.add_argument("--seconds", type=int, default=8, help="of rendered clips")
    parser.add_argument("--prompts", type=int, nargs="+", default=[1, 5], help="of each clip")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[1])
    parser.add_argument("--processes", type=int, nargs="+", default=[1])
    parser.add_argument("--frames", type=int, default=32)
    parser.add_argument("--frame-pixels", type=int, default=224 * 224)
    parser.add_argument("--new-tokens", type=int, default=32)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    return parser


def main() -> None:
    """Compare, and print what was compared."""
    arguments = make_parser().parse_args()
    if max(arguments.prompts) > len(PROMPTS):
        raise SystemExit(f"--prompts: expected at most {len(PROMPTS)}")
    logger.remove()
    figures = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kinds = make_clips(arguments, folder)
        pretrained = arguments.pretrained or str(
            ARCHITECTURES["qwen2_5_vl"].write(folder / "tiny", max_position_embeddings=32_768)
        )
        where = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
        print(
            f"{arguments.clips} clips, {arguments.frames} frames of at most "
            f"{arguments.frame_pixels:,} pixels, {arguments.new_tokens} new tokens, "
            f"{arguments.dtype}, {where}, {os.cpu_count()} cores, median of {arguments.rounds}; "
            f"lmms-eval first, then caption_hf"
        )
        if not arguments.pretrained:
            print(
                "The checkpoint's forward pass costs next to nothing: 'times' is the ratio of "
                "decoding and processing. With a 7B model on a GPU and one prompt it tends to 1."
            )
        print(_HEAD)
        for n_processes in arguments.processes:
            with Sides(pretrained, n_processes, arguments) as sides:
                for kind, setting in product(kinds, settings_of(arguments)):
                    if setting.n_processes != n_processes:
                        continue
                    rounds = sides.compare(kinds[kind], setting, arguments.rounds)
                    print(shown(kind, setting, rounds), flush=True)
                    figures.append({"kind": kind, "rounds": rounds})
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, default=vars), encoding="utf-8")


if __name__ == "__main__":
    main()

"""AuroraCap by kept ratio: visual tokens and time per clip, random weights, no lmms-eval needed.

    python benchmarks/auroracap.py
    python benchmarks/auroracap.py --shape 7b --device cuda --batch-size 8
    python benchmarks/auroracap.py --pretrained wchai/AuroraCap-7B-VID-xtuner --device cuda

It needs torch, transformers 5 and this package on the path (``PYTHONPATH=.typing`` will do).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import CLIPVisionConfig, CLIPVisionModel, LlamaConfig, LlamaForCausalLM

from lmms_eval_captions.model_wrappers.auroracap.checkpoint import Projector, load_auroracap
from lmms_eval_captions.model_wrappers.auroracap.model import AuroraCap
from lmms_eval_captions.model_wrappers.caption_jobs import content_of

PROMPT = "Imagine the video from these frames and describe it in detail."

SHAPES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # The released tower's patches, in a width and depth that a CPU can take.
    "small": (
        {
            "hidden_size": 384,
            "intermediate_size": 1536,
            "num_hidden_layers": 12,
            "num_attention_heads": 6,
        },
        {
            "hidden_size": 256,
            "intermediate_size": 688,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "vocab_size": 2000,
        },
    ),
    # CLIP ViT-H/14 at 378 pixels and Vicuna-7B v1.5 (16k positions).
    "7b": (
        {
            "hidden_size": 1280,
            "intermediate_size": 5120,
            "num_hidden_layers": 32,
            "num_attention_heads": 16,
        },
        {
            "hidden_size": 4096,
            "intermediate_size": 11008,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "vocab_size": 32000,
        },
    ),
}


@dataclass(frozen=True)
class Row:
    """Cost of one kept ratio; times are the best of several."""

    setting: str
    tokens_a_frame: int
    visual_tokens_a_clip: int
    tower_ms_a_clip: float
    first_token_ms_a_clip: float
    ms_a_new_token: float
    s_a_clip: float
    peak_gib: float


class Bytes:
    """A stand-in for a tokenizer: one token a byte."""

    eos_token: str = "</s>"  # noqa: S105
    pad_token: str | None = "</s>"  # noqa: S105
    eos_token_id: int = 2
    pad_token_id: int = 2

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Bytes, after a start."""
        return [1] * add_special_tokens + [3 + byte for byte in text.encode()]

    def decode(self, token_ids: list[int], *, skip_special_tokens: bool = False) -> str:
        """Never needed here."""
        return f"{len(token_ids)} tokens" if skip_special_tokens else str(token_ids)


def build(shape: str, device: torch.device, dtype: torch.dtype) -> AuroraCap:
    """Random networks of a shape, made on the device that they stay on."""
    tower_settings, llm_settings = SHAPES[shape]
    attention: dict[str, Any] = {"attn_implementation": "sdpa"}
    tower_config = CLIPVisionConfig(
        image_size=378, patch_size=14, hidden_act="gelu", **attention, **tower_settings
    )
    llm_config = LlamaConfig(
        max_position_embeddings=16384, pad_token_id=0, **attention, **llm_settings
    )
    torch.manual_seed(0)
    torch.set_default_dtype(dtype)
    with device:
        tower = CLIPVisionModel(tower_config)
        llm = LlamaForCausalLM(llm_config)
        projector = Projector(tower_config.hidden_size, llm_config.hidden_size)
    torch.set_default_dtype(torch.float32)
    return AuroraCap(llm, tower, projector=projector, tokenizer=Bytes())


class Workload:
    """One model and the clips that it is shown."""

    def __init__(self, model: AuroraCap, arguments: argparse.Namespace) -> None:
        self.model = model
        self.n_new = arguments.new_tokens
        self.repeats = arguments.repeats
        size = model.tower.config.image_size
        shape = (arguments.batch_size, arguments.frames, 3, size, size)
        self.clips = torch.randn(shape, device=model.device, dtype=model.tower.dtype)

    def row(self, ratio: float) -> Row:
        """Measure one setting."""
        n_clips = len(self.clips)
        if self.model.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()

        def see() -> list[list[torch.Tensor]]:
            return [self.model.see(c, kept_ratio=ratio) for c in self.clips]

        def write(n_new: int) -> torch.Tensor:
            settings = {"max_new_tokens": n_new, "min_new_tokens": n_new, "do_sample": False}
            return self.model.generate(inputs, **settings)

        tower_s = self._best(see)
        seen = see()
        inputs = [self.model.embed(content_of(1, PROMPT), [frames]) for frames in seen]
        first_s = self._best(lambda: write(1))
        all_s = self._best(lambda: write(self.n_new))
        cuda = self.model.device.type == "cuda"
        return Row(
            f"{ratio:g}",
            len(seen[0][-1]),
            sum(len(tokens) for tokens in seen[0]),
            1000 * tower_s / n_clips,
            1000 * first_s / n_clips,
            1000 * (all_s - first_s) / max(1, self.n_new - 1),
            (tower_s + all_s) / n_clips,
            torch.cuda.max_memory_allocated() / 2**30 if cuda else float("nan"),
        )

    def plain_tower_s(self) -> float:
        """Seconds of the tower per clip, without our code around its layers."""

        def look() -> None:
            with torch.inference_mode():
                for clip in self.clips:
                    self.model.projector(self.model.tower(clip).last_hidden_state[:, 1:])

        return self._best(look) / len(self.clips)

    def _best(self, act: Callable[[], object]) -> float:
        times_s = []
        for _ in range(self.repeats + 1):
            self._wait()
            started_s = time.perf_counter()
            act()
            self._wait()
            times_s.append(time.perf_counter() - started_s)
        return min(times_s[1:])  # The first warms up; other work on the machine only adds.

    def _wait(self) -> None:
        if self.model.device.type == "cuda":
            torch.cuda.synchronize()


def show(rows: list[Row]) -> None:
    """Print a table, and how each row compares with the first."""
    print(
        "| kept ratio | tokens per frame | visual tokens per clip | tower ms | first token ms "
        "| ms per new token | s per clip | speed | peak GiB |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row.setting} | {row.tokens_a_frame} | {row.visual_tokens_a_clip} "
            f"| {row.tower_ms_a_clip:.1f} | {row.first_token_ms_a_clip:.1f} "
            f"| {row.ms_a_new_token:.2f} | {row.s_a_clip:.3f} "
            f"| {rows[0].s_a_clip / row.s_a_clip:.2f} x | {row.peak_gib:.1f} |",
            flush=True,
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="AuroraCap by kept ratio of visual tokens.")
    parser.add_argument("--shape", choices=SHAPES, default="small")
    parser.add_argument("--pretrained", help="a checkpoint in AuroraCap's layout, for --shape")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="", help="bfloat16 on an accelerator, float32 on a CPU")
    parser.add_argument("--frames", type=int, default=8, help="frames per clip")
    parser.add_argument("--batch-size", type=int, default=1)
    parser.add_argument(
        "--new-tokens", type=int, default=0, help="a caption; 16 on a CPU, else 256"
    )
    parser.add_argument("--ratios", type=float, nargs="+", default=[1.0, 0.5, 0.1])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the rows there too")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    on_cpu = device.type == "cpu"
    arguments.new_tokens = arguments.new_tokens or (16 if on_cpu else 256)
    dtype = getattr(torch, arguments.dtype or ("float32" if on_cpu else "bfloat16"))
    if arguments.pretrained:
        model = load_auroracap(arguments.pretrained, device=device, dtype=dtype)
    else:
        model = build(arguments.shape, device, dtype)
    name = "CPU" if on_cpu else torch.cuda.get_device_name(device)
    print(
        f"{arguments.pretrained or arguments.shape}, {name}, {dtype}, torch {torch.__version__}: "
        f"{arguments.frames} frames of {model.tower.config.image_size} pixels, "
        f"batch of {arguments.batch_size}, {arguments.new_tokens} new tokens, "
        f"best of {arguments.repeats}",
        flush=True,
    )
    workload = Workload(model, arguments)
    print(
        f"tower without token merging around it: {1000 * workload.plain_tower_s():.1f} ms per clip"
    )
    rows = [workload.row(ratio) for ratio in arguments.ratios]
    show(rows)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()

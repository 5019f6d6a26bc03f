"""A program that captions the same requests with ``caption_hf``, or twice with ``caption_vllm``.

It is run as ``vllm_captions.py hf|vllm MODEL CLIPS PICTURES OUTPUT``, with vLLM by the Python of
the environment that holds it: what that environment lacks, lmms-eval among it, is found in the
folder that ``BEHIND`` names, the packages of the project's own environment.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if "BEHIND" in os.environ:
    # Behind all others: vLLM pins versions of its own of what both environments have.
    sys.path.append(os.environ["BEHIND"])

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lmms_eval_captions.model_wrappers.captioner import Captioner

    ResultsOf = Callable[[Captioner], list[tuple[str, str, int, int]]]

PROMPTS: Final = {
    "short": "Describe the video.",
    "camera": "How does the camera move?",
    "background": "What is in the background?",
}
PICTURE_TASK: Final = "picture"
BLOCK: Final = 32
"""Tokens that vLLM keeps together, of which a clip has several."""
COMMON: Final[dict[str, Any]] = {"max_num_frames": 8, "dtype": "float32", "device": "cpu"}


def main() -> None:
    """Write a JSON object of results, and of the engine's counts, by captioner."""
    kind = sys.argv[1]
    model, clips, pictures, output = map(Path, sys.argv[2:])
    common = {**COMMON, "pretrained": str(model), "frame_pixels": int(os.environ["FRAME_PIXELS"])}
    runs = {"hf": _by_transformers, "vllm": _by_vllm}
    written = runs[kind](common, lambda captioner: _results(captioner, clips, pictures))
    output.write_text(json.dumps(written), encoding="utf-8")


def _by_transformers(common: Mapping[str, Any], results_of: ResultsOf) -> dict[str, object]:
    from lmms_eval_captions.model_wrappers.caption_hf import CaptionHf

    return {"hf": results_of(CaptionHf(**common))}


def _by_vllm(common: Mapping[str, Any], results_of: ResultsOf) -> dict[str, object]:
    from lmms_eval_captions.model_wrappers.caption_vllm import CaptionVllm

    engine_args = {"enforce_eager": True, "max_num_seqs": 8, "block_size": BLOCK}
    written: dict[str, object] = {}
    for name in ("vllm", "again"):
        captioner = CaptionVllm(**common, engine_args=engine_args)
        asked = _count_requests(captioner)
        written[name] = results_of(captioner)
        written[f"{name}_engine"] = {"requests": len(asked), **_counters()}
        captioner.clean()
    return written


def _results(captioner: Captioner, clips: Path, pictures: Path) -> list[tuple[str, str, int, int]]:
    """Task, caption, tokens read and written of each request."""
    from lmms_eval.api.instance import Instance
    from PIL import Image

    from caption_requests import GREEDY, make_requests

    paths = sorted(map(str, clips.iterdir()))
    shown = [Image.open(path).convert("RGB") for path in sorted(pictures.iterdir())]
    captioner.task_dict = {task: {"test": [{"video": p} for p in paths]} for task in PROMPTS}
    captioner.task_dict[PICTURE_TASK] = {
        "test": [{"picture": place} for place in range(len(shown))]
    }
    requests = make_requests(len(paths), PROMPTS, GREEDY, is_simple=True)
    requests += [
        Instance(
            "generate_until",
            (
                "What is in the picture?",
                dict(GREEDY),
                lambda doc: [shown[doc["picture"]]],
                doc_id,
                PICTURE_TASK,
                "test",
            ),
            0,
            {"task": PICTURE_TASK, "doc_id": doc_id, "repeats": 1},
        )
        for doc_id in range(len(shown))
    ]
    results = captioner.generate_until(requests)
    return [
        (
            request.task_name,
            result.text,
            result.token_counts.input_tokens,
            result.token_counts.output_tokens,
        )
        for request, result in zip(requests, results, strict=True)
    ]


def _count_requests(captioner: Any) -> list[object]:
    """A list that has an entry for each prompt that the engine is handed from now on."""
    asked: list[object] = []
    submit = captioner._engine.submit

    def counted(prompt: Any, sampling: Any) -> Any:
        asked.append(prompt)
        return submit(prompt, sampling)

    captioner._engine.submit = counted
    return asked


def _counters() -> dict[str, float]:
    reader = importlib.import_module("vllm.v1.metrics.reader")
    names = {
        "vllm:prefix_cache_queries": "tokens",
        "vllm:prefix_cache_hits": "tokens_kept",
        "vllm:request_success": "captions",
    }
    counted = dict.fromkeys(names.values(), 0.0)
    for metric in reader.get_metrics_snapshot():
        if metric.name in names:
            counted[names[metric.name]] += metric.value
    return counted


if __name__ == "__main__":
    main()

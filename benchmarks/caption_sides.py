"""The two sides of ``captioning.py``, each in processes of its own."""

from __future__ import annotations

import multiprocessing
import os
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    from lmms_eval.api.instance import GenerationResult, Instance
    from typing_extensions import Self

SIDES: Final = ("lmms-eval", "caption_hf")
PROMPTS: Final = (
    "Describe the video in detail.",
    "Describe the camera work of the video.",
    "Describe the background of the video.",
    "Describe the main object of the video.",
    "Describe the video in one sentence.",
)


@dataclass(frozen=True)
class Setting:
    """Setting of a row."""

    n_processes: int
    batch_size: int
    n_prompts: int


@dataclass(frozen=True)
class Round:
    """Cost of one side for all captions."""

    wall_s: float
    cpu_s: float
    """CPU seconds of all its processes, decoders included."""
    captions: list[str]


@dataclass(frozen=True)
class _Asked:
    """Work of a process."""

    paths: list[str]
    n_prompts: int
    batch_size: int
    new_tokens: int
    same_pixels: bool
    """True if both read with decord and resize alike, so that captions are comparable."""


class Model(Protocol):
    """Model of lmms-eval."""

    video_reader: str
    """Reader of our side."""
    task_dict: dict[str, dict[str, list[dict[str, str]]]]

    def generate_until(self, requests: list[Instance]) -> list[GenerationResult]:
        """Captions."""


class Sides:
    """Processes of both sides, which work in turns.

    Args:
        pretrained: The checkpoint.
        n_processes: Of each side; clips are shared out among them.
        arguments: Of ``captioning.py``.
    """

    def __init__(self, pretrained: str, n_processes: int, arguments: argparse.Namespace) -> None:
        self._new_tokens: int = arguments.new_tokens
        self._ends: dict[str, list[Connection]] = {side: [] for side in SIDES}
        self._processes = []
        context = multiprocessing.get_context("spawn")
        for side in SIDES:
            for _ in range(n_processes):
                ours, theirs = context.Pipe()
                process = context.Process(
                    target=_serve, args=(theirs, side, pretrained, n_processes, vars(arguments))
                )
                process.start()
                self._processes.append(process)
                self._ends[side].append(ours)

    def __enter__(self) -> Self:
        """Wait until all are loaded."""
        for ends in self._ends.values():
            for end in ends:
                end.recv()
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes."""
        for ends in self._ends.values():
            for end in ends:
                end.send(None)
        for process in self._processes:
            process.join()

    def compare(self, clips: list[Path], setting: Setting, n_rounds: int) -> dict[str, list[Round]]:
        """Both sides in turns, after a small round to warm up, and a last round of equal pixels."""
        for side in SIDES:
            self._round(side, clips[:1] * setting.n_processes, setting)
        rounds: dict[str, list[Round]] = {side: [] for side in SIDES}
        for _ in range(n_rounds):
            for side in SIDES:
                rounds[side].append(self._round(side, clips, setting))
        for side in SIDES:
            rounds[side].append(self._round(side, clips, setting, same_pixels=True))
        return rounds

    def _round(
        self, side: str, clips: list[Path], setting: Setting, *, same_pixels: bool = False
    ) -> Round:
        ends = self._ends[side]
        started_s = time.perf_counter()
        for rank, end in enumerate(ends):
            paths = [str(path) for path in clips[rank :: len(ends)]]
            asked = (setting.n_prompts, setting.batch_size, self._new_tokens, same_pixels)
            end.send(_Asked(paths, *asked))
        answers = [end.recv() for end in ends]
        wall_s = time.perf_counter() - started_s
        captions = [caption for written, _ in answers for caption in written]
        return Round(wall_s, sum(cpu_s for _, cpu_s in answers), captions)


def make_requests(n_clips: int, prompts: tuple[str, ...], new_tokens: int) -> list[Instance]:
    """Chat requests in lmms-eval's order: task by task."""
    from lmms_eval.api.instance import Instance

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


def _serve(
    end: Connection, side: str, pretrained: str, n_processes: int, arguments: dict[str, object]
) -> None:
    import torch
    from loguru import logger

    logger.remove()
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // n_processes))
    make = _lmms_eval if side == "lmms-eval" else _caption_hf
    models: dict[int, Model] = {}
    end.send("ready")
    while (asked := end.recv()) is not None:
        if asked.batch_size not in models:
            models.clear()
            models[asked.batch_size] = make(pretrained, asked.batch_size, n_processes, arguments)
        model = models[asked.batch_size]
        if side == "caption_hf":
            model.video_reader = "decord" if asked.same_pixels else "pyav"
        docs = [{"video": path} for path in asked.paths]
        prompts = PROMPTS[: asked.n_prompts]
        model.task_dict = {f"task{n}": {"test": docs} for n in range(len(prompts))}
        requests = make_requests(len(docs), prompts, asked.new_tokens)
        before_s = _cpu_s()
        with _resizing_as_processors_do() if asked.same_pixels else nullcontext():
            results = model.generate_until(requests)
        end.send(([result.text for result in results], _cpu_s() - before_s))


@contextmanager
def _resizing_as_processors_do() -> Iterator[None]:
    """Makes qwen-vl-utils resize as transformers does: its own way is up to 4 levels off."""
    from qwen_vl_utils import vision_process
    from torchvision.transforms.v2.functional import resize

    functional = vision_process.transforms.functional
    own, functional.resize = functional.resize, resize
    try:
        yield
    finally:
        functional.resize = own


def _cpu_s() -> float:
    """CPU seconds of this process and of its children, which are looked for in /proc."""
    ticks, own = 0, str(os.getpid())
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # What comes after the name: state, parent, ..., user and system time.
            values = path.read_text(encoding="ascii").rpartition(")")[2].split()
        except (OSError, ValueError):
            continue  # it has ended
        if own in (path.parent.name, values[1]):
            ticks += int(values[11]) + int(values[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _lmms_eval(
    pretrained: str,
    batch_size: int,
    n_processes: int,  # noqa: ARG001 (decord takes the threads that it likes)
    arguments: dict[str, object],
) -> Model:
    import torch
    from lmms_eval.models.chat.qwen2_5_vl import Qwen2_5_VL

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Qwen2_5_VL(
        pretrained=pretrained,
        device=device,
        device_map=device,
        max_num_frames=arguments["frames"],
        min_pixels=28 * 28,
        max_pixels=arguments["frame_pixels"],
        batch_size=batch_size,
    )
    # It loads bfloat16 alone, and rounds other weights to it.
    load = type(model._model).from_pretrained
    model._model = load(pretrained, dtype=arguments["dtype"], device_map=device).eval()
    wrapper: Model = model
    return wrapper


def _caption_hf(
    pretrained: str, batch_size: int, n_processes: int, arguments: dict[str, object]
) -> Model:
    import torch

    from lmms_eval_captions.model_wrappers.caption_hf import CaptionHfChat

    given: dict[str, object] = {
        "pretrained": pretrained,
        "max_num_frames": arguments["frames"],
        "frame_pixels": arguments["frame_pixels"],
        "dtype": arguments["dtype"],
        "reuse": False,
        "device": "cuda" if torch.cuda.is_available() else "cpu",
        "batch_size": batch_size,
        "decode_threads": max(1, (os.cpu_count() or 1) // n_processes),
    }
    return CaptionHfChat(**given)  # type: ignore[arg-type]  # checked by the captioner

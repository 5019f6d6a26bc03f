"""Requests for captions as lmms-eval makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lmms_eval.api.instance import GenerationResult, Instance
from lmms_eval.api.model import lmms

GREEDY = {"max_new_tokens": 16, "temperature": 0, "do_sample": False, "until": []}


def caption_all(
    model: lmms,
    paths: Sequence[Path],
    prompts: Mapping[str, str] | None = None,
    settings: Mapping[str, object] = GREEDY,
) -> list[str]:
    """Captions of all clips for every task, task by task, as lmms-eval asks."""
    return [result.text for result in results_of(model, paths, prompts, settings)]


def results_of(
    model: lmms,
    paths: Sequence[Path],
    prompts: Mapping[str, str] | None = None,
    settings: Mapping[str, object] = GREEDY,
) -> list[GenerationResult]:
    """The same with token counts."""
    prompts = prompts or {"task": "Describe the video."}
    model.task_dict = {task: {"test": [{"video": str(path)} for path in paths]} for task in prompts}
    requests = make_requests(len(paths), prompts, settings, model.is_simple)
    results: list[GenerationResult] = model.generate_until(requests)
    return results


def make_requests(
    n_clips: int, prompts: Mapping[str, str], settings: Mapping[str, object], is_simple: bool
) -> list[Instance]:
    """Requests of the simple or of the chat form."""

    def visual(doc: Mapping[str, str]) -> list[str]:
        return [doc["video"]]

    def messages(doc: Mapping[str, str]) -> list[dict[str, object]]:
        return [{"role": "user", "content": [{"type": "video", "url": doc["video"]}]}]

    made = []
    for task, prompt in prompts.items():
        for doc_id in range(n_clips):
            middle = (dict(settings), visual) if is_simple else (messages, dict(settings))
            arguments = (prompt, *middle, doc_id, task, "test")
            metadata = {"task": task, "doc_id": doc_id, "repeats": 1}
            made.append(Instance("generate_until", arguments, 0, metadata))
    return made

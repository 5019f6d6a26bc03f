"""Messages to chat models and prompts to simple ones, whatever a clip's file is called."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from lmms_eval.tasks import TaskManager, get_task_dict

import lmms_eval_captions.lmms_eval_tasks as package
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks
from lmms_eval_captions.model_wrappers.base import read_request

TASKS = tuple(task for benchmark in all_benchmarks().values() for task in benchmark.tasks)
ENDINGS = (
    "", ".mp4", ".MOV", ".mkv", ".webm", ".WEBM", ".gif", ".GIF", ".avi", ".ts", ".vob", ".ogg",
    ".mpg", ".m2ts", ".flv", ".wmv", ".3gp", ".bin",
)  # fmt: skip
Tasks = dict[str, Any]


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Local data by the ending of its clips."""
    sample = sample_root(tmp_path_factory.mktemp("sample"))
    made = {}
    for ending in ENDINGS:
        root = tmp_path_factory.mktemp("data")
        shutil.copytree(sample, root, dirs_exist_ok=True)
        for clip in root.rglob("*.mp4"):
            clip.rename(clip.with_suffix(ending))
        made[ending] = root
    return made


@pytest.fixture(scope="module")
def tasks(roots: dict[str, Path]) -> dict[str, Tasks]:
    """Every task as lmms-eval builds it, for simple and for chat models."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMMS_CAPTIONS_DATA", str(roots[".mp4"]))
        patch.setenv("HF_DATASETS_CACHE", str(roots[".mp4"] / "datasets"))
        folder = str(Path(package.__file__).parent)
        manager = TaskManager(include_path=folder, include_defaults=False)
        return {kind: get_task_dict(list(TASKS), manager, kind) for kind in ("simple", "chat")}


@pytest.mark.parametrize(
    ("name", "ending"), [*((name, ".webm") for name in TASKS), *((TASKS[0], e) for e in ENDINGS)]
)
def test_every_clip_is_handed_over_as_a_video(
    tasks: dict[str, Tasks],
    roots: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    ending: str,
) -> None:
    """A chat model gets one video and the prompt of a simple model, which gets the same path."""
    monkeypatch.setenv("LMMS_CAPTIONS_DATA", str(roots[ending]))
    prompts, paths = set(), set()
    for kind, by_name in tasks.items():
        task = by_name[name]
        docs = {name: {"test": task.test_docs()}}
        prompt = task.fewshot_context(docs[name]["test"][0], 0)
        metadata = {"task": name, "doc_id": 0, "repeats": 1, "split": "test"}
        instance = task.construct_requests(0, prompt, metadata=metadata)
        asked = read_request(instance.args, docs, is_simple=kind == "simple")
        (shown,) = asked.visuals().shown
        paths.add(shown)
        prompts.add(asked.prompt)
        if kind == "chat":
            (turn,) = task.doc_to_messages(docs[name]["test"][0])
            assert [part["type"] for part in turn["content"]] == ["video", "text"]
            prompts.add(turn["content"][1]["text"])
    (path,) = paths
    assert isinstance(path, Path)
    assert path.is_file()
    assert path.suffix == ending
    assert len(prompts) == 1


def test_a_models_own_words_stand_around_the_prompt(
    tasks: dict[str, Tasks], roots: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``lmms_eval_specific_kwargs`` reach the prompt of chat models."""
    monkeypatch.setenv("LMMS_CAPTIONS_DATA", str(roots[".mp4"]))
    task = tasks["chat"]["vdc_short"]
    doc = task.test_docs()[0]
    plain = task.doc_to_messages(doc)[0]["content"][1]["text"]
    around = task.config.doc_to_messages(doc, {"pre_prompt": "Now: ", "post_prompt": " Go."})
    assert around[0]["content"][1]["text"] == f"Now: {plain} Go."

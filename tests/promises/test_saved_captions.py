"""What a run saves of its captions is what ``caption_file`` gives back, in every benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest

from five_tasks import TASKS, Task, Texts, write_data
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN
from lmms_eval_captions.model_wrappers.caption_files.records import open_captions
from lmms_eval_captions.model_wrappers.general_caption import GeneralCaption
from lmms_eval_captions.model_wrappers.no_caption import DroppedCaption, NoCaption

CAPTIONS = (
    "A dog.",
    "",
    " \n",
    "Zwei Hunde \U0001f415, \u2028 \ud83d and\na line\t\x00.",
    NoCaption("the clip cannot be read"),
    DroppedCaption("the caption file has none"),
    GeneralCaption("A cat."),
    "null",
    "[]",
    "<think>a</think> A cow.",
)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_saved_captions_are_given_back(
    task: Task, bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Empty ones are empty, missing ones missing, and one for all aspects stays one."""
    videos = [Texts(f"clip{number}") for number in range(len(CAPTIONS))]
    bench.setenv("LMMS_CAPTIONS_DATA", str(write_data(tmp_path / "data", videos)))
    bench.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    hooks = task.hooks
    documents = task.documents()
    for doc, caption in zip(documents, CAPTIONS, strict=True):
        hooks.process_results(doc, [caption])
    path = JUDGE_RUN.captions().path
    assert path is not None
    table = open_captions(path)(task.name)
    aspect = hooks.benchmark.tasks[task.name].aspect
    found = [table.find(hooks.doc_to_target(doc), aspect) for doc in documents]
    for before, after in zip(CAPTIONS, found, strict=True):
        if isinstance(before, NoCaption):
            assert after is None
        else:
            assert after is not None
            # Half a character cannot be written; the hook has put another one in its place.
            assert after == before.replace("\ud83d", "\ufffd")
            assert isinstance(after, GeneralCaption) == (
                aspect is not None and isinstance(before, GeneralCaption)
            )

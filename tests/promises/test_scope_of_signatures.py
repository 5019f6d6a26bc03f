"""Of every benchmark the signature says which captions and which questions were scored."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from lmms_eval.api.instance import Instance

from five_tasks import TASKS, Task, Texts, write_data
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN
from lmms_eval_captions.lmms_eval_tasks.signature import Signature
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import VDC
from lmms_eval_captions.model_wrappers.caption_file import CaptionFile
from lmms_eval_captions.model_wrappers.no_caption import NoCaption

VIDEOS: Final = [Texts(f"clip{n}", question=f"What is on {n}?") for n in range(4)]
ALL: Final = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)


@pytest.fixture
def bench(bench: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The shared one, judged by the stand-in."""
    bench.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "1")
    return bench


def _fields(
    task: Task, documents: list[dict[str, Any]], args: Namespace | None = None, caption: str = "A."
) -> Mapping[str, str]:
    """Fields of the signature of a run over some documents."""
    items = [task.hooks.process_results(document, [caption]) for document in documents]
    text = task.hooks.aggregate_signature([item["signature"] for item in items], args=args)
    task.hooks.aggregate_breakdown([item["breakdown"] for item in items], args=args)
    if (breakdown := THIS_RUN.breakdowns.get(task.name)) is not None:
        assert breakdown["signature"] == text
    return Signature.parse(text).fields


def _documents(
    task: Task, folder: Path, videos: list[Texts], bench: pytest.MonkeyPatch
) -> list[dict[str, Any]]:
    bench.setenv("LMMS_CAPTIONS_DATA", str(write_data(folder, videos)))
    data_settings.cache_clear()
    return task.documents()


@ALL
def test_the_questions_have_eight_digits_whatever_is_said_about_them(
    task: Task, bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another order or caption is the same; one video less, or another question, is not."""
    documents = _documents(task, tmp_path / "data", VIDEOS, bench)
    digits = _fields(task, documents)["questions"]
    assert re.fullmatch("[0-9a-f]{8}", digits)
    assert _fields(task, documents[::-1], caption="Another one.")["questions"] == digits
    assert _fields(task, documents, caption=NoCaption("broken"))["questions"] == digits
    assert _fields(task, documents[:3])["questions"] != digits
    if task.hooks.benchmark.name == "own":
        return  # it asks no question
    others = [*VIDEOS[:3], replace(VIDEOS[3], question="Which?")]
    changed = _documents(task, tmp_path / "changed", others, bench)
    assert _fields(task, changed)["questions"] != digits


@ALL
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"limit": 2.0, "offset": 1}, {"limit": "2", "offset": "1"}),
        ({"limit": 0.5, "offset": 0}, {"limit": "0.5"}),
        ({"limit": -1, "offset": 0}, {}),
        ({"limit": None}, {}),
        ({}, {}),
    ],
)
def test_the_limit_of_the_command_line_is_said(
    task: Task,
    arguments: dict[str, Any],
    expected: dict[str, str],
    bench: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Where one is set, in the results and in the breakdown."""
    documents = _documents(task, tmp_path / "data", VIDEOS, bench)
    fields = _fields(task, documents, Namespace(output_path=None, **arguments))
    assert {name: fields[name] for name in ("limit", "offset") if name in fields} == expected
    assert ("captions" in fields) == (task.hooks.benchmark.name == "vdc")


def test_a_group_joins_what_its_tasks_say() -> None:
    """Its questions are those of all tasks, its captions of every kind that there is."""
    texts = [
        "a|captions:aspect|questions:01234567|limit:5",
        "b|captions:aspect+general|questions:89abcdef|limit:5",
    ]
    merged = Signature.merge(map(Signature.parse, texts), [1, 1])
    assert merged.fields["captions"] == "aspect+general"
    assert merged.fields["limit"] == "5"
    assert re.fullmatch("[0-9a-f]{8}", merged.fields["questions"])
    assert Signature.merge([merged], [2]) == merged
    backwards = Signature.merge(map(Signature.parse, reversed(texts)), [1, 1])
    assert backwards.fields["questions"] == merged.fields["questions"]


def _captioned(path: Path, **arguments: str) -> dict[str, str]:
    """Field ``captions`` of VDC's tasks, captioned by ``caption_file`` as lmms-eval does it."""
    kinds = {}
    for name, task in VDC.tasks.items():
        hooks = hooks_of(VDC)
        document = {"video_id": "clip0", "questions": [{"question": "Q?", "answer": "A."}]}
        document["aspect"] = str(task.aspect)
        model = CaptionFile(path=str(path), **arguments)
        model.task_dict[name] = {"test": [document]}
        request = Instance(
            request_type="generate_until",
            arguments=("Describe.", {}, None, 0, name, "test"),
            idx=0,
            metadata={"task": name, "doc_id": 0, "repeats": 1},
        )
        (answer,) = model.generate_until([request])
        assert isinstance(answer, str)
        item = hooks.process_results(document, [answer.strip()])["signature"]
        fields = Signature.parse(hooks.aggregate_signature([item])).fields
        kinds[name] = fields["captions"]
    return kinds


def _sample_log(task: str, extras: dict[str, str] | None) -> dict[str, object]:
    row: dict[str, object] = {"doc_id": 0, "target": "clip0", "filtered_resps": ["A dog."]}
    if extras is not None:
        row["vdc_acc"] = {"task": task, "video_id": "clip0", "extras": extras}
    return row


OWN: Final = {f"{aspect}_caption": f"A {aspect}." for aspect in ("camera", "short")}
ONE: Final = dict.fromkeys(OWN, "A dog.")
_ROW: Final = {"video_id": "clip0"}


@pytest.mark.parametrize(
    ("row", "arguments", "own"),
    [
        pytest.param({**_ROW, "caption": "A dog."}, {}, "", id="one for all"),
        pytest.param(
            {**_ROW, **OWN, "caption": "A."}, {}, "camera short", id="some have their own"
        ),
        pytest.param({**_ROW, **ONE, "caption": "A dog."}, {}, "", id="one in several columns"),
        pytest.param({**_ROW, **OWN}, {"column": "camera_caption"}, "camera", id="a column"),
        pytest.param(_sample_log("vdc_camera", {}), {}, "camera", id="a log"),
        pytest.param(
            _sample_log("vdc_camera", {"captions": "aspect"}), {}, "camera", id="a log of its own"
        ),
        pytest.param(
            _sample_log("vdc_camera", {"captions": "general"}), {}, "", id="a log of a general one"
        ),
    ],
)
def test_captions_of_a_file_are_of_their_aspect_or_general(
    row: dict[str, object],
    arguments: dict[str, str],
    own: str,
    bench: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """One caption for all five aspects is another measurement than one for each."""
    del bench
    path = tmp_path / "captions.jsonl"
    path.write_text(json.dumps(row))
    expected = {
        f"vdc_{aspect}": "aspect" if aspect in own.split() else "general"
        for aspect in ("camera", "short", "background", "main_object", "detailed")
    }
    assert _captioned(path, **arguments) == expected


@pytest.mark.parametrize("column", ["caption", "aspect columns"])
def test_what_was_saved_keeps_its_kind_when_it_is_judged_again(
    column: str, bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The file of saved captions says of each what it was."""
    del bench
    names = [str(task.aspect) for task in VDC.tasks.values()]
    columns = {"caption": "A dog."} if column == "caption" else {f"{n}_caption": n for n in names}
    path = tmp_path / "captions.jsonl"
    path.write_text(json.dumps({**_ROW, **columns}))
    first = _captioned(path)
    assert set(first.values()) == {"general" if column == "caption" else "aspect"}
    saved = JUDGE_RUN.captions().path
    assert saved is not None
    assert _captioned(saved) == first


def test_logs_without_verdicts_are_of_the_task_in_their_name(
    bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What ``--predict_only`` wrote for an aspect is of that aspect, and general for any other."""
    del bench
    path = tmp_path / "20260101_000000_samples_vdc_main_object.jsonl"
    path.write_text(json.dumps(_sample_log("vdc_main_object", None)))
    kinds = _captioned(path)
    assert kinds.pop("vdc_main_object") == "aspect"
    assert set(kinds.values()) == {"general"}


def test_a_model_s_own_captions_are_of_their_aspect(bench: pytest.MonkeyPatch) -> None:
    """Whoever writes a caption was asked with the aspect's prompt; mixed says both."""
    del bench
    document = {"video_id": "v", "aspect": "camera", "questions": []}
    hooks = hooks_of(VDC)
    item = hooks.process_results(document, ["A dog."])["signature"].wait()
    assert "|captions:aspect|" in hooks.aggregate_signature([item])
    other = {**item, "extras": {"captions": "general"}}
    assert "|captions:aspect+general|" in hooks.aggregate_signature([item, other])

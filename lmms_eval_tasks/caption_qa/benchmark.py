"""Multiple-choice sets answered from captions: their tasks and metrics."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any, Final, get_args

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.protocols import caption_qa as protocol
from lmms_eval_captions.judges.protocols.caption_qa import ChoiceJudgement, ChoiceQuestion
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.benchmark import (
    Benchmark,
    Task,
    pooled,
    read_plain_yaml,
)
from lmms_eval_captions.lmms_eval_tasks.data import files
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source
from lmms_eval_captions.lmms_eval_tasks.ratios import DENOMINATOR, NEITHER, NUMERATOR
from lmms_eval_captions.metrics.caption_qa import qa_accuracy, qa_coverage, qa_precision

DAILY_OMNI: Final = "daily_omni/grouped_data.json"
CUSTOM: Final = "questions.jsonl"
SOURCE: Final = Source(
    benchmark="caption_qa",
    page="https://github.com/Lliar-liar/Daily-Omni",
    license="Apache-2.0 (Daily-Omni)",
    video_folder="caption_qa/videos",
    note="Place Daily-Omni's grouped_data.json under LMMS_CAPTIONS_DATA/caption_qa/daily_omni, or "
    "a file of your own questions at LMMS_CAPTIONS_DATA/caption_qa/questions.jsonl.",
)


@dataclass(frozen=True, slots=True)
class LmmsEvalSet:
    """Multiple-choice task of lmms-eval: its YAML files, and the names of its rows' fields."""

    files: str
    """Pattern of paths below lmms-eval's folder of tasks."""
    video: str
    options: str
    category: str
    """Empty for the name of the dataset's configuration."""


LMMS_EVAL_SETS: Final[Mapping[str, LmmsEvalSet]] = {
    "videomme": LmmsEvalSet("videomme/videomme.yaml", "videoID", "options", "task_type"),
    "worldsense": LmmsEvalSet(
        "worldsense/worldsense.yaml", "video_path", "candidates", "task_type"
    ),
    "mvbench": LmmsEvalSet("mvbench/mvbench_*.yaml", "video", "candidates", ""),
}
"""A further set is a line here and a YAML file with its stub."""
_LETTERS: Final = "ABCDEFGHIJ"
_LETTER: Final = re.compile(r"^\s*\(?([A-Z])[.):]\s*")
_Row = tuple[str, str, dict[str, object]]
"""Video, its category, and one of its questions."""
_Rows = Iterator[tuple[str, Callable[[], _Row]]]
"""Location of a question, and a function that reads it."""


def read_set(settings: DataSettings, name: str) -> list[dict[str, object]]:
    """Return the videos of a set in its order, each with its category and its questions.

    Questions that cannot be used are left out with a warning.

    Raises:
        DataError: If the file is missing or of another form, or no question can be used.
    """
    file, root = f"{name}.jsonl", files.local_root(settings)
    if name == "daily_omni":
        rows = _daily_omni(settings)
    elif name == "custom":
        rows = _custom(settings, CUSTOM)
    elif root is not None and (root / SOURCE.benchmark / file).is_file():
        rows = _custom(settings, file)
    else:
        rows = _of_lmms_eval(LMMS_EVAL_SETS[name])
    videos: dict[str, dict[str, Any]] = {}
    expected = "a video, a question, its options and its answer"
    for video, category, question in files.usable(rows, expected=expected, of="questions"):
        row = videos.setdefault(video, {"video": video, "group": category, "questions": []})
        row["questions"].append(question)
    return list(videos.values())


def _daily_omni(settings: DataSettings) -> _Rows:
    path = files.find_file(settings, SOURCE, DAILY_OMNI)

    def read(row: Mapping[str, Any], index: int) -> _Row:
        asked = row["questions"][index]
        texts = asked["Question"], asked["Choice"], asked["Answer"], asked["Type"]
        return str(row["video_id"]), str(row["video_category"]), _question(*texts)

    for number, row in enumerate(files.read_json(path, list)):
        questions = row.get("questions") if isinstance(row, dict) else None
        # A row of another form is one question that cannot be used.
        for index in range(len(questions) if isinstance(questions, list) else 1):
            yield f"{path}, row {number}", partial(read, row, index)


def _custom(settings: DataSettings, file: str) -> _Rows:
    path = files.find_file(settings, SOURCE, file)

    def read(row: Mapping[str, Any]) -> _Row:
        texts = row["question"], row["options"], row["answer"], row.get("category", "all")
        return str(row["video"]), "all", _question(*texts)

    for where, row in files.read_located(path):
        yield where, partial(read, row)


def _of_lmms_eval(fields: LmmsEvalSet) -> _Rows:
    spec = find_spec("lmms_eval")
    if spec is None or not spec.submodule_search_locations:
        raise DataError(
            f"the questions of {fields.files} are read through lmms-eval, which is not installed: "
            "pip install 'lmms-eval-captions[eval]', or write them to "
            f"LMMS_CAPTIONS_DATA/caption_qa/{CUSTOM} and use the task caption_qa"
        )
    from datasets import load_dataset

    def read(row: Mapping[str, Any], kind: str) -> _Row:
        texts = row["question"], row[fields.options], row["answer"]
        category = row[fields.category] if fields.category else kind
        return _video(row, fields.video), "all", _question(*texts, category)

    for path in sorted(Path(spec.submodule_search_locations[0], "tasks").glob(fields.files)):
        config = dict(read_plain_yaml(path))
        if "include" in config:
            config = {**read_plain_yaml(path.parent / config["include"]), **config}
        kind = config.get("dataset_name") or "all"
        name = config["dataset_path"]
        try:
            # Of the revision that lmms-eval's own task reads.
            rows = load_dataset(  # nosec B615
                name, config.get("dataset_name"), split=config["test_split"]
            )
        except Exception as error:  # the hub's, the file system's and the formats'
            raise DataError(
                f"{name} cannot be loaded from the Hugging Face hub: {error}"
            ) from error
        for number, row in enumerate(rows):
            yield f"{name} ({kind}), row {number}", partial(read, row, kind)


def _video(row: Mapping[str, Any], field: str) -> str:
    """Return the name of a row's video, with start and end of the segment that is asked about."""
    name = PurePosixPath(str(row[field])).name
    if row.get("start") is None or row.get("end") is None:
        return name
    stem = PurePosixPath(name).stem
    start, end = (f"{float(row[edge]):f}".rstrip("0").rstrip(".") for edge in ("start", "end"))
    return f"{stem}_{start}_{end}"


def _question(
    question: object, options: object, answer: object, category: object
) -> dict[str, object]:
    """Return a question with options without letters, and the text of its answer."""
    if not isinstance(options, list):
        raise TypeError(f"expected a list of options, got {options!r:.80}")
    texts = [str(option).strip() for option in options]
    letters = [letter[1] if (letter := _LETTER.match(text)) else "" for text in texts]
    if letters == list(_LETTERS[: len(texts)]):
        texts = [_LETTER.sub("", text) for text in texts]
    given = str(answer).strip()
    lettered = dict(zip(_LETTERS, texts, strict=False)).get(given.strip("().").upper(), "")
    right = next((t for t in (given, _LETTER.sub("", given), lettered) if t in texts), "")
    if not right:
        raise ValueError(f"expected one of {texts!r:.80} or its letter, got {answer!r:.80}")
    if not 2 <= len(texts) <= protocol.MOST_OPTIONS or len(set(texts)) < len(texts):
        raise ValueError(
            f"expected 2 to {protocol.MOST_OPTIONS} different options, got {texts!r:.80}"
        )
    return {
        "question": str(question), "options": texts, "answer": right, "category": str(category),
    }  # fmt: skip


def _task(name: str, set_name: str) -> Task:
    return Task(
        name=name,
        fields={"set": set_name},
        caption_prompt="caption_qa_caption.caption",
        judge_prompts=("caption_qa_answer",),
        extras={"prompts": "ours"},
        caption_chars=2400,
    )


class CaptionQA(Benchmark[ChoiceQuestion, ChoiceJudgement]):
    """Multiple-choice questions about videos, answered from their captions."""

    source = SOURCE
    probe_file = DAILY_OMNI
    name_fields = ("video",)
    tasks = {
        "caption_qa": _task("caption_qa", "custom"),
        **{
            f"caption_qa_{name}": _task(f"caption_qa_{name}", name)
            for name in ("daily_omni", *LMMS_EVAL_SETS)
        },
    }
    metrics = {
        "qa_accuracy": pooled(
            qa_accuracy,
            {"right": NUMERATOR, "wrong": DENOMINATOR, "unknown": DENOMINATOR},
            labels=get_args(protocol.Outcome),
        ),
        "qa_coverage": pooled(
            qa_coverage, {"right": NUMERATOR, "wrong": NUMERATOR, "unknown": DENOMINATOR}
        ),
        "qa_precision": pooled(
            qa_precision, {"right": NUMERATOR, "wrong": DENOMINATOR, "unknown": NEITHER}
        ),
    }
    headline = "qa_accuracy"
    headline_means = "% of questions that the caption alone answers rightly"
    right = frozenset({"right"})
    missed = frozenset({"unknown"})
    wrong = frozenset({"wrong"})
    judge = staticmethod(protocol.judge_choice)
    silent = staticmethod(lambda question, run: (protocol.silent_choice(question, run),))
    output_tokens = {"caption_qa_answer": 2}

    read = staticmethod(
        lambda settings, task: [
            {**video, **task.fields} for video in read_set(settings, task.fields["set"])
        ]
    )
    questions = staticmethod(
        lambda doc: [
            ChoiceQuestion(**{**row, "options": tuple(row["options"])}) for row in doc["questions"]
        ]
    )
    groups = staticmethod(
        lambda doc, question, _judgement: {"types": question.category, "videos": doc["group"]}
    )


CAPTION_QA: Final = CaptionQA()

"""Files of multiple-choice questions: Daily-Omni's, and a custom one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import parse_json, read_whole
from lmms_eval_captions.judges.protocols.caption_qa import MOST_OPTIONS
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.data.files import find_file, read_numbered_jsonl
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source

DAILY_OMNI: Final = "daily_omni/grouped_data.json"
OWN: Final = "questions.jsonl"
SOURCE: Final = Source(
    benchmark="caption_qa",
    page="https://github.com/Lliar-liar/Daily-Omni",
    license="Apache-2.0 (Daily-Omni)",
    video_folder="caption_qa/videos",
    note="Place Daily-Omni's grouped_data.json under LMMS_CAPTIONS_DATA/caption_qa/daily_omni, or "
    "a file of your own questions at LMMS_CAPTIONS_DATA/caption_qa/questions.jsonl.",
)
_LETTER: Final = re.compile(r"^\s*([A-Z])[.):]\s*")


def read_daily_omni(settings: DataSettings) -> list[dict[str, object]]:
    """Return the videos of Daily-Omni (arXiv 2505.17862), each with its questions.

    Raises:
        DataError: If the file is missing or of another form; the text names the row.
    """
    path = find_file(settings, SOURCE, DAILY_OMNI)
    try:
        rows = parse_json(read_whole(path))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: expected a JSON list of videos: {error}") from error
    if not isinstance(rows, list):
        raise DataError(f"{path}: expected a JSON list of videos, got {rows!r:.80}")
    videos: list[dict[str, object]] = []
    for number, row in enumerate(rows):
        try:
            questions = [_of_daily_omni(question) for question in row["questions"]]
            video = {"video": str(row["video_id"]), "group": str(row["video_category"])}
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path}, row {number}: {error!r}") from error
        videos.append({**video, "questions": questions})
    return videos


def _of_daily_omni(row: Mapping[str, Any]) -> dict[str, object]:
    lettered = {}
    for choice in row["Choice"]:
        letter = _LETTER.match(choice)
        if letter is None:
            raise ValueError(f"expected an option with its letter, got {choice!r:.80}")
        lettered[letter[1]] = choice[letter.end() :].strip()
    answer = lettered[row["Answer"]]
    return _question(row["Question"], list(lettered.values()), answer, row["Type"])


def read_own(settings: DataSettings) -> list[dict[str, object]]:
    """Return the videos of a custom file: a line with video, question, options and answer each.

    ``answer`` is one of the options or its letter; ``category`` is optional.

    Raises:
        DataError: If the file is missing or of another form; the text names the line.
    """
    path = find_file(settings, SOURCE, OWN)
    videos: dict[str, list[object]] = {}
    for number, row in read_numbered_jsonl(path):
        try:
            options = list(map(str, _listed(row["options"])))
            answer = str(row["answer"])
            if answer not in options:
                answer = options["ABCDE".index(answer.strip().upper())]
            question = _question(row["question"], options, answer, row.get("category", "all"))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise DataError(
                f"{path}, line {number}: expected video, question, options and answer, got "
                f"{error!r}"
            ) from error
        videos.setdefault(str(row["video"]), []).append(question)
    return [{"video": video, "group": "all", "questions": of} for video, of in videos.items()]


def _listed(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list of options, got {value!r:.80}")
    return value


def _question(question: Any, options: list[str], answer: str, category: Any) -> dict[str, object]:  # noqa: ANN401
    if not 2 <= len(options) <= MOST_OPTIONS or len(set(options)) < len(options):
        raise ValueError(f"expected 2 to {MOST_OPTIONS} different options, got {options!r:.80}")
    return {
        "question": str(question), "options": options, "answer": answer, "category": str(category),
    }  # fmt: skip

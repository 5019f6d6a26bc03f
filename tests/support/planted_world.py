"""A planted world: official files of every benchmark, captions of three captioners, two judges.

Everything is a pure function of names, so that two runs give the same numbers on any machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from five_tasks import write_clip
from judge_server import Say, last_text, scripted_reply

CAPTIONERS: Final = ("alpha", "beta", "gamma")
JUDGES: Final = ("judge-a", "judge-b")
RUNS: Final = (
    *((captioner, judge) for captioner in CAPTIONERS[:2] for judge in JUDGES),
    ("gamma", "judge-a"),
)
"""Captioner and judge of each run; every one has three judge runs."""
TASKS: Final = (
    "video_captions,own_gveval_ref_free,own_vllm_judge,vdc_vdd,vdc_rouge,capquiz_detailed"
)
"""Tasks of each run."""
VIDEOS: Final = tuple(f"v{number:02}" for number in range(10))
ASPECTS: Final = ("camera", "short", "background", "main_object", "detailed")
_KINDS: Final = (
    ("video aesthetics", "lighting"),
    ("video content", "events"),
    ("video motion", "object motion"),
    ("physical laws", "common sense"),
)
_CATEGORIES: Final = ("action", "color", "text", "emotion")
_TYPES: Final = ("Entity", "Causal Reasoning", "Setting", "Intent & Emotion Reasoning")
_WORDS: Final = ("dog", "car", "red", "slowly", "beach", "child", "runs", "light", "two", "tree")


@dataclass(frozen=True)
class World:
    """The planted world on disk."""

    root: Path
    env: Mapping[str, str]
    """Environment of a run with ``judge-a``."""

    def run(self, captioner: str, judge: str = "judge-a") -> Path:
        """Results folder of a run."""
        return self.root / judge / captioner


def draw(*names: object) -> int:
    """A number that these names decide."""
    text = "|".join(map(str, names)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big")


def words(n: int, *names: object) -> str:
    """A text of n words that these names decide."""
    return " ".join(_WORDS[draw(*names, index) % len(_WORDS)] for index in range(n))


def write_data(root: Path) -> Path:
    """Write ``LMMS_CAPTIONS_DATA``: all benchmarks, with ratings of people, and own clips."""
    rows: Iterator[dict[str, object]]
    for aspect in ASPECTS:
        rows = ({video: _pairs(aspect, video)} for video in VIDEOS)
        _lines(root / f"vdc/VDCScore_qa/{aspect}.jsonl", rows)
    _lines(root / "vdc/VDC_1k.jsonl", map(_references, VIDEOS))
    for subset in ("AE", "HE"):
        rows = ({"video_dir": f"{v}.mp4", "QA_pairs": list(_of_kinds(subset, v))} for v in VIDEOS)
        _lines(root / f"vidcapbench/VidCapBench-{subset}_QA.jsonl", rows)
    asked = ({"video_id": f"{video}.mp4", "qa": _facts(video)} for video in VIDEOS)
    _lines(root / "vcapsbench/VCapsBench_100KQA.jsonl", asked)
    quizzes = ({"video": f"{v}.mp4", "domain": "Nature", "questions": quiz(v)} for v in VIDEOS)
    _lines(root / "capquiz/capquiz.jsonl", quizzes)
    rated = {video: _rated(video) for video in VIDEOS}
    (root / "msvd_eval").mkdir(parents=True)
    (root / "msvd_eval/MSVD-Eval.json").write_text(json.dumps(rated))
    for video in VIDEOS:
        for folder in ("msvd_eval/YouTubeClips", "own/videos"):
            write_clip(root / folder / f"{video}.mp4", video)
    return root


def write_tokenizer(path: Path) -> Path:
    """Write a stand-in of T5's tokenizer, whose tokens are words."""
    tokenizer = Tokenizer(WordLevel({"<unk>": 0, "</s>": 1}, unk_token="<unk>"))  # noqa: S106
    tokenizer.pre_tokenizer = Whitespace()
    end = TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer.post_processor = end
    path.mkdir()
    tokenizer.save(str(path / "tokenizer.json"))
    return path


def write_captions(path: Path, captioner: str) -> Path:
    """Write a file of captions, one of which is empty and one missing."""
    rows = [
        {
            "video_id": video,
            "caption": "" if index == 3 else f"A video of {words(12, captioner, video)}.",
        }
        for index, video in enumerate(VIDEOS)
        if index != 5 or captioner == "alpha"
    ]
    _lines(path, rows)
    return path


def judged(payload: Mapping[str, Any]) -> Say:
    """A judge's reply: mostly the prompt's, sometimes its own or the run's, now and then none."""
    prompt, judge, seed = last_text(dict(payload)), payload["model"], payload.get("seed", 0)
    if draw("unreadable", prompt, judge) % 100 < 4:
        return Say("I would rather not say.")
    is_own = draw("own", prompt, judge, seed) % 100 < 25
    return Say(scripted_reply(f"{judge} {seed} {prompt}" if is_own else prompt))


def quiz(video: str) -> list[dict[str, object]]:
    """Questions of CapQuiz about a video, in official form."""
    return [
        {
            "category": kind,
            "question": f"What is {words(3, 'quiz', video, kind)}?",
            "options": [f"{words(2, 'option', video, kind)} {index}" for index in range(5)],
            "answer": f"{words(2, 'option', video, kind)} {draw('right', video, kind) % 5}",
        }
        for kind in _TYPES
    ]


def _pairs(aspect: str, video: str) -> list[dict[str, str]]:
    return [
        {
            "question": f"What of {words(3, aspect, video, index)}?",
            "answer": words(2, "gold", aspect, video, index),
            "category": ("angle", "movement")[index % 2],
        }
        for index in range(3)
    ]


def _references(video: str) -> dict[str, str]:
    texts = {f"{aspect}_caption": words(20, "reference", aspect, video) for aspect in ASPECTS}
    return {"video_id": video, **texts}


def _of_kinds(subset: str, video: str) -> Iterator[dict[str, str]]:
    for primary, sub in _KINDS:
        yield {
            "question": f"How is {words(3, subset, video, sub)}?",
            "answer": words(2, "gold", subset, video, sub),
            "primary_category": primary,
            "sub_category": sub,
        }


def _facts(video: str) -> list[str]:
    answers = {category: ("yes", "no")[draw(video, category) % 2] for category in _CATEGORIES}
    return [
        f"{category}*Is there {words(3, video, category)}?*{answer}"
        for category, answer in answers.items()
    ]


def _rated(video: str) -> dict[str, object]:
    ratings = [[1 + draw("rating", video, who, index) % 5 for index in range(4)] for who in (1, 2)]
    return {
        "vname": f"{video}.mp4",
        "ref": [words(8, "reference", video, index) for index in range(3)],
        "candidate": words(8, "reference" if draw(video) % 2 else "candidate", video, 0),
        "human_score": [[*scores, sum(scores) / 4] for scores in ratings],
    }


def _lines(path: Path, rows: Iterator[Any] | list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")

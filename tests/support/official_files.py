"""VCapsBench's and CapQuiz's files in official form, by default of official size, for tests."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

from lmms_eval_captions.lmms_eval_tasks.capquiz import benchmark as capquiz
from lmms_eval_captions.lmms_eval_tasks.vcapsbench import benchmark as vcapsbench

_WORDS = [
    "person",
    "dog",
    "car",
    "street",
    "tree",
    "river",
    "camera",
    "light",
    "red",
    "blue",
    "green",
    "small",
    "large",
    "round",
    "moves",
    "turns",
    "slowly",
    "quickly",
    "left",
    "right",
    "above",
    "below",
    "before",
    "after",
    "stands",
    "holds",
    "looks",
    "walks",
    "runs",
    "wooden",
    "bright",
    "dark",
    "old",
    "young",
    "crowded",
    "empty",
    "city",
    "forest",
    "table",
    "window",
    "glass",
    "paper",
    "sign",
    "market",
    "evening",
    "morning",
]


def write_vcapsbench(root: Path, *, n_videos: int = 5_677, n_pairs: int = 109_796) -> list[str]:
    """Write ``vcapsbench/VCapsBench_100KQA.jsonl`` below a root; returns the videos' ids."""
    generator = random.Random(0)
    categories = list(vcapsbench.GROUP_OF)
    rows = []
    for number, n in enumerate(_shares(n_pairs, n_videos)):
        qa = [
            f"{generator.choice(categories)}*Is the {_words(generator, 8)} number {index}?"
            f"*{'no' if generator.random() < 0.1 else 'yes'}"
            for index in range(n)
        ]
        rows.append({"video_id": f"clip_{number:05d}.mp4", "qa": qa})
    _write(root / "vcapsbench" / "VCapsBench_100KQA.jsonl", rows)
    return [str(row["video_id"]) for row in rows]


def write_capquiz(root: Path, *, n_videos: int = 1_204, n_questions: int = 23_632) -> list[str]:
    """Write ``capquiz/capquiz.jsonl`` below a root; returns the videos' names."""
    generator = random.Random(0)
    types, domains = list(capquiz.GROUP_OF), list(capquiz.SUPER_OF)
    rows = []
    for number, n in enumerate(_shares(n_questions, n_videos)):
        questions = []
        for index in range(n):
            options = [f"{_words(generator, 4)} {place}" for place in range(5)]
            questions.append(
                {
                    "category": generator.choice(types),
                    "question": f"What is the {_words(generator, 8)} number {index}?",
                    "options": options,
                    "answer": generator.choice(options),
                }
            )
        domain = domains[number % len(domains)]
        rows.append({"video": f"quiz_{number:05d}.mp4", "domain": domain, "questions": questions})
    _write(root / "capquiz" / "capquiz.jsonl", rows)
    return [str(row["video"]) for row in rows]


def write_captions(path: Path, videos: Iterable[str], *, n_words: int = 220) -> None:
    """Write a caption for each video, as the model ``caption_file`` reads them."""
    generator = random.Random(1)
    _write(
        path, [{"video_id": v, "caption": f"{v}: {_words(generator, n_words)}."} for v in videos]
    )


def _shares(total: int, n: int) -> list[int]:
    """A total split into ``n`` nearly equal whole parts."""
    return [total * (i + 1) // n - total * i // n for i in range(n)]


def _words(generator: random.Random, n: int) -> str:
    return " ".join(generator.choices(_WORDS, k=n))


def _write(path: Path, rows: Sequence[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")

"""A judge that says what it is told to: verdicts fixed beforehand, known without reading a reply.

Every question carries a mark, ``no. 3-1`` for question 1 of video 3 (G-VEval, which asks no
question, has it in the caption). From it, the step and the seed follow the verdict and the words
that state it, so what a run must come to can be worked out from the same table.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from judge_server import last_text

N_ASKS: Final = 3
LABELS: Final = ("yes", "no", "unanswerable")
GRADES: Final = {"correct": 2, "partial": 1, "neutral": 0, "wrong": -1}
OPTIONS: Final = ("red", "green", "blue", "white", "black")
FREE_TEXT: Final = ("vdc_answer", "vidcapbench_answer")
"""Steps whose reply is words, not a verdict."""

_STEPS: Final = {
    "gveval": "{{accuracy_score}}",
    "video_rating": "You are an expert Video Understanding Evaluator",
    "vidcapbench_judge": "\nYour Result:",
    "vidcapbench_answer": "chatbot to answer questions given a detailed description",
    "vcapsbench_answer": "Answer@@@Analysis",
    "capquiz_answer": "F. Cannot be determined",
    "vdc_vdd": "\n\nCandidate caption: ",
    "vdc_match": "\n\nPredicted Answer: ",
    "vdc_answer": "Please provide accurate answers to questions",
}
"""Step to words that its prompt alone holds."""
_MARK: Final = re.compile(r"\bno\. (\d+)-(\d+)\b")
RESAMPLE_SEED: Final = 1_000_003
_CUT: Final = {
    "gveval": "It shows 2 of 3 people. The Accuracy score is α8",
    "video_rating": '{"analysis": "It shows 2 of 3.", "scores": {"trustworthiness": 5, "cover',
    "vidcapbench_judge": '{"sco',
    "vcapsbench_answer": "Unansw",
    "capquiz_answer": "The answer is (",
    "vdc_match": "{'pred': 'yes', 'sco",
    "vdc_vdd": "{'pred': 'yes', 'sco",
}
"""Step to the start of a reply that does not state its verdict yet."""


class Key(NamedTuple):
    """One request of one question; fresh samples after an unreadable reply are the same one."""

    video: int
    question: int
    seed: int
    """The run; of VCapsBench three times the run plus the number of the request."""
    step: str


def key_of(payload: dict[str, Any]) -> Key:
    prompt = last_text(payload)
    step = next(step for step, words in _STEPS.items() if words in prompt)
    video, question = _MARK.findall(prompt)[-1]
    return Key(int(video), int(question), payload["seed"] % RESAMPLE_SEED, step)


def attempt_of(payload: dict[str, Any]) -> int:
    """Which sample of a question a request asks for: 0, and one more for each fresh one."""
    return int(payload["seed"]) // RESAMPLE_SEED


def mark(video: int, question: int) -> str:
    """The mark of a question, to be put into its text."""
    return f"no. {video}-{question}"


def gold(video: int, question: int) -> str:
    """VDC's and VidCapBench's gold answer to a question."""
    return f"gold {video} {question}"


def majority(answers: Sequence[str | None]) -> str | None:
    """VCapsBench's consensus of three replies, ``None`` where a failed one could have decided."""
    read = [answer for answer in answers if answer is not None]
    often = [answer for answer in LABELS if read.count(answer) >= 2]
    if often:
        return often[0]
    return "unanswerable" if len(read) == N_ASKS else None


def cut_reply(step: str) -> str:
    """The start of a reply to a step that states a verdict, from before the verdict."""
    return _CUT[step]


@dataclass(frozen=True, slots=True)
class Told:
    salt: int = 0

    def answer(self, video: int, question: int, seed: int) -> str:
        """Free text of a first step: the gold answer, or something else altogether."""
        number = self._number("answer", video, question, seed)
        return gold(video, question) if number % 2 else f"nothing of {number:x}"

    def match(self, video: int, question: int, seed: int) -> tuple[str, int]:
        """VDC's verdict and score."""
        number = self._number("match", video, question, seed)
        return ("yes" if number % 2 else "no"), number // 2 % 6

    def grade(self, video: int, question: int, seed: int) -> str:
        """VidCapBench's verdict."""
        return list(GRADES)[self._number("grade", video, question, seed) % 4]

    def ask(self, video: int, question: int, seed: int) -> str:
        """VCapsBench's answer: mostly one of three replies differs from the others."""
        run, index = divmod(seed, N_ASKS)
        usual = self._number("usual", video, question, run) % 3
        lone = self.lone_ask(video, question, run)
        differs = index if lone == N_ASKS + 1 else int(index == lone)
        return LABELS[(usual + differs) % 3]

    def lone_ask(self, video: int, question: int, run: int) -> int:
        """Which of three replies differs: 0 to 2, 3 for none, 4 for all of them from each other."""
        return self._number("lone", video, question, run) % 5

    def letter(self, video: int, question: int, seed: int) -> int:
        """CapQuiz's option, 5 for "Cannot be determined"."""
        return self._number("letter", video, question, seed) % 6

    def scores(self, video: int, question: int, seed: int) -> list[int]:
        """G-VEval's four numbers."""
        return [self._number(f"score{n}", video, question, seed) % 101 for n in range(4)]

    def ratings(self, video: int, question: int, seed: int) -> list[int]:
        """The three ratings of a judge that sees the video."""
        return [1 + self._number(f"rating{n}", video, question, seed) % 5 for n in range(3)]

    def text(self, key: Key) -> str:
        """The reply to a request, in one of the shapes that judges reply in."""
        number = self._number("shape", *key[:3])
        words = self._words(key, plain=number % 3 > 0)
        return f"<think>2 or 5? yes, no, (A)</think>\n{words}" if number % 5 == 0 else words

    def is_consistent(self, key: Key, prompt: str) -> bool:
        if key.step not in ("vdc_match", "vidcapbench_judge"):
            return True
        return f"Predicted Answer: {self.answer(*key[:3])}\n" in prompt

    def _words(self, key: Key, *, plain: bool) -> str:
        asked = key[:3]
        if key.step in FREE_TEXT:
            return self.answer(*asked)
        if key.step in ("vdc_match", "vdc_vdd"):
            verdict, score = self.match(*asked)
            value = {"pred": verdict, "score": score}
            return str(value) if plain else f"```json\n{json.dumps(value)}\n```"
        if key.step == "vidcapbench_judge":
            value = {"score": GRADES[self.grade(*asked)], "analysis": "Not 2 nor -1: 1 of 0."}
            return json.dumps(value) if plain else f"```json\n{json.dumps(value)}\n```"
        if key.step == "vcapsbench_answer":
            label = self.ask(*asked).capitalize()
            return f"{label}@@@It is so." if plain else f"**{label}**@@@It is so."
        if key.step == "capquiz_answer":
            letter = "ABCDEF"[self.letter(*asked)]
            return letter if plain else f"({letter})"
        return self._rated(key, plain=plain)

    def _rated(self, key: Key, *, plain: bool) -> str:
        asked = key[:3]
        if key.step == "video_rating":
            names = ("trustworthiness", "coverage", "overall")
            scores = dict(zip(names, self.ratings(*asked), strict=True))
            value = {"analysis": "It shows 2 of 3, coverage: 1.", "scores": scores}
            return json.dumps(value) if plain else f"```json\n{json.dumps(value)}\n```"
        accr = ("Accuracy", "Completeness", "Conciseness", "Relevance")
        return "Frame 1 of 3 shows 2 people; I would not say 50. " + " ".join(
            f"The {name} score is {sign}{score}{sign}."
            for name, sign, score in zip(accr, "αβψδ", self.scores(*asked), strict=True)
        )

    def _number(self, what: str, *asked: int) -> int:
        text = repr((self.salt, what, asked)).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big")

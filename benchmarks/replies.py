"""A seeded campaign of mutated replies against every reader of a judge's verdict.

Replies come from the table of hard ones in the tests and from grammars that write a known verdict.
They are cut, mixed, contradicted, filled with noise and blown up to 100 kB. Then it checks:

- no reader raises, and none gives what is not on its menu;
- a reply cut at any byte, ``finish_reason`` being ``length`` or missing, is never read as another
  verdict than the whole;
- two verdicts that contradict, a range, or a number off the scale are not read;
- free text and reasoning never change a verdict;
- no read takes more than 50 ms of processor time per 100 kB.

    python benchmarks/replies.py --mutations 1000000 --seed 0
    python benchmarks/replies.py --slow 15000 --seed 0  # inputs that look for slowness
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Reply

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "judges" / "protocols"))
from hard_replies import HARD_REPLIES, READERS, Reader, Reading
from reply_grammars import GRAMMARS
from slow_families import report_families, run_families
from time_limit import TooSlowError, time_limit

MOST_MS: Final = 50.0
"""Processor time of one read, per 100 kB."""
LEAST_SHARE_READ: Final = 0.85
"""Of the table's clear replies."""
_LONGEST: Final = 100_000
_TIMED_LENGTH: Final = 10_000
"""Characters; shorter replies may take as long as one of this length."""
_GIVE_UP_S: Final = 1.0
"""Processor time after which one read is given up, as it may never end."""
_SHOWN: Final = 5
"""Failures of one reader that are printed."""
_CHECKS: Final = ("cut", "misread", "off the menu", "raised", "slow")

_TOKENS: Final = (
    *("{", "}", "[", "]", "(", ")", "'", '"', "`", "```", "\\", "\\[", "\\(", "\\boxed{", "$", "@"),
    *("@@@", "**", "*", "_", "#", "|", ":", "=", ",", ".", "-", "\u2212", "/", "%", "->", "?", "!"),
    *("\n", "\r\n", "\t", " ", "\u00a0", "\u3000", "\u200b", "\x00", "\ud800", "\u017f", "\u0131"),
    *("：", "，", "。", "１", "Ｂ", "é", "e\u0301", "😀", "α", "β", "ψ", "δ", "ß", "∂", "\\alpha"),
    *("0", "1", "2", "4.8", "5", "59", "100", "1e999", "-1", ".5", "4,8", "3-4", "out of", "/10"),
    *("yes", "no", "unanswerable", "true", "null", "None", "NaN", "not ", "or ", "and ", "if "),
    *(
        "pred",
        "score",
        "'pred': ",
        "'score': ",
        '"score": ',
        "answer",
        "The answer is ",
        "Answer: ",
    ),
    *("A", "B", "C", "F", "a ", "option ", "final score is ", "Accuracy score is ", "<think>"),
    *("</think>", "<reasoning>", "</reasoning>", "For example, ", "Wait, ", "No, "),
)
_FRAMES: Final = (
    ("", ""),
    ("", "\n"),
    ("```\n", "\n```"),
    ("<think>\nLet me see.\n</think>\n\n", ""),
    ("Sure!\n\n", ""),
)
"""What may stand around a reply without changing it."""


@dataclass
class Tally:
    """What happened to one reader."""

    mutations: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    slowest_ms: float = 0.0
    """Per 100 kB, over replies of 10,000 characters and more."""
    examples: list[str] = field(default_factory=list)

    def fail(self, check: str, text: str, what: object) -> None:
        """Count a failure and keep the first ones."""
        self.failures[check] += 1
        if self.failures[check] <= _SHOWN:
            self.examples.append(f"{check}: {text[:300]!r} ({len(text)} characters): {what}")


@dataclass(frozen=True)
class Attack:
    """One reader under mutated replies."""

    name: Reader
    rng: random.Random
    most_ms: float = MOST_MS
    """Processor time of one read, per 100 kB."""
    tally: Tally = field(default_factory=Tally)

    def mutate(self) -> None:
        """One mutation and its checks."""
        self.tally.mutations += 1
        draw = self.rng.random()
        for share, attack in _ATTACKS:
            if draw < share:
                attack(self)
                return
            draw -= share
        self.cut_known()

    def cut_known(self) -> None:
        """A reply with a known verdict, cut, has that verdict or none."""
        text, reading = self._known()
        cut = self._cut(text)
        read = self._read(cut, self.rng.choice(("length", None)))
        if read not in {None, reading}:
            self.tally.fail("cut", cut, f"read {read!r}, the whole is {reading!r}")

    def cut_wild(self) -> None:
        """A mutated reply, cut, is read as the whole is, or not at all."""
        text = self._wild()
        whole = self._read(text, "stop")
        cut = self._cut(text)
        read = self._read(cut, self.rng.choice(("length", None)))
        # A closing tag alone tells that what stood before was reasoning.
        if "</think" not in text.lower() and whole is not None and read not in {None, whole}:
            self.tally.fail("cut", text, f"read {whole!r}, cut to {len(cut)} read {read!r}")

    def contradict(self) -> None:
        """Two verdicts that contradict are none."""
        self._expect(GRAMMARS[self.name].contradiction(self.rng), ())

    def blur(self) -> None:
        """What states no single verdict is none."""
        self._expect(*GRAMMARS[self.name].unclear(self.rng))

    def fill_free_text(self) -> None:
        """Noise in free text leaves a verdict as it is, whole or cut."""
        grammar = GRAMMARS[self.name]
        if self.rng.random() < 0.5:
            text, reading = grammar.with_free_text(self.rng, self._noise())
        else:
            text, reading = grammar.valid(self.rng)
            text = f"<think>{self._noise()}</think>{text}"
        self._expect(text, (reading,))
        cut = self._cut(text)
        read = self._read(cut, self.rng.choice(("length", None)))
        if read not in {None, reading}:
            self.tally.fail("cut", cut, f"read {read!r}, the whole is {reading!r}")

    def blow_up(self) -> None:
        """Up to 100 kB of something again and again, with a reply around it or in it."""
        parts = [self._piece() for _ in range(self.rng.choice((1, 1, 2, 3)))]
        unit = "".join(parts) or " "
        length = int(10 ** self.rng.uniform(4, 5))
        text = unit * (length // len(unit) + 1)
        head = self.rng.choice(("", self._piece(), self._any()))
        tail = self.rng.choice(("", self._piece(), self._any()))
        self._read((head + text)[: _LONGEST - len(tail)] + tail, "stop")

    def _expect(self, text: str, readings: tuple[Reading, ...]) -> None:
        read = self._read(text, "stop")
        if read is not None and read not in readings:
            self.tally.fail("misread", text, f"read {read!r}, not one of {readings!r}")

    def _read(self, text: str, finish_reason: str | None) -> Reading:
        reader, reply = READERS[self.name], Reply(text, finish_reason)
        start = time.thread_time()
        try:
            with time_limit(_GIVE_UP_S):
                reading = reader(reply)
        except TooSlowError:
            self.tally.slowest_ms = inf
            self.tally.fail("slow", text, f"given up after {_GIVE_UP_S} s")
            return None
        except Exception as error:  # noqa: BLE001 - whatever a reader raises is looked for
            self.tally.fail("raised", text, repr(error))
            return None
        self._time(text, reader, reply, (time.thread_time() - start) * 1000)
        if reading is not None and not _on_menu(self.name, reading):
            self.tally.fail("off the menu", text, repr(reading))
        return reading

    def _time(
        self, text: str, reader: Callable[[Reply], Reading], reply: Reply, first_ms: float
    ) -> None:
        """Hold a read to its time; one that looks slow is timed again, and the best time counts."""
        per_100_kb = _LONGEST / max(len(text), _TIMED_LENGTH)
        worst = self.tally.slowest_ms if len(text) >= _TIMED_LENGTH else self.most_ms
        elapsed_ms = first_ms
        for _ in range(4):
            if elapsed_ms * per_100_kb <= min(worst, self.most_ms):
                return
            start = time.thread_time()
            reader(reply)
            elapsed_ms = min(elapsed_ms, (time.thread_time() - start) * 1000)
        if len(text) >= _TIMED_LENGTH:
            self.tally.slowest_ms = max(worst, elapsed_ms * per_100_kb)
        if elapsed_ms * per_100_kb > self.most_ms:
            self.tally.fail("slow", text, f"{elapsed_ms * per_100_kb:.0f} ms per 100 kB")

    def _known(self) -> tuple[str, Reading]:
        """A reply that each beginning of may be read as, or not at all."""
        rng = self.rng
        if rng.random() < 0.3:
            case = rng.choice(_CUTTABLE[self.name])
            return case.text, case.reads
        text, reading = GRAMMARS[self.name].valid(rng)
        before, after = rng.choice(_FRAMES)
        text = f"{before}{text}{after}"
        return (f"{text}\n\n{text}" if rng.random() < 0.1 else text), reading

    def _any(self) -> str:
        if self.rng.random() < 0.5:
            return self.rng.choice(_TEXTS[self.name])
        return GRAMMARS[self.name].valid(self.rng)[0]

    def _piece(self) -> str:
        return self.rng.choice(_TOKENS) if self.rng.random() < 0.8 else self._any()

    def _noise(self) -> str:
        """Verdicts of any reader, and tokens; nothing that opens or closes reasoning."""
        name = self.rng.choice(tuple(GRAMMARS))
        noise = [GRAMMARS[name].valid(self.rng)[0], GRAMMARS[self.name].valid(self.rng)[0]]
        noise += self.rng.choices(_TOKENS, k=self.rng.randint(0, 4))
        self.rng.shuffle(noise)
        return self.rng.choice((" ", "", "\n")).join(noise).replace("think>", "")

    def _cut(self, text: str) -> str:
        # A part of a character's bytes reaches no reader: it is left out where JSON is decoded.
        return text[: self.rng.randrange(len(text) + 1)]

    def _wild(self) -> str:
        """A reply after one to four mutations."""
        text, rng = self._any(), self.rng
        for _ in range(rng.randint(1, 4)):
            start, end = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
            span, mutation = text[start:end], rng.randrange(8)
            if mutation == 0:
                text = text[:start] + text[end:]
            elif mutation == 1:
                text = text[:end] + span + text[end:]
            elif mutation == 2:
                text = text[end:] + span + text[:start]
            elif mutation == 3:
                text = text[:start] + self._any() + text[start:]
            elif mutation == 4:
                opening, closing = rng.choice((("{", "}"), ("[", "]"), ("'", "'"), ("$", "$")))
                depth = rng.choice((1, 1, 2, 30))
                text = text[:start] + opening * depth + span + closing * depth + text[end:]
            else:
                repeats = rng.choice((1, 1, 1, 1, 2, 9))
                text = text[:start] + rng.choice(_TOKENS) * repeats + text[start:]
        return text


_ATTACKS: Final[tuple[tuple[float, Callable[[Attack], None]], ...]] = (
    (0.005, Attack.blow_up),
    (0.40, Attack.cut_wild),
    (0.10, Attack.contradict),
    (0.10, Attack.blur),
    (0.15, Attack.fill_free_text),
)
"""Shares of the mutations; the rest are cuts of known replies."""
_CUTTABLE: Final = {
    name: [case for case in HARD_REPLIES if case.reader == name and case.clear and case.cuttable]
    for name in READERS
}
_TEXTS: Final = {
    name: [case.text for case in HARD_REPLIES if case.reader == name] for name in READERS
}


def _on_menu(name: Reader, reading: Reading) -> bool:
    """Whether a reader may give a reading at all."""
    if isinstance(reading, str):
        return reading in _MENUS.get(name, ())
    if name == "vdc":
        verdict, score = reading or (None, -1)
        return verdict in {"yes", "no"} and isinstance(score, float) and 0 <= score <= 5
    numbers = reading or ()
    expected = {"gveval_overall": 1, "gveval_accr": 4, "video_rating": 3}.get(name)
    low, high = (1, 5) if name == "video_rating" else (0, 100)
    return len(numbers) == expected and all(
        isinstance(number, float) and low <= number <= high for number in numbers
    )


_MENUS: Final[dict[Reader, tuple[str, ...]]] = {
    "vidcapbench": ("correct", "partial", "neutral", "wrong"),
    "vcapsbench": ("yes", "no", "unanswerable"),
    "capquiz": tuple("ABCDEF"),
}


def run_campaign(
    mutations: int,
    seed: int,
    *,
    names: Sequence[Reader] = tuple(READERS),
    most_ms: float = MOST_MS,
) -> dict[Reader, Tally]:
    """Mutations over the named readers in turn, as often each; the same for the same seed."""
    attacks = [Attack(name, random.Random(f"{seed} {name}"), most_ms) for name in names]
    for index in range(mutations):
        attacks[index % len(attacks)].mutate()
    return {attack.name: attack.tally for attack in attacks}


def read_table(name: Reader) -> tuple[int, int, int]:
    """Hard replies of one reader: read as another verdict or raised on, read as clear, clear."""
    wrong = read = clear = 0
    for case in HARD_REPLIES:
        if case.reader != name:
            continue
        try:
            reading = READERS[name](Reply(case.text, case.finish_reason))
        except Exception:  # noqa: BLE001 - whatever a reader raises is looked for
            wrong += 1
            clear += case.clear
            continue
        wrong += reading not in {None, case.reads, *case.allowed}
        clear += case.clear
        read += case.clear and reading == case.reads
    return wrong, read, clear


def report(tallies: dict[Reader, Tally]) -> bool:
    """Print a table and the first failures; whether every check held."""
    header = f"{'reader':16}{'mutations':>10}" + "".join(f"{check:>14}" for check in _CHECKS)
    print(f"{header}{'ms per 100 kB':>15}{'table wrong':>13}{'clear read':>16}")
    fine = True
    for name, tally in tallies.items():
        wrong, read, clear = read_table(name)
        counts = "".join(f"{tally.failures[check]:>14,}" for check in _CHECKS)
        share = f"{read}/{clear} = {read / clear:.0%}"
        print(f"{name:16}{tally.mutations:>10,}{counts}{tally.slowest_ms:>15.1f}", end="")
        print(f"{wrong:>13}{share:>16}")
        fine = fine and not tally.failures and not wrong and read >= LEAST_SHARE_READ * clear
    for name, tally in tallies.items():
        for example in tally.examples:
            print(f"{name}: {example}")
    return fine


def main() -> int:
    """Run the campaign; 1 where a check failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--mutations", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reader", choices=READERS, help="this reader alone")
    parser.add_argument("--slow", type=int, help="look at so many slow families in place of that")
    options = parser.parse_args()
    start = time.monotonic()
    if options.slow is not None:
        fine = report_families(run_families(options.slow, options.seed))
        print(f"{options.slow:,} families, seed {options.seed}, {time.monotonic() - start:.0f} s")
        return 0 if fine else 1
    names = (options.reader,) if options.reader else tuple(READERS)
    fine = report(run_campaign(options.mutations, options.seed, names=names))
    print(f"{options.mutations:,} mutations, seed {options.seed}, {time.monotonic() - start:.0f} s")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())

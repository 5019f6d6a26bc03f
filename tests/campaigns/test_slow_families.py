"""Inputs that look for slowness: every reader's time grows with the length, and no faster."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

import slow_families
from lmms_eval_captions.judges.endpoint.request import Request
from lmms_eval_captions.judges.protocols.prompt_folder import Prompts
from lmms_eval_captions.model_wrappers.no_caption import says_nothing
from slow_families import SUBJECTS, Family, Pace, look_at, report_families, run_families

N_FAMILIES = 12 * len(SUBJECTS)


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that no busy machine explains; the script holds readers to a tenth of the time."""
    monkeypatch.setattr(slow_families, "MOST_MS", 500.0)
    monkeypatch.setattr(slow_families, "MOST_GROWTH", 3.5)


@pytest.mark.usefixtures("busy")
def test_no_family_is_slow(capsys: pytest.CaptureFixture[str]) -> None:
    """Signs of every grammar, again and again: nothing takes long, and nothing is raised."""
    assert report_families(run_families(N_FAMILIES, seed=0)), capsys.readouterr().out


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize(
    "family",
    [
        Family("$", r"\[", ""),
        Family("score", " ", "2"),
        Family("", "{", ""),
        Family("", "[", ""),
        Family("", '{"a":', ""),
        Family("The final score is $", "$", "80$"),
        Family("", "\\", "$80$"),
        Family("", "<think>", ""),
        Family("", "</think>", "yes"),
        Family("'", "\\'", "'"),
        Family("yes", "@", "no"),
        Family("", "not ", "yes"),
        Family("", "A, ", "B"),
        Family("", "1 ", "2"),
        Family("unknown parameter", " ", "seed"),
        Family("", "\n", "{"),
        Family("a", "\ud800", ""),
    ],
    ids=str,
)
def test_what_was_slow_once_is_fast_for_every_reader(family: Family) -> None:
    """Shapes that took seconds, or went too deep, in some reader are read by all of them."""
    paces = {name: Pace() for name in SUBJECTS}
    for name, read in SUBJECTS.items():
        look_at(read, family, paces[name])
    assert not [example for pace in paces.values() for example in pace.examples]


def _quadratic(text: str) -> object:
    return [len(text.upper()) for _ in range(len(text) // 20)]


def _raising(text: str) -> object:
    return int(text)


def _endless(text: str) -> object:
    return re.match(r"(?:x+x+)+y", "x" * 60) if text else None


@pytest.mark.parametrize(
    ("read", "check"), [(_quadratic, "slow"), (_raising, "raised"), (_endless, "slow")]
)
def test_a_reader_that_is_slow_or_raises_is_found_out(
    read: Callable[[str], object], check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The campaign fails, and says for which family."""
    monkeypatch.setattr(slow_families, "SUBJECTS", {"bad": read})
    monkeypatch.setattr(slow_families, "GIVE_UP_S", 0.2)
    paces = run_families(4, seed=0)
    assert paces["bad"].failures[check]
    assert not report_families(paces)


def test_a_reader_whose_time_grows_too_fast_is_found_out() -> None:
    """Quick as it is at 100 kB, what takes four times as long for twice the length is told."""

    def read(text: str) -> None:
        deadline_s = time.thread_time() + 0.008 * (len(text) / 100_000) ** 2
        while time.thread_time() < deadline_s:
            pass

    pace = Pace()
    look_at(read, Family("", "x", ""), pace)
    assert pace.failures == {"grows": 1}


@pytest.mark.parametrize("unit", ["word ", "{{caption}}", "{", "\\", "\ud800", "\n"])
def test_a_caption_of_a_million_characters_is_asked_about(unit: str) -> None:
    """Prompts, keys and the look for words take a tenth of a second of it, not more."""
    caption = (unit * 1_000_000)[:1_000_000]
    start_s = time.thread_time()
    for prompt in ("vdc_answer", "vidcapbench_answer", "vcapsbench_answer"):
        slots = dict.fromkeys(Prompts().load(prompt).slots, "x")
        messages = Prompts().load(prompt).render(**{**slots, _caption_slot(prompt): caption})
        request = Request("test:1", "judge", messages, {}, 0, 1.0, lambda: "")
        assert request.key(request.body(0))
        assert says_nothing(caption) == (not re.search(r"\w", unit))
    assert time.thread_time() - start_s < 0.5


def _caption_slot(prompt: str) -> str:
    slots = Prompts().load(prompt).slots
    return next(name for name in ("caption", "description", *slots) if name in slots)

"""The campaign of mutated replies: every reader holds, and one that guesses is found out."""

from __future__ import annotations

import re

import pytest

import replies
from hard_replies import READERS
from lmms_eval_captions.judges.endpoint.request import Reply
from replies import MOST_MS, Tally, report, run_campaign

N_MUTATIONS = 20_000
FAR_TOO_SLOW_MS = 10 * MOST_MS
"""Of processor time per 100 kB: what no busy machine explains. The limit itself is the script's."""


def test_every_reader_holds_under_mutations(capsys: pytest.CaptureFixture[str]) -> None:
    """Cut, mixed, contradicted, blown up: no reader raises, dawdles or reads another verdict."""
    assert report(run_campaign(N_MUTATIONS, seed=0, most_ms=FAR_TOO_SLOW_MS)), (
        capsys.readouterr().out
    )


def test_the_same_seed_plays_the_same_mutations() -> None:
    """Counts and failures depend on the seed alone."""
    first, second = (run_campaign(350, seed=7) for _ in range(2))
    for name in READERS:
        assert first[name].mutations == second[name].mutations == 50
        assert _sound(first[name]) == _sound(second[name])


def test_a_reader_that_guesses_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that takes the last digit it meets fails by cuts and by misreading."""
    monkeypatch.setitem(READERS, "vdc", _last_digit)
    tally = run_campaign(500, seed=0, names=["vdc"])["vdc"]
    assert tally.failures["cut"]
    assert tally.failures["misread"]
    assert any(example.startswith("cut: ") for example in tally.examples)
    assert not report({"vdc": tally})


def test_a_reader_that_raises_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a reader raises is counted, and the campaign goes on."""
    monkeypatch.setitem(READERS, "capquiz", lambda reply: ["B"][len(reply.text) % 2])
    assert run_campaign(100, seed=0, names=["capquiz"])["capquiz"].failures["raised"] > 10


def test_a_reading_off_the_menu_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A letter that is no option is no reading."""
    monkeypatch.setitem(READERS, "capquiz", lambda _reply: "G")
    assert run_campaign(100, seed=0, names=["capquiz"])["capquiz"].failures["off the menu"] >= 100


def test_a_slow_reader_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader whose time grows with the square of a reply's length fails."""
    monkeypatch.setitem(READERS, "vcapsbench", _quadratic)
    assert run_campaign(1_000, seed=0, names=["vcapsbench"])["vcapsbench"].failures["slow"]


def test_a_reader_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that would never end does not hold up the campaign."""
    hopeless = re.compile(r"(?:x+x+)+y")

    def endless(reply: Reply) -> None:
        if len(reply.text) >= 10_000:
            hopeless.match("x" * 60)

    monkeypatch.setitem(READERS, "vcapsbench", endless)
    monkeypatch.setattr(replies, "_GIVE_UP_S", 0.1)
    tally = run_campaign(1_000, seed=0, names=["vcapsbench"])["vcapsbench"]
    assert any("given up" in example for example in tally.examples)


def test_a_strict_reader_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that takes the form of the prompt alone has no failure: the checks ask no more."""
    monkeypatch.setitem(READERS, "vdc", _as_asked)
    assert not run_campaign(1_000, seed=1, names=["vdc"])["vdc"].failures


def _sound(tally: Tally) -> dict[str, int]:
    return {check: count for check, count in tally.failures.items() if check != "slow"}


def _last_digit(reply: Reply) -> tuple[str, float] | None:
    digits = re.findall(r"[0-5]", reply.text)
    return ("yes" if "yes" in reply.text else "no", float(digits[-1])) if digits else None


def _quadratic(reply: Reply) -> None:
    if len(reply.text) >= 10_000:
        sum(range(len(reply.text) ** 2 // 500))


def _as_asked(reply: Reply) -> tuple[str, float] | None:
    found = re.fullmatch(r"\{'pred': '(yes|no)', 'score': ([0-4](?:\.\d+)?|5)\}", reply.text)
    return (found[1], float(found[2])) if found else None

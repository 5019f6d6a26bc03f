"""Captions with planted facts: the same for everybody, and right by their own words."""

from __future__ import annotations

from collections import Counter

import pytest

from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.facts import (
    facts_digest,
    planted_facts,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.slots import SLOTS
from lmms_eval_captions.lmms_eval_tasks.planted_facts import PlantedFact
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks
from reading_judge import Facet

FACTS = planted_facts()


def test_they_are_those_of_their_version() -> None:
    """A change of any word is a new version, as records of another one are not compared."""
    assert facts_digest(FACTS) == "7d7205fb"


def test_there_are_200_of_every_kind_and_relation() -> None:
    """Half of the captions state their fact, a quarter contradict it, a quarter say nothing."""
    assert len(FACTS) == len({fact.name for fact in FACTS}) == 200
    assert Counter(fact.relation for fact in FACTS) == {
        "states": 100, "contradicts": 50, "silent": 50,
    }  # fmt: skip
    kinds = Counter(fact.kind for fact in FACTS)
    assert set(kinds) == {slot.kind for slot in SLOTS}
    assert min(kinds.values()) >= 12
    for kind in kinds:
        assert {fact.relation for fact in FACTS if fact.kind == kind} == {
            "states", "contradicts", "silent",
        }  # fmt: skip


def test_captions_are_different_and_of_60_to_200_words() -> None:
    """Each has several sentences."""
    assert len({fact.caption for fact in FACTS}) == 200
    for fact in FACTS:
        assert 60 <= len(fact.caption.split()) <= 200
        assert fact.caption.count(". ") >= 6


def test_some_are_subtle() -> None:
    """Synonyms, negations, near numbers and distractors, in states and contradicts."""
    subtle = [fact for fact in FACTS if fact.is_subtle]
    assert 30 <= len(subtle) <= 80
    assert {fact.relation for fact in subtle} == {"states", "contradicts"}
    near = [fact for fact in FACTS if fact.kind == "count" and fact.relation == "contradicts"]
    numbers = next(slot for slot in SLOTS if slot.kind == "count").values
    assert near
    for fact in near:
        assert abs(numbers.index(fact.said) - numbers.index(fact.truth)) == 1


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.name)
def test_a_reader_of_the_caption_finds_what_it_is_built_to_say(fact: PlantedFact) -> None:
    """By the sentences of the slots alone, wherever they stand; of silent ones nothing."""
    slot = next(slot for slot in SLOTS if slot.kind == fact.kind)
    things = [thing for thing in slot.things if not thing or thing in fact.question]
    (thing,) = [each for each in things if Facet(slot, each).slot is slot][:1]
    said = Facet(slot, thing).said_in(fact.caption)
    assert (said or "") == fact.said
    assert fact.evidence in fact.caption
    expected = {"states": fact.truth, "silent": None}.get(fact.relation, fact.said)
    assert said == expected
    if fact.relation == "contradicts":
        assert said != fact.truth
    if fact.relation == "silent":
        assert not any(Facet(slot, each).said_in(fact.caption) for each in slot.things)


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.name)
def test_its_questions_fit_what_it_says(fact: PlantedFact) -> None:
    """Five options with the truth and what is said; a claim that is true or not."""
    assert len(set(fact.options)) == 5
    assert fact.truth in fact.options
    assert not fact.said or fact.said in fact.options
    assert (fact.truth in fact.claim) == fact.claim_is_true
    own = fact.short_caption.removeprefix("The video shows ").removesuffix(".")
    does = own.rpartition(", ")[2]
    assert (does in fact.references[0]) == (fact.relation == "states")


def test_every_benchmark_knows_the_right_verdict_of_every_fact() -> None:
    """Its verdicts for stating and not stating captions differ, and all it names can be said."""
    verified = {
        name: benchmark.verification
        for name, benchmark in all_benchmarks().items()
        if benchmark.verification is not None
    }
    assert set(verified) == {"vdc", "vidcapbench", "vcapsbench", "capquiz", "msvd_eval"}
    for verification in verified.values():
        assert verification is not None
        by_relation: dict[str, set[str]] = {}
        asked = {repr(verification.anchor(fact)) for fact in FACTS}
        assert len(asked) == 200
        for fact in FACTS:
            anchor = verification.anchor(fact)
            assert anchor.caption
            by_relation.setdefault(fact.relation, set()).add(anchor.verdict)
        assert all(len(verdicts) == 1 for verdicts in by_relation.values())
        assert by_relation["states"].isdisjoint(by_relation["contradicts"] | by_relation["silent"])

"""The campaign of planted builds, in short; see benchmarks/building.py."""

from __future__ import annotations

from math import sqrt
from pathlib import Path

import pytest

from builder_replies import Told
from builder_server import Builder, BuilderServer
from building import CHANCE, FROM_CHANCE, blind_accuracy_of_kept, measure_filters
from ended_builds import hasten, name_clips
from planted_builds import GOAL, KINDS, Recovered
from planted_questions import Shares

N_QUESTIONS = {"capquiz": 40, "vcapsbench": 80, "vdc": 20, "vidcapbench": 30}
"""Of a reply; so few that chance moves the shares."""
SLIPS = {"answered blind": 0.955, "wrong answer": 0.965}
"""Share of a filter's finds, or of what is planted, that it gets right where models slip as they
are told to: each is the smaller one."""


def _least(filters: Recovered, n: int) -> float:
    """What so few questions may leave of a filter's share by chance."""
    share = SLIPS.get(filters.fault, 1.0)
    return share - 3.5 * sqrt(share * (1 - share) / max(1, n))


@pytest.mark.parametrize("kind", KINDS)
def test_filters_find_what_is_planted(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Precision and recall of each filter, but for chance; what is left is not known blindly."""
    hasten(monkeypatch)
    clips, told = name_clips(tmp_path / "clips", 6), Told(n_questions=N_QUESTIONS[kind])
    with BuilderServer(Builder(told)) as server:
        built, filters = measure_filters(kind, told, clips, tmp_path, server.url)
        for each in filters:
            assert each.n_planted > 0, each
            assert each.precision >= _least(each, each.n_dropped), each
            assert each.recall >= _least(each, each.n_planted), each
        if kind == "capquiz":
            assert abs(blind_accuracy_of_kept(built, tmp_path) - CHANCE) <= FROM_CHANCE


def test_the_campaign_tells_a_filter_that_finds_too_little() -> None:
    """Below the goal in precision or in recall, it is missed; its line has both."""
    assert Recovered("a fault", 100, 100, 95).reaches(GOAL)
    assert not Recovered("a fault", 100, 90, 90).reaches(GOAL)
    assert not Recovered("a fault", 90, 100, 90).reaches(GOAL)
    assert not Recovered("a fault", 0, 0, 0).reaches(GOAL)
    assert "| 90.0% | 100.0% |" in Recovered("a fault", 90, 100, 90).text()


def test_a_filter_is_measured_by_what_is_planted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Viewers that guess half of the time find half: the numbers follow."""
    hasten(monkeypatch)
    told = Told(Shares(blind=0.0, duplicate=0.0, slips=0.5), n_questions=40)
    clips = name_clips(tmp_path / "clips", 3)
    with BuilderServer(Builder(told)) as server:
        _, filters = measure_filters("vdc", told, clips, tmp_path, server.url)
    (wrong,) = filters
    assert wrong.recall < 0.7
    assert wrong.precision < 0.4

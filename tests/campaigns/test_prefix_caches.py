"""A short share of the simulation of block caches, and what it is built on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prefix_caches
from lmms_eval_captions.judges.endpoint import engine as engines
from lmms_eval_captions.judges.endpoint.head_start import HeadStart
from prefix_caches import BlockCache, Prompts, Run, main


@pytest.fixture
def questions(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The real questions of VDC, as the program looks for them."""
    (tmp_path / "vdc").mkdir()
    (tmp_path / "vdc" / "VDCScore_qa").symlink_to(shared_data / "vdc_qa")
    monkeypatch.setenv("LMMS_CAPTIONS_DATA", str(tmp_path))
    return tmp_path


def test_four_replicas_share_what_they_should(
    questions: Path, shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """1,200 questions with a real tokenizer: enough after, and much less before."""
    assert questions.is_dir()
    tokenizer = str(shared_data / "t5" / "tokenizer.json")
    options = ["--questions", "1200", "--replicas", "4", "--tokenizer", tokenizer]
    assert main(options) == 0
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines() if "| 4 |" in line]
    shared = {row[2].strip(): float(row[3].strip(" %")) for row in rows}
    assert shared["before"] < 75.0 <= 85.0 <= shared["after"]
    assert shared["before"] + 10 < shared["after, untold"]


class _Always(HeadStart):
    def __init__(self, n_slots: int, *, is_possible: bool = True) -> None:
        super().__init__(n_slots, is_possible=is_possible)
        self.state = "on"


@pytest.mark.parametrize("n_replicas", [1, 4])
def test_no_slot_is_idle_for_a_head_start(
    questions: Path, n_replicas: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where replies take as long whatever is cached, all captions with one are asked as fast."""
    assert questions.is_dir()
    monkeypatch.setattr(prefix_caches, "TOKENS_PER_S", 1e12)
    arguments = prefix_caches._arguments([])
    captions, tokens = prefix_caches._captions(600), prefix_caches._tokens_of(None)
    before = prefix_caches._simulated("before", n_replicas, captions, tokens, arguments)
    monkeypatch.setattr(engines, "HeadStart", _Always)
    after = prefix_caches._simulated("after", n_replicas, captions, tokens, arguments)
    assert after.head_start.startswith("on")
    assert after.seconds <= 1.03 * before.seconds


def test_too_little_shared_is_a_failure(
    questions: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program exits with 1 where captions are asked about anywhere."""
    assert questions.is_dir()
    monkeypatch.setattr(prefix_caches, "caption_digest", lambda _: None)
    assert main(["--questions", "600", "--replicas", "4"]) == 1
    assert "NOT as it should be" in capsys.readouterr().out


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple), max_size=40),
    st.integers(1, 12),
)
def test_the_cache_keeps_what_was_used_last(prompts: list[tuple[int, ...]], n: int) -> None:
    """Beside a plain list of prefixes: those used longest ago give way, ends before beginnings."""
    kept: list[tuple[int, ...]] = []
    cache = BlockCache(n)
    numbers: dict[tuple[int, ...], int] = {}
    for prompt in prompts:
        prefixes = [prompt[:end] for end in range(1, len(prompt) + 1)]
        blocks = tuple(numbers.setdefault(prefix, len(numbers)) for prefix in prefixes)
        n_found = 0
        while n_found < len(prefixes) and prefixes[n_found] in kept:
            n_found += 1
        assert cache.n_found(blocks) == n_found
        cache.add(blocks)
        kept = [prefix for prefix in kept if prefix not in prefixes]
        kept = [*kept, *reversed(prefixes)][-n:]


def test_blocks_are_told_apart_by_all_that_stands_before_them() -> None:
    """Whole blocks of 16 tokens alone count; the same words behind others are another block."""
    prompts = Prompts(lambda text: text.split())

    def blocks(words: str) -> tuple[tuple[int, ...], int]:
        body: dict[str, Any] = {"messages": [{"role": "user", "content": words}]}
        return prompts.blocks(body)

    same, other = "a " * 31, "b " * 31
    (one, n_one), (two, _), (three, _) = blocks(same + "x"), blocks(same + "y"), blocks(other)
    assert (n_one, len(one), len(three)) == (33, 2, 2)
    assert one == two
    assert set(one).isdisjoint(three)


def test_what_could_be_shared_is_what_one_cache_without_an_end_finds() -> None:
    """Two prompts of two blocks, of which one is common, on one replica and on two."""
    together = Run("after", 1, [[[(1, 2)], [(1, 3)]]], 1.0, "")
    apart = Run("before", 2, [[[(1, 2)]], [[(1, 3)]]], 1.0, "")
    at_once = Run("before", 1, [[[(1, 2), (1, 3)]]], 1.0, "")
    assert [run.shared(9)[0] for run in (together, apart, at_once)] == [1.0, 0.0, 0.0]
    assert (together.shared(0)[0], together.busiest, apart.busiest) == (0.0, 1.0, 1.0)
    # Of three blocks that both begin with, the first is the same in all prompts of the kind.
    longer = Run("after", 2, [[[(1, 2, 3)], [(1, 2, 4)]], [[(1, 5)]]], 1.0, "")
    assert longer.shared(9, 1) == (2 / 3, 1.0)

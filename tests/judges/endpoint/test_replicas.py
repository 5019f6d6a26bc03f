"""Where captions belong: the same in every process, within a bound, and moved only where needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.judges.endpoint.slots import Replicas

NAMES = tuple(f"http://10.0.0.{number}:8000/v1" for number in range(4))
CAPTIONS = [f"caption {number}".encode() for number in range(4_000)]
_IN_A_PROCESS = """
import json, sys
from lmms_eval_captions.judges.endpoint.slots import Replicas
names = sys.argv[1].split(",")
replicas = Replicas(names)
print(json.dumps([names[replicas.choose(b"caption %d" % n, 0.0)] for n in range(200)]))
"""


def _chosen(names: tuple[str, ...], seed: str) -> list[str]:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [sys.executable, "-c", _IN_A_PROCESS, ",".join(names)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    chosen: list[str] = json.loads(done.stdout)
    return chosen


def test_processes_with_other_orders_of_the_urls_choose_the_same_replica() -> None:
    """They do so without a word to one another, and not one replica for all."""
    chosen = _chosen(NAMES, "1")
    assert _chosen(NAMES[::-1], "2") == chosen
    assert set(chosen) == set(NAMES)


def test_captions_are_spread_about_evenly() -> None:
    """Of 4,000 each of four replicas is the first one for a quarter, about."""
    replicas = Replicas(NAMES)
    first = Counter(replicas.order(caption)[0] for caption in CAPTIONS)
    assert sorted(first) == [0, 1, 2, 3]
    assert all(abs(n - 1_000) <= 150 for n in first.values())


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=300),
    st.integers(2, 6),
)
def test_no_replica_passes_its_bound_however_skewed_the_captions_are(
    steps: list[tuple[int, int]], n_replicas: int
) -> None:
    """With the request that it is given, a replica has at most 1.1 times the mean, or that rounded.

    Captions are three that are asked about all the time and one that is asked about rarely; of
    what is in flight another one is answered now and then.
    """
    replicas = Replicas([f"http://host{number}/v1" for number in range(n_replicas)])
    in_flight: list[int] = []
    for caption, place in steps:
        if place < len(in_flight):
            replicas.in_flight[in_flight.pop(place)] -= 1
        chosen = replicas.choose(f"skewed {caption}".encode(), 0.0)
        replicas.in_flight[chosen] += 1
        in_flight.append(chosen)
        mean = sum(replicas.in_flight) / n_replicas
        assert replicas.in_flight[chosen] <= max(ceil(mean), 1.1 * mean)


def test_a_replica_that_is_down_hands_on_its_captions_alone() -> None:
    """Those of the others stay, and its own come back when it is up."""
    replicas = Replicas(NAMES)
    before = [replicas.choose(caption, 0.0) for caption in CAPTIONS[:400]]
    replicas.failed(1, until_s=10.0)
    during = [replicas.choose(caption, 5.0) for caption in CAPTIONS[:400]]
    for caption, old, new in zip(CAPTIONS, before, during, strict=False):
        assert new == (replicas.order(caption)[1] if old == 1 else old)
    assert [replicas.choose(caption, 10.0) for caption in CAPTIONS[:400]] == before
    replicas.failed(1, until_s=10.0)
    replicas.answered(1)
    assert [replicas.choose(caption, 5.0) for caption in CAPTIONS[:400]] == before


def test_what_is_about_no_caption_goes_to_the_least_busy_that_is_up() -> None:
    """As it always did."""
    replicas = Replicas(NAMES)
    replicas.in_flight[:] = [3, 1, 0, 2]
    assert replicas.choose(None, 0.0) == 2
    replicas.failed(2, until_s=1.0)
    assert replicas.choose(None, 0.0) == 1

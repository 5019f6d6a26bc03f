"""The table of stored replies is a ``dict`` that takes less memory."""

from __future__ import annotations

import random
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.judges.endpoint.store.places import Place, Places

# Few letters, so that keys come again, begin alike, and look like parts of each other's records.
KEYS = st.lists(st.sampled_from([0, 1, 255]), min_size=16, max_size=16).map(bytes)
PLACES = st.tuples(
    st.integers(0, 3), st.sampled_from([0, 1, 255, 2**63]), st.sampled_from([0, 1, 2**26])
)


@given(
    puts=st.lists(st.tuples(KEYS, PLACES), max_size=60),
    dropped=st.integers(0, 3),
    later=st.lists(st.tuples(KEYS, PLACES), max_size=20),
    asked=st.lists(KEYS, max_size=20),
)
def test_it_holds_what_a_dict_would(
    puts: list[tuple[bytes, Place]],
    dropped: int,
    later: list[tuple[bytes, Place]],
    asked: list[bytes],
) -> None:
    """Set, set again, forgotten by segment, set once more: keys, places and their number."""
    places = Places()
    places.update(puts)
    places.drop(dropped)
    places.update(later)
    expected = {key: place for key, place in dict(puts).items() if place[0] != dropped}
    expected |= dict(later)
    assert len(places) == len(expected)
    for key in [*asked, *(key for key, _ in puts), *expected]:
        assert places.get(key) == expected.get(key)
        assert (key in places) == (key in expected)


def test_a_key_within_another_records_bytes_is_not_there() -> None:
    """A place's zeros are no key of zeros, which is found behind them once it is set."""
    places = Places()
    places.put(bytes(2) + b"\1" * 14, (0, 0, 0))
    assert bytes(16) not in places
    places.put(bytes(16), (1, 2, 3))
    assert places.get(bytes(16)) == (1, 2, 3)
    assert len(places) == 2


def test_a_reply_takes_some_fifty_bytes() -> None:
    """Of half a million of them: what a process holds grows by little."""
    draw = random.Random(1).randbytes
    n_keys = 500_000
    tracemalloc.start()
    try:
        places = Places()
        for number in range(n_keys):
            places.put(draw(16), (number & 7, number << 10, 1000))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(places) == n_keys
    assert held / n_keys < 64

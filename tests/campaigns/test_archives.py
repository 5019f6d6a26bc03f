"""The campaign against unpacking, in short; see benchmarks/archives.py."""

from __future__ import annotations

import archives


def test_no_archive_escapes_and_none_that_is_cut_counts_as_whole() -> None:
    """A hundred archives, whole, cut, damaged and hostile, are unpacked as they are or refused."""
    tally = archives.run_campaign(100, 0)
    assert tally.failures == []
    assert tally.unpacked["none"] == tally.archives["none"] > 0

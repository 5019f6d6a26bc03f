"""How many unstable questions look stable because they were asked too seldom."""

from __future__ import annotations


def unstable_that_pass(flip: float, *, n_runs: int, n_captioners: int) -> float:
    """Chance that a question looks stable though its verdict flips from run to run.

    Args:
        flip: How often one of its captions gets the other of two verdicts, in [0, 1].
        n_runs: Judge runs of each caption, >= 1.
        n_captioners: Captions of its video, each judged for itself, >= 1.

    Returns:
        Chance that every caption gets one verdict in all of its runs, in [0, 1].

    Source:
        The binomial distribution, of the rule of VidCapBench, section 3.2, which asks three times
        about the captions of five captioners.

    >>> round(unstable_that_pass(0.1, n_runs=3, n_captioners=1), 2)
    0.73
    >>> round(unstable_that_pass(0.1, n_runs=3, n_captioners=5), 2)
    0.21
    """
    return float((flip**n_runs + (1 - flip) ** n_runs) ** n_captioners)

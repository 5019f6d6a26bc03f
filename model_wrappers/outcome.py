"""How a run of captioning went: what failed and why, and where the time went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from loguru import logger

from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.model_wrappers.no_caption import NoCaption

SHOWN: Final = 20
"""Failures named in the closing report, and clips of one reason, or not found, that are logged when
they have no caption."""


@dataclass(slots=True)
class Outcome:
    """Counts of one call of ``generate_until``."""

    n_captions: int = 0
    """Captions written; equal requests share one."""
    n_reused: int = 0
    """Captions taken from earlier runs."""
    compute_s: float = 0.0
    """Seconds spent in the model."""
    wait_s: float = 0.0
    """Seconds in which the model had nothing to do: the next batch was not decoded yet."""
    failures: dict[tuple[str, int], str] = field(default_factory=dict)
    """Task and document to the clip and why it has no caption."""
    _reasons: dict[int, str] = field(default_factory=dict)
    """Position of a request to the clip and why it has no caption."""
    _logged: set[str] = field(default_factory=set)
    _n_alike: Counter[str] = field(default_factory=Counter)
    """Clips without a caption, by the reason: an endpoint that is gone is one for all of them."""

    def fail(
        self,
        name: str,
        task: str,
        doc_id: int,
        reason: str,
        positions: Sequence[int],
        *,
        is_quiet: bool = False,
    ) -> None:
        """Note a document that gets no caption, at these requests; a clip is logged at most once.

        Where one reason has many clips, the first ``SHOWN`` are logged.

        Args:
            name: The clip's.
            task: The document's.
            doc_id: The document.
            reason: Why there is none.
            positions: Of the requests.
            is_quiet: Whether nothing is logged until the closing report.
        """
        name, reason = whole(name), whole(reason)
        self.failures[task, doc_id] = f"{name}: {reason}"
        self._reasons.update(dict.fromkeys(positions, f"{name}: {reason}"))
        if name not in self._logged and not is_quiet:
            self._logged.add(name)
            self._n_alike[reason] += 1
            if self._n_alike[reason] <= SHOWN:
                logger.warning("no caption for {}: {}", name, reason)
            elif self._n_alike[reason] == SHOWN + 1:
                logger.warning("no caption for more, for the same reason; they are counted below")

    def no_caption(self, position: int) -> NoCaption:
        """What stands for the caption that a request did not get."""
        return NoCaption(self._reasons.get(position, "the captioner gave none"))

    def shares(self) -> str:
        """Where the time went.

        >>> Outcome(compute_s=3.0, wait_s=1.0).shares()
        'computing 75%, waiting for frames 25%'
        """
        total_s = self.compute_s + self.wait_s
        if not total_s:
            return ""
        return (
            f"computing {self.compute_s / total_s:.0%}, waiting for frames "
            f"{self.wait_s / total_s:.0%}"
        )

    def report(self) -> None:
        """Log the whole: rate, shares of time, and every document without a caption."""
        total_s = self.compute_s + self.wait_s
        if self.n_captions and total_s:
            logger.info(
                "{} captions in {:.1f} s, {:.2f} a second; {}",
                self.n_captions,
                total_s,
                self.n_captions / total_s,
                self.shares(),
            )
        if self.failures:
            lines = [f"{task}[{doc_id}] {text}" for (task, doc_id), text in self.failures.items()]
            more = len(lines) - SHOWN
            logger.error(
                "{} document(s) have no caption, their questions are unscored:\n  {}{}",
                len(lines),
                "\n  ".join(lines[:SHOWN]),
                f"\n  and {more} more" if more > 0 else "",
            )

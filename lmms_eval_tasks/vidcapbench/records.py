"""Records of a caption judged by VidCapBench."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.protocols.vidcapbench import Question
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.judges.verdict import CorrectnessJudgement
from lmms_eval_captions.lmms_eval_tasks.breakdown import scored_item
from lmms_eval_captions.lmms_eval_tasks.judge_run import Record
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecords
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.t5_tokens import TokenCounter, token_counter
from lmms_eval_captions.metrics.vidcapbench_acc import vidcapbench_acc
from lmms_eval_captions.metrics.vidcapbench_con import vidcapbench_con
from lmms_eval_captions.metrics.vidcapbench_cov import vidcapbench_cov
from lmms_eval_captions.metrics.vidcapbench_pre import vidcapbench_pre


@dataclass(frozen=True, slots=True)
class VidCapBenchRecords(CaptionRecords[CorrectnessJudgement]):
    """One judged caption of VidCapBench."""

    caption: str
    questions: Sequence[Question]

    def unscored(self) -> Record:
        """Head of every item; its signature says where ``con`` cannot be had."""
        head = CaptionRecords.unscored(self)
        if _tokenizer()[0] is None:
            head["extras"] = {**self.extras, "con": "unavailable"}
        return head

    def acc(self) -> Record:
        """Item of ``acc``: ``score`` in [0, 1], all that the breakdown needs, every judgement."""
        return {
            **scored_item(self, vidcapbench_acc),
            "dimensions": [question.dimension for question in self.questions],
            "sub_categories": [question.sub_category for question in self.questions],
            **self._tokens(),
            "judgements": self.judgements(),
        }

    def pre(self) -> Record:
        """Item of ``pre``: ``score`` in [0, 1], left out where nothing was mentioned."""
        return scored_item(self, vidcapbench_pre)

    def cov(self) -> Record:
        """Item of ``cov``: ``score`` in [0, 1]."""
        return scored_item(self, vidcapbench_cov)

    def con(self) -> Record:
        """Item of ``con``: T5 tokens, and this caption's own accuracy over them as ``score``."""
        tokens = self._tokens()
        n_tokens = tokens["n_tokens"]
        counts = [n_tokens] if isinstance(n_tokens, int) else []
        return {**scored_item(self, partial(vidcapbench_con, n_tokens=counts)), **tokens}

    def _tokens(self) -> Record:
        counter, reason = _tokenizer()
        if counter is None:
            return {"n_tokens": None, "con_reason": reason}
        if self.judged.caption == "missing":
            return {"n_tokens": None}
        return {"n_tokens": counter(self.caption)}


def _tokenizer() -> tuple[TokenCounter | None, str | None]:
    """T5's counter, or why there is none."""
    try:
        return _tokenizer_at(data_settings().t5)
    except SettingsError as error:
        return None, str(error)


@cache
def _tokenizer_at(path: Path | None) -> tuple[TokenCounter | None, str | None]:
    # A failure is kept, too: the hub is asked once, not for every caption.
    try:
        return token_counter(path), None
    except DataError as error:
        return None, str(error)

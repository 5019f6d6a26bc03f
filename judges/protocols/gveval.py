"""G-VEval: a judge reasons about a caption, then scores it; the score is an expectation.

From reference captions, from frames of the video, or both, along four dimensions (ACCR).

Source: G-VEval, section 3 and appendix B; released code ztangaj/gveval@fee3fd7.
Parity: as in that code the listed alternatives that are scores are scaled to 1, whatever they sum
to; how numbers of several tokens are put together is said in ``number_distribution.py``.
Deviation: that code takes the token after the first marker and its five likeliest alternatives, and
drops a caption whose reply it cannot read three times; it sends prompts without a picture as a
system message, which some chat templates refuse.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from lmms_eval_captions.judges.endpoint.request import Message, Picture, Reply
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.protocols import lexical
from lmms_eval_captions.judges.protocols.asking import request_of
from lmms_eval_captions.judges.protocols.gveval_reading import ACCR, Written, read_scores
from lmms_eval_captions.judges.protocols.number_distribution import number_distribution
from lmms_eval_captions.judges.protocols.prompt import Prompts, attach_pictures
from lmms_eval_captions.judges.verdict import ScoreDistribution, ScoresJudgement

if TYPE_CHECKING:
    from lmms_eval_captions.judges.endpoint.request import Ask
    from lmms_eval_captions.judges.protocols.asking import JudgeConfig

Setting = Literal["ref_only", "ref_free", "combined"]

LOWEST: Final = 0
HIGHEST: Final = 100
_TOP_LOGPROBS: Final = 10
"""Alternatives asked for. Deviation: the released code asks for 5, which cuts flat distributions;
the most that OpenAI gives, 20, makes every reply a megabyte."""
_LITERAL: Final = {f"{name}_score": f"{{{{{name}_score}}}}" for name in ACCR}
"""What looks like a slot and goes to the judge as it is."""
_AS_PRINTED: Final = Prompts()
_MARKS: Final = dict(zip(ACCR, "αβψδ", strict=True))


@dataclass(frozen=True, slots=True)
class GVeval:
    """One way of scoring video captions, from 0 to 100 along four dimensions."""

    setting: Setting
    """What the judge is shown next to the caption."""

    @property
    def sees(self) -> bool:
        """Whether the judge is shown a picture."""
        return self.setting != "ref_only"

    async def judge(
        self,
        ask: Ask,
        caption: str,
        *,
        references: Sequence[str],
        picture: Callable[[], Picture] | None,
        config: JudgeConfig,
        run: int,
    ) -> ScoresJudgement:
        """Score one caption.

        Args:
            ask: How to reach the judge.
            caption: Candidate caption, sent unchanged.
            references: Reference captions, >= 1; not used by ``ref_free``.
            picture: Makes what the judge sees, in a thread of its own; not used by ``ref_only``.
            config: The benchmark's judge.
            run: Judge run, sent as the seed, >= 0.

        Raises:
            SettingsError: If the setting needs references or a picture and there are none.
            DataError: If the picture cannot be made.
        """
        messages = self.messages(caption, references, prompts=config.prompts)
        if self.sees:
            if picture is None:
                raise SettingsError(f"G-VEval: setting {self.setting!r} needs a picture, got none")
            messages = attach_pictures(messages, await asyncio.to_thread(picture))
        request = request_of(
            "gveval",
            messages,
            config=config,
            seed=run,
            stand_in=partial(self._stand_in, caption, references),
            logprobs=True,
            top_logprobs=_TOP_LOGPROBS,
        )
        asked = await ask(request, self.read)
        numbers, distributions, plain = asked.value or ({}, {}, False)
        return ScoresJudgement(
            run=run,
            **asked.outcome(),
            numbers=numbers,
            distributions=distributions,
            scoring=None if asked.value is None else "plain" if plain else "logprobs",
        )

    @property
    def prompt_name(self) -> str:
        """Name of the prompt that the judge is asked with."""
        return f"gveval_accr_{self.setting}"

    def messages(
        self, caption: str, references: Sequence[str], *, prompts: Prompts = _AS_PRINTED
    ) -> list[Message]:
        """The prompt as printed, or as replaced, without a picture.

        References are joined as in the released code (the paper does not say), with the closing
        quotation mark that it forgets.

        Raises:
            SettingsError: If the setting needs references and there are none.
        """
        if self.setting != "ref_free" and not references:
            raise SettingsError(f"G-VEval: setting {self.setting!r} needs reference captions")
        prompt = prompts.load(self.prompt_name)
        joined = "; ".join(f"'{reference}'" for reference in references)
        return prompt.render(Caption=caption, Reference=joined, **_LITERAL)

    def read(
        self, reply: Reply
    ) -> tuple[dict[str, float], dict[str, ScoreDistribution], bool] | None:
        """Numbers, distributions, and whether one of them is plain; ``None`` is unreadable."""
        written = read_scores(reply, ACCR, lowest=LOWEST, highest=HIGHEST)
        if written is None:
            return None
        numbers = {name: float(number.text) for name, number in written.items()}
        weighed = {name: self._distribution(reply, number) for name, number in written.items()}
        distributions = {name: weighed[name] or ((numbers[name], 1.0),) for name in numbers}
        return numbers, distributions, not all(weighed.values())

    def _distribution(self, reply: Reply, written: Written) -> ScoreDistribution | None:
        """``None`` where there are no log-probabilities of it, or it is no whole number."""
        if reply.logprobs is None or written.start is None or not written.text.isdecimal():
            return None
        return number_distribution(
            reply.logprobs, written.text, written.start, lowest=LOWEST, highest=HIGHEST
        )

    def _stand_in(self, caption: str, references: Sequence[str]) -> str:
        """Shares of words in common with the references; without them, how much a caption says."""
        words = lexical.content_words(caption)
        if self.setting == "ref_free":
            shares = [min(1.0, len(words) / 10)] * 4
        else:
            reference_words = lexical.content_words(" ".join(references))
            precise = len(words & reference_words) / len(words) if words else 0.0
            complete = max(lexical.recall(reference, caption) for reference in references)
            length = max(len(lexical.content_words(reference)) for reference in references)
            shares = [precise, complete, min(1.0, length / max(1, len(words))), precise]
        scores = [round(HIGHEST * share) for share in shares]
        return "Words in common. " + " ".join(
            f"The {name.capitalize()} score is {_MARKS[name]}{score}{_MARKS[name]}."
            for name, score in zip(ACCR, scores, strict=True)
        )

"""G-VEval: a judge reasons about a caption, then scores it; the score is an expectation.

Works for captions of images and of videos, from reference captions, from the picture, or both, with
one overall score or along four dimensions (ACCR).

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

from lmms_eval_captions.judges.endpoint.picture import Picture
from lmms_eval_captions.judges.endpoint.request import Message, Reply
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.protocols import lexical
from lmms_eval_captions.judges.protocols.gveval_reading import ACCR, OVERALL, Written, read_scores
from lmms_eval_captions.judges.protocols.judge_request import request_of
from lmms_eval_captions.judges.protocols.number_distribution import number_distribution
from lmms_eval_captions.judges.protocols.prompt import Prompt, attach_pictures
from lmms_eval_captions.judges.protocols.prompt_folder import Prompts
from lmms_eval_captions.judges.verdict import ScoreDistribution, ScoresJudgement

if TYPE_CHECKING:
    from lmms_eval_captions.judges.endpoint.chain import Ask
    from lmms_eval_captions.judges.protocols.judge_config import JudgeConfig

Setting = Literal["ref_only", "ref_free", "combined"]
Visual = Literal["image", "video"]
Criteria = Literal["accr", "overall"]
Scale = Literal["scoring", "rating"]

_SCALES: Final[dict[Scale, tuple[int, int]]] = {"scoring": (0, 100), "rating": (1, 5)}
_TOP_LOGPROBS: Final = 10
"""Alternatives asked for. Deviation: the released code asks for 5, which cuts flat distributions;
the most that OpenAI gives, 20, makes every reply a megabyte."""
_LITERAL: Final = {f"{name}_score": f"{{{{{name}_score}}}}" for name in ACCR} | {
    "score": "{{score}}"
}
"""What looks like a slot and goes to the judge as it is."""
_AS_PRINTED: Final = Prompts()
_MARKS: Final = dict(zip((*ACCR, *OVERALL), "αβψδ$", strict=True))


@dataclass(frozen=True, slots=True)
class GVeval:
    """One way of scoring captions.

    Images, the overall score and the 1-5 scale are reached from no task or command yet: they wait
    for the meta-evaluation of image sets, and are chosen here alone.
    """

    setting: Setting
    """What the judge is shown beside the caption."""
    visual: Visual = "video"
    criteria: Criteria = "accr"
    """Four scores, or one."""
    scale: Scale = "scoring"
    """0 to 100 (the paper's choice), or 1 to 5."""

    def __post_init__(self) -> None:
        if self.visual == "image" and self.criteria == "accr":
            raise SettingsError(
                "G-VEval: expected criteria 'overall' for images, got 'accr', which is defined for "
                "videos alone (appendix B.3)"
            )

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Names of the scores, in the order of the prompt."""
        return ACCR if self.criteria == "accr" else OVERALL

    @property
    def sees(self) -> bool:
        """Whether the judge is shown a picture."""
        return self.setting != "ref_only"

    @property
    def bounds(self) -> tuple[int, int]:
        """Lowest and highest score."""
        return _SCALES[self.scale]

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
        name = self.visual if self.criteria == "overall" else "accr"
        return f"gveval_{name}_{self.setting}"

    def messages(
        self, caption: str, references: Sequence[str], *, prompts: Prompts = _AS_PRINTED
    ) -> list[Message]:
        """The prompt as printed, or as replaced, without a picture.

        References are joined as in the released code (the paper does not say), with the closing
        quotation mark that it forgets. The 1-5 scale is not printed: its bounds in the same words.

        Raises:
            SettingsError: If the setting needs references and there are none.
        """
        if self.setting != "ref_free" and not references:
            raise SettingsError(f"G-VEval: setting {self.setting!r} needs reference captions")
        lowest, highest = self.bounds
        prompt = Prompt(
            [
                (part["role"], part["content"].replace("0 to 100", f"{lowest} to {highest}"))
                for part in prompts.messages(self.prompt_name)
            ]
        )
        joined = "; ".join(f"'{reference}'" for reference in references)
        return prompt.render(Caption=caption, Reference=joined, **_LITERAL)

    def read(
        self, reply: Reply
    ) -> tuple[dict[str, float], dict[str, ScoreDistribution], bool] | None:
        """Numbers, distributions, and whether one of them is plain; ``None`` is unreadable."""
        lowest, highest = self.bounds
        written = read_scores(reply, self.dimensions, lowest=lowest, highest=highest)
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
        lowest, highest = self.bounds
        return number_distribution(
            reply.logprobs, written.text, written.start, lowest=lowest, highest=highest
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
        lowest, highest = self.bounds
        scores = [round(lowest + share * (highest - lowest)) for share in shares]
        if self.criteria == "overall":
            return f"Words in common. The final score is ${round(sum(scores) / 4)}$."
        return "Words in common. " + " ".join(
            f"The {name.capitalize()} score is {_MARKS[name]}{score}{_MARKS[name]}."
            for name, score in zip(ACCR, scores, strict=True)
        )

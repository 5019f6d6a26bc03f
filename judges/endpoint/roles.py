"""Words of messages that depend on the role of the model that is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

Role = Literal["judge", "cheap_judge", "captioner", "builder"]
"""Role of a model: gives verdicts, gives verdicts that shrink a sample, captions, or builds
benchmarks."""


@dataclass(frozen=True, slots=True)
class RoleWords:
    """Words of one role; most fields say with what a property is set."""

    who: str
    """The model."""
    work: str
    """Activity of the engine."""
    results: str
    """The replies."""
    key: str
    model: str
    alias: str
    """The name under which the endpoint answers."""
    url: str
    timeout: str
    max_tokens: str
    limit: str
    """The limit of cost."""
    sight: str
    """Advice if the model cannot see pictures."""
    video: str
    """Advice if it takes no video."""


_VISION: Final = "(on llama.cpp: with the model's --mmproj)"
_CHEAP: Final = "LMMS_CAPTIONS_CHEAP_JUDGE"
_JUDGE: Final = RoleWords(
    who="judge",
    work="judging",
    results="verdicts",
    key="OPENAI_API_KEY",
    model="LMMS_CAPTIONS_JUDGE",
    alias="LMMS_CAPTIONS_JUDGE_ALIAS",
    url="LMMS_CAPTIONS_JUDGE_URL",
    timeout="LMMS_CAPTIONS_JUDGE_TIMEOUT",
    max_tokens="LMMS_CAPTIONS_JUDGE_MAX_TOKENS",
    limit="LMMS_CAPTIONS_MAX_COST",
    sight=(
        "msvd_eval_ref_free, msvd_eval_combined and the tasks of own clips show the judge "
        "frames of the clip and need one that sees: set LMMS_CAPTIONS_JUDGE to a "
        f"vision-language model {_VISION}. Text-only questions continue"
    ),
    video="set LMMS_CAPTIONS_JUDGE to a model that takes videos",
)
WORDS: Final[Mapping[Role, RoleWords]] = {
    "judge": _JUDGE,
    "cheap_judge": replace(
        _JUDGE,
        who="cheap judge",
        key=(
            f"the key in the variable that {_CHEAP} names behind the address (NAME@URL#VARIABLE), "
            "the judge's key if it names none"
        ),
        model=f"the name in {_CHEAP}",
        alias=f"the name in {_CHEAP}",
        url=f"the address in {_CHEAP}",
        sight=f"name a vision-language model in {_CHEAP} {_VISION}",
        video=f"name a model that takes videos in {_CHEAP}",
    ),
    "captioner": RoleWords(
        who="captioner",
        work="captioning",
        results="captions",
        key="caption_openai's key, in the variable that api_key_env names",
        model="caption_openai's model=",
        alias="caption_openai's alias=",
        url="caption_openai's base_url=",
        timeout="caption_openai's timeout_s=",
        max_tokens="the task's max_new_tokens",
        limit="caption_openai's max_cost=",
        sight=f"name a vision-language model with caption_openai's model= {_VISION}",
        video=(
            "use caption_openai's send=frames, or name a model that takes videos with its model="
        ),
    ),
    "builder": RoleWords(
        who="model",
        work="building",
        results="replies",
        key=(
            "the key of the model, in the variable that is named behind its address "
            "(NAME@URL#VARIABLE); OPENAI_API_KEY if it has no address"
        ),
        model="the name given with --writer, --solver or --viewer",
        alias="the name given with --writer, --solver or --viewer",
        url="the address given with it (NAME@URL)",
        timeout="--timeout-s",
        max_tokens="a model that reasons less",
        limit="--max-cost",
        sight=f"name a vision-language model with --writer and --viewer {_VISION}",
        video="name a model that is shown frames",
    ),
}

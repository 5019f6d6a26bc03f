"""What an engine's messages call the model that it asks, and where its settings come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

Role = Literal["judge", "cheap_judge", "captioner", "builder"]
"""What an engine asks for: verdicts, verdicts that make a sample smaller, captions, or what
questions are made of."""
Api = Literal["openai", "anthropic"]
"""Whose API an endpoint speaks, see :mod:`.dialects`."""
KEYS: Final[Mapping[Api, str]] = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""Variable that holds a judge's key."""


@dataclass(frozen=True, slots=True)
class RoleWords:
    """Words of one role, as they stand in messages."""

    who: str
    """The model that is asked."""
    work: str
    """What the engine is doing."""
    results: str
    """What the replies are."""
    key: str
    """What to check where the key is wrong."""
    model: str
    """What the model's name is set with."""
    alias: str
    """What the name is set with under which the endpoint answers, where it is another one."""
    url: str
    """What the endpoint's address is set with."""
    timeout: str
    """What the time that a reply may take is set with."""
    limit: str
    """What a limit of cost is set with."""
    sight: str
    """What to do where the model cannot see pictures."""
    video: str
    """What to do where it takes no video."""


_VISION: Final = "(on llama.cpp: with the model's --mmproj)"
_CHEAP: Final = "LMMS_CAPTIONS_CHEAP_JUDGE"
_JUDGE: Final = RoleWords(
    who="judge",
    work="judging",
    results="verdicts",
    key=KEYS["openai"],
    model="LMMS_CAPTIONS_JUDGE",
    alias="LMMS_CAPTIONS_JUDGE_ALIAS",
    url="LMMS_CAPTIONS_JUDGE_URL",
    timeout="LMMS_CAPTIONS_JUDGE_TIMEOUT",
    limit="LMMS_CAPTIONS_MAX_COST",
    sight=(
        "msvd_eval_ref_free, msvd_eval_combined and the tasks of own clips show the judge "
        "frames of the clip and need one that sees: set LMMS_CAPTIONS_JUDGE to a "
        f"vision-language model {_VISION}. What is asked in words alone goes on"
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
            "the judge's key where it names none"
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
            "(NAME@URL#VARIABLE); OPENAI_API_KEY where it has no address"
        ),
        model="the name given with --writer, --solver or --viewer",
        alias="the name given with --writer, --solver or --viewer",
        url="the address given with it (NAME@URL)",
        timeout="--timeout-s",
        limit="--max-cost",
        sight=f"name a vision-language model with --writer and --viewer {_VISION}",
        video="name a model that is shown frames",
    ),
}


def role_words(role: Role, api: Api) -> RoleWords:
    """Words of a role whose endpoint speaks an API.

    >>> role_words("judge", "anthropic").key
    'ANTHROPIC_API_KEY'
    """
    return replace(WORDS[role], key=KEYS[api]) if role == "judge" else WORDS[role]

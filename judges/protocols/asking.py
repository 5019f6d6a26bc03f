"""A benchmark's judge, its part of the signature, and the requests of protocols.

Also the replies of the offline stand-in judge: word overlap, deterministic, without key or network.
It shows that a pipeline runs; its scores say nothing about a caption.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from math import inf
from typing import Final, cast

from lmms_eval_captions.judges.endpoint.replies import strip_reasoning
from lmms_eval_captions.judges.endpoint.request import Message, Reply, Request, is_offline
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.protocols.prompt import Prompts
from lmms_eval_captions.judges.settings import JudgeSettings

_RESERVED: Final = {"model", "messages", "stream", "n", "max_tokens", "temperature", "seed"}
"""Fields that have settings of their own, or none."""
_NOBODY: Final = "none"
"""Name of the model if no model is asked."""


_NO_KEY: Final = {"is_key": False}


@dataclass(frozen=True, slots=True)
class JudgeConfig:
    """Judge of one benchmark; the fields are the keys of ``metadata.judge`` in its YAML."""

    model: str
    protocol: int = 1
    """Version of the prompts and of how replies are read; a new one invalidates stored replies."""
    temperature: float = 0.0
    max_tokens: int = 256
    runs: int = 1
    """Independent judge runs, seeds 0..runs-1."""
    timeout_s: float = 120.0
    asks: int | None = None
    """Requests for each question in a judge run, 1 or 3, of benchmarks that can be asked so."""
    always_frames: bool = False
    """Show the judge a clip's frames although its prompt does not speak of them."""
    frames: int | None = None
    """Frames of a clip that the judge is shown, of benchmarks that show as many as one likes."""
    prompts: Prompts = field(default=Prompts(), metadata=_NO_KEY)
    signature_fields: Mapping[str, str] = field(default_factory=dict, hash=False, metadata=_NO_KEY)
    """Settings that affect this judge's scores, for the signature."""
    extra_body: Mapping[str, object] = field(default_factory=dict, hash=False, metadata=_NO_KEY)
    """Further fields of every request."""
    is_structured: bool = field(default=False, metadata=_NO_KEY)
    """Ask for JSON-schema output."""

    def __post_init__(self) -> None:
        is_usable = self.model and self.runs >= 1 and self.max_tokens >= 1 and self.timeout_s > 0
        expected = {
            f"a model, and runs, max_tokens and timeout_s above 0, got {self}": is_usable,
            f"asks of 1 or 3, got {self.asks!r}": self.asks in (None, 1, 3),
            f"frames above 0, got {self.frames!r}": self.frames is None or self.frames >= 1,
            f"a temperature of at least 0, got {self.temperature!r}": 0 <= self.temperature < inf,
        }
        for words, is_met in expected.items():
            if not is_met:
                raise SettingsError(f"metadata.judge: expected {words}")

    @classmethod
    def build(cls, defaults: Mapping[str, object], settings: JudgeSettings) -> JudgeConfig:
        """Merge a YAML's ``metadata.judge`` with the environment, which wins.

        Raises:
            SettingsError: If a key is unknown or a value cannot be used.
        """
        keys = [each.name for each in fields(cls) if each.metadata.get("is_key", True)]
        defaults, is_as_published = dict(defaults), settings.is_as_published
        # What a published table was made with.
        published = dict(cast("Mapping[str, object]", defaults.pop("as_published", None) or {}))
        is_released = bool(published.pop("released_wording", None)) and is_as_published
        if unknown := sorted({*defaults, *published} - set(keys)):
            raise SettingsError(f"metadata.judge: unknown keys {unknown}, known are {keys}")
        own = cls(**defaults)  # type: ignore[arg-type]  # checked when built
        base = replace(own, **published) if is_as_published else own  # type: ignore[arg-type]  # checked when built
        prompts = Prompts(settings.prompts, is_released=is_released)
        prompts.check()
        extra_body = json.loads(settings.extra_body or "{}")
        if reserved := sorted(set(extra_body) & _RESERVED):
            raise SettingsError(
                f"LMMS_CAPTIONS_JUDGE_EXTRA_BODY: {', '.join(reserved)} cannot be set there; it "
                "holds further fields of the request, such as reasoning_effort"
            )
        config = replace(
            base,
            model=base.model if is_as_published else settings.judge or base.model,
            runs=settings.runs or base.runs,
            timeout_s=settings.timeout_s or base.timeout_s,
            temperature=base.temperature if settings.temperature is None else settings.temperature,
            asks=base.asks and (settings.vcapsbench_asks or base.asks),
            frames=base.frames and (settings.frames or base.frames),
            prompts=prompts,
            max_tokens=settings.max_tokens or base.max_tokens,
            extra_body=extra_body,
            is_structured=settings.structured,
        )
        named = {name: str(n) for name in ("asks", "frames") if (n := getattr(config, name))}
        if config.always_frames:
            named["always_frames"] = "1"
        if config.temperature != own.temperature:
            named["temperature"] = f"{config.temperature:g}"
        if config.max_tokens != own.max_tokens:
            named["max_tokens"] = str(config.max_tokens)
        for name, value in extra_body.items():
            text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
            named[name] = text.replace("|", "/")
        if settings.structured:
            named["structured"] = "1"
        if settings.alias is not None and config.asks_endpoint:
            named["alias"] = settings.alias
        return replace(config, signature_fields=named)

    @property
    def asks_endpoint(self) -> bool:
        """Return whether an endpoint is asked, not the offline stand-in or nobody."""
        return not is_offline(self.model) and self.model != _NOBODY

    @property
    def label(self) -> str:
        """Return the judge's name as shown next to a score."""
        return f"{self.model} (smoke test, not a score)" if is_offline(self.model) else self.model


NO_JUDGE: Final = JudgeConfig(_NOBODY)
"""Stands for the judge of captions that are measured and not judged."""


def object_schema(**properties: Mapping[str, object]) -> Mapping[str, object]:
    """Return the JSON schema of an object that has exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def response_format(prompt: str, schema: Mapping[str, object]) -> Mapping[str, object]:
    """Return the parameter that has a server keep a reply to a JSON schema."""
    json_schema = {"name": prompt.replace("/", "_"), "schema": schema, "strict": True}
    return {"type": "json_schema", "json_schema": json_schema}


def request_of(
    prompt: str,
    messages: Sequence[Message],
    *,
    config: JudgeConfig,
    seed: int,
    stand_in: Callable[[], str],
    schema: Mapping[str, object] | None = None,
    **params: object,
) -> Request:
    """A request to a benchmark's judge, at its temperature and length."""
    if config.is_structured and schema is not None:
        params["response_format"] = response_format(prompt, schema)
    return Request(
        protocol=f"{prompt}:{config.protocol}",
        model=config.model,
        messages=messages,
        params={
            "temperature": config.temperature,
            "max_tokens": config.max_tokens,
            **params,
            **config.extra_body,
        },
        seed=seed,
        timeout_s=config.timeout_s,
        stand_in=stand_in,
    )


def answer_request(
    prompt: str, question: str, caption: str, *, config: JudgeConfig, run: int
) -> Request:
    """Return the request for the answer to a question from a caption."""
    return request_of(
        prompt,
        config.prompts.load(prompt).render(caption=caption, question=question),
        config=config,
        seed=run,
        stand_in=partial(best_sentence, caption, question),
    )


def read_free_answer(reply: Reply) -> str | None:
    """The answer in a reply, ``None`` if there is none."""
    return strip_reasoning(reply.text) or None


_WORD: Final = re.compile(r"\w+")
_STOP: Final = frozenset(
    _WORD.findall(
        "a an and are as at be by does do for from has have how in into is it its of on or s she "
        "he that the their them they this to video was what when where which who why will with"
    )
)
_DIGITS: Final = {
    word: str(number)
    for number, word in enumerate(_WORD.findall("zero one two three four five six seven eight"))
}


def content_words(text: str) -> set[str]:
    """Lower-case words that carry content, plural endings dropped, small numbers as digits."""
    words = (_DIGITS.get(word, word) for word in _WORD.findall(text.lower()))
    return {
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
        for word in words
        if word not in _STOP
    }


def best_sentence(text: str, question: str) -> str:
    """The sentence of a text that shares most words with a question; the first one on a tie."""
    wanted = content_words(question)
    sentences = [s.strip() for s in re.split(r"(?<=[.!?。])\s+", text) if s.strip()]
    return max(sentences, key=lambda s: len(wanted & content_words(s)), default="Not mentioned.")


def recall(reference: str, candidate: str) -> float:
    """Share of a reference's content words that a candidate holds, in [0, 1]."""
    wanted = content_words(reference)
    return len(wanted & content_words(candidate)) / len(wanted) if wanted else 0.0

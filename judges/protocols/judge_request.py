"""A protocol's request to the judge of its benchmark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lmms_eval_captions.judges.endpoint.request import Message, Request
from lmms_eval_captions.judges.protocols.judge_config import JudgeConfig


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
    """A request to a benchmark's judge, at its temperature and length.

    Args:
        prompt: Name of the prompt, of which the protocol's version makes the store's key.
        messages: The prompt with its slots filled.
        config: The benchmark's judge.
        seed: Seed, >= 0.
        stand_in: The reply of the offline stand-in.
        schema: JSON schema of the reply, if it is an object.
        params: Further sampling parameters.
    """
    if config.is_structured and schema is not None:
        name = prompt.replace("/", "_")
        json_schema = {"name": name, "schema": schema, "strict": True}
        params["response_format"] = {"type": "json_schema", "json_schema": json_schema}
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

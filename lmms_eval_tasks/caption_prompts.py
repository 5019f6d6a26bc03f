"""What captioners are asked, in every benchmark."""

from __future__ import annotations

from collections.abc import Mapping

from lmms_eval_captions.judges.protocols.prompt_folder import Prompts
from lmms_eval_captions.judges.settings import data_settings


def caption_prompt(name: str, key: str, kwargs: Mapping[str, str] | None) -> str:
    """A caption prompt, ours or the user's, between a model's ``pre_prompt`` and ``post_prompt``.

    Args:
        name: File of the benchmark's caption prompts, such as ``vdc_caption``.
        key: Which of them.
        kwargs: The task's ``lmms_eval_specific_kwargs`` for the model.

    Raises:
        SettingsError: If ``LMMS_CAPTIONS_PROMPTS``, or another setting of the data, cannot be used.
    """
    around = kwargs or {}
    prompt = Prompts(data_settings().prompts).text(name, key)
    return f"{around.get('pre_prompt', '')}{prompt}{around.get('post_prompt', '')}"

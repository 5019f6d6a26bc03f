"""Captioners by name, and captioning as a function of clips, without a run of lmms-eval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import NoVideosError, SettingsError
from lmms_eval_captions.model_wrappers.model_args import Generation, parse_model_args
from lmms_eval_captions.model_wrappers.no_caption import NoCaption

if TYPE_CHECKING:
    from lmms_eval.api.instance import Instance
    from typing_extensions import Self

    from lmms_eval_captions.model_wrappers.base import CaptionModel

CUSTOM: Final = "caption_custom"
"""Name that stands for a custom class."""
_HERE: Final = __name__.rpartition(".")[0]
_SAMPLE: Final = f"{_HERE.rpartition('.')[0]}.lmms_eval_tasks.sample"
CAPTIONERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "caption_file": f"{_HERE}.caption_file.CaptionFile",
        "caption_baseline": f"{_SAMPLE}.caption_baseline.CaptionBaseline",
        "caption_hf": f"{_HERE}.caption_hf.CaptionHf",
        "caption_openai": f"{_HERE}.caption_openai.CaptionOpenai",
        "caption_vllm": f"{_HERE}.caption_vllm.CaptionVllm",
        "caption_auroracap": f"{_HERE}.caption_auroracap.CaptionAuroraCap",
    }
)
"""Path of the class by name; that of the class for chat models is ``...Chat``."""
CUSTOM_CLASS: Final = f"{_HERE}.{CUSTOM}.CaptionCustom"
GREEDY: Final[Mapping[str, object]] = MappingProxyType(
    {"max_new_tokens": 1024, "temperature": 0, "do_sample": False}
)
"""Generation settings of VDC's tasks."""
_TASK: Final = "clips"
"""Name of the task that the requests are of; no task of a run goes by it."""
_REASONING: Final = (("<think>", "</think>"), ("<analysis>", "</analysis>"))
"""Reasoning tags that lmms-eval removes by default (``--reasoning_tags``)."""


class ClipCaptioner:
    """A captioner of clips, asked as lmms-eval asks it for our tasks' captions.

    Its greedy captions are those that lmms-eval's run hands to the judge for the same prompt and
    settings, however the clips are divided into calls. Captions are kept, and reused, as in such a
    run. Captions that are drawn at random differ from those of a run. No setting of the judge is
    read. One process calls it from one thread.

    Args:
        name: ``caption_hf`` or another of our captioners, or a custom ``Captioner`` as
            ``package.module:Class`` or ``file.py:Class``.
        arguments: As ``--model_args`` has them, as one text or by name; ``batch_size`` and
            ``device`` may be among them.
        prompt: Question about each clip.
        generation: Generation settings, as a task's YAML has them under ``generation_kwargs``.

    Raises:
        SettingsError: If there is no such captioner, or its arguments, the prompt or the
            generation settings cannot be used.
    """

    def __init__(
        self,
        name: str,
        arguments: str | Mapping[str, str] = "",
        *,
        prompt: str,
        generation: Mapping[str, object] = GREEDY,
    ) -> None:
        from lmms_eval.utils import handle_arg_string

        if not prompt.strip():
            raise SettingsError(
                f"{name}: expected a prompt that asks for a caption, got {prompt!r}"
            )
        Generation.read(generation)  # refused before weights are loaded
        self.prompt = prompt
        self.generation = dict(generation)
        given: dict[str, object]
        if isinstance(arguments, str):
            given = parse_model_args(arguments)
        else:  # with the values that lmms-eval makes of texts
            given = {
                k: handle_arg_string(v) if isinstance(v, str) else v for k, v in arguments.items()
            }
        if ":" in name:
            if "class" in given:
                raise SettingsError(
                    f"{name}: expected no argument class=, the name is that of a class"
                )
            name, given = CUSTOM, {"class": name, **given}
        self._model: CaptionModel | None = captioner_class(name).create_from_arguments(given)

    def captions(self, clips: Sequence[str | Path]) -> list[str]:
        """Return one caption per clip, in their order, or a ``NoCaption`` with the reason.

        Raises:
            CaptionsError: If no caption can be had at all: an endpoint refuses the model, say.
        """
        from lmms_eval.api.instance import unwrap_generation_output
        from lmms_eval.api.reasoning import strip_reasoning_tags

        from lmms_eval_captions.model_wrappers.captioner import Captioner

        model = self._model
        if model is None:
            raise ValueError("ClipCaptioner.captions: the captioner was closed")
        if not clips:
            return []
        model.task_dict[_TASK] = {"test": [{"video": str(clip)} for clip in clips]}
        requests = [self._request(at, is_simple=model.is_simple) for at in range(len(clips))]
        try:
            results = model.generate_until(requests)
        except NoVideosError:  # a run of lmms-eval ends where not one is found
            return [
                model.outcome.no_caption(at)
                if isinstance(model, Captioner)
                else NoCaption("the clip was not found")
                for at in range(len(clips))
            ]
        # As lmms-eval hands them to a task.
        texts = (unwrap_generation_output(result)[0] for result in results)
        return [strip_reasoning_tags(text, _REASONING) for text in texts]

    def close(self) -> None:
        """Free the model's memory, and end decoders and engine; once is enough."""
        model, self._model = self._model, None
        if model is not None:
            model.clean()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _request(self, doc_id: int, *, is_simple: bool) -> Instance:
        """Return a request for one caption, as lmms-eval makes it of our tasks' hooks."""
        from lmms_eval.api.instance import Instance

        def messages(doc: Mapping[str, str]) -> list[dict[str, object]]:
            video, text = {"type": "video", "url": doc["video"]}, {"type": "text", "text": prompt}
            return [{"role": "user", "content": [video, text]}]

        settings, prompt = dict(self.generation), self.prompt
        middle = (settings, lambda doc: [doc["video"]]) if is_simple else (messages, settings)
        return Instance(
            request_type="generate_until",
            arguments=(prompt, *middle, doc_id, _TASK, "test"),
            idx=0,
            metadata={"task": _TASK, "doc_id": doc_id, "repeats": 1},
        )


def captioner_class(name: str) -> type[CaptionModel]:
    """Return the class that lmms-eval takes for a name, the one for chat models.

    Captions are kept under it; the simple form is another captioner.
    """
    if name != CUSTOM and name not in CAPTIONERS:
        known = ", ".join([*CAPTIONERS, CUSTOM])
        raise SettingsError(
            f"expected a captioner, one of {known}, or a class of your own as package.module:Class "
            f"or file.py:Class, got {name!r}"
        )
    path = CUSTOM_CLASS if name == CUSTOM else f"{CAPTIONERS[name]}Chat"
    module, _, class_name = path.rpartition(".")
    found: type[CaptionModel] = getattr(import_module(module), class_name)
    return found

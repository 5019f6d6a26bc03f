"""What all our captioners have in common: the plumbing of lmms-eval."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NoReturn

from accelerate import Accelerator
from lmms_eval.api.model import lmms

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.video.decoders import DECODERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import torch
    from lmms_eval.api.instance import Instance


@dataclass(frozen=True, slots=True)
class CaptionRequest:
    """One caption that lmms-eval asks for."""

    prompt: str
    """Text of the request, few-shot examples and description included."""
    task: str
    split: str
    doc_id: int
    doc: Mapping[str, object]
    """Row of the benchmark, as its task made it."""
    visuals: Callable[[], Sequence[object]] = field(repr=False)
    """Fetches what is shown; it may download, and raise where a video is missing."""
    generation_kwargs: Mapping[str, object] = field(default_factory=dict)
    """Generation settings of the task's YAML and of ``--gen_kwargs``."""

    def video_path(self) -> Path:
        """File of the first video of the request.

        Raises:
            DataError: If nothing shown is a video file, or it cannot be fetched.
        """
        shown = self.visuals()
        for visual in shown:
            if isinstance(visual, str | Path):
                return Path(visual)
        kinds = [type(visual).__name__ for visual in shown]
        raise DataError(
            f"{self.task}, document {self.doc_id}: expected the path of a video, got {kinds}; "
            "this model captions video tasks only"
        )


class CaptionModel(lmms):  # type: ignore[misc] # lmms-eval has no types.
    """The base of all our models: they answer requests for captions, and refuse all others.

    ``is_simple = False`` in a subclass makes any of them a chat model without further change.
    """

    is_simple: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        # The evaluator gathers counts on this device, so that it must be the process group's own.
        self.accelerator = Accelerator()
        self._rank = self.accelerator.process_index
        self._world_size = self.accelerator.num_processes

    @property
    def device(self) -> torch.device:
        """Where the evaluator exchanges its counts, and where a model runs unless told."""
        return self.accelerator.device

    def clean(self) -> None:
        """Give back the model's memory and end the decoders: judging needs neither."""
        DECODERS.stop()
        super().clean()

    def read_request(self, arguments: tuple[object, ...]) -> CaptionRequest:
        """A request of lmms-eval, for simple or chat models as ``is_simple`` says."""
        return read_request(arguments, self.task_dict, is_simple=self.is_simple)

    def loglikelihood(self, requests: Sequence[Instance]) -> NoReturn:
        """Refuse: no probabilities are asked of a captioner."""
        raise NotImplementedError(_refusal(self, "loglikelihood", requests))

    def generate_until_multi_round(self, requests: Sequence[Instance]) -> NoReturn:
        """Refuse: a caption is one answer."""
        raise NotImplementedError(_refusal(self, "generate_until_multi_round", requests))


def read_request(
    arguments: tuple[object, ...],
    task_dict: Mapping[str, Mapping[str, Sequence[Mapping[str, object]]]],
    *,
    is_simple: bool,
) -> CaptionRequest:
    """Sort the arguments of an lmms-eval request.

    Args:
        arguments: ``(context, generation_kwargs, doc_to_visual, doc_id, task, split)`` for a simple
            model, ``(context, doc_to_messages, generation_kwargs, doc_id, task, split)`` for a
            chat model.
        task_dict: The documents, by task, split and position.
        is_simple: Which of the two forms it is.
    """
    context, second, third, doc_id, task, split = arguments
    fetch, kwargs = (third, second) if is_simple else (second, third)
    doc = task_dict[str(task)][str(split)][int(str(doc_id))]

    def visuals() -> Sequence[object]:
        shown = fetch(doc)  # type: ignore[operator] # An untyped tuple of lmms-eval.
        if not is_simple:
            return _videos(shown)
        return shown if isinstance(shown, list | tuple) else [shown]

    return CaptionRequest(
        prompt=str(context),
        task=str(task),
        split=str(split),
        doc_id=int(str(doc_id)),
        doc=doc,
        visuals=visuals,
        generation_kwargs=dict(kwargs) if isinstance(kwargs, dict) else {},
    )


def _videos(messages: Sequence[Mapping[str, object]]) -> list[object]:
    """Videos of chat messages, in order."""
    shown: list[object] = []
    for message in messages:
        content = message["content"]
        if not isinstance(content, list):
            continue
        shown += [item["url"] for item in content if item.get("type") == "video"]
    return shown


def _refusal(model: CaptionModel, kind: str, requests: Sequence[Instance]) -> str:
    tasks = sorted({str(request.task_name) for request in requests})
    return (
        f"{type(model).__name__} writes one caption per video and cannot serve {kind} requests "
        f"({', '.join(tasks)}); choose captioning tasks for it"
    )

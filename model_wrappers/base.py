"""Base of all our captioners: the plumbing of lmms-eval."""

from __future__ import annotations

from collections import defaultdict
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn

from lmms_eval_captions.judges.errors import INSTALL_EVAL, DataError, SettingsError
from lmms_eval_captions.model_wrappers.caption_jobs import CaptionRequest, Visuals
from lmms_eval_captions.model_wrappers.documents import question_of, visuals_of
from lmms_eval_captions.model_wrappers.model_args import parse_model_args, shown_name
from lmms_eval_captions.model_wrappers.video.decoders import DECODERS

try:
    from accelerate import Accelerator
    from lmms_eval.api.model import lmms
except ModuleNotFoundError as error:
    if error.name not in ("accelerate", "lmms_eval", "torch"):
        raise
    raise ModuleNotFoundError(
        f"captioners need {error.name}, which is not installed. Run: {INSTALL_EVAL}",
        name=error.name,
    ) from error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import torch
    from lmms_eval.api.instance import Instance


_ONE_HOOK: Final = Lock()
"""Lock: hooks of lmms-eval's tasks, and what ``datasets`` decodes for them, expect one thread."""


class CaptionModel(lmms):  # type: ignore[misc] # lmms-eval has no types.
    """The base of all our models: they answer requests for captions, and refuse all others.

    ``is_simple = False`` in a subclass makes any of them a chat model without further change.
    """

    is_simple: ClassVar[bool] = True
    answers: ClassVar[frozenset[str]] = frozenset({"generate_until", "generate_until_agentic"})
    """Kinds of lmms-eval's requests that it answers; tasks of others are refused by name."""
    has_captions: ClassVar[bool] = False
    """True if its captions exist already, so that the cost of judging them can be estimated."""

    def __init__(self) -> None:
        super().__init__()
        # The evaluator gathers counts on this device, so that it must be the process group's own.
        self.accelerator = Accelerator()
        self._rank = self.accelerator.process_index
        self._world_size = self.accelerator.num_processes

    @property
    def device(self) -> torch.device:
        """Device of the evaluator's counts, and of a model by default."""
        return self.accelerator.device

    def clean(self) -> None:
        """Free the model's memory and end the decoders: judging needs neither."""
        DECODERS.stop()
        super().clean()

    @classmethod
    def create_from_arg_string(
        cls, arg_string: str, additional_config: Mapping[str, object] | None = None
    ) -> CaptionModel:
        """Make a captioner of ``--model_args``, as lmms-eval does."""
        return cls.create_from_arguments(parse_model_args(arg_string), additional_config)

    @classmethod
    def create_from_arguments(
        cls, arguments: Mapping[str, object], additional_config: Mapping[str, object] | None = None
    ) -> CaptionModel:
        """Make a captioner of parsed ``--model_args``, and of lmms-eval's own options."""
        given = {k: v for k, v in (additional_config or {}).items() if v is not None}
        return cls(**{**arguments, **given})

    def loglikelihood(self, requests: Sequence[Instance]) -> NoReturn:
        """Refuse: no probabilities are asked of a captioner."""
        self._refuse("loglikelihood", requests)

    def generate_until_multi_round(self, requests: Sequence[Instance]) -> Sequence[Sequence[str]]:
        """Refuse: a caption is one answer."""
        self._refuse("generate_until_multi_round", requests)

    def generate_visual_cot(self, requests: Sequence[Instance]) -> NoReturn:
        """Refuse: a captioner draws no pictures."""
        self._refuse("generate_visual_cot", requests)

    def _refuse(self, kind: str, requests: Sequence[Instance]) -> NoReturn:
        tasks = {str(request.task_name) for request in requests}
        raise NotImplementedError(_refusal(shown_name(type(self)), {kind: tasks}))


def read_request(
    arguments: tuple[object, ...],
    task_dict: Mapping[str, Mapping[str, Sequence[Mapping[str, object]]]],
    *,
    is_simple: bool,
) -> CaptionRequest:
    """Sort the arguments of an lmms-eval request.

    They are ``(context, generation_kwargs, doc_to_visual, doc_id, task, split)`` for a simple
    model, ``(context, doc_to_messages, generation_kwargs, doc_id, task, split)`` for a chat model.
    """
    context, second, third, doc_id, task, split = arguments
    fetch, kwargs = (third, second) if is_simple else (second, third)
    docs, position = task_dict[str(task)][str(split)], int(str(doc_id))

    def visuals() -> Visuals:
        where = f"{task}, document {position}"
        try:
            with _ONE_HOOK:
                shown = fetch(docs[position])  # type: ignore[operator] # an untyped tuple
        except (OSError, SystemExit) as error:
            # Some of lmms-eval's tasks end the process where a video is missing.
            raise DataError(f"{where}: {error}") from error
        try:
            return visuals_of(shown) if is_simple else question_of(shown, str(context))
        except DataError as error:
            raise DataError(f"{where}: {error}") from error

    return CaptionRequest(
        prompt=str(context),
        task=str(task),
        doc_id=position,
        docs=docs,
        visuals=visuals,
        generation_kwargs=dict(kwargs) if isinstance(kwargs, dict) else {},
    )


def require_answers(model: CaptionModel, kinds: Mapping[str, str]) -> None:
    """Raise, before anything is captioned, if a captioner cannot answer some of a run's tasks.

    ``kinds`` are those of its requests, by task; lmms-eval asks ``multiple_choice`` by likelihoods.
    """
    refused: dict[str, list[str]] = defaultdict(list)
    for task, kind in kinds.items():
        asked = "loglikelihood" if kind == "multiple_choice" else kind
        if asked not in model.answers:
            refused[asked].append(task)
    if refused:
        raise SettingsError(_refusal(shown_name(type(model)), refused))


def _refusal(model: str, kinds: Mapping[str, Iterable[str]]) -> str:
    """Return why a captioner cannot answer the requests of some tasks, by their kind.

    >>> _refusal("CaptionHf", {"loglikelihood": ["b", "a"]})
    'CaptionHf writes texts, it cannot serve loglikelihood requests (a, b); leave these tasks out'
    """
    asked = " or ".join(f"{kind} requests ({', '.join(sorted(kinds[kind]))})" for kind in kinds)
    return f"{model} writes texts, it cannot serve {asked}; leave these tasks out"

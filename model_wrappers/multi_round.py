"""Tasks of several rounds, in which what is asked next depends on what was answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lmms_eval.api.instance import Instance

from lmms_eval_captions.judges.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lmms_eval.api.instance import GenerationResult

    Documents = Mapping[str, Mapping[str, Sequence[object]]]
    """lmms-eval's documents, by task, split and position."""
    Generate = Callable[[Sequence[Instance]], Sequence[GenerationResult]]
    """A captioner's ``generate_until``."""

_MOST_ROUNDS: Final = 1000
"""A task that asks for more never ends."""


def answer_rounds(
    requests: Sequence[Instance], generate: Generate, documents: Documents, *, is_simple: bool
) -> list[list[str]]:
    """The answers of each request's rounds; a round of all requests is answered together.

    Args:
        requests: Of ``generate_until_multi_round``.
        generate: Answers one round.
        documents: Those of all tasks.
        is_simple: Whether the requests are of the simple form.

    Raises:
        DataError: If a task never ends its rounds.
    """
    talks = [_Talk(request, documents, is_simple=is_simple) for request in requests]
    going = [(talk, talk.first()) for talk in talks]
    for _ in range(_MOST_ROUNDS):
        results = generate([asked for _, asked in going])
        for (talk, _), result in zip(going, results, strict=True):
            talk.answers.append(result.text.strip())
        following = [(talk, talk.following()) for talk, _ in going]
        going = [(talk, asked) for talk, asked in following if asked is not None]
        if not going:
            return [talk.answers for talk in talks]
    raise DataError(f"expected the rounds of {going[0][1].task_name} to end, got {_MOST_ROUNDS}")


class _Talk:
    """One document's rounds so far."""

    def __init__(self, request: Instance, documents: Documents, *, is_simple: bool) -> None:
        self.answers: list[str] = []
        self._request = request
        self._is_simple = is_simple
        self._info: object = None
        doc_id, task, split = request.args[-3:]
        self._doc = documents[task][split][doc_id]

    def first(self) -> Instance:
        """The first round is asked like a request of one."""
        arguments = self._request.args
        return self._asked(*arguments[:3])

    def following(self) -> Instance | None:
        """The next round, ``None`` where the task ends here."""
        arguments = self._request.args
        ask = arguments[3] if self._is_simple else arguments[1]
        payload: Any = ask(
            self._doc,
            round_idx=len(self.answers),
            previous_output=list(self.answers),
            previous_round_info=self._info,
        )
        if not isinstance(payload, tuple) or len(payload) != (5 if self._is_simple else 4):
            return None
        *asked, is_last, answers, self._info = payload
        if is_last:
            # The task may have filled in rounds that were not asked.
            given = self.answers if answers is None else list(answers)
            self.answers = ["" if answer is None else str(answer) for answer in given]
            return None
        if self._is_simple:
            shown, text = asked
            return self._asked(text, arguments[1], lambda _doc: shown)
        return self._asked(arguments[0], lambda _doc: asked[0], arguments[2])

    def _asked(self, *how: object) -> Instance:
        doc_id, task, split = self._request.args[-3:]
        metadata = dict(self._request.metadata)
        return Instance("generate_until", (*how, doc_id, task, split), 0, metadata)

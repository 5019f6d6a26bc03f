"""What chat models are shown and asked, in every benchmark: a video and the prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Doc = Mapping[str, object]
Message = dict[str, object]


DocToText = Callable[[Doc, Mapping[str, str] | None], str]
DocToMessages = Callable[[Doc, Mapping[str, str] | None], list[Message]]


def video_messages(
    doc_to_visual: Callable[[Doc], list[str]], doc_to_text: DocToText
) -> DocToMessages:
    """The ``doc_to_messages`` of a task: each of its files as a video, whatever its name.

    Left to itself, lmms-eval 0.7.3 goes by the ending of the name and hands ``.webm`` over as sound
    and ``.gif`` as a picture, so that no chat model captions them.

    Args:
        doc_to_visual: The task's, for the clip's path.
        doc_to_text: The task's, for the prompt.
    """

    def doc_to_messages(
        doc: Doc, lmms_eval_specific_kwargs: Mapping[str, str] | None = None
    ) -> list[Message]:
        """One turn of the user's: the clip, and what is asked about it."""
        content: list[Message] = [{"type": "video", "url": path} for path in doc_to_visual(doc)]
        content.append({"type": "text", "text": doc_to_text(doc, lmms_eval_specific_kwargs)})
        return [{"role": "user", "content": content}]

    return doc_to_messages

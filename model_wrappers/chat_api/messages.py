"""A caption job as the messages of a chat."""

from __future__ import annotations

import base64
import mimetypes
from typing import TYPE_CHECKING

from lmms_eval_captions.judges.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lmms_eval_captions.model_wrappers.caption_jobs import CaptionJob
    from lmms_eval_captions.model_wrappers.chat_api.pictures import Part
    from lmms_eval_captions.model_wrappers.video.clip import Clip


def chat_messages(
    job: CaptionJob, parts_of: Callable[[Clip], list[Part]], system_prompt: str | None = None
) -> list[Part]:
    """Return the messages of a job.

    Args:
        job: What is shown, and what is asked.
        parts_of: Returns the parts that show a clip or picture.
        system_prompt: Put before everything else.
    """
    messages: list[Part] = []
    if system_prompt:
        messages.append({"role": "system", "content": system_prompt})
    content: list[Part] = []
    for part in job.content:
        if isinstance(part, str):
            content.append({"type": "text", "text": part})
        else:
            content += parts_of(job.clips[part])
    return [*messages, {"role": "user", "content": content}]


def video_part(job: CaptionJob) -> Part:
    """Return the file of a job's video as it is, with its sound.

    Raises:
        DataError: If it shows no video file, or that cannot be read.
    """
    path = job.path
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    url = f"data:{media_type(path)};base64,{base64.b64encode(raw).decode('ascii')}"
    return {"type": "video_url", "video_url": {"url": url}}


def media_type(path: Path) -> str:
    """Return a clip's media type; by its name alone ``.ts`` is a text, and ``.3gp`` sound.

    >>> from pathlib import Path
    >>> media_type(Path("a.webm")), media_type(Path("a.bin"))
    ('video/webm', 'video/mp4')
    """
    kind = (mimetypes.guess_type(path.name)[0] or "").replace("audio/", "video/")
    return kind if kind.startswith("video/") or kind == "image/gif" else "video/mp4"

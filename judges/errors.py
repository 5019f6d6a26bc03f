"""Every error this package raises on purpose, in one tree.

A message says what was expected, what came, where, and what to do about it.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from lmms_eval_captions.judges.files import whole

INSTALL_EVAL: Final = "pip install 'lmms-eval-captions[eval]'"
"""Command that adds lmms-eval and what captioning needs to a base install."""
BROKEN_OFF: Final = "connection broken off"
NOT_CONNECTED: Final = "not connected"
"""Kinds of :class:`JudgeUnavailableError` that others tell apart."""

Failure = Literal["unreadable", "refused", "unavailable", "silent", "never", "limit", "stopped"]
"""Kind of failure: no readable reply, refused by the endpoint, no reply, no reply to any request,
nor ever one, the limit of cost is reached, or nothing more is asked of the model."""


class CaptionsError(Exception):
    """Base of every error that this package raises on purpose.

    Its text ends in logs and samples, so lone surrogates in it are replaced.
    """

    def __str__(self) -> str:
        return whole(super().__str__())


class SettingsError(CaptionsError, ValueError):
    """A setting (environment variable, YAML key or model argument) cannot be used as it is."""


class DataError(CaptionsError):
    """Benchmark data or a video is missing or unreadable; the text says where it was searched."""


class NoVideosError(DataError):
    """No video of a benchmark can be found, so looking for the next one is useless."""


class CaptionError(CaptionsError):
    """Captions that a run needs are missing or unreadable."""


class JudgeError(CaptionsError):
    """Base of everything that can go wrong between a question and its verdict."""

    may_be_billed = False
    """The request may have been answered and billed."""
    status: int | None = None
    """HTTP status of the answer, ``None`` if there was none."""
    said = parameter = ""
    """The server's own text without secrets, and the parameter that it names as the cause."""
    failure: ClassVar[Failure] = "unavailable"


class JudgeUnavailableError(JudgeError):
    """A failure that can pass: 429, 5xx, a timeout, a dropped connection, a garbled response.

    Its ``kind`` is a short description, equal for equal failures; ``is_own`` says that only this
    request is to blame, as of an answer of 200 without a reply.
    """

    told_limit = False
    """The server said that nothing is left of a limit."""

    def __init__(
        self,
        message: str,
        *,
        retry_after_s: float | None = None,
        rate_limited: bool = False,
        timed_out: bool = False,
        may_be_billed: bool = True,
        kind: str = "no usable answer",
        is_own: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind, self.is_own, self.may_be_billed = kind, is_own, may_be_billed
        self.retry_after_s, self.rate_limited = retry_after_s, rate_limited
        self.timed_out = timed_out


class JudgeRequestError(JudgeError):
    """The endpoint refuses this one request (400, 413, 422, flagged by 403): it is unscored."""

    failure: ClassVar[Failure] = "refused"


class GaveUpError(JudgeRequestError):
    """This one request got no reply, however often it was sent, while others got theirs."""

    failure: ClassVar[Failure] = "unavailable"


class TooLateError(JudgeError):
    """The time that a request was to be sent in is over: it is unscored, and may be asked later."""

    def __init__(self) -> None:
        super().__init__("the time for it was over")


class JudgeStoppedError(JudgeError):
    """Nothing more can be judged in this run (401, 403, 404, endpoint gone, disk full)."""

    failure: ClassVar[Failure] = "stopped"


class StoreError(JudgeStoppedError):
    """The cache folder cannot be read or written (disk full, no permission)."""


class EndpointSilentError(JudgeStoppedError):
    """The endpoint has answered nothing for longer than is waited: an outage."""

    failure: ClassVar[Failure] = "silent"


class NeverAnsweredError(EndpointSilentError):
    """The endpoint has answered nothing at all."""

    failure: ClassVar[Failure] = "never"


class JudgingEndedError(JudgeStoppedError):
    """Judging ended before this was asked; a rerun asks it."""

    failure: ClassVar[Failure] = "unavailable"


class CostLimitError(JudgeStoppedError):
    """The next request might exceed the limit of cost."""

    failure: ClassVar[Failure] = "limit"


class BlindModelError(JudgeStoppedError):
    """The model takes no pictures, or no video; text is judged on."""

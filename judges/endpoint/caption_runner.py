"""Runs the chains of captions, and settles each caption's future."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from lmms_eval_captions.judges.endpoint.asker import Asker
from lmms_eval_captions.judges.endpoint.chain import About, Ask, Chain
from lmms_eval_captions.judges.endpoint.engine_thread import EngineThread, settle
from lmms_eval_captions.judges.endpoint.progress.meter import Meter
from lmms_eval_captions.judges.endpoint.slots import Slots
from lmms_eval_captions.judges.errors import JudgeStoppedError

R = TypeVar("R")


class CaptionRunner:
    """To be used inside the event loop alone.

    Args:
        asker: Puts the chains' requests.
        slots: Starts the chains.
        meter: Counts the chains.
        thread: Has the words of what ends them.
        has_replicas: Whether a caption chooses who is asked about it.
    """

    def __init__(
        self,
        asker: Asker,
        slots: Slots,
        meter: Meter,
        thread: EngineThread,
        *,
        has_replicas: bool = False,
    ) -> None:
        self._asker = asker
        self._slots = slots
        self._meter = meter
        self._thread = thread
        self._has_replicas = has_replicas

    def enqueue(
        self,
        chains: Sequence[Chain[R]],
        future: Future[list[R]],
        about: About = None,
    ) -> None:
        """Queue the chains of one caption, whose results the future is given, in order.

        Args:
            chains: What is asked.
            future: Of their results.
            about: What tells their caption from others, or that of each chain.
        """
        results: dict[int, R] = {}
        n_left = len(chains)
        slots = self._slots

        async def run(index: int, question_index: int) -> None:
            nonlocal n_left
            try:
                results[index] = await chains[index](self._ask_of(question_index, about, index))
            except asyncio.CancelledError as error:
                if slots.closing:
                    raise
                why = self._thread.words(error)
                settle(future, JudgeStoppedError(f"a question was cancelled: {why}"))
            except Exception as error:  # noqa: BLE001 - handed to the caller, who is in another thread
                settle(future, error)
            except BaseException as error:  # noqa: BLE001 - must not end the caller's thread
                settle(future, self._thread.over(self._thread.words(error)))
            finally:
                # What the end of judging cancels is not done.
                self._meter.count_done(not slots.closing)
                n_left -= 1
                if not n_left and not future.done() and not slots.closing:
                    if len(results) == len(chains):
                        future.set_result([results[index] for index in range(len(chains))])
                    else:  # Not even the words of an error could be made.
                        future.set_exception(RuntimeError("a question ended without a result"))

        self._meter.count_submitted(len(chains))
        try:
            slots.add([partial(run, index) for index in range(len(chains))])
            slots.fill()
        except Exception as error:  # noqa: BLE001 - handed to the caller, who is in another thread
            settle(future, error)

    def _ask_of(self, question_index: int, about: About, index: int) -> Ask:
        if about is None or not self._has_replicas:
            return partial(self._asker.ask, question_index)
        of_chain = about if isinstance(about, bytes) else about[index]
        return partial(self._asker.ask_about, of_chain, question_index)

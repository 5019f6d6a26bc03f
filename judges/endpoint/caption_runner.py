"""Runs the chains of captions, and settles each caption's future."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from lmms_eval_captions.judges.endpoint.asker import Asker
from lmms_eval_captions.judges.endpoint.chain import Chain
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
    """

    def __init__(self, asker: Asker, slots: Slots, meter: Meter, thread: EngineThread) -> None:
        self._asker = asker
        self._slots = slots
        self._meter = meter
        self._thread = thread

    def enqueue(self, chains: Sequence[Chain[R]], future: Future[list[R]]) -> None:
        """Queue the chains of one caption, whose results the future is given, in order."""
        results: dict[int, R] = {}
        n_left = len(chains)
        slots = self._slots

        async def run(index: int, question_index: int) -> None:
            nonlocal n_left
            try:
                results[index] = await chains[index](partial(self._asker.ask, question_index))
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
            for index in range(len(chains)):
                slots.add(partial(run, index))
            slots.fill()
        except Exception as error:  # noqa: BLE001 - handed to the caller, who is in another thread
            settle(future, error)

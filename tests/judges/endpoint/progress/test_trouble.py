"""What is logged of an endpoint that fails or is silent: enough, not too much, and true."""

from __future__ import annotations

import random
import re
import time
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lmms_eval_captions.judges.endpoint.config import EngineConfig
from lmms_eval_captions.judges.endpoint.progress import outlook
from lmms_eval_captions.judges.endpoint.progress import trouble as trouble_module
from lmms_eval_captions.judges.endpoint.progress.meter import Meter
from lmms_eval_captions.judges.endpoint.progress.trouble import Trouble
from lmms_eval_captions.judges.errors import JudgeStoppedError, JudgeUnavailableError

KEY = "sk-0123456789abcdef"
CLOCK = r"\d\d:\d\d:\d\d"
NOW_S = 1.7e9


class Endpoint:
    """A Trouble on a clock of its own, with the numbers that the engine would keep."""

    def __init__(self, **settings: Any) -> None:
        config = EngineConfig(
            urls=("http://me:passw0rd-1@h:1/v1",),
            store=Path("nowhere"),
            api_key=KEY,
            **settings,
        )
        self.meter = Meter(n_submitted=100)
        self.trouble = Trouble(config, self.meter)
        self.now_s = 1000.0
        self.n_in_flight = 4
        self.meter.n_asking = 4
        self.trouble.tick(self.now_s, 4, lambda: inf)

    def fail(
        self, kind: str = "HTTP 503", words: str = "told to fail", took_s: float = 0.0
    ) -> None:
        """A request fails."""
        error = JudgeUnavailableError(words, kind=kind)
        self.trouble.failed(error, self.now_s - took_s, self.now_s)

    def reply(self) -> None:
        """A request is answered."""
        self.meter.n_calls += 1

    def wait(self, seconds: float) -> None:
        """Let time pass, with the ticks of the engine."""
        until_s = self.now_s + seconds
        while self.now_s < until_s:
            self.now_s += 0.25
            self.trouble.tick(self.now_s, self.n_in_flight, lambda: self.now_s + 30.0)


@pytest.fixture(autouse=True)
def _stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of day stands still, so that the seconds of two looks at it are the same."""
    stopped = SimpleNamespace(time=lambda: NOW_S, strftime=time.strftime, localtime=time.localtime)
    monkeypatch.setattr(outlook, "time", stopped)


def _in(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(NOW_S + seconds))


def test_the_first_failure_of_each_kind_is_told_and_then_one_line_a_minute(
    logged: list[str],
) -> None:
    """Hundreds of failures make a line for each new kind, and a minute later their counts."""
    endpoint = Endpoint()
    endpoint.reply()
    for _ in range(100):
        endpoint.fail()
        endpoint.wait(0.25)
    endpoint.fail("time-out", "no reply from http://h:1/v1 within 9 s", took_s=9.0)
    assert [line.split(":")[0] for line in logged] == [
        "WARNING endpoint trouble, HTTP 503 for the first time",
        "WARNING endpoint trouble, time-out for the first time",
    ]
    endpoint.wait(59.0)
    assert len(logged) == 2
    endpoint.wait(2.0)
    assert re.fullmatch(
        rf"WARNING endpoint trouble since {CLOCK}: 100 x HTTP 503, 1 x time-out, no reply for "
        r"8\d s, 4 in flight. The latest: no reply from http://h:1/v1 within 9 s. The endpoint is "
        rf"waited for until {CLOCK} at least, {CLOCK} at the latest. If nothing is answered by "
        "then, nothing more is asked: .*\n",
        logged[2],
    )
    endpoint.wait(180.0)
    assert len(logged) == 6


def test_the_end_of_trouble_is_told_once(logged: list[str]) -> None:
    """A server that was away and is back has one line, also where no minute passed."""
    endpoint = Endpoint()
    endpoint.reply()
    for kind in ("connection broken off", "not connected", "not connected"):
        endpoint.fail(kind)
        endpoint.wait(1.0)
    for _ in range(40):
        endpoint.reply()
        endpoint.wait(0.5)
    assert len(logged) == 3
    assert logged[2].startswith("INFO endpoint trouble is over: replies come, and the latest fail")
    assert "2 x not connected, 1 x connection broken off since" in logged[2]
    endpoint.fail("not connected")
    assert len(logged) == 3


def test_silence_without_a_failure_is_told(logged: list[str]) -> None:
    """After a minute without a reply the log says so, how many wait, and until when; then again."""
    endpoint = Endpoint()
    endpoint.wait(59.0)
    assert not logged
    endpoint.wait(1.0)
    assert logged == [
        "WARNING no reply for 60 s and no failure, 4 in flight. The first of them has until "
        f"{_in(30.0)}, then it is asked again\n"
    ]
    endpoint.wait(60.0)
    assert len(logged) == 2
    endpoint.reply()
    endpoint.wait(0.25)
    assert logged[2:] == ["INFO replies come again after 120 s without one\n"]
    endpoint.wait(30.0)
    assert len(logged) == 3


def test_a_gone_endpoint_is_waited_for_until_what_is_said(logged: list[str]) -> None:
    """Five minutes from the first failure after the latest reply, a quarter of an hour at most."""
    endpoint = Endpoint()
    endpoint.reply()
    endpoint.wait(10.0)
    endpoint.fail("not connected")
    assert f"waited for until {_in(300.0)} at least, {_in(900.0)} at the latest." in logged[0]


def test_no_line_holds_a_secret_or_says_what_the_endpoint_is_for(logged: list[str]) -> None:
    """A server may echo the key; and a captioner's endpoint is no judge."""
    endpoint = Endpoint()
    endpoint.fail("HTTP 500", f"bad key {KEY} at http://me:passw0rd-1@h:1/v1")
    endpoint.wait(61.0)
    endpoint.trouble.stopped("m", JudgeStoppedError(f"bad key {KEY} and passw0rd-1"))
    assert len(logged) == 3
    assert not [line for line in logged if KEY in line or "passw0rd-1" in line or "judg" in line]


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_there_is_about_a_line_a_minute(seed: int, logged: list[str]) -> None:
    """In ten random minutes: no minute of trouble without a line, and no flood of them."""
    rng = random.Random(seed)
    endpoint = Endpoint()
    share, said_s, n_lines, troubled_s = rng.random(), endpoint.now_s, 0, 0.0
    kinds = ["HTTP 500", "HTTP 502", "time-out", "not connected"][: rng.randint(1, 4)]
    for _ in range(2400):
        happening = rng.random()
        if happening < share * 0.2:
            endpoint.fail(rng.choice(kinds))
        elif happening > 1.0 - rng.choice((0.0, 0.3)) * (1.0 - share):
            endpoint.reply()
        endpoint.wait(0.25)
        if rng.random() < 0.002:
            share = rng.random()
        if len(logged) > n_lines or endpoint.meter.silence == "":
            n_lines, said_s = len(logged), endpoint.now_s
        troubled_s = max(troubled_s, endpoint.now_s - said_s)
    assert troubled_s <= trouble_module._EVERY_S + 1.0
    told = [line for line in logged if line.startswith("WARNING")]
    over = [line for line in logged if line.startswith("INFO")]
    assert len(told) <= len(kinds) + 11
    assert len(over) <= len(told)

"""From the replies to probes to findings: pure functions of what was asked and answered."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import exp
from typing import Final

from lmms_eval_captions.judges.endpoint.answers.reasoning import strip_reasoning
from lmms_eval_captions.judges.endpoint.answers.tokens import CHARS_PER_TOKEN
from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.findings import Finding, unknown
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.probe_facts import ProbeFacts, Seed
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.probes import (
    COUNTED_TO,
    PLACES,
    Probed,
)

_OPENING_WORDS: Final = 6
"""Words of a sentence by which it is told from others: later on, honest servers may differ too."""
_LEAST_OF_EXPECTED: Final = 0.8
"""Share of the tokens that a text should take, below which part of it did not arrive."""
_NEARLY: Final = 0.9
"""Share of the tokens that were allowed, from which on a reply used them up."""
_MOST_CHARS_PER_TOKEN: Final = 8
"""Of English sentences; no tokenizer needs fewer tokens."""
_NUMBER: Final = re.compile(r"\d{3,}")
_MOST_MASS: Final = 1.02
"""Sum of probabilities of a place's tokens that rounding explains."""
_TRUNCATED: Final = (
    "raise the context length of the server (vLLM --max-model-len, llama.cpp -c, "
    "OLLAMA_CONTEXT_LENGTH), or ask without the proxy between"
)


class ProbeReader:
    """Reads the replies of one verification.

    Args:
        probed: All probes with their replies.
    """

    def __init__(self, probed: Sequence[Probed]) -> None:
        self._probed = probed

    def findings(self) -> list[Finding]:
        """What the replies show by themselves."""
        looks: list[Callable[[], Finding]] = [
            self.truncation,
            self.output,
            self.temperature,
            self.cached,
            self.seed,
            self.logprobs,
        ]
        return [look() for look in looks]

    def facts(self) -> ProbeFacts:
        """What can be compared with an earlier verification."""
        return ProbeFacts(
            tokens={
                each.probe.name: each.reply.input_tokens
                for each in self._of("tokens")
                if each.reply is not None and not each.reply.is_estimated
            },
            seed=self._seed(),
            has_logprobs=self._has_logprobs(),
        )

    def truncation(self) -> Finding:
        """Whether long descriptions arrive whole."""
        seen = {
            each.probe.name: _places_seen(each)
            for each in self._of("codes")
            if each.reply and each.reply.finish_reason != "length"
        }
        cut = self._cut_by_tokens()
        if cut:
            return Finding(name="truncation", state="differs", evidence=cut, advice=_TRUNCATED)
        if len(seen) < len(self._of("codes")):
            return unknown("truncation", "not all descriptions were answered")
        lost = {name: [p for p in PLACES if p not in places] for name, places in seen.items()}
        if not lost["short"] and (lost["middle"] or lost["long"]):
            which = "long" if lost["long"] else "middle"
            return Finding(
                name="truncation",
                state="differs",
                evidence=f"of a description of {_words(self._of('codes'), which):,} words the code "
                f"at its {' and '.join(lost[which])} was not seen; of a short one all were",
                advice=_TRUNCATED,
                needs_skill=True,
            )
        if any(lost.values()):
            return Finding(
                name="truncation",
                state="note",
                evidence="codes in a short description were not all found either: the judge is "
                "weak, and whether long ones arrive whole cannot be told by them",
            )
        return Finding(
            name="truncation",
            state="ok",
            evidence=f"a description of {_words(self._of('codes'), 'long'):,} words arrives whole",
        )

    def output(self) -> Finding:
        """Whether long replies come to their end."""
        (counting,) = self._of("counting")
        if counting.reply is None:
            return unknown("output cut", "the long reply did not come")
        text = strip_reasoning(counting.reply.text)
        if str(COUNTED_TO) in text:
            return Finding(name="output cut", state="ok", evidence="a long reply comes to its end")
        asked = float(str(counting.probe.request.params["max_tokens"]))
        reply = counting.reply
        is_at_limit = reply.finish_reason == "length"
        is_cut = is_at_limit and reply.output_tokens < _NEARLY * asked
        if is_at_limit and (not is_cut or (not text and reply.is_estimated)):
            return unknown(
                "output cut", f"thoughts before the long reply used up its {asked:.0f} tokens"
            )
        return Finding(
            name="output cut",
            state="differs",
            evidence=f"the numbers from 1 to {COUNTED_TO} end with {text[-20:]!r} after "
            f"{reply.output_tokens} tokens, {asked:.0f} were allowed "
            f"(finish_reason {reply.finish_reason})",
            advice="look for a limit of output tokens at the server, or in a proxy before it",
            needs_skill=not is_cut,
        )

    def temperature(self) -> Finding:
        """Whether temperature 0 leaves nothing to chance."""
        greedy, sampled = self._openings("greedy"), self._openings("sampled")
        if self._refuses("temperature"):
            return Finding(
                name="temperature",
                state="note",
                evidence="the model takes no temperature: what it says varies from run to run",
            )
        if len(greedy) < 2:
            return unknown("temperature", "the same request was not answered twice")
        n_greedy, n_sampled = len(set(greedy)), len(set(sampled))
        if n_greedy > len(greedy) / 2 and n_greedy >= 3:
            return Finding(
                name="temperature",
                state="differs",
                evidence=f"at temperature 0 the same request was answered in {n_greedy} ways in "
                f"{len(greedy)} tries: it is sampled all the same",
                advice="look for a proxy or a server setting that replaces the temperature",
            )
        if n_sampled == 1 < len(sampled):
            # Whether that is a cache or a temperature of 0 is told by the next finding.
            return Finding(
                name="temperature",
                state="note",
                evidence="temperature 1 gives the same text for every seed, as 0 does",
            )
        return Finding(
            name="temperature",
            state="ok",
            evidence=f"at temperature 0 {n_greedy} opening{'s' * (n_greedy > 1)} in {len(greedy)} "
            f"tries, at 1 {n_sampled} in {len(sampled)}",
        )

    def cached(self) -> Finding:
        """Whether replies are answers to the requests, and not to earlier ones."""
        echoes = [each for each in self._of("echo") if _is_finished(each)]
        foreign = [each for each in echoes if _is_foreign(each, echoes)]
        if foreign or _are_old(echoes):
            return Finding(
                name="cached replies",
                state="differs",
                evidence="descriptions that differ in one number get the reply to another one: "
                f"asked about {echoes[0].probe.codes[0]} and others, it said "
                f"{_short((foreign or echoes)[0].reply)}",
                advice="switch off the cache before the judge (one that looks for similar "
                "requests, too)",
            )
        sampled = self._texts("sampled")
        if len(sampled) > 2 and len(set(sampled)) == 1 and not self._refuses("temperature"):
            return Finding(
                name="cached replies",
                state="differs",
                evidence=f"{len(sampled)} requests at temperature 1 with different seeds got one "
                f"text, letter for letter: {_short_text(sampled[0])}",
                advice="switch off the cache before the judge, or what sets the temperature to 0",
            )
        if not echoes or not sampled:
            return unknown("cached replies", "the requests that would show it were not answered")
        return Finding(
            name="cached replies",
            state="ok",
            evidence="replies follow what is asked, and differ at temperature 1",
        )

    def seed(self) -> Finding:
        """Whether the same seed gives the same text."""
        words = {
            "honoured": ("ok", "the same seed gives the same text at temperature 1"),
            "ignored": (
                "note",
                "the same seed gives another text at temperature 1: judge runs cannot be drawn "
                "again",
            ),
            "refused": ("note", "the endpoint takes no seed"),
            "unknown": ("unknown", "nothing can be said of the seed"),
        }
        state, evidence = words[self._seed()]
        return Finding(name="seed", state=state, evidence=evidence)  # type: ignore[arg-type]  # of the table

    def logprobs(self) -> Finding:
        """Whether there are log-probabilities, and whether they can be such."""
        has_logprobs = self._has_logprobs()
        if has_logprobs is None:
            return unknown("logprobs", "the request that asks for them was not answered")
        if not has_logprobs:
            return Finding(
                name="logprobs",
                state="note",
                evidence="there are no log-probabilities: scores of G-VEval are plain numbers",
            )
        (number,) = self._of("logprobs")
        tokens = (number.reply.logprobs if number.reply else None) or ()
        masses = [sum(map(exp, token.alternatives.values())) for token in tokens]
        if any(mass > _MOST_MASS for mass in masses):
            return Finding(
                name="logprobs",
                state="differs",
                evidence=f"the probabilities of one place sum to {max(masses):.2f}",
                advice="what the endpoint gives are no log-probabilities: score with an endpoint "
                "that has them, or without",
            )
        return Finding(name="logprobs", state="ok", evidence="there are log-probabilities")

    def _of(self, kind: str) -> list[Probed]:
        return [each for each in self._probed if each.probe.kind == kind]

    def _said(self, kind: str) -> dict[str, str]:
        """Probe to the text of its reply; without those that are empty or not finished."""
        return {
            each.probe.name: strip_reasoning(each.reply.text)
            for each in self._of(kind)
            if each.reply is not None and _is_finished(each)
        }

    def _texts(self, kind: str) -> list[str]:
        return list(self._said(kind).values())

    def _openings(self, kind: str) -> list[tuple[str, ...]]:
        return [tuple(text.split()[:_OPENING_WORDS]) for text in self._texts(kind)]

    def _refuses(self, parameter: str) -> bool:
        return any(each.reply and parameter in each.reply.refused for each in self._probed)

    def _seed(self) -> Seed:
        if self._refuses("seed"):
            return "refused"
        sampled, again = self._said("sampled"), self._said("sampled again")
        if len(set(sampled.values())) < 2 or "0" not in sampled or "0" not in again:
            return "unknown"
        return "honoured" if again["0"] == sampled["0"] else "ignored"

    def _has_logprobs(self) -> bool | None:
        (number,) = self._of("logprobs")
        if number.reply is None or not (number.reply.logprobs or _is_finished(number)):
            return None
        return bool(number.reply.logprobs)

    def _cut_by_tokens(self) -> str:
        """Evidence that fewer tokens arrived than were sent, empty where there is none."""
        counted = {
            each.probe.name: (each.probe.n_chars, each.reply.input_tokens)
            for each in self._of("codes")
            if each.reply is not None and not each.reply.is_estimated
        }
        if len(counted) < 3:
            return ""
        (n_short, t_short), (n_middle, t_middle), (n_long, t_long) = (
            counted[name] for name in ("short", "middle", "long")
        )
        per_char = (t_middle - t_short) / (n_middle - n_short)
        expected = t_middle + (n_long - n_middle) * per_char
        # Where the middle one was cut as well, what no tokenizer does tells.
        if t_long >= max(_LEAST_OF_EXPECTED * expected, n_long / _MOST_CHARS_PER_TOKEN):
            return ""
        expected = max(expected, n_long / CHARS_PER_TOKEN)
        return (
            f"the endpoint counts {t_long:,} tokens of a prompt of {n_long:,} characters; by its "
            f"counts of shorter ones it has some {expected:,.0f}"
        )


def _is_finished(each: Probed) -> bool:
    """Whether a reply came to its end, and holds more than thoughts."""
    reply = each.reply
    return (
        reply is not None and reply.finish_reason != "length" and bool(strip_reasoning(reply.text))
    )


def _places_seen(each: Probed) -> list[str]:
    text = each.reply.text if each.reply else ""
    return [place for place, code in zip(PLACES, each.probe.codes, strict=True) if code in text]


def _words(probed: Sequence[Probed], name: str) -> int:
    messages = next(each.probe.request.messages for each in probed if each.probe.name == name)
    return len(str(messages[0]["content"]).split())


def _holds(each: Probed) -> bool:
    return each.reply is not None and each.probe.codes[0] in each.reply.text


def _is_foreign(each: Probed, echoes: Sequence[Probed]) -> bool:
    """Whether a reply holds the code of another request, and not its own."""
    text = each.reply.text if each.reply else ""
    others = [other.probe.codes[0] for other in echoes if other is not each]
    return each.probe.codes[0] not in text and any(code in text for code in others)


def _are_old(echoes: Sequence[Probed]) -> bool:
    """Whether all replies are one, which names a number that was asked about by nobody here."""
    texts = {each.reply.text for each in echoes if each.reply}
    is_number = len(texts) == 1 and _NUMBER.search(next(iter(texts))) is not None
    return len(echoes) > 1 and is_number and not any(map(_holds, echoes))


def _short(reply: Reply | None) -> str:
    return _short_text(reply.text if reply else "")


def _short_text(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")

"""A program that records what a model says to the prompts of ``build``, for tests of readers.

It is run as ``record_building_replies.py URL MODEL SAMPLE OUTPUT [PROMPTS]``: each prompt is put
about each clip of the sample, with the sample's own questions where it needs some, at several
temperatures. ``PROMPTS`` is a folder of prompts in the place of the packaged ones.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from lmms_eval_captions.judges.endpoint.request import Message
from lmms_eval_captions.judges.protocols.building.categories import load_categories
from lmms_eval_captions.judges.protocols.capquiz import UNKNOWN
from lmms_eval_captions.judges.protocols.letters import LETTERS
from lmms_eval_captions.judges.protocols.prompt_folder import Prompts
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.blind import listed
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.similar import pairs_text
from lmms_eval_captions.lmms_eval_tasks.commands.building.frames import (
    Frames,
    Shown,
    behind_frames,
    with_frames,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.videos import find_videos

TEMPERATURES: Final = (0.0, 0.7, 1.0)
_LONG: Final = 512
_MIDDLE: Final = 256
_SHORT: Final = 96
_N_PROMPTS: Final = 15
_WHY: Final = "judges of captions disagree about it"


@dataclass(frozen=True, slots=True)
class Asking:
    """A request, and what the reader of its reply is given."""

    prompt: str
    messages: list[Message]
    max_tokens: int
    given: Mapping[str, Any]


def askings(sample: Path, prompts: Prompts) -> Iterator[Asking]:
    """A request of each prompt for each clip."""
    frames = Frames(n_frames=2, frame_pixels=64 * 64)
    rows = {
        name: _rows(sample / file)
        for name, file in {
            "capquiz": "capquiz/capquiz.jsonl",
            "vcapsbench": "vcapsbench/VCapsBench_100KQA.jsonl",
            "vdc": "vdc/VDC_1k.jsonl",
            "vidcapbench": "vidcapbench/VidCapBench-AE_QA.jsonl",
        }.items()
    }
    for place, video in enumerate(find_videos(sample / "capquiz" / "videos")):
        shown = frames.of(video)
        quiz = rows["capquiz"][place]["questions"]
        yes_no = [
            dict(zip(("category", "question", "answer"), pair.split("*"), strict=True))
            for pair in rows["vcapsbench"][place]["qa"]
            # One of the sample's questions has a star in it.
            if pair.count("*") == 2
        ]
        pairs = rows["vidcapbench"][place]["QA_pairs"]
        yield from _of_capquiz(prompts, shown, quiz, place)
        yield from _of_vcapsbench(prompts, shown, yes_no, rows["vdc"][place], place)
        yield from _of_vdc(prompts, shown, pairs, rows["vdc"][place], place)
        yield from _of_vidcapbench(prompts, shown, pairs, place)
    frames.close()


def _of_capquiz(
    prompts: Prompts, shown: Shown, quiz: list[dict[str, Any]], place: int
) -> Iterator[Asking]:
    pair = quiz[place % len(quiz)]
    menu = [*pair["options"], UNKNOWN]
    yield _asking(prompts, "build_capquiz_domain", {}, shown=shown, max_tokens=_SHORT)
    categories = load_categories(prompts, "build_capquiz_categories").text
    slots = {"n_pairs": "ONE", "categories": categories}
    yield _asking(prompts, "build_capquiz_write", slots, shown=shown)
    slots = {"question": pair["question"], "options": listed(pair["options"])}
    given = {"options": pair["options"]}
    yield _asking(prompts, "build_capquiz_blind", slots, max_tokens=_SHORT, given=given)
    slots |= {"options": listed(menu), "option_id_str": ", ".join(LETTERS)}
    given = {"options": menu}
    yield _asking(
        prompts, "build_capquiz_sighted", slots, shown=shown, max_tokens=_SHORT, given=given
    )
    yield _grouping(prompts, "build_capquiz_cluster", quiz)


def _of_vcapsbench(
    prompts: Prompts,
    shown: Shown,
    pairs: list[dict[str, Any]],
    captions: Mapping[str, str],
    place: int,
) -> Iterator[Asking]:
    slots = {
        "n_pairs": "6",
        "categories": load_categories(prompts, "build_vcapsbench_categories").text,
    }
    of_caption = {**slots, "caption": captions["detailed_caption"]}
    yield _asking(prompts, "build_vcapsbench_pairs_from_caption", of_caption)
    yield _asking(prompts, "build_vcapsbench_pairs_from_frames", slots, shown=shown)
    yield _grouping(prompts, "build_vcapsbench_merge", pairs)
    slots = {"question": pairs[place % len(pairs)]["question"]}
    yield _asking(prompts, "build_vcapsbench_sighted", slots, shown=shown, max_tokens=_SHORT)


def _of_vdc(
    prompts: Prompts,
    shown: Shown,
    pairs: list[dict[str, Any]],
    captions: Mapping[str, str],
    place: int,
) -> Iterator[Asking]:
    first = _asking(prompts, "build_vdc_captions.first", {}, shown=shown)
    yield first
    names = ("short", "background", "main_object", "camera")
    slots = {f"{name}_caption": captions[f"{name}_caption"] for name in names}
    slots["reference_caption"] = captions["detailed_caption"]
    second = _asking(prompts, "build_vdc_captions.second", slots, max_tokens=_MIDDLE)
    reply: Message = {"role": "assistant", "content": json.dumps(slots)}
    second.messages[:0] = [*first.messages, reply]
    yield second
    slots = {"n_pairs": "5", "caption": captions["detailed_caption"]}
    yield _asking(prompts, "build_vdc_pairs", slots)
    pair = pairs[place % len(pairs)]
    slots = {key: pair[key] for key in ("question", "answer")}
    yield _asking(prompts, "build_vdc_sighted", slots, shown=shown, max_tokens=_SHORT)


def _of_vidcapbench(
    prompts: Prompts, shown: Shown, pairs: list[dict[str, Any]], place: int
) -> Iterator[Asking]:
    categories = load_categories(prompts, "build_vidcapbench_categories").text
    slots = {"n_pairs": "5", "categories": categories}
    yield _asking(prompts, "build_vidcapbench_pairs", slots, shown=shown)
    pair = pairs[(place + 1) % len(pairs)]
    slots = {key: pair[key] for key in ("question", "answer", "sub_category")} | {"why": _WHY}
    yield _asking(prompts, "build_vidcapbench_review", slots, shown=shown, max_tokens=_MIDDLE)


def _grouping(prompts: Prompts, prompt: str, pairs: list[dict[str, Any]]) -> Asking:
    slots = {"pairs": pairs_text(pairs)}
    return _asking(prompts, prompt, slots, max_tokens=_MIDDLE, given={"n": len(pairs)})


def _asking(
    prompts: Prompts,
    prompt: str,
    slots: Mapping[str, str],
    *,
    shown: Shown | None = None,
    max_tokens: int = _LONG,
    given: Mapping[str, Any] | None = None,
) -> Asking:
    messages = prompts.load(prompt).render(**slots)
    if shown is not None:
        place = behind_frames if prompt.endswith(("_sighted", "_review")) else with_frames
        messages = place(messages, shown)
    return Asking(prompt, messages, max_tokens, given or {})


def main() -> None:
    """Write a row for each reply."""
    url, model, sample, output, *folder = sys.argv[1:]
    prompts = Prompts(*map(Path, folder))

    def row(asking: Asking, seed: int) -> dict[str, Any]:
        temperature = TEMPERATURES[seed % len(TEMPERATURES)]
        body = {
            "model": model,
            "messages": asking.messages,
            "max_tokens": asking.max_tokens,
            "temperature": temperature,
            "seed": seed,
        }
        text, finish_reason = _post(url, body)
        return {
            "prompt": asking.prompt,
            "reply": text,
            "finish_reason": finish_reason,
            "temperature": temperature,
            **asking.given,
        }

    # Those of a prompt are one behind the other at the temperatures.
    seeds = (number // _N_PROMPTS for number in count())
    asked = list(askings(Path(sample), prompts))
    with ThreadPoolExecutor(8) as pool, Path(output).open("w", encoding="utf-8") as file:
        for each in pool.map(row, asked, seeds):
            file.write(f"{json.dumps(each, ensure_ascii=False)}\n")
            file.flush()


def _post(url: str, body: Mapping[str, Any]) -> tuple[str, str]:
    address = urlsplit(url)
    connection = HTTPConnection(address.netloc, timeout=1800)
    key = os.environ["OPENAI_API_KEY"]
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    path = f"{address.path}/chat/completions"
    connection.request("POST", path, json.dumps(body), headers)
    choice = json.loads(connection.getresponse().read())["choices"][0]
    connection.close()
    return choice["message"]["content"], choice["finish_reason"]


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


if __name__ == "__main__":
    main()

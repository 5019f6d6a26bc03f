"""Time and size of ``lmms-eval-captions report`` over two runs of the full VDC.

Plants two results folders of the real questions, with 96,825 verdicts each, captions and replies,
makes the report of both with frames of 50 videos by the command line in a process of its own, and
opens it in a headless Chromium that is installed. Prints seconds, peak memory, size, requests to
the network, first paint, and the medians of filters, sorts and searches over all questions; exits
with 1 where one is above its limit.

    LMMS_CAPTIONS_DATA=DATA python benchmarks/report.py --clip video.mp4

DATA holds ``vdc/VDCScore_qa``, as docs/score-captions.md has it; without it, questions are made up.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from loguru import logger

from compare import ASPECTS, COMMAND, N_QUESTIONS, N_VIDEOS, measured

N_FRAMED: Final = 50
LIMITS: Final = {
    "seconds": 30.0,
    "MiB": 1024.0,
    "MB": 15.0,
    "requests": 0.0,
    "first paint, ms": 1500.0,
    "filter, ms": 150.0,
    "sort, ms": 150.0,
    "search, ms": 150.0,
}
_TEXT: Final = (
    "a the of in on with and then while near behind camera moves slowly left right person woman "
    "man child dog car street table window light bright dark red blue green wooden small large "
    "holding walking standing wearing looking background foreground scene shows appears remains "
    "steady close-up wide shot soft natural white grey hands face water tree building sky grass "
    "kitchen room floor wall glass paper phone bicycle market crowd smiling turning opening pouring"
)
_WORDS: Final = tuple(_TEXT.split())
Pair = tuple[str, str, str]
"""Question, gold answer and category."""


def main() -> int:
    """Measure, and print a line for each number."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--clip", type=Path, help="a clip that stands for all; rendered without")
    parser.add_argument("--rounds", type=int, default=5, help="of each filter, sort and search")
    parser.add_argument("--keep", type=Path, help="copy the page there")
    arguments = parser.parse_args()
    logger.remove()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        questions = {aspect: list(_questions(aspect)) for aspect in ASPECTS}
        for seed, right in enumerate((0.42, 0.45)):
            plant(root / f"captioner-{seed}", questions, right=right, seed=seed)
        data = _data(root / "data", questions, arguments.clip)
        page = root / "report.html"
        runs = [str(root / f"captioner-{seed}") for seed in (0, 1)]
        words = ["report", *runs, "-o", str(page), "--videos", str(data), "--framed", str(N_FRAMED)]
        took_s, _, peak = measured([*COMMAND, *words])
        found = {"seconds": took_s, "MiB": peak, "MB": page.stat().st_size / 1e6}
        if arguments.keep is not None:
            shutil.copy(page, arguments.keep)
        found |= browse(page, arguments.rounds)
    for name, value in found.items():
        print(f"{name:16} {value:10,.1f}   (limit {LIMITS[name]:,.0f})")
    return int(any(value > LIMITS[name] for name, value in found.items()))


def plant(
    folder: Path, questions: dict[str, list[tuple[str, list[Pair]]]], *, right: float, seed: int
) -> None:
    """Write what a run over the full VDC leaves, sample logs included.

    Args:
        folder: As lmms-eval's ``--output_path``.
        questions: Aspect to its videos with their questions.
        right: Share of questions that captions answer, in [0, 1].
        seed: Of captions and of what the judge says.
    """
    from planted_runs import STAMP, PlantedCaption, Question, record_of, write_run

    rng = random.Random(seed)
    tasks: dict[str, list[Any]] = {}
    logs: dict[str, list[dict[str, object]]] = {}
    for aspect in ASPECTS:
        task = f"vdc_{aspect}"
        tasks[task], logs[task] = [], []
        for video, pairs in questions[aspect]:
            hard = rng.gauss(0, 0.15)
            verdicts = ["yes" if rng.random() < right + hard else "no" for _ in pairs]
            text = " ".join(rng.choice(_WORDS) for _ in range(rng.randrange(60, 200)))
            asked = [Question(q, {"aspects": aspect, "categories": c}) for q, _, c in pairs]
            tasks[task].append(record_of(task, PlantedCaption(video, asked, [verdicts], text)))
            logs[task].append(_sample(task, video, text, pairs, verdicts, rng))
    path = write_run(folder, tasks, groups={"vdc_score": list(tasks)})
    for task, samples in logs.items():
        lines = "".join(f"{json.dumps(sample)}\n" for sample in samples)
        (path.parent / f"{STAMP}_samples_{task}.jsonl").write_text(lines, encoding="utf-8")


def browse(page: Path, rounds: int) -> dict[str, float]:
    """Return the waits of a person at the page, in a headless browser."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
    if chromium is None:
        raise SystemExit("there is no chromium or chrome on this machine")
    requests: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        paints = []
        for _ in range(rounds):
            tab = browser.new_page()
            tab.on("request", lambda request: requests.append(request.url))
            tab.goto(page.as_uri())
            tab.evaluate("report.ready")
            paints.append(tab.evaluate("performance.getEntriesByType('paint')[0].startTime"))
            tab.close()
        tab = browser.new_page()
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(page.as_uri())
        tab.evaluate("report.ready")
        timings = _timings(tab, rounds)
        browser.close()
    ours = {page.as_uri()}
    asked = [url for url in requests if url not in ours and not url.startswith(("data:", "blob:"))]
    return {
        "requests": float(len(asked)),
        "first paint, ms": median(paints),
        **{f"{what}, ms": median(timings[what]) for what in ("filter", "sort", "search")},
    }


_TIMED: Final = """async ([id, value]) => {
  const element = document.getElementById(id);
  const frame = () => new Promise(requestAnimationFrame);
  await frame();
  const start = performance.now();
  element.value = value;
  const kind = element.tagName === "SELECT" ? "change" : "input";
  element.dispatchEvent(new Event(kind, {bubbles: true}));
  await frame();
  await frame();
  return performance.now() - start;
}"""
"""Milliseconds from a choice to the second frame after it, which shows what follows."""


def _timings(tab: Any, rounds: int) -> dict[str, list[float]]:  # noqa: ANN401 - playwright's page
    """Milliseconds from each choice to the frame that shows its table."""
    tab.fill("#search", "what")
    tab.evaluate("searched.isRead")
    tab.fill("#search", "")
    found: dict[str, list[float]] = {"filter": [], "sort": [], "search": []}
    kinds = {"verdict": "filter", "category": "filter", "sort": "sort"}
    for _ in range(rounds):
        for element, kind in kinds.items():
            values = tab.evaluate(
                f"[...document.getElementById('{element}').options].slice(1, 5).map(o => o.value)"
            )
            for value in (*values, *([""] if kind == "filter" else [])):
                found[kind].append(tab.evaluate(_TIMED, [element, value]))
        for word in ("camera", "woman wearing", "e", ""):
            found["search"].append(tab.evaluate(_TIMED, ["search", word]))
    return found


def _sample(
    task: str,
    video: str,
    text: str,
    pairs: Sequence[Pair],
    verdicts: Sequence[str],
    rng: random.Random,
) -> dict[str, object]:
    """A line of a sample log, with what the report reads of it."""
    judgements = []
    for (question, answer, _), verdict in zip(pairs, verdicts, strict=True):
        grade = rng.choice((4, 5) if verdict == "yes" else (0, 1, 2))
        said = " ".join(rng.choice(_WORDS) for _ in range(rng.randrange(3, 14)))
        judgements.append({
            "run": 0, "reply": f"{{'pred': '{verdict}', 'score': {grade}}}", "reason": None,
            "cached": False, "question": question, "answer": answer, "predicted_answer": said,
            "verdict": verdict, "score": float(grade),
        })  # fmt: skip
    # What else a log holds of a caption is as long again, and is read with it.
    values = {"vdc_acc": [list(verdicts)], "vdc_score": [[said["score"] for said in judgements]]}
    record = {"values": values, "asked": [question for question, _, _ in pairs]}
    item = {"task": task, "video_id": video, "record": record, "judgements": judgements}
    return {"target": video, "filtered_resps": text, "vdc_acc": item}


def _questions(aspect: str) -> Iterator[tuple[str, list[Pair]]]:
    """The videos of an aspect with their questions: the real ones, or made up as many."""
    from lmms_eval_captions.judges.settings import data_settings
    from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task

    benchmark = benchmark_of_task(f"vdc_{aspect}")
    if data_settings().data is None:
        rng = random.Random(aspect)
        for video in range(N_VIDEOS):
            pairs = [_made_up(rng) for _ in range(N_QUESTIONS // N_VIDEOS // len(ASPECTS) + 1)]
            yield f"video_{video:04}", pairs
        return
    for doc in benchmark.read(data_settings(), benchmark.tasks[f"vdc_{aspect}"]):
        asked = benchmark.questions(doc)
        groups: Callable[..., Any] = benchmark.groups
        yield (
            benchmark.video_id(doc),
            [(q.question, q.answer, groups(doc, q, None)["categories"]) for q in asked],
        )


def _made_up(rng: random.Random) -> Pair:
    words = [rng.choice(_WORDS) for _ in range(16)]
    category = f"category {int(1_500 * rng.random() ** 4)}"
    return f"What {' '.join(words[:10])}?", " ".join(words[10:]), category


def _data(
    folder: Path, questions: dict[str, list[tuple[str, list[Pair]]]], clip: Path | None
) -> Path:
    """Benchmark files in their published form, and a clip for each of the videos."""
    from lmms_eval_captions.judges.settings import data_settings

    files, videos = folder / "vdc" / "VDCScore_qa", folder / "vdc" / "videos"
    videos.mkdir(parents=True)
    known = data_settings().data
    if known is not None:
        files.symlink_to((Path(known) / "vdc" / "VDCScore_qa").resolve())
    else:
        files.mkdir()
        for aspect, of_videos in questions.items():
            rows = [
                {video: [{"question": q, "answer": a, "category": c} for q, a, c in pairs]}
                for video, pairs in of_videos
            ]
            text = "".join(f"{json.dumps(row)}\n" for row in rows)
            (files / f"{aspect}.jsonl").write_text(text, encoding="utf-8")
    if clip is None:
        clip = next(_rendered(folder).rglob("*.mp4"))
    for video in dict.fromkeys(video for of in questions.values() for video, _ in of):
        (videos / f"{video}.mp4").symlink_to(clip.resolve())
    return folder


def _rendered(folder: Path) -> Path:
    from lmms_eval_captions.lmms_eval_tasks.sample import sample_root

    return sample_root(folder / "sample")


if __name__ == "__main__":
    sys.exit(main())

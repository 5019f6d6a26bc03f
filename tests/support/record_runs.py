"""Makes ``tests/promises/recorded_cache`` with the version of the package that is imported.

    PYTHONPATH=VERSION/.typing:tests/support:benchmarks python tests/support/record_runs.py

Everything is judged twice: by a scripted judge, whose replies are kept, and from these replies
alone, which gives the numbers and verdicts that are recorded.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from itertools import cycle
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any, Final

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from batch_server import BatchServer
from judge_server import AS_ASKED, JudgeServer, Say, last_text, scripted_reply
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from recorded_runs import COLLECTED, RECORDING, RUNS, RecordedRun, judge

VIDEOS: Final = ("sample_01", "sample_03", "sample_08")
STRANGE: Final = (
    "A *blue* square — or \u201csquare\u201d? — moves.\r\n\r\nAnswer: yes@@@ 2/5 \U0001f7e6\ud83d "
    "{question} {{caption}} αβ 50\u2028 <think>no</think> \u202eא"
)
"""A caption that is hard to send, with half of a pair of surrogates in it."""
_RESAMPLE_SEED: Final = 1_000_003


def main() -> None:
    """Write the recording anew, but for its README and the prompt in it."""
    for name in ("batches", "cache", "data", "runs", "t5"):
        shutil.rmtree(RECORDING / name, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        _write_inputs(sample_root(Path(scratch)))
        cache = Path(scratch) / "cache"
        for run in RUNS:
            _record(run, cache, Path(scratch) / run.name)
        _keep(cache)
        _record_collected_batch(Path(scratch) / "cache of a batch", Path(scratch) / "batch")


def _record(run: RecordedRun, cache: Path, scratch: Path) -> None:
    """Judge a run by the scripted judge, then from the stored replies, which is what is kept."""
    batches, server = BatchServer(), JudgeServer(run.served)
    names = cycle(run.names or (AS_ASKED,))
    batches.script = server.script = lambda payload: _say(payload, next(names))
    asked = batches if run.mode == "batch" else server
    with ExitStack() as running:
        running.enter_context(asked)
        _finish(_start(run, cache, asked.url, scratch / "asked"))
    with _Silent() as silent:
        _finish(_start(run, cache, silent.url, scratch / "stored"))
    _keep_run(run, scratch / "stored")


def _record_collected_batch(cache: Path, scratch: Path) -> None:
    """Submit a batch and kill the process; keep its ledger and what another one collects."""
    with BatchServer() as server:
        server.held = True
        submitting = _start(COLLECTED, cache, server.url, scratch / "killed")
        while not [path for path in cache.glob("batches/*.json") if "batch-0" in path.read_text()]:
            time.sleep(0.1)
        submitting.kill()
        submitting.join()
        [ledger] = cache.glob("batches/*.json")
        record = json.loads(ledger.read_text())
        record |= {"url": "", "created_s": 0, "writer": ["another machine", 1]}
        _write(RECORDING / "batches/ledger.json", f"{json.dumps(record, indent=1)}\n")
        server.held = False
        _finish(_start(COLLECTED, cache, server.url, scratch / "collected"))
        [state] = server.batches.values()
        replies = server.files[state["output_file_id"]].decode("ascii")
        _write(RECORDING / "batches/state.json", f"{json.dumps(state, indent=1)}\n")
        _write(RECORDING / "batches/replies.jsonl", replies)
    _keep_run(COLLECTED, scratch / "collected")


class _Silent(JudgeServer):
    def handle(self, *_: object) -> None:
        os.abort()


def _start(run: RecordedRun, cache: Path, url: str, output: Path) -> ForkProcess:
    """Judge in a process of its own, as settings and engine are the process's."""
    output.mkdir(parents=True)
    arguments = (run, cache, url, output)
    child = multiprocessing.get_context("fork").Process(target=_judge_here, args=arguments)
    child.start()
    return child


def _finish(child: ForkProcess) -> None:
    child.join()
    if child.exitcode:
        raise SystemExit("a run was not judged")


def _judge_here(run: RecordedRun, cache: Path, url: str, output: Path) -> None:
    os.environ.update({**run.variables(RECORDING, cache), "LMMS_CAPTIONS_JUDGE_URL": url})
    (output / "recorded.json").write_text(json.dumps(judge(run, output)))


def _keep_run(run: RecordedRun, output: Path) -> None:
    """Keep what a run came to, a line per task, without the questions, which are in the data."""
    recorded = json.loads((output / "recorded.json").read_text(), object_hook=_without_question)
    parts = [
        f'"{part}": {{\n'
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in values.items())
        + "\n}"
        for part, values in recorded.items()
    ]
    _write(RECORDING / "runs" / f"{run.name}.json", "{\n" + ",\n".join(parts) + "\n}\n")


def _without_question(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "question"}


def _say(payload: dict[str, Any], model: object) -> Say:
    """A reply of one of the forms that judges have, some of which cannot be read."""
    prompt, seed = last_text(payload), int(payload.get("seed", 0))
    plain = scripted_reply(prompt)
    form = _digest(f"{seed % _RESAMPLE_SEED} {prompt}") % 40
    is_first = seed < _RESAMPLE_SEED
    replies: Mapping[int, Callable[[], Say]] = {
        0: lambda: Say("Let us talk of the weather.", model=model),
        1: lambda: Say("Let us talk of the weather." if is_first else plain, model=model),
        2: lambda: Say("" if is_first else plain, model=model),
        3: lambda: Say("", "content_filter", model=model),
        4: lambda: Say(plain[: len(plain) // 2], "length", model=model),
        5: lambda: Say(f"<think>Is it 2, yes, or (A)?</think>\n{plain}", model=model),
        6: lambda: Say(f"```json\n{plain}\n```", model=model),
        7: lambda: Say("I cannot help with that.", model=model),
        8: lambda: Say("<think>It could be 2, yes, or", "length", model=model),
        9: lambda: Say(f"**{plain}**", model=model),
        10: lambda: Say(f"{plain}\n\n{plain}", model=model),
    }
    return replies.get(form, lambda: Say(plain, model=model))()


def _digest(text: str) -> int:
    encoded = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=4).digest(), "big")


def _write_inputs(sample: Path) -> None:
    """Captions, three clips' questions, a clip, and a tokenizer."""
    first, _, third = VIDEOS
    rows = map(json.loads, (sample / "vdc/captions.jsonl").read_text().splitlines())
    captions = {row["video_id"]: row["caption"] for row in rows}
    _write(
        RECORDING / "captions.json",
        json.dumps({first: captions[first], VIDEOS[1]: STRANGE, third: " \n"}, indent=1),
    )
    for path in sorted(sample.glob("*/**/*.jsonl")):
        if path.name != "captions.jsonl":
            lines = path.read_text().splitlines(keepends=True)
            kept = [line for line in lines if any(f'"{video}' in line[:40] for video in VIDEOS)]
            _write(RECORDING / "data" / path.relative_to(sample), "".join(kept))
    rated = json.loads((sample / "msvd_eval/MSVD-Eval.json").read_text())
    # One clip's frames are enough: every other row names the same one.
    rated = {video: {**rated[video], "vname": f"{first}.mp4"} for video in VIDEOS}
    _write(RECORDING / "data/msvd_eval/MSVD-Eval.json", json.dumps(rated, indent=1))
    clip = RECORDING / f"data/msvd_eval/YouTubeClips/{first}.mp4"
    clip.parent.mkdir()
    shutil.copy(sample / f"msvd_eval/YouTubeClips/{first}.mp4", clip)
    _write(RECORDING / "t5/tokenizer.json", _tokenizer().to_str(pretty=True))


def _tokenizer() -> Tokenizer:
    """A stand-in of T5's, whose tokens are words."""
    tokenizer = Tokenizer(WordLevel({"<unk>": 0, "</s>": 1}, unk_token="<unk>"))  # noqa: S106
    tokenizer.pre_tokenizer = Whitespace()
    end = TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer.post_processor = end
    return tokenizer


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def _keep(cache: Path) -> None:
    """Copy replies and frames, under names that say nothing of the machine."""
    for folder in sorted(path for path in (cache / "replies").iterdir() if path.is_dir()):
        lines = [line for path in sorted(folder.glob("*.jsonl")) for line in path.open("rb")]
        if lines:
            kept = RECORDING / "cache/replies" / folder.name / "recorded.jsonl"
            kept.parent.mkdir(parents=True)
            kept.write_bytes(b"".join(lines))
    shutil.copytree(cache / "frames", RECORDING / "cache/frames")


if __name__ == "__main__":
    main()

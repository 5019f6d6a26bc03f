"""``--baseline`` of lmms-eval from the command line, with a true and a false difference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from runs import Run, environment, run_lmms_eval

pytestmark = pytest.mark.cli

FALSE, TRUE = "vdc_short", "vcapsbench"
HEADLINES = {FALSE: "vdc_acc", TRUE: "ar"}


def _scores(run: Run, task: str) -> dict[int, float]:
    return {
        int(str(sample["doc_id"])): 100 * sample["score"]
        for sample in run.samples(task)
        if "score" in sample
    }


def test_a_baseline_finds_the_true_difference_and_no_false_one(tmp_path: Path) -> None:
    """The short captions are the same in both runs, the general ones say nothing in the second."""
    env = environment(
        tmp_path / "cache", LMMS_CAPTIONS_JUDGE="lexical", LMMS_CAPTIONS_MAX_UNSCORED="0.2"
    )
    lines = (sample_root(tmp_path / "cache") / "vdc" / "captions.jsonl").read_text().splitlines()
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    files = {name: tmp_path / f"{name}.jsonl" for name in ("then", "now")}
    files["then"].write_text("".join(json.dumps(row) + "\n" for row in rows))
    # Without a caption of one clip, too: that one cannot be compared.
    short = [{name: row[name] for name in ("video_id", "short_caption")} for row in rows]
    worse = [{**row, "caption": "It is dark."} for row in short[1:]]
    files["now"].write_text("".join(json.dumps(row) + "\n" for row in [short[0], *worse]))

    def run(name: str, *arguments: str) -> Run:
        run = run_lmms_eval(
            tmp_path / f"out {name}",
            "--model", "caption_file", "--model_args", f"path={files[name]},missing=skip",
            "--tasks", f"{FALSE},{TRUE}", *arguments, env=env,
        )  # fmt: skip
        assert (run.returncode, list(run.output.rglob("*_results.json")) != []) == (0, True), (
            run.log
        )
        return run

    then = run("then")
    now = run("now", "--baseline", str(then.output))
    for task, headline in HEADLINES.items():
        pairs = [(score, _scores(then, task)[doc]) for doc, score in _scores(now, task).items()]
        paired = stats.ttest_rel(*zip(*pairs, strict=True))
        low, high = paired.confidence_interval(0.95)
        results = now.results[task]
        difference = results[f"{headline},none"] - then.results[task][f"{headline},none"]
        assert results["paired_baseline_score"] == pytest.approx(
            sum(score for _, score in pairs) / len(pairs)
        )
        row = next(line for line in now.log.splitlines() if f"|{headline} " in line)
        assert f"({headline})" in row
        if task == FALSE:
            assert (difference, len(pairs)) == (0.0, len(rows))
            assert (results["paired_ci_lower"], results["paired_ci_upper"]) == (0.0, 0.0)
            assert results["paired_pvalue"] == 1.0
            shown = [cell.strip() for cell in row.split("|")][-4:-1]
            assert shown == ["+0.0%", "[+0.0%, +0.0%]", "1.0000"]
        else:
            assert (difference < -10, len(pairs)) == (True, len(rows) - 1)
            assert results["paired_ci_lower"] == pytest.approx(low)
            assert results["paired_ci_upper"] == pytest.approx(high)
            assert results["paired_pvalue"] == pytest.approx(paired.pvalue)
            assert paired.pvalue < 0.05
            assert results["paired_ci_lower"] <= difference <= results["paired_ci_upper"]

"""``lmms-eval-captions agree``: the same captions judged by several judges."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr
from sklearn.metrics import cohen_kappa_score, confusion_matrix

import ended_runs
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks, benchmark_of_task
from lmms_eval_captions.metrics.krippendorff_alpha import krippendorff_alpha
from planted_runs import STAMP, VERDICTS, PlantedCaption, Question, record_of, write_run

TASKS = [
    next(iter(benchmark.tasks))
    for benchmark in all_benchmarks().values()
    if benchmark.measure is None
]
MENUS = {
    task: VERDICTS[name]
    for name, benchmark in all_benchmarks().items()
    for task in benchmark.tasks
    if name in VERDICTS
}
N_VIDEOS = 24
N_QUESTIONS = 4


def _texts(captioner: str) -> list[str]:
    return [f"{captioner} saw {'a dog ' * (1 + video)}" for video in range(N_VIDEOS)]


def _said(task: str, *, seed: int, flips: float = 0.0, base: Any = None) -> list[list[object]]:
    """What a judge says of each video's questions; with a base, that with some flips."""
    rng = np.random.default_rng(seed)
    menu = MENUS[task]
    n_questions = 1 if task.startswith("msvd") else N_QUESTIONS

    def one() -> object:
        if isinstance(menu[0], str):
            return menu[int(rng.integers(len(menu)))]
        return round(float(rng.uniform(menu[1], menu[0])), 3)  # type: ignore[call-overload] # numbers

    said = [[one() for _ in range(n_questions)] for _ in range(N_VIDEOS)]
    if base is None:
        return said
    return [
        [new if rng.random() < flips else old for new, old in zip(news, olds, strict=True)]
        for news, olds in zip(said, base, strict=True)
    ]


def _records(
    task: str, judge: str, runs: Sequence[Sequence[Sequence[object]]], texts: Sequence[str]
) -> list[CaptionRecord]:
    """A record for each video; ``runs`` has shape (n_runs, n_videos, n_questions)."""
    section = next(iter(benchmark_of_task(task).sections), "kinds")
    return [
        record_of(
            task,
            PlantedCaption(
                f"v{video}",
                [
                    Question(f"{place}?", {section: "odd" if place % 2 else "even"})
                    for place in range(len(first))
                ],
                [run[video] for run in runs],
                text=texts[video],
            ),
            judge=judge,
        )
        for video, first in enumerate(runs[0])
    ]  # fmt: skip


def _run(folder: Path, task: str, judge: str, runs: Any, texts: Any, **options: Any) -> Path:
    records = _records(task, judge, runs, texts)
    write_run(folder, {task: records}, **options)
    n_verdicts = sum(record.n_questions for record in records)
    _edit_judging(folder, tasks={task: {"tasks": [], "unscored": {"n": 0, "of": n_verdicts}}})
    return folder


def _edit_judging(folder: Path, **members: object) -> None:
    path = folder / "m" / f"{STAMP}_judging.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **members}))


def _agree(capsys: pytest.CaptureFixture[str], *words: object) -> list[dict[str, Any]]:
    assert main(["agree", *map(str, words), "--format", "json"]) == 0
    text = capsys.readouterr().out
    assert "NaN" not in text
    found: list[dict[str, Any]] = json.loads(text)["benchmarks"]
    return found


def _lines(capsys: pytest.CaptureFixture[str], *words: object) -> list[str]:
    assert main(["agree", *map(str, words)]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("task", TASKS)
def test_numbers_are_those_of_an_independent_computation(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kappa, alpha, correlation, confusions and means of planted verdicts of every benchmark."""
    benchmark = benchmark_of_task(task)
    first = _said(task, seed=1)
    second = _said(task, seed=2, flips=0.4, base=first)
    texts = _texts("a")
    folders = [
        _run(tmp_path / "one", task, "gpt-4o", [first], texts),
        _run(tmp_path / "two", task, "gemma", [second], texts),
    ]
    (found,) = _agree(capsys, *folders)
    (pair,) = found["pairs"]
    x, y = (np.array(said, dtype=object).ravel().tolist() for said in (first, second))
    agreement, rows = pair["agreements"][0], pair["leniency"]
    assert (pair["reference"], pair["other"]) == ("gpt-4o", "gemma")
    assert (pair["n_captions"], pair["n_videos"], pair["left_out"]) == (N_VIDEOS, N_VIDEOS, {})
    assert agreement["n_units"] == len(x)
    assert agreement["same"] == pytest.approx(np.mean([a == b for a, b in zip(x, y, strict=True)]))
    level = "nominal" if isinstance(x[0], str) else "interval"
    alpha = krippendorff_alpha(list(zip(x, y, strict=True)), level=level)  # type: ignore[arg-type]
    assert agreement["alpha"]["value"] == pytest.approx(alpha)
    if isinstance(x[0], str):
        assert agreement["kappa"]["value"] == pytest.approx(cohen_kappa_score(x, y))
        labels = pair["confusion"]["labels"]
        assert labels == list(MENUS[task])
        assert pair["confusion"]["counts"] == confusion_matrix(x, y, labels=labels).tolist()
        main_interval = agreement["kappa"]
    else:
        assert agreement["kappa"] is None
        assert agreement["correlation"]["value"] == pytest.approx(pearsonr(x, y).statistic)
        main_interval = agreement["alpha"]
    assert main_interval["low"] < main_interval["value"] < main_interval["high"]
    printed = [
        json.loads((folder / "m" / f"{STAMP}_results.json").read_text())["results"][task]
        for folder in folders
    ]
    of_all = {row["metric"]: row for row in rows if row["section"] == "overall"}
    assert next(iter(of_all)) == benchmark.headline
    for metric, row in of_all.items():
        values = [results[f"{metric},none"] for results in printed]
        assert [row["reference"], row["other"]] == pytest.approx(values)
        assert row["difference"]["difference"] == pytest.approx(values[1] - values[0])
    line = found["conclusions"][1]
    name = "kappa" if level == "nominal" else "alpha"
    assert line.startswith(f"gemma: agrees with gpt-4o to {name} {main_interval['value']:.2f} [")


@pytest.mark.parametrize(
    "task", [task for task in TASKS if not task.startswith(("msvd", "vdc_vdd", "own"))]
)
def test_who_is_more_lenient_in_which_group(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A judge that finds more right in one group alone is more lenient there, and not elsewhere."""
    best, worst = MENUS[task][0], MENUS[task][-1]
    rng = np.random.default_rng(5)
    strict = [
        [best if rng.random() < 0.5 else worst for _ in range(N_QUESTIONS)] for _ in range(N_VIDEOS)
    ]
    lenient = [
        [best if n % 2 and rng.random() < 0.6 else verdict for n, verdict in enumerate(said)]
        for said in strict
    ]
    texts = _texts("a")
    folders = [
        _run(tmp_path / "one", task, "strict", [strict], texts),
        _run(tmp_path / "two", task, "lenient", [lenient], texts),
    ]
    (found,) = _agree(capsys, *folders)
    headline = benchmark_of_task(task).headline
    rows = {row["group"]: row for row in found["pairs"][0]["leniency"] if row["metric"] == headline}
    assert rows["odd"]["difference"]["low"] > 0
    assert rows["odd"]["p_holm"] < 0.05
    assert rows["even"]["difference"]["difference"] == 0
    assert rows["even"]["p_holm"] == 1
    assert rows["odd"]["n_units"] == rows["even"]["n_units"] == N_VIDEOS * N_QUESTIONS / 2
    assert rows["odd"]["agreement"]["value"] < rows["even"]["agreement"]["value"] == 1
    assert "more lenient" in found["conclusions"][1]


def test_a_table_whose_kappa_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of 100 verdicts 40, 10, 10 and 40: kappa 0.6, as lenient, as a line in words."""
    cells = [("positive", "positive")] * 40 + [("negative", "negative")] * 40
    cells += [("positive", "negative"), ("negative", "positive")] * 10
    order = np.random.default_rng(0).permutation(100)
    said = [
        [[cells[i][side] for i in order[k : k + 4]] for k in range(0, 100, 4)] for side in (0, 1)
    ]
    texts = [f"caption {i}" for i in range(25)]
    folders = [
        _run(tmp_path / judge, "vcapsbench", judge, [own], texts, cost_usd=usd)
        for judge, own, usd in zip(("gpt-4o", "gemma"), said, (5.0, 0.5), strict=True)
    ]
    lines = _lines(capsys, *folders)
    line = next(line for line in lines if line.startswith("gemma: "))
    assert line.startswith("gemma: agrees with gpt-4o to kappa 0.60 [0.")
    assert "(AC1 0.73); as strict (ar +0.00 [-" in line
    assert line.endswith("0.1 of the price")
    assert line == lines[-1]


@pytest.fixture
def study(tmp_path: Path) -> dict[tuple[str, str], Path]:
    """Three captioners, each judged by two judges who agree on the first place alone."""
    shares = {"gpt-4o": (0.9, 0.6, 0.3), "gemma": (0.9, 0.3, 0.6)}
    folders = {}
    for judge, of_captioners in shares.items():
        for captioner, share in zip("abc", of_captioners, strict=True):
            rng = np.random.default_rng(7)
            said = [
                ["correct" if rng.random() < share else "wrong" for _ in range(N_QUESTIONS)]
                for _ in range(N_VIDEOS)
            ]
            folder = tmp_path / f"{captioner}_by_{judge}"
            _run(folder, "vidcapbench_ae", judge, [said], _texts(captioner))
            folders[captioner, judge] = folder
    return folders


@pytest.mark.parametrize("order", [0, 17, 400, 719])
def test_folders_are_paired_by_their_captions(
    order: int, study: Mapping[tuple[str, str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """In whatever order they are named; judges' ranks of captioners are compared."""
    folders = list(permutations(study.values()))[order]
    (found,) = _agree(capsys, *folders, "--reference", "gpt-4o")
    assert sorted(found["captioners"]) == ["a_by", "b_by", "c_by"]
    assert [judge["name"] for judge in found["judges"]] == ["gpt-4o", "gemma"]
    (pair,) = found["pairs"]
    assert pair["n_captions"] == 3 * N_VIDEOS
    assert pair["left_out"] == {}
    ranking = pair["ranking"]
    assert [name for name, _ in ranking["reference"]] == ["a_by", "b_by", "c_by"]
    assert [name for name, _ in ranking["other"]] == ["a_by", "c_by", "b_by"]
    scores = [dict(ranking[side]) for side in ("reference", "other")]
    columns = [[own[name] for name in sorted(own)] for own in scores]
    assert ranking["tau_b"] == pytest.approx(kendalltau(*columns).statistic)
    (swap,) = ranking["swaps"]
    assert swap["captioners"] == ["b_by", "c_by"]
    assert swap["reference"]["low"] > 0 > swap["other"]["high"]
    assert (
        "orders 1 of 3 pairs of captioners the other way round, b_by and c_by (1 beyond the "
        in (found["conclusions"][1])
    )
    per_captioner = {r["group"]: r for r in pair["leniency"] if r["section"] == "captioners"}
    assert per_captioner["a_by"]["difference"]["p_value"] == 1
    assert (
        per_captioner["b_by"]["difference"]["high"] < 0 < per_captioner["c_by"]["difference"]["low"]
    )


def test_captions_that_differ_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And so are missing and empty ones, further questions and unscored ones; all are counted."""
    task = "vcapsbench"
    said = _said(task, seed=1)
    records = _records(task, "gpt-4o", [said], _texts("a"))
    others = _records(task, "gemma", [said], _texts("a"))
    others[0] = replace(others[0], caption_digest="0" * 16)
    others[1] = replace(others[1], n_empty=1)
    others[2] = _records(task, "gemma", [[[None, *row[1:]] for row in said]], _texts("a"))[2]
    others[3] = replace(others[3], asked=["another?", *others[3].asked[1:]])
    del others[4]
    write_run(tmp_path / "one", {task: records})
    write_run(tmp_path / "two", {task: others})
    (found,) = _agree(capsys, tmp_path / "one", tmp_path / "two")
    (pair,) = found["pairs"]
    assert pair["n_captions"] == N_VIDEOS - 3
    assert pair["left_out"] == {
        "captions that differ between the judges": 1,
        "captions without a word, which no judge is asked about": 1,
        "captions that not all of the judges have": 1,
        "questions that not all of the judges were asked": 2,
        "questions that one of the judges left unscored": 1,
    }
    assert pair["agreements"][0]["n_units"] == (N_VIDEOS - 3) * N_QUESTIONS - 2
    assert pair["agreements"][0]["same"] == 1
    lines = _lines(capsys, tmp_path / "one", tmp_path / "two")
    assert any("left out: " in line and "1 captions that" in line for line in lines)


def test_other_captions_are_never_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two judges of two captioners have nothing in common: said, with what is there."""
    said = _said("vcapsbench", seed=1)
    one = _run(tmp_path / "one", "vcapsbench", "gpt-4o", [said], _texts("a"))
    two = _run(tmp_path / "two", "vcapsbench", "gemma", [said], _texts("b"))
    assert main(["agree", str(one), str(two)]) == 2
    error = capsys.readouterr().err
    assert "judged by gpt-4o, gemma, captions of one, two" in error
    assert "LMMS_CAPTIONS_JUDGE" in error


@pytest.mark.parametrize("task", TASKS)
def test_the_runs_of_one_judge(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With one folder, the judge's runs are the raters."""
    first = _said(task, seed=1)
    runs = [
        first,
        _said(task, seed=2, flips=0.3, base=first),
        _said(task, seed=3, flips=0.3, base=first),
    ]
    folder = _run(tmp_path / "one", task, "gpt-4o", runs, _texts("a"))
    (found,) = _agree(capsys, folder)
    assert found["pairs"] == []
    own = found["judges"][0]["own_runs"][0]
    rows = list(zip(*(np.array(run, dtype=object).ravel().tolist() for run in runs), strict=True))
    level = "nominal" if isinstance(rows[0][0], str) else "interval"
    assert own["alpha"]["value"] == pytest.approx(krippendorff_alpha(rows, level=level))  # type: ignore[arg-type]
    assert own["same"] == pytest.approx(np.mean([len(set(row)) == 1 for row in rows]))
    (line,) = found["conclusions"]
    assert line.startswith("gpt-4o: says the same in all 3 of its runs in ")


def test_runs_of_judges_are_paired_in_turn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A judge with one run stands beside each of three runs of the other."""
    first = _said("capquiz", seed=1)
    runs = [_said("capquiz", seed=seed, flips=0.3, base=first) for seed in (2, 3, 4)]
    one = _run(tmp_path / "one", "capquiz", "gpt-4o", [first], _texts("a"))
    three = _run(tmp_path / "three", "capquiz", "gemma", runs, _texts("a"))
    (found,) = _agree(capsys, one, three)
    agreement = found["pairs"][0]["agreements"][0]
    x = np.array([first] * 3, dtype=object).ravel().tolist()
    y = np.array(runs, dtype=object).ravel().tolist()
    assert agreement["n_units"] == len(x)
    assert agreement["kappa"]["value"] == pytest.approx(cohen_kappa_score(x, y))


def test_three_judges_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every pair and all at once; those that are not asked for by name, too."""
    first = _said("vcapsbench", seed=1)
    said = [first, *(_said("vcapsbench", seed=seed, flips=0.3, base=first) for seed in (2, 3))]
    folders = [
        _run(tmp_path / judge, "vcapsbench", judge, [own], _texts("a"))
        for judge, own in zip(("x", "y", "z"), said, strict=True)
    ]
    (found,) = _agree(capsys, *folders, "--reference", "y")
    assert [(pair["reference"], pair["other"]) for pair in found["pairs"]] == [
        ("y", "x"),
        ("y", "z"),
    ]
    ((one, two, agreement),) = found["others"]
    assert (one, two) == ("x", "z")
    flat = [np.array(own, dtype=object).ravel().tolist() for own in said]
    assert agreement["kappa"]["value"] == pytest.approx(cohen_kappa_score(flat[0], flat[2]))
    rows = list(zip(*flat, strict=True))
    together = found["together"][0]["alpha"]["value"]
    assert together == pytest.approx(krippendorff_alpha(rows, level="nominal"))
    assert [line.partition(":")[0] for line in found["conclusions"]] == ["y", "x", "z"]


def _older(folder: Path) -> None:
    """Make the run in a folder one of the day before."""
    for path in (folder / "m").iterdir():
        path.rename(path.with_name(path.name.replace(STAMP, "20250101_000000")))


def test_of_runs_beside_each_other_the_newest_of_a_judge_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two judges may share a folder; a judge's earlier run there is superseded, but was paid."""
    said, texts = _said("vcapsbench", seed=1), _texts("a")
    folder = tmp_path / "out"
    _run(folder, "vcapsbench", "gpt-4o", [_said("vcapsbench", seed=9)], texts, cost_usd=2.0)
    _older(folder)
    for path in list((folder / "m").iterdir()):
        path.rename(path.with_name(path.name.replace("20250101", "20240101")))
    _run(folder, "vcapsbench", "gemma", [said], texts)
    _older(folder)
    _run(folder, "vcapsbench", "gpt-4o", [said], texts, cost_usd=1.0)
    (found,) = _agree(capsys, folder)
    assert [judge["name"] for judge in found["judges"]] == ["gpt-4o", "gemma"]
    assert found["judges"][0]["price"]["usd"] == 3
    assert found["pairs"][0]["agreements"][0]["same"] == 1


def test_a_judge_in_two_folders_is_compared_with_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such as before and after its vendor's update; the folders tell them apart."""
    first = _said("vcapsbench", seed=1)
    again = _said("vcapsbench", seed=2, flips=0.2, base=first)
    folders = [
        _run(tmp_path / name, "vcapsbench", "gpt-4o", [said], _texts("a"))
        for name, said in (("may", first), ("june", again))
    ]
    (found,) = _agree(capsys, *folders)
    assert [judge["name"] for judge in found["judges"]] == ["gpt-4o (may)", "gpt-4o (june)"]
    assert len(found["pairs"]) == 1


def test_longer_captions_move_one_judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A judge that likes words gives more to long captions: the slope says so."""
    rng = np.random.default_rng(3)
    lengths = [10 + 12 * video for video in range(N_VIDEOS)]
    fair = [["positive" if rng.random() < 0.5 else "negative" for _ in range(8)] for _ in lengths]
    fond = [
        ["positive" if rng.random() < length / 400 else verdict for verdict in said]
        for said, length in zip(fair, lengths, strict=True)
    ]
    texts = [" ".join(["word"] * length) for length in lengths]
    folders = [
        _run(tmp_path / judge, "vcapsbench", judge, [said], texts)
        for judge, said in (("fair", fair), ("fond", fond))
    ]
    (found,) = _agree(capsys, *folders)
    slope = found["pairs"][0]["slope"]
    share = [[np.mean([v == "positive" for v in said]) for said in own] for own in (fair, fond)]
    expected = np.polyfit(np.array(lengths) / 100, 100 * (np.array(share[1]) - share[0]), 1)[0]
    assert slope["slope"] == pytest.approx(expected)
    assert slope["low"] > 0


@pytest.mark.parametrize(
    ("usd", "words"),
    [
        pytest.param((5.0, 1.0), "0.2 of the price", id="known"),
        pytest.param((5.0, None), "its price beside the reference's is not known", id="unknown"),
        pytest.param(
            (5.0, 0.0), "$0.00 for 1,000 verdicts, the reference $52.08", id="own machine"
        ),
    ],
)
def test_dollars_come_from_the_judging_documents(
    usd: tuple[float, float | None],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of each judge's runs; where none is known, none is guessed."""
    said = _said("vcapsbench", seed=1)
    folders = [
        _run(tmp_path / judge, "vcapsbench", judge, [said], _texts("a"), cost_usd=cost)
        for judge, cost in zip(("gpt-4o", "gemma"), usd, strict=True)
    ]
    (found,) = _agree(capsys, *folders)
    assert [judge["price"]["usd"] for judge in found["judges"]] == list(usd)
    assert words in found["conclusions"][1]


def test_no_price_of_replies_that_were_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What earlier runs had paid for costs nothing, which is no price."""
    said = _said("vcapsbench", seed=1)
    folders = [
        _run(tmp_path / judge, "vcapsbench", judge, [said], _texts("a"), cost_usd=5.0)
        for judge in ("gpt-4o", "gemma")
    ]
    _edit_judging(folders[1], judging={"usd": 0.0, "calls": 0, "from_store": {"http://a": 96}})
    (found,) = _agree(capsys, *folders)
    price = found["judges"][1]["price"]
    assert price == {"usd": 0.0, "n_calls": 0, "n_unpaid": 96, "usd_per_1000_verdicts": None}
    assert "is not known" in found["conclusions"][1]


def test_stored_replies_do_not_make_a_judge_cheap(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A price is that of paying for every reply: half of them were stored, half cost 1 dollar."""
    said = _said("vcapsbench", seed=1)
    folders = [
        _run(tmp_path / judge, "vcapsbench", judge, [said], _texts("a")) for judge in ("x", "y")
    ]
    _edit_judging(folders[0], judging={"usd": 2.0, "calls": 96, "from_store": {}})
    stored = {"http://a": 40, "http://b": 8}
    _edit_judging(folders[1], judging={"usd": 1.0, "calls": 48, "from_store": stored})
    (found,) = _agree(capsys, *folders)
    prices = [judge["price"]["usd_per_1000_verdicts"] for judge in found["judges"]]
    assert prices == pytest.approx([1000 * 2 / 96] * 2)
    assert "; 1 of the price" in found["conclusions"][1]


def test_perfect_agreement_has_no_false_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Equal verdicts: kappa 1 without ends, and as strict."""
    said = _said("vdc_camera", seed=1)
    folders = [
        _run(tmp_path / judge, "vdc_camera", judge, [said], _texts("a")) for judge in ("x", "y")
    ]
    lines = _lines(capsys, *folders)
    assert any(
        line.startswith(
            "y: agrees with x to kappa 1.00 (AC1 1.00); as strict (vdc_acc identical on"
        )
        for line in lines
    )


def test_several_benchmarks_and_a_choice_of_tasks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each benchmark by itself; ``--tasks`` leaves the others out."""
    tasks = ("vdc_camera", "capquiz")
    for judge in ("x", "y"):
        records = {
            task: _records(task, judge, [_said(task, seed=1)], _texts("a")) for task in tasks
        }
        write_run(tmp_path / judge, records)
    folders = [tmp_path / judge for judge in ("x", "y")]
    assert [each["benchmark"] for each in _agree(capsys, *folders)] == ["vdc", "capquiz"]
    (found,) = _agree(capsys, *folders, "--tasks", "capquiz")
    assert found["tasks"] == ["capquiz"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        pytest.param(["--reference", "claude"], "expected one of x, y, got 'claude'", id="judge"),
        pytest.param(
            ["--tasks", "vdc_camera"], "no verdicts of these tasks", id="no such verdicts"
        ),
        pytest.param(["--tasks", "vcaps"], "is none of ours", id="no such task"),
    ],
)
def test_mistakes_are_told(
    words: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With exit code 2 and what there is."""
    said = _said("vcapsbench", seed=1)
    folders = [
        str(_run(tmp_path / judge, "vcapsbench", judge, [said], _texts("a")))
        for judge in ("x", "y")
    ]
    assert main(["agree", *folders, *words]) == 2
    assert text in capsys.readouterr().err


def test_a_run_that_does_not_say_what_it_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Versions before this one kept nothing by which captions can be told apart."""
    records = _records("vcapsbench", "x", [_said("vcapsbench", seed=1)], _texts("a"))
    write_run(
        tmp_path / "x", {"vcapsbench": [replace(each, caption_digest="") for each in records]}
    )
    assert main(["agree", str(tmp_path / "x")]) == 2
    assert "an older version wrote it. Score the captions again" in capsys.readouterr().err


def test_markdown(
    study: Mapping[tuple[str, str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Tables of pipes, headings, and the conclusions as a list."""
    assert main(["agree", *map(str, study.values()), "--format", "markdown"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("### vidcapbench: vidcapbench\\_ae\n")
    assert (
        "**Captioners under both judges**\n\n| rank | gpt-4o | acc | gemma | acc |\n| :--- |"
        in text
    )
    last = text.splitlines()[-1]
    assert last.startswith("- gemma: agrees with gpt-4o to kappa ")


def test_latex(study: Mapping[tuple[str, str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Tables to paste, and the conclusions as comments."""
    assert main(["agree", *map(str, study.values()), "--format", "latex"]) == 0
    text = capsys.readouterr().out
    assert r"\caption{Captioners under both judges}" in text
    assert text.splitlines()[-1].startswith("% gemma: agrees with gpt-4o to kappa ")


def test_csv_holds_the_numbers_of_json_and_goes_into_a_file(
    study: Mapping[tuple[str, str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line for each number, with whom it is of, as ``compare`` has it."""
    ((pair,), found) = _pairs_and_all(capsys, study)
    path = tmp_path / "new" / "agree.csv"
    words = [*map(str, study.values()), "--format", "csv", "--output", str(path)]
    assert main(["agree", *words]) == 0
    assert capsys.readouterr().out == ""
    lines = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    of = {
        (line["judge"], line["section"], line["group"], line["metric"], line["quantity"]): line
        for line in lines
    }
    assert len(of) == len(lines)
    kappa = pair["agreements"][0]["kappa"]
    line = of["gemma", "overall", "all", "verdict", "kappa"]
    assert line["reference"] == "gpt-4o"
    assert [float(line[name]) for name in ("value", "low", "high")] == [
        kappa["value"], kappa["low"], kappa["high"]
    ]  # fmt: skip
    for row in pair["leniency"]:
        line = of["gemma", row["section"], row["group"], row["metric"], "difference"]
        assert float(line["value"]) == row["difference"]["difference"]
        assert line["p_holm"] == ("" if row["p_holm"] is None else str(row["p_holm"]))
    tau = of["gemma", "overall", "all", pair["ranking"]["metric"], "tau_b"]
    assert float(tau["value"]) == pair["ranking"]["tau_b"]
    assert {line["benchmark"] for line in lines} == {found["benchmark"]}


def _pairs_and_all(
    capsys: pytest.CaptureFixture[str], study: Mapping[tuple[str, str], Path]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    (found,) = _agree(capsys, *study.values())
    return found["pairs"], found


def test_captioners_are_called_as_compare_calls_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a captioner's folders have one name below each judge's, that is the captioner's."""
    task = "vcapsbench"
    said = _said(task, seed=1)
    folders = [
        write_run(
            tmp_path / judge / name,
            {task: _records(task, judge, [said], _texts(name))},
            model=f"file_{name}.jsonl",
        ).parents[1]
        for judge in ("gpt-4o", "gemma")
        for name in ("alpha", "beta")
    ]
    (found,) = _agree(capsys, *folders)
    assert found["captioners"] == ["alpha", "beta"]


def test_text_fits_a_terminal(
    study: Mapping[tuple[str, str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """At most 100 columns, but for the conclusions, which are a line for each judge."""
    lines = _lines(capsys, *study.values())
    assert max(map(len, lines[:-2])) <= 100
    assert lines[-2] == "gpt-4o: the reference"


def test_judges_of_one_name_are_told_apart_by_how_they_judge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such as by how often they are asked; counts and captions do not make another judge."""
    said = _said("vcapsbench", seed=1)
    for name, asks, captioner in (("a1", "1", "a"), ("a3", "3", "a"), ("b3", "3", "b")):
        records = _records("vcapsbench", "x", [said], _texts(captioner))
        told = [replace(each, extras={"asks": asks, "served": name}) for each in records]
        told[0] = replace(told[0], n_unscored=int(captioner == "b"))
        write_run(tmp_path / name, {"vcapsbench": told})
    (found,) = _agree(capsys, *(tmp_path / name for name in ("a1", "a3", "b3")))
    names = [judge["name"] for judge in found["judges"]]
    assert names == ["x (asks 1, served a1)", "x (asks 3, served a3)"]
    assert [judge["n_captions"] for judge in found["judges"]] == [N_VIDEOS, 2 * N_VIDEOS]


def test_judges_of_different_fingerprints_are_different_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run from before the verification belongs to the judge that was verified then."""
    said = _said("vcapsbench", seed=1)
    runs = (("a", "01234567", "a"), ("b", "", "b"), ("c", "89abcdef", "a"))
    for name, fingerprint, captioner in runs:
        records = _records("vcapsbench", "x", [said], _texts(captioner))
        extras = {"judge-fp": fingerprint} if fingerprint else {}
        write_run(
            tmp_path / name, {"vcapsbench": [replace(each, extras=extras) for each in records]}
        )
    (found,) = _agree(capsys, *(tmp_path / name for name, _, _ in runs))
    names = [judge["name"] for judge in found["judges"]]
    assert names == ["x (judge-fp 01234567)", "x (judge-fp 89abcdef)"]
    assert [judge["n_captions"] for judge in found["judges"]] == [2 * N_VIDEOS, N_VIDEOS]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in sample, rendered once."""
    return sample_root(tmp_path_factory.mktemp("sample"))


@pytest.mark.parametrize("task", TASKS)
def test_what_a_run_leaves_is_what_agree_reads(
    task: str,
    sample: Path,
    tmp_path: Path,
    bench: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two runs of the offline judge over the sample, of every benchmark, agree in all they say."""
    bench.setenv("LMMS_CAPTIONS_DATA", str(sample))
    bench.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    bench.setenv("LMMS_CAPTIONS_JUDGE_RUNS", "2")
    benchmark = benchmark_of_task(task)
    docs = benchmark.read(data_settings(), benchmark.tasks[task])
    captions = ("A red circle moves to the right.", "A blue square.", "", "Two green things turn.")
    for name in ("one", "two"):
        items = ended_runs.judge(task, captions, docs)
        ended_runs.Tracker(tmp_path / name).save(ended_runs.results_of({task: items}))
    (found,) = _agree(capsys, tmp_path / "one", tmp_path / "two")
    (pair,) = found["pairs"]
    assert pair["n_captions"] > 0
    assert "captions that differ between the judges" not in pair["left_out"]
    assert all(agreement["same"] == 1 for agreement in pair["agreements"])
    names = [judge["name"] for judge in found["judges"]]
    assert [name.rpartition(" ")[2] for name in names] == ["(one)", "(two)"]

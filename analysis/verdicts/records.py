"""Records of captions out of a verdict table."""

from __future__ import annotations

from typing import Any

from lmms_eval_captions.analysis.task_table import TaskTable
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.verdict_file import CHEAP


def records_of(table: TaskTable) -> list[CaptionRecord]:
    """The records of a task's captions."""
    return [_record(table, group) for _, group in table.rows.groupby("caption", sort=False)]


def _record(table: TaskTable, rows: Any) -> CaptionRecord:  # noqa: ANN401
    head, first = table.head, rows.iloc[0]
    asked = rows[rows["question_index"].notna()]
    run = rows["run"].max()
    n_runs = 0 if run != run else int(run) + 1
    runs = [asked[asked["run"] == number] for number in range(n_runs)]
    values = {}
    for name, column in head["values"].items():
        n_values = table.benchmark.metrics[name].n_values
        lists = [[_plain(value) for value in of[column].tolist()] for of in runs]
        if n_values > 1:
            lists = [[v for chunk in of for v in (chunk or [None] * n_values)] for of in lists]
        values[name] = lists
    texts = runs[0]["question"].tolist() if runs else []
    fields = {name: _plain(first[name]) for name in head["fields"]}
    sample = {}
    if "weight" in rows and len(asked) and asked["weight"].notna().all():
        of = runs[0]
        sample = {
            "weights": of["weight"].tolist(), "strata": of["stratum"].astype(int).tolist(),
            "rank": int(of["rank"].iloc[0]), "lam": float(of["lam"].iloc[0]),
            "cheap": {
                name: [[_plain(v) for v in of[f"{CHEAP}{column}"].tolist()]]
                for name, column in head["values"].items() if f"{CHEAP}{column}" in of
            },
        }  # fmt: skip
    n_unscored = 0
    return CaptionRecord(
        task=table.task, video_id=first["video"], judge=head["judge"], runs=head["runs"],
        protocol=head["protocol"], extras=head["extras"], n_questions=len(asked),
        n_unscored=n_unscored, n_empty=int(first["is_empty"]), n_dropped=int(first["is_dropped"]),
        no_caption=_plain(first["no_caption"]), questions=first["questions_digest"] or "",
        values=values,
        groups={
            section: [[_plain(name) for name in of[section].tolist()] for of in runs]
            for section in head["sections"] if len(asked)
        },
        asked=texts if texts and not any(_plain(t) is None for t in texts) else (),
        n_words=None if _plain(first["n_words"]) is None else int(first["n_words"]),
        caption_digest=first["caption_digest"], sample=sample,
        fields={
            k: int(v) if isinstance(v, float) and v.is_integer() else v for k, v in fields.items()
        },
    )  # fmt: skip


def _plain(value: Any) -> Any:  # noqa: ANN401
    if value is None or (not hasattr(value, "__len__") and value != value):
        return None
    if hasattr(value, "tolist"):
        value = value.tolist()
    return [_plain(each) for each in value] if isinstance(value, list) else value

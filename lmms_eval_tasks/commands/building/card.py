"""The data card of a benchmark that was built: what is in it, how it came to be, what it cost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import write_atomically
from lmms_eval_captions.lmms_eval_tasks.commands.building.building import Built
from lmms_eval_captions.lmms_eval_tasks.commands.building.criteria import PAPER_ANNOTATORS
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.blind import blind_accuracy
from lmms_eval_captions.lmms_eval_tasks.commands.building.options import Options
from lmms_eval_captions.lmms_eval_tasks.commands.building.people import n_few
from lmms_eval_captions.lmms_eval_tasks.commands.building.spending import spent
from lmms_eval_captions.lmms_eval_tasks.commands.building.stages import FOLDER
from lmms_eval_captions.lmms_eval_tasks.commands.building.tally import untold_faults
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, kept
from lmms_eval_captions.lmms_eval_tasks.table_formats import in_markdown

CARD: Final = "DATA_CARD.md"
DATA: Final = "data_card.json"
_ROLES: Final = {
    "writer": "writes questions, sees frames",
    "solver": "reads text alone",
    "viewer": "checks by the frames",
}


def warnings_of(options: Options) -> list[str]:
    """What whoever reads scores on the benchmark must know of its models."""
    writers = {model.name for model in options.writers}
    warnings = []
    if {model.name for model in options.viewers} <= writers and not options.labels:
        warnings.append(
            "the sighted check is done by a model that wrote questions: it tends to find its own "
            "answers right. Name another one with --viewer, or have people check (--labels)"
        )
    if {model.name for model in options.solvers} == writers and len(writers) == 1:
        warnings.append("one and the same model writes and solves; name others with --solver")
    if options.kind == "vidcapbench" and len(options.writers) == 1:
        warnings.append(
            "the captions that pairs are judged by come from the model that wrote the pairs: they "
            "find its mistakes right. Name a second model with --writer"
        )
    return warnings


def card_data(built: Built) -> dict[str, Any]:
    """What the card says, for programs."""
    work, options = built.work, built.options
    rows = kept(list(work.rows.values())[-1])
    clips = work.rows["clips"]
    data: dict[str, Any] = {
        "kind": built.kind.name,
        "source": built.kind.source,
        "made": datetime.now(timezone.utc).date().isoformat(),
        "n_clips": len({row["video"] for row in rows}),
        "n_clips_given": len(clips),
        "n_clips_unreadable": sum("dropped" in row for row in clips),
        "hours": round(sum(row.get("duration_s", 0.0) for row in clips) / 3600, 3),
        "license_of_clips": options.license or None,
        "n_questions": len(rows),
        "files": dict(built.files),
        "categories": dict(Counter(str(row.get("category", "")) for row in rows)),
        "stages": [dict(done.head) for done in built.done],
        "models": {
            role: [model.name for model in models] for role, models in options.all_models.items()
        },
        "warnings": [*warnings_of(options), *_of_people(rows)],
        "cost": spent(options.folder / FOLDER),
    }
    if "blind" in work.rows:
        data["blind_accuracy"] = {
            "chance": 0.2,
            "before": _share(blind_accuracy(work.rows["blind"])),
            "after": _share(blind_accuracy(rows)),
        }
    people = next((row["agreement"] for row in rows if "agreement" in row), None)
    return data | ({"agreement": people} if people else {})


def _of_people(rows: Sequence[Row]) -> Iterator[str]:
    few = n_few(rows)
    if few:
        yield (
            f"{few:,} of {len(rows):,} questions were looked at by fewer than {PAPER_ANNOTATORS} "
            f"people; in the paper at least {PAPER_ANNOTATORS} look at each"
        )


def write_card(built: Built) -> None:
    """Write the card, for people and for programs, into the benchmark's folder.

    Raises:
        DataError: If it cannot be written.
    """
    data = card_data(built)
    text = "".join(f"{line}\n" for line in _lines(data))
    numbers = f"{json.dumps(data, ensure_ascii=False, indent=1)}\n"
    for name, content in ((CARD, text), (DATA, numbers)):
        path = built.options.folder / name
        try:
            write_atomically(path, content.encode("utf-8", "replace"))
        except OSError as error:
            raise DataError(
                f"{path}: cannot be written: {error}; the questions are written, and the same "
                "command writes the card again"
            ) from error


def _lines(data: Mapping[str, Any]) -> Iterator[str]:
    yield f"# A {data['kind']} benchmark of {data['n_clips']:,} clips"
    yield ""
    yield (
        f"{data['n_questions']:,} questions, made by lmms-eval-captions on {data['made']} after "
        f"{data['source']}."
    )
    yield ""
    yield (
        f"- Clips: {data['n_clips_given']:,} were given, {data['n_clips_unreadable']:,} could not "
        f"be read, {data['n_clips']:,} have questions; {data['hours']:g} hours in all."
    )
    license_words = data["license_of_clips"] or "not stated; add it before you share the data"
    yield f"- Licence of the clips: {in_markdown(license_words)}."
    yield "- Questions are output of the models below: their providers' terms hold for them."
    yield from _models(data)
    blind = data.get("blind_accuracy")
    if blind:
        yield (
            "- Answered without the clip: "
            f"{_percent(blind['before'])} of the solvers' trials before the blind check, "
            f"{_percent(blind['after'])} of the questions that stay (chance: 20%). The latter are "
            "the trials that chose the questions: new ones would find somewhat more."
        )
    yield from _agreement(data)
    yield f"- {data['cost']}."
    yield from (f"- Beware: {in_markdown(warning)}." for warning in data["warnings"])
    yield from _stages(data)
    yield from _table("Questions by category", ("category", "questions"), data["categories"])


def _models(data: Mapping[str, Any]) -> Iterator[str]:
    for role, names in data["models"].items():
        is_asked = any(role in stage["models"] for stage in data["stages"])
        if is_asked:
            yield f"- {role} ({_ROLES[role]}): {in_markdown(', '.join(names))}."


def _agreement(data: Mapping[str, Any]) -> Iterator[str]:
    agreement = data.get("agreement")
    if agreement:
        parts = [f"{name} {value:.2f}" for name, value in agreement["ac1"].items()]
        yield (
            f"- Checked by {agreement['n_people']} people; agreement of those who saw the same "
            f"question, Gwet's AC1: {', '.join(parts) or 'not known'}."
        )
    elif any(stage["stage"] in ("sighted", "review") for stage in data["stages"]):
        yield "- No person checked the questions: a vision model did (the papers have people)."


def _stages(data: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", "## Stages", "", "| stage | in | kept | requests | dropped, or wrong |")
    yield "|---|---|---|---|---|"
    for stage in data["stages"]:
        requests = stage["requests"]
        words = [f"{n:,} {reason}" for reason, n in stage["dropped"].items()]
        words += [f"{n:,} {fault}" for fault, n in untold_faults(stage).items()]
        words += [f"{n:,} requests {kind}" for kind, n in requests["failures"].items() if n]
        yield (
            f"| {stage['stage']}: {in_markdown(stage['does'])} | {stage['n_before'] or ''} | "
            f"{stage['n_kept']} | {requests['n_requests'] or ''} | "
            f"{in_markdown('; '.join(words))} |"
        )


def _table(title: str, header: tuple[str, str], counts: Mapping[str, int]) -> Iterator[str]:
    yield from ("", f"## {title}", "", f"| {header[0]} | {header[1]} |", "|---|---|")
    for name, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        yield f"| {in_markdown(name)} | {n} |"


def _share(value: float) -> float | None:
    return round(value, 4) if value == value else None


def _percent(share: float | None) -> str:
    return "not known" if share is None else f"{100 * share:.1f}%"

"""Data card of a build: contents, stages, models and cost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any, Final, get_args

from lmms_eval_captions.construction.build import Built
from lmms_eval_captions.construction.filters import blind_accuracy
from lmms_eval_captions.construction.people import PAPER_ANNOTATORS, n_few
from lmms_eval_captions.construction.pipeline import FOLDER, Options, Role, kept, spent
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import write_atomically
from lmms_eval_captions.lmms_eval_tasks.results.text_table import in_markdown

CARD: Final = "DATA_CARD.md"
_ROLES: Final = {
    "writer": "writes questions, sees frames",
    "solver": "reads text only",
    "viewer": "checks by the frames",
}


def warnings_of(options: Options) -> list[str]:
    """Return warnings about the models for readers of scores on the benchmark."""
    names, warnings = options.names(get_args(Role)), []
    writers = set(names["writer"])
    if set(names["viewer"]) <= writers and not options.labels:
        warnings.append(
            "the sighted check is done by a model that wrote questions: it tends to find its own "
            "answers right. Name another one with --viewer, or have people check (--labels)"
        )
    if set(names["solver"]) == writers and len(writers) == 1:
        warnings.append("the same model writes and solves; name others with --solver")
    if options.kind == "vidcapbench" and len(options.writers) == 1:
        warnings.append(
            "the captions that pairs are judged by come from the model that wrote the pairs: they "
            "find its mistakes right. Name a second model with --writer"
        )
    return warnings


def card_data(built: Built) -> dict[str, Any]:
    """Return the content of the card, for programs."""
    context, options = built.context, built.options
    rows, clips = kept(list(context.rows.values())[-1]), context.rows["clips"]
    warnings = warnings_of(options)
    if few := n_few(rows):
        warnings.append(
            f"{few:,} of {len(rows):,} questions were checked by fewer than {PAPER_ANNOTATORS} "
            f"people; in the paper at least {PAPER_ANNOTATORS} check each"
        )
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
        "models": options.names(get_args(Role)),
        "warnings": warnings,
        "cost": spent(options.folder / FOLDER),
    }
    if "blind" in context.rows:
        shares = {"before": blind_accuracy(context.rows["blind"]), "after": blind_accuracy(rows)}
        known = {name: round(x, 4) if x == x else None for name, x in shares.items()}
        data["blind_accuracy"] = {"chance": 0.2, **known}
    agreement = next((row["agreement"] for row in rows if "agreement" in row), None)
    return data | ({"agreement": agreement} if agreement else {})


def write_card(built: Built) -> None:
    """Write the card, for people and for programs, into the benchmark's folder."""
    data = card_data(built)
    text = "".join(f"{line}\n" for line in _lines(data))
    numbers = f"{json.dumps(data, ensure_ascii=False, indent=1)}\n"
    for name, content in ((CARD, text), ("data_card.json", numbers)):
        path = built.options.folder / name
        try:
            write_atomically(path, content.encode("utf-8", "replace"))
        except OSError as error:
            raise DataError(
                f"{path}: cannot be written: {error}; the questions are written, and the same "
                "command writes the card again"
            ) from error


def _lines(data: Mapping[str, Any]) -> Iterator[str]:
    license_text = data["license_of_clips"] or "not stated; add it before you share the data"
    yield from (
        f"# A {data['kind']} benchmark of {data['n_clips']:,} clips",
        "",
        f"{data['n_questions']:,} questions, made by lmms-eval-captions on {data['made']} after "
        f"{data['source']}.",
        "",
        f"- Clips: {data['n_clips_given']:,} given, {data['n_clips_unreadable']:,} unreadable, "
        f"{data['n_clips']:,} with questions; {data['hours']:g} hours in total.",
        f"- Licence of the clips: {in_markdown(license_text)}.",
        "- Questions are output of the models below: their providers' terms apply.",
    )
    for role, names in data["models"].items():
        if any(role in stage["models"] for stage in data["stages"]):
            yield f"- {role} ({_ROLES[role]}): {in_markdown(', '.join(names))}."
    if blind := data.get("blind_accuracy"):
        before, after = (
            "unknown" if share is None else f"{100 * share:.1f}%"
            for share in (blind["before"], blind["after"])
        )
        yield (
            f"- Answered without the clip: {before} of the solvers' trials before the blind check, "
            f"{after} of the questions that stay (chance: 20%). The latter trials chose the "
            "questions: new ones would find more."
        )
    if agreement := data.get("agreement"):
        parts = [f"{name} {value:.2f}" for name, value in agreement["ac1"].items()]
        yield (
            f"- Checked by {agreement['n_people']} people; agreement of those who saw the same "
            f"question, Gwet's AC1: {', '.join(parts) or 'unknown'}."
        )
    elif any(stage["stage"] in ("sighted", "review") for stage in data["stages"]):
        yield "- No person checked the questions: a vision model did (the papers have people)."
    yield f"- {data['cost']}."
    yield from (f"- Warning: {in_markdown(warning)}." for warning in data["warnings"])
    yield from ("", "## Stages", "", "| stage | in | kept | requests | dropped, or wrong |")
    yield "|---|---|---|---|---|"
    for stage in data["stages"]:
        requests = stage["requests"]
        reasons = [f"{n:,} {reason}" for reason, n in stage["dropped"].items()]
        reasons += [f"{n:,} {fault}" for fault, n in further_faults(stage).items()]
        reasons += [f"{n:,} requests {kind}" for kind, n in requests["failures"].items() if n]
        yield (
            f"| {stage['stage']}: {in_markdown(stage['does'])} | {stage['n_before'] or ''} | "
            f"{stage['n_kept']} | {requests['n_requests'] or ''} | "
            f"{in_markdown('; '.join(reasons))} |"
        )
    yield from ("", "## Questions by category", "", "| category | questions |", "|---|---|")
    for name, n in sorted(data["categories"].items(), key=lambda pair: (-pair[1], pair[0])):
        yield f"| {in_markdown(name)} | {n} |"


def further_faults(head: Mapping[str, Any]) -> dict[str, int]:
    """Return faults of a stage's replies that its reasons for dropping do not state."""
    stated = {(reason.rpartition(": ")[2], n) for reason, n in head["dropped"].items()}
    faults: Mapping[str, int] = head["requests"]["faults"]
    return {
        fault: n
        for fault, n in faults.items()
        if n and (fault.rpartition(": ")[2], n) not in stated
    }

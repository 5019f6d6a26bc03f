"""Commands ``judge verify`` and ``t2v-verify``."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from math import nan
from typing import Final

from lmms_eval_captions.analysis.t2v_verify.report import part_of
from lmms_eval_captions.analysis.t2v_verify.verify import verify as verify_videos
from lmms_eval_captions.analysis.tables import as_json, render
from lmms_eval_captions.cli.options import write_output
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.settings import read_judge_settings
from lmms_eval_captions.verification.anchors import subjects_of
from lmms_eval_captions.verification.decision import State
from lmms_eval_captions.verification.record import read_record, require_writable, write_record
from lmms_eval_captions.verification.verify import Verified, verify

_EXIT_CODES: Final[Mapping[State, int]] = {"passed": 0, "failed": 1, "undecided": 3}
_N_EXAMPLES: Final = 3
_MOST_FRAMES: Final = 1000


def judge_verify(arguments: Namespace) -> int:
    """Verify the judge, and write its record."""
    settings = read_judge_settings()
    subjects = subjects_of(arguments.tasks, settings)
    settings.require_named_judge(subjects[0].config.model)
    settings.require_judge_access()
    if arguments.output is not None:
        require_writable(arguments.output)
    verified = verify(
        subjects,
        settings,
        against=None if arguments.against is None else read_record(arguments.against),
        max_cost_usd=settings.max_cost_usd,
    )
    if arguments.format == "json":
        sys.stdout.write(as_json(_document(verified)))
    else:
        sys.stdout.write("\n".join(_lines(verified)) + "\n")
    if arguments.output is not None:
        write_record(arguments.output, verified.record)
        print(f"record written to {arguments.output}", file=sys.stderr)
    return _EXIT_CODES[verified.state]


def _lines(verified: Verified) -> Iterator[str]:
    yield f"{verified.record.model} at {', '.join(verified.endpoints)}"
    for finding in verified.findings:
        yield f"  {finding.state:<7} {finding.name}: {finding.text}"
    for each in verified.benchmarks:
        same = (each.n - len(each.different)) / each.n if each.n else nan
        yield (
            f"  {each.name}: {each.n} anchors, {same:.1%} as expected, {each.n_missing} without "
            "a reply"
        )
        yield from (f"    {sentence}" for sentence in each.different[:_N_EXAMPLES])
    cost = "" if verified.usd is None else f", ${verified.usd:.2f}"
    yield f"  {verified.n_calls:,} requests{cost}"
    reasons = f": {'; '.join(verified.reasons)}" if verified.reasons else ""
    yield f"{verified.state.upper()}{reasons}"


def _document(verified: Verified) -> dict[str, object]:
    return {
        "verdict": verified.state,
        "reasons": list(verified.reasons),
        "model": verified.record.model,
        "endpoints": list(verified.endpoints),
        "findings": [asdict(finding) for finding in verified.findings],
        "benchmarks": {
            each.name: {
                "anchors": each.n + each.n_missing,
                "missing": each.n_missing,
                "different": len(each.different),
            }
            for each in verified.benchmarks
        },
        "calls": verified.n_calls,
        "usd": verified.usd,
    }


def t2v_verify(arguments: Namespace) -> int:
    """Compare generated videos with their originals."""
    if arguments.frames > _MOST_FRAMES:
        raise SettingsError(f"--frames: expected 1 to {_MOST_FRAMES}, got {arguments.frames}")
    found = verify_videos(arguments, log=lambda line: print(line, file=sys.stderr, flush=True))
    sys.stdout.write(render([part_of(found)]))
    if arguments.output is not None:
        write_output(as_json(found), arguments.output)
    return 0 if any(video["values"] for video in found["videos"]) else 1

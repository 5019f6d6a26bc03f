"""What completions say of themselves: whose they are, and whether they were given before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lmms_eval_captions.judges.endpoint.http.completion_head import CompletionHead
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.findings import Finding


def model_finding(heads: Sequence[CompletionHead], asked: str, *, is_same: bool) -> Finding:
    """Whose replies these are, by their own account.

    Args:
        heads: Of several completions.
        asked: The model that was asked for, or its alias.
        is_same: Whether all names mean that model.
    """
    names = list(dict.fromkeys(head.model for head in heads if head.model))
    if not names:
        return Finding(
            name="model", state="note", evidence="replies do not say which model they are of"
        )
    if not is_same:
        return Finding(
            name="model",
            state="differs",
            evidence=f"{asked!r} was asked for, {', '.join(map(repr, names))} answered",
            advice="start the model that is asked for, or set LMMS_CAPTIONS_JUDGE to the name of "
            "the one that answers; LMMS_CAPTIONS_JUDGE_ALIAS where it is only another name",
        )
    return Finding(name="model", state="ok", evidence=f"replies are of {', '.join(names)}")


def with_heads(found: Finding, heads: Sequence[CompletionHead]) -> Finding:
    """What is known of cached replies, with what ids and dates of completions say of it.

    By themselves they are a note: a server may give all of its answers one id.

    Args:
        found: What the texts of replies say.
        heads: Of several completions.
    """
    ids = [(head.id, head.created) for head in heads if head.id]
    if len(ids) < 2 or len(set(ids)) == len(ids):
        return found
    words = f"{len(ids)} completions have one id and one date ({ids[0][0]!r:.60})"
    state = "note" if found.state == "ok" else found.state
    return replace(found, state=state, evidence=f"{found.evidence}; {words}")

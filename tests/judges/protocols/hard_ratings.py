"""Hard replies of a judge that rates a caption beside its video, and what a person reads.

Each is the reply, the ratings (trustworthiness, coverage, overall) or ``None`` where there are
none or people differ, and why. ``hard_replies.py`` has the rules, and puts them beside the others.
"""

from __future__ import annotations

from typing import Final

Ratings = tuple[int, int, int]

_534: Final[Ratings] = (5, 3, 4)
_SCORES: Final = '{"trustworthiness": 5, "coverage": 3, "overall": 4}'
_FORM: Final = f'{{"analysis": "It misses a dog.", "scores": {_SCORES}}}'
_INDENTED: Final = """{
  "analysis": "It misses a dog.",
  "scores": {
    "trustworthiness": 5,
    "coverage": 3,
    "overall": 4
  }
}"""
_OTHER: Final = _FORM.replace("3", "2")
_BLANK: Final = _FORM.replace("5", "<int 1-5>").replace("3", "<int 1-5>").replace("4", "<int 1-5>")


def _with(trustworthiness: str, coverage: str = "3", overall: str = "4") -> str:
    """The form with other words in the place of its numbers."""
    return (
        f'{{"analysis": "It misses a dog.", "scores": {{"trustworthiness": {trustworthiness}, '
        f'"coverage": {coverage}, "overall": {overall}}}}}'
    )


RATED: Final[tuple[tuple[str, Ratings, str], ...]] = (
    (_FORM, _534, "as asked, on one line"),
    (_INDENTED, _534, "as asked"),
    (f"```json\n{_INDENTED}\n```", _534, "fenced"),
    (f"```\n{_FORM}\n```", _534, "fenced without a language"),
    (f"Here is my evaluation:\n\n{_INDENTED}", _534, "a sentence before it"),
    (f"{_INDENTED}\n\nThe caption is a good one.", _534, "a sentence behind it"),
    (f"<think>Coverage: 2? No, 1/5.</think>\n{_INDENTED}", _534, "reasoning with other numbers"),
    (
        f"**Step 1: Video Analysis**\n- Two of 3 dogs run for 5 s.\n\n**Step 2**\n{_INDENTED}",
        _534,
        "the steps of the prompt, with numbers that are no ratings",
    ),
    (
        f"Trustworthiness: 5/5\nCoverage: 3/5\nOverall: 4/5\n\n{_INDENTED}",
        _534,
        "the same ratings in words",
    ),
    (f"- **Coverage (Recall):** 3\n\n{_FORM}", _534, "one of them in words, as the rubric has it"),
    (f"{_FORM}\n{_FORM}", _534, "twice the same"),
    (f"{_INDENTED}\n\n```json\n{_FORM}\n```", _534, "twice the same, one fenced"),
    (
        '{"scores": {"overall": 4, "coverage": 3, "trustworthiness": 5}, "analysis": "Fine."}',
        _534,
        "another order",
    ),
    (f'{{"scores": {_SCORES}}}', _534, "without the analysis"),
    (_with('"5"', '"3"', '"4"'), _534, "numbers as texts"),
    (_with("5.0", "3.0", "4.0"), _534, "whole numbers with a point"),
    (_with('"5/5"', '"3/5"', '"4/5"'), _534, "out of the highest"),
    (_FORM.replace('"', "'"), _534, "Python's quotation marks"),
    (_INDENTED.replace("4\n", "4,\n"), _534, "a comma too many"),
    (_FORM.replace("}}", "},}"), _534, "a comma too many behind the object"),
    (
        _FORM.replace("It misses a dog.", 'It says \\"coverage\\": 1, and {2: 3}.'),
        _534,
        "an analysis that looks like the form",
    ),
    (
        _FORM.replace("It misses a dog.", "Trustworthiness: 1. Coverage: 1. Overall: 1."),
        _534,
        "an analysis that names other ratings, within the form",
    ),
    (
        f'{{"analysis": {{"subject": "a dog", "n_events": 2}}, "scores": {_SCORES}}}',
        _534,
        "an analysis in parts",
    ),
    (f'{{"evaluation": {_FORM}}}', _534, "the form within an object"),
    (f"[{_FORM}]", _534, "the form within a list"),
    (_FORM.replace("It misses", "Es fehlt 犬, it misses"), _534, "other scripts"),
    (_FORM.replace("5", "\uff15"), _534, "a full-width digit"),
    (_with("1", "1", "1"), (1, 1, 1), "the lowest"),
    (_with("5", "5", "5"), (5, 5, 5), "the highest"),
    (
        f"{_FORM}\n\nThe overall impression: 2 dogs of 3 are named.",
        _534,
        "a number near a word of the form that rates nothing",
    ),
)
"""What a person reads without hesitation."""

UNRATED: Final[tuple[tuple[str, str], ...]] = (
    ("", "nothing"),
    ("The caption is accurate, but misses a dog. I would give it a good rating.", "no form"),
    ("Trustworthiness: 5\nCoverage: 3\nOverall: 4", "ratings in words alone, which were not asked"),
    ("5, 3, 4", "numbers alone"),
    ("[5, 3, 4]", "a list"),
    (_SCORES, "the ratings without the object that holds them"),
    (_FORM.replace('"scores"', '"ratings"'), "another key"),
    (_FORM.replace('"scores"', '"example_scores"'), "the scores of an example"),
    (_FORM.replace("trustworthiness", "precision"), "another key of a rating"),
    (_FORM.replace("overall", "overall_quality"), "a longer key of a rating"),
    (_FORM.replace(', "overall": 4', ""), "a rating too few"),
    ('{"analysis": "Fine.", "scores": [5, 3, 4]}', "ratings without names"),
    ('{"analysis": "Fine.", "scores": 4}', "one rating for three"),
    ('{"analysis": "Fine.", "scores": {}}', "no rating"),
    (_with("0"), "0, of the printed '0-5', for which there is no rubric"),
    (_with("6"), "above the scale"),
    (_with("-5"), "below the scale"),
    (_with("4.5"), "half a rating"),
    (_with("4-5"), "a range"),
    (_with('"4 or 5"'), "two"),
    (_with('"8/10"'), "another scale"),
    (_with("80"), "another scale, not named"),
    (_with('"high"'), "a word"),
    (_with("null"), "nothing for one of them"),
    (_with("true"), "no number"),
    (_with("[5]"), "a list for a number"),
    (_with('{"score": 5}'), "an object for a number"),
    (_with("<int 1-5>"), "the prompt's form for one of them"),
    (_BLANK, "the prompt's form"),
    (f"{_FORM}\n\nOn reflection:\n{_OTHER}", "two that contradict"),
    (f"{_FORM}\n{_OTHER}", "two that contradict, without a word"),
    (f'{{"scores": {_SCORES}, "scores": {_SCORES.replace("5", "2")}}}', "twice within an object"),
    (f"{_FORM}\n\nCoverage: 2", "a rating behind it that contradicts"),
    (f"Trustworthiness score: 2\n\n{_FORM}", "a rating before it that contradicts"),
    (f"Overall rating is 3.5.\n\n{_FORM}", "a rating in words that is none of the scale"),
    (f"For example: {_FORM}", "an example"),
    (f"I cannot evaluate this video. {_FORM}", "the judge does not judge"),
    (f"{_FORM} Wait, actually I must look again.", "taken back"),
    (_FORM[:-1], "the last brace is missing"),
    (_FORM[:-14], "cut within the form"),
    (f'{_INDENTED[:-2]}\n  }},\n  "revised', "cut where more was to come"),
    ("\n".join([_FORM.replace("a dog", f"dog {n}") for n in range(60)]), "a loop"),
    ('{"analysis": "' + "a dog and " * 6_000, "a loop until max_tokens"),
    ("{" * 5_000, "braces alone"),
    ("I'm sorry, but I can't watch videos.", "a refusal"),
)
"""What states no single rating of each dimension."""

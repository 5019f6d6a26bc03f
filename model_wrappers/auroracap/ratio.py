"""How many visual tokens AuroraCap keeps: one share, or the paper's own for each aspect of VDC."""

from __future__ import annotations

from typing import Final

from lmms_eval_captions.judges.errors import SettingsError

PAPER: Final = "paper"
"""Asks for :data:`PAPER_RATIOS` in place of a number."""

PAPER_RATIOS: Final = {
    "camera": 0.6,
    "short": 0.5,
    "background": 0.4,
    "main_object": 0.2,
    "detailed": 0.2,
}
"""Kept ratio of each aspect of VDC in AuroraCap-7B's row of table 7.

Source: rese1f/aurora@a40096a, figure_in_paper.ipynb, the points of AuroraCap's (arXiv 2410.03051)
figure 6, of which these have the accuracies that table 7 prints. The paper's text does not name
them. All but the camera's are the best of their curve; the camera's best is 43.57, at 0.8.
"""

DEFAULT_RATIO: Final = 0.1
"""Source: AuroraCap, table G9, "token keep proportion" of the language stage; appendix F, setting
C, "the final training strategy"."""

_TASKS: Final = {
    f"{prefix}{aspect}": ratio
    for prefix in ("vdc_", "vdc_rouge_", "vdc_classic_", "vdc_vdd_")
    for aspect, ratio in PAPER_RATIOS.items()
}


def read_ratio(token_kept_ratio: object, ratio: object) -> float | str:
    """The setting that ``--model_args token_kept_ratio=...`` or ``ratio=...`` asks for.

    Args:
        token_kept_ratio: A number in [0, 1], ``paper``, or ``None`` where it is not given.
        ratio: The same argument by its short name.

    Returns:
        A share in [0, 1], or :data:`PAPER`.

    Raises:
        SettingsError: If both are given, or the value is neither a share nor ``paper``.

    >>> read_ratio(None, None), read_ratio(0.4, None), read_ratio(None, "paper")
    (0.1, 0.4, 'paper')
    """
    if token_kept_ratio is not None and ratio is not None:
        raise SettingsError(
            f"caption_auroracap: token_kept_ratio={token_kept_ratio!r} and ratio={ratio!r} are one "
            "argument by two names; give one of them"
        )
    given = ratio if token_kept_ratio is None else token_kept_ratio
    if given is None:
        return DEFAULT_RATIO
    if given == PAPER:
        return PAPER
    if isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= 1:
        return float(given)
    raise SettingsError(
        f"caption_auroracap: expected token_kept_ratio as a number between 0 and 1, or {PAPER!r}, "
        f"got {given!r}"
    )


def ratio_of(setting: float | str, task: str) -> float:
    """The share of visual tokens to keep for a task's captions, in [0, 1].

    Args:
        setting: Of :func:`read_ratio`.
        task: Name of lmms-eval's task.

    Raises:
        SettingsError: If the paper has no ratio for the task.

    >>> ratio_of("paper", "vdc_camera"), ratio_of("paper", "vdc_rouge_detailed")
    (0.6, 0.2)
    >>> ratio_of(0.1, "capquiz")
    0.1
    """
    if not isinstance(setting, str):
        return setting
    if task not in _TASKS:
        raise SettingsError(
            f"caption_auroracap: token_kept_ratio={setting} has a ratio for {', '.join(_TASKS)} "
            f"alone, got the task {task!r}; run it by itself with a number, such as "
            f"token_kept_ratio={DEFAULT_RATIO}"
        )
    return _TASKS[task]

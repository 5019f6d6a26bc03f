"""What judging costs, as lmms-eval's usage table and ``--max_tokens`` see it."""

from __future__ import annotations

from loguru import logger

from lmms_eval_captions.judges.endpoint.request import Usage


def report_usage(task: str, model: str, usage: Usage) -> None:
    """Tell lmms-eval what one caption's judging cost.

    lmms-eval counts a call for each line of its history, and adds all of it up for each new line
    where ``--max_tokens`` is set. So a caption's tokens are one line, and its other calls are lines
    without tokens that are put beside it: dozens of sums per caption would take an hour in all.

    Args:
        task: Name of the task.
        model: The judge.
        usage: Calls and tokens of all judgements of the caption.
    """
    if not usage.n_calls:
        return
    from lmms_eval.models.model_utils import usage_metrics

    call = {"model_name": model, "task_name": task, "source": "judge"}
    n_in, n_out = usage.input_tokens, usage.output_tokens
    usage_metrics.log_usage(model, task, n_in, n_out, source="judge")
    no_tokens = dict.fromkeys(("input_tokens", "output_tokens", "reasoning_tokens"), 0)
    try:
        with usage_metrics._USAGE_LOCK:
            usage_metrics._USAGE_HISTORY.extend([{**call, **no_tokens}] * (usage.n_calls - 1))
    except AttributeError as error:
        logger.debug("this version of lmms-eval counts a call per caption: {!r}", error)

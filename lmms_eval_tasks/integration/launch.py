"""lmms-eval as ``lmms-eval-captions run`` starts it: errors end with advice on the last line.

lmms-eval imports most of its dependencies before it loads our plug-in.
"""

from __future__ import annotations

from lmms_eval_captions.lmms_eval_tasks.run_errors import explain_uncaught_errors, noted


def main() -> None:
    """Run lmms-eval's command line and note why evaluations ended."""
    explain_uncaught_errors()
    from lmms_eval import __main__ as program

    program.cli_evaluate_single = noted(program.cli_evaluate_single)
    program.cli_evaluate()


if __name__ == "__main__":
    main()

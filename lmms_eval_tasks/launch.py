"""``python -m lmms_eval``, with advice on the last line if a package's version breaks it.

lmms-eval imports most of its dependencies before it loads our plug-in.
"""

from __future__ import annotations

import runpy

from lmms_eval_captions.lmms_eval_tasks.run_errors import explain_uncaught_errors

if __name__ == "__main__":
    explain_uncaught_errors()
    runpy.run_module("lmms_eval", run_name="__main__", alter_sys=True)

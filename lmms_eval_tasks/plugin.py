"""Entry point of lmms-eval for models, which also makes our tasks known.

lmms-eval (0.7.3) has an entry point for models and none for tasks. It loads the one for models
before it builds the task index, so the patch that adds our folder to the index is installed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmms_eval_captions.lmms_eval_tasks import patches
from lmms_eval_captions.lmms_eval_tasks.last_screen import say_at_exit
from lmms_eval_captions.lmms_eval_tasks.run_errors import explain_uncaught_errors
from lmms_eval_captions.model_wrappers.captioner_names import CAPTIONERS, CUSTOM

if TYPE_CHECKING:
    from lmms_eval.models.registry_v2 import ModelManifest

_WRAPPERS = "lmms_eval_captions.model_wrappers"


def manifests() -> list[ModelManifest]:
    """Return our captioners, for the entry point ``lmms_eval.models``, and install our patches."""
    from lmms_eval.models.registry_v2 import ModelManifest

    say_at_exit()
    explain_uncaught_errors()
    patches.install()
    custom = ModelManifest(
        model_id=CUSTOM,
        simple_class_path=f"{_WRAPPERS}.{CUSTOM}.CaptionCustom",
    )
    return [
        custom,
        *(
            ModelManifest(
                model_id=name,
                simple_class_path=f"{_WRAPPERS}.{name}.{class_name}",
                chat_class_path=f"{_WRAPPERS}.{name}.{class_name}Chat",
            )
            for name, class_name in CAPTIONERS.items()
        ),
    ]

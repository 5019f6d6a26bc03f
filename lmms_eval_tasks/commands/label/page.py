"""The page as one file of HTML, which loads nothing from anywhere."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent


def render(title: str, data: Mapping[str, object]) -> str:
    """The page.

    Args:
        title: Plain text.
        data: What its script reads, of JSON's types; texts may hold anything.
    """
    from jinja2 import Environment, FileSystemLoader

    environment = Environment(loader=FileSystemLoader(_HERE), autoescape=True)
    # The template takes these two files of ours, and the JSON, as they are; all else is escaped.
    style, script = (_HERE.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js"))
    return environment.get_template("page.html").render(
        title=title,
        style=style,
        script=script,
        style_hash=_source_hash(style),
        script_hash=_source_hash(script),
        data=_json_in_html(data),
    )


def _json_in_html(data: Mapping[str, object]) -> str:
    r"""JSON that cannot end the element it stands in, nor begin a comment.

    >>> _json_in_html({"caption": "</script><!--&"})
    '{"caption": "\\u003c/script\\u003e\\u003c!--\\u0026"}'
    """
    text = json.dumps(data)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _source_hash(text: str) -> str:
    """What the page's policy knows its own style and script by; nothing else runs."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode()}"

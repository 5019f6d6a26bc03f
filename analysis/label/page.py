"""The page as one file of HTML, which loads nothing from anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lmms_eval_captions.analysis.web_page.embedding import json_in_html, source_hash

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
        style_hash=source_hash(style),
        script_hash=source_hash(script),
        data=json_in_html(data),
    )

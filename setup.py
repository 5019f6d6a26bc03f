"""Names the packages: every folder of these four, under one name (see pyproject.toml)."""

from setuptools import find_packages, setup

ROOMS = ("judges", "lmms_eval_tasks", "metrics", "model_wrappers")

setup(
    packages=[
        f"lmms_eval_captions.{name}"
        for room in ROOMS
        for name in find_packages(include=[room, f"{room}.*"])
    ]
)

"""Configuration and model files that are broken in one place: they are loaded or refused, with the place."""

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from delta_engine.errors import RefusalGroup, RefusedError
from delta_engine.orchestrate.project import load_project
from tests.builders.broken_documents import broken_copies, nested

FILES: Final[dict[str, Any]] = YAML(typ="safe", pure=True).load(
    Path(__file__).with_name("broken_configuration.yml")
)
BROKEN: Final = [
    (name, what, broken) for name, document in FILES.items() for what, broken in broken_copies(document)
]


def refusals(files: Mapping[str, str]) -> tuple[RefusedError, ...]:
    with TemporaryDirectory() as folder:
        conf = Path(folder) / "conf"
        (conf / "models").mkdir(parents=True)
        for name, text in files.items():
            (conf / name).parent.mkdir(exist_ok=True)
            (conf / name).write_text(text)
        try:
            load_project(conf, "dev")
        except RefusalGroup as group:
            return tuple(group.refusals)
        except RefusedError as refused:
            return (refused,)
    return ()


def test_the_files_are_loaded_while_nothing_is_broken() -> None:
    assert refusals({name: json.dumps(document) for name, document in FILES.items()}) == ()


@given(st.sampled_from(BROKEN))
def test_every_broken_file_is_loaded_or_refused_with_its_place(case: tuple[str, str, Any]) -> None:
    name, what, broken = case
    all_refusals = refusals(
        {name: json.dumps(document) for name, document in (FILES | {name: broken}).items()}
    )
    assert all(refused.location for refused in all_refusals), what


@given(st.sampled_from([case for case in BROKEN if case[0] == "dev.yml"]))
def test_a_broken_base_is_refused_where_it_is_refused_alone(case: tuple[str, str, Any]) -> None:
    name, what, broken = case
    texts = {file: json.dumps(document) for file, document in (FILES | {name: broken}).items()}
    alone = refusals(texts)
    extended = refusals(texts | {"base/dev.yml": texts[name], "dev.yml": '{"extends": "base/dev.yml"}'})
    assert bool(extended) == bool(alone), what
    assert all(refused.location for refused in extended), what


@pytest.mark.parametrize("depth", [100, 1_000])
@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_files_without_end_are_refused(brackets: str, depth: int) -> None:
    texts = {name: json.dumps(document) for name, document in FILES.items()}
    (refused,) = refusals(texts | {"dev.yml": nested(brackets, depth)})
    assert refused.location

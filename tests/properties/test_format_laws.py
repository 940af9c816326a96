"""Laws of formatting model files: the meaning stays, the keys are in order, and a second time changes nothing."""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from delta_engine.config.key_order import MODEL_FILE, Keys
from delta_engine.config.model_format import formatted
from delta_engine.config.model_writer import yaml_models
from tests.projects.models import (
    all_declared_in_yaml,
    functions,
    policies,
    schemas,
    tables,
    temporary_settings,
)
from tests.proofs import examples
from tests.properties.test_model_edits import (
    VARIABLES,
    Layout,
    as_json,
    in_blocks,
    on_one_line,
    spread,
    with_windows_lines,
)


def shuffled(value: Any, chance: random.Random) -> Any:
    """Return a value with the keys of all its mappings in another order."""
    match value:
        case dict():
            keys = [*value]
            chance.shuffle(keys)
            return {key: shuffled(value[key], chance) for key in keys}
        case list():
            return [shuffled(item, chance) for item in value]
    return value


def unordered(text: str, seed: int, lay_out: Layout) -> str:
    plain = YAML(typ="safe", pure=True).load(text)
    return lay_out(f"{spread(shuffled(plain, random.Random(seed)))}\n")


def keys_out_of_order(value: Any, keys: Keys) -> Iterator[list[str]]:
    match value:
        case dict():
            if keys.order and [*value] != sorted(value, key=keys.rank):
                yield [*value]
            for key, item in value.items():
                yield from keys_out_of_order(item, keys.below.get(key, Keys()))
        case list():
            for item in value:
                yield from keys_out_of_order(item, keys)


layouts: st.SearchStrategy[Layout] = st.sampled_from(
    [str, in_blocks, on_one_line, as_json, with_windows_lines]
)


@settings(max_examples=examples(60, 1000), deadline=None)
@given(
    st.lists(tables(), min_size=1, max_size=2, unique_by=lambda table: table.key),
    st.lists(schemas() | functions() | policies(), max_size=2),
    st.integers(0, 2**32),
    layouts,
)
def test_formatting_orders_keys_and_changes_nothing_else(
    declared: list[Any], beside: list[Any], seed: int, lay_out: Layout
) -> None:
    text = unordered(yaml_models([*declared, *beside], VARIABLES), seed, lay_out)
    result = formatted(text, "m.yml")
    assert formatted(result, "m.yml") == result
    assert Counter("".join(result.split())) == Counter("".join(text.split()))
    plain = YAML(typ="safe", pure=True).load(result)
    assert [*keys_out_of_order(plain, MODEL_FILE)] == []
    with temporary_settings(VARIABLES) as project:
        before = all_declared_in_yaml(text, project)
        assert all_declared_in_yaml(result, project) == before


@settings(max_examples=examples(60, 1000), deadline=None)
@given(st.lists(tables(), max_size=2), st.lists(schemas() | functions() | policies(), max_size=2))
def test_what_import_writes_is_formatted(declared: list[Any], beside: list[Any]) -> None:
    text = yaml_models([*declared, *beside], VARIABLES)
    assert formatted(text, "m.yml") == text

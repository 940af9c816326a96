"""Configurations that extend others: what they give, where their values are from, and what is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from delta_engine.config.conf_folder import find_conf_dir
from delta_engine.config.extended import configuration_files, read_extended
from delta_engine.config.settings import load_settings
from delta_engine.config.variables import secrets_in
from delta_engine.config.yaml_documents import MAX_BYTES, DocumentPath
from delta_engine.errors import ConfigError, SourceLocation
from tests.proofs import examples
from tests.unit.config.projects import CONFIG, Write, load, refusal

BROKEN = sorted(Path(__file__).with_name("broken_bases").glob("*.yml"))


def test_a_configuration_takes_the_values_of_its_base(write: Write, tmp_path: Path) -> None:
    write("base/dev.yml", CONFIG + "apply: {parallelism: 8}\npolicy: {allow: [drop_column, drop_table]}\n")
    write(
        "conf/dev.yml", "extends: ../base/dev.yml\nvariables: {n: 1.10}\npolicy: {allow: [drop_constraint]}\n"
    )
    settings = load_settings(tmp_path / "conf", "dev")
    assert settings.variables == {"catalog": "dev", "n": "1.10"}
    assert (settings.environment, settings.parallelism) == ("dev", 8)
    assert [allowance.kind.value for allowance in settings.policy.allow] == ["drop_constraint"]
    assert settings.warehouse == tmp_path / ".delta-engine" / "warehouse"
    assert [str(table.qualified_name) for table in load(tmp_path)] == ["dev.silver.orders"]


def test_merge_keys_of_a_nearer_file_precede_the_keys_of_its_base(write: Write, tmp_path: Path) -> None:
    write("base/dev.yml", CONFIG + "apply: {<<: {history_table: a.b.c}, parallelism: 2}\n")
    write("conf/dev.yml", "extends: ../base/dev.yml\napply: {<<: [{parallelism: 3}, {parallelism: 4}]}\n")
    settings = load_settings(tmp_path / "conf", "dev")
    assert (settings.parallelism, str(settings.run_history)) == (3, "a.b.c")


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_a_broken_chain_is_refused_with_the_lines_of_both(
    path: Path, write: Write, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    yaml = YAML()
    yaml.width = 1_000
    case = yaml.load(path)
    for name, text in case["files"].items():
        write(name, text)
    message = refusal(tmp_path).replace(str(tmp_path), "PROJECT")
    if request.config.getoption("--rewrite-golden"):
        case["refusal"] = type(case["refusal"])(f"{message}\n")
        yaml.dump(case, path)
    assert f"{message}\n" == case["refusal"]


def test_a_refusal_of_an_environment_variable_names_its_line(write: Write, tmp_path: Path) -> None:
    token = "spark.sql.catalog.unity.token"
    write("base/dev.yml", CONFIG)
    write(
        "conf/dev.yml",
        f"extends: ../base/dev.yml\nbackend:\n  names: catalog\n  spark:\n    {token}: ${{env:NO}}\n",
    )
    settings = load_settings(tmp_path / "conf", "dev")
    with pytest.raises(ConfigError, match=r"dev\.yml:5: .* the environment variable NO is not set"):
        secrets_in(settings.spark, {}, lambda key: settings.locate(("backend", "spark", key)))


@pytest.mark.parametrize(
    "text",
    [
        f"x: {'a' * (MAX_BYTES + 1)}",
        "&a [*a]",
        "\n".join(
            ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))]
        ),
        "a: &a {<<: [*a]}",
        "[" * 1_000,
    ],
    ids=["large", "endless", "a bomb", "a merge key of itself", "deep"],
)
def test_a_base_that_would_exhaust_memory_is_refused(write: Write, tmp_path: Path, text: str) -> None:
    write("base/dev.yml", text)
    write("conf/dev.yml", "extends: ../base/dev.yml\n")
    assert refusal(tmp_path).startswith("base/dev.yml (extended by conf/dev.yml:1): ")


def test_links_are_followed(write: Write, tmp_path: Path) -> None:
    write("shared/base/dev.yml", CONFIG + "polcy: {}\n")
    write("shared/conf/dev.yml", "extends: ../base/dev.yml\n")
    write("shared/conf/models/m.yml", "")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "conf").symlink_to(tmp_path / "shared" / "conf")
    assert refusal(tmp_path / "project").startswith("conf/../base/dev.yml:6 (extended by conf/dev.yml:1): ")
    assert configuration_files(tmp_path / "project" / "conf", "dev") == (
        tmp_path / "shared" / "conf" / "dev.yml",
        tmp_path / "shared" / "base" / "dev.yml",
    )


def test_links_that_form_a_circle_are_refused(write: Write, tmp_path: Path) -> None:
    write("conf/dev.yml", "extends: ../a.yml\n")
    (tmp_path / "a.yml").symlink_to("b.yml")
    (tmp_path / "b.yml").symlink_to("a.yml")
    assert refusal(tmp_path).startswith("a.yml (extended by conf/dev.yml:1): the file cannot be read: ")


def test_the_files_of_a_configuration(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("conf/dev.yml", "extends: ../base/dev.yml\n")
    write("base/dev.yml", f"extends: {tmp_path / 'common' / 'all.yml'}\n")
    write("common/all.yml", "{}")
    monkeypatch.chdir(tmp_path / "base")
    names = ("conf/dev.yml", "base/dev.yml", "common/all.yml")
    assert configuration_files(Path("../conf"), "dev") == tuple(tmp_path / name for name in names)


def test_a_project_whose_environments_are_named_in_bases_is_found(write: Write, tmp_path: Path) -> None:
    project = tmp_path / "project"
    write("project/conf/dev.yml", "extends: ../base/dev.yml\n")
    write("project/conf/local.yml", "extends: ../base/nope.yml\n")
    deep = write("project/src/deep/x.py", "").parent
    assert find_conf_dir(deep) == tmp_path / "conf"
    write("project/base/dev.yml", "environment: dev\n")
    assert find_conf_dir(deep) == project / "conf"


TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.sampled_from(["a", "b c", "", "${x}"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abcd"), inner, max_size=4)
    ),
    max_leaves=12,
)
CHAINS = st.lists(st.dictionaries(st.sampled_from("abcd"), TREES, max_size=4), min_size=1, max_size=4)


@settings(max_examples=examples(200, 5_000), deadline=None)
@given(CHAINS)
def test_a_chain_is_a_recursive_merge_whose_values_are_from_the_nearest_file(
    chain: list[dict[str, Any]],
) -> None:
    with TemporaryDirectory() as folder:
        paths = [Path(os.path.realpath(folder)) / f"{number}.yml" for number in range(len(chain))]
        for path, value, base in zip(paths, chain, [*paths[1:], None], strict=True):
            said = {**value, "extends": base.name} if base else value
            path.write_text(json.dumps(said, indent=1), "utf-8")
        document = read_extended(paths[0], object)
        expected = merged(chain)
        assert document.value == expected
        for leaf in leaves(expected):
            location = document.location(leaf)
            nearest = next(path for path, value in zip(paths, chain, strict=True) if has(value, leaf))
            assert location.file == str(nearest), leaf
            assert extenders(location) == [str(path) for path in reversed(paths[: paths.index(nearest)])]
            key = next((json.dumps(step) for step in reversed(leaf) if isinstance(step, str)), "")
            line = nearest.read_text("utf-8").splitlines()[(location.line or 0) - 1]
            assert key in line or isinstance(leaf[-1], int), leaf


def merged(chain: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    near, *bases = chain
    below = merged(bases) if bases else {}
    joined = {**below, **near}
    for key in near.keys() & below.keys():
        if isinstance(near[key], dict) and isinstance(below[key], dict):
            joined[key] = merged([near[key], below[key]])
    return joined


def leaves(value: Any, path: DocumentPath = ()) -> Iterator[DocumentPath]:
    """Yield the paths of all values, but not those of mappings with keys: several files may write them."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif path:
        yield path
        for position, item in enumerate(value if isinstance(value, list) else ()):
            yield from leaves(item, (*path, position))


def has(value: Any, path: DocumentPath) -> bool:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def extenders(location: SourceLocation) -> list[str]:
    """Return the files that extend a file, the nearest to it first."""
    above = location.extended_by
    return [] if above is None else [above.file, *extenders(above)]

"""Commands about some tables parse the files that they need, and give what they would give after parsing all."""

from pathlib import Path

import pytest

from delta_engine.config.loading import load_declared
from delta_engine.config.settings import load_settings
from delta_engine.errors import ConfigError, DeltaEngineError
from delta_engine.models import Schema, of_kind
from delta_engine.orchestrate.project import Project, load_project
from tests.unit.config.projects import Write

TABLE = """\
tables:
  - catalog: ${{catalog}}
    schema: {schema}
    name: {name}
    primary_key: [id]
    columns: [{{name: id, type: bigint, nullable: false}}]
"""


def table(name: str, schema: str = "silver", more: str = "") -> str:
    return TABLE.format(name=name, schema=schema) + more


def selected(project: Path, *globs: str) -> list[str]:
    return names(load_project(project / "conf", "dev", tables=globs))


def names(project: Project) -> list[str]:
    return [str(model.qualified_name) for model in project.tables]


def test_a_broken_file_without_a_needed_table_is_not_parsed(write: Write, tmp_path: Path) -> None:
    write("conf/models/broken.yml", "tables: [o")
    assert selected(tmp_path, "orders") == ["dev.silver.orders"]
    with pytest.raises(ConfigError, match=r"broken\.yml"):
        selected(tmp_path)
    with pytest.raises(ConfigError, match=r"broken\.yml"):
        selected(tmp_path, "o*")  # the file may declare one


def test_a_run_without_some_files_is_partial(write: Write, tmp_path: Path) -> None:
    assert not load_project(tmp_path / "conf", "dev", tables=["orders"]).is_partial
    write("conf/models/lines.yml", table("lines"))
    assert load_project(tmp_path / "conf", "dev", tables=["orders"]).is_partial
    assert not load_project(tmp_path / "conf", "dev", tables=["orders", "lines"]).is_partial


@pytest.mark.parametrize(
    ("text", "glob"),
    [
        (table("'lines'"), "lines"),
        (table('"LINES"'), "lines"),
        (table(r'"\x6cines"'), "lines"),
        (table("l${n}s"), "l7s"),
        (table("l${ n }s"), "silver.l?s"),
        (table("l7s", "${catalog}"), "dev.dev.*"),
        (table(">-\n      lines"), "l*s"),
        (table("größe"), "gr*SSE".replace("SS", "ß")),
        (table("Σas"), "σAS"),
        (table("a-b_c"), "[a-c]-b_?"),
        (table("x") + table("lines").removeprefix("tables:\n"), "lines"),
    ],
)
def test_a_name_is_found_however_it_is_written(write: Write, tmp_path: Path, text: str, glob: str) -> None:
    write("conf/models/lines.yml", text)
    assert len(selected(tmp_path, glob)) == 1


def test_tables_that_needed_ones_reference_are_loaded(write: Write, tmp_path: Path) -> None:
    for name, parent in (("lines", "parts"), ("parts", "makers"), ("makers", "makers")):
        key = f"    foreign_keys: [{{columns: [id], references: {parent}}}]\n"
        write(f"conf/models/{name}.yml", table(name, more=key))
    write("conf/models/broken.yml", "tables: [")
    assert selected(tmp_path, "lines") == ["dev.silver.lines"]


def test_an_unknown_name_is_refused_with_similar_names_of_all_files(write: Write, tmp_path: Path) -> None:
    write("conf/models/lines.yml", table("lines"))
    with pytest.raises(DeltaEngineError, match=r"unknown table 'linez'.*dev\.silver\.lines"):
        selected(tmp_path, "orders", "linez")


def test_schemas_of_needed_tables_are_loaded_from_other_files(write: Write, tmp_path: Path) -> None:
    write("conf/models/schemas.yml", "schemas: [{catalog: dev, name: silver, comment: Cleaned.}]\n")
    write("conf/models/lines.yml", table("lines"))
    declared = load_declared(load_settings(tmp_path / "conf", "dev"), ["lines"])
    (schema,) = of_kind(Schema, declared.models)
    assert schema.comment == "Cleaned."

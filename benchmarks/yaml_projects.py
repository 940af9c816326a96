"""Projects of YAML models of realistic size, for measurements of whole commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from delta_engine.config.model_writer import yaml_models
from delta_engine.models import Column, Table

TYPES = ("bigint", "string", "decimal(18,2)", "timestamp", "array<struct<a: int, b: string>>")

_CONFIGURATION = """\
environment: dev
backend: {backend}
variables: {{catalog: dev}}
models: {{yaml: [models/**/*.yml]}}
state_backend: {state}
"""

LOCAL_STATE = "{type: local, local: {path: state}}"


def commented_table(schema: str, name: str, columns: int) -> Table:
    """Return a table whose columns all have comments, with a key and properties."""
    return Table(
        "dev",
        schema,
        name,
        [
            Column(
                f"column_{place}",
                TYPES[place % len(TYPES)],
                is_nullable=place > 0,
                comment=f"Number {place} of {name}: what it means, in the words of its owner.",
            )
            for place in range(columns)
        ],
        comment=f"One row per event of {name}.",
        table_properties={"delta.appendOnly": "false", "team": schema},
        primary_key=["column_0"],
    )


def commented_tables(tables: int, columns: int, teams: int = 40) -> Iterator[Table]:
    """Yield tables in a schema per team."""
    for number in range(tables):
        yield commented_table(f"team{number % teams:02}", f"table_{number}", columns)


def write_configuration(folder: Path, *, backend: str, state: str) -> Path:
    """Write the configuration of a project, whose models lie in `models`; return its folder."""
    conf = folder / "conf"
    conf.mkdir(parents=True)
    (conf / "dev.yml").write_text(_CONFIGURATION.format(backend=backend, state=state))
    return conf


def write_project(
    folder: Path,
    tables: int,
    columns: int,
    *,
    teams: int = 40,
    backend: str = "{type: oss}",
    state: str = LOCAL_STATE,
) -> Path:
    """Write a project with a file per table, in a folder per team; return its configuration folder."""
    conf = write_configuration(folder, backend=backend, state=state)
    for table in commented_tables(tables, columns, teams):
        file = folder / "models" / table.schema_name / f"{table.table_name}.yml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml_models([table], {"catalog": "dev"}))
    return conf

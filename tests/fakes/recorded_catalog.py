"""A runner that answers the queries of `information_schema` with recorded rows, and other statements by their text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path

from delta_engine.backends.sql_runner import Row
from tests.fakes.recording_sql_runner import Answer as Answer
from tests.fakes.recording_sql_runner import ScriptedSqlRunner

RECORDED = Path(__file__).parents[1] / "recorded"

AUDIT: Row = {
    "created": datetime(2026, 1, 2, tzinfo=timezone.utc),
    "created_by": "ann",
    "last_altered": datetime(2026, 3, 4, tzinfo=timezone.utc),
    "last_altered_by": "bob",
}


class RecordedRunner(ScriptedSqlRunner):
    """Answers each statement by a view's name, else by a part of its text; with nothing where nothing is recorded."""

    def __init__(self, views: Mapping[str, Answer], texts: Mapping[str, Answer] | None = None) -> None:
        of_views = {f".information_schema.{name}": answer for name, answer in views.items()}
        super().__init__({**of_views, ".information_schema.": (), **(texts or {})})

    def asked(self, view: str) -> str:
        (queries,) = [sql for sql in self.statements if sql.split("\nWHERE")[0].endswith(f".{view}")]
        return queries


def table_row(name: str = "orders", schema: str = "silver", **changes: object) -> Row:
    """Return a row of `tables`: a managed Delta table, but for the changes."""
    return {
        "table_schema": schema,
        "table_name": name,
        "table_type": "MANAGED",
        "data_source_format": "DELTA",
        "comment": None,
        "table_owner": "data-engineers",
        "storage_path": None,
        **AUDIT,
        **changes,
    }


def column_rows(*columns: tuple[str, str], name: str = "orders", schema: str = "silver") -> list[Row]:
    """Return the rows of `columns` for nullable columns without comments."""
    return [
        {
            "table_schema": schema,
            "table_name": name,
            "column_name": column,
            "ordinal_position": position,
            "full_data_type": kind,
            "is_nullable": "YES",
            "comment": None,
        }
        for position, (column, kind) in enumerate(columns, start=1)
    ]


def schema_row(name: str = "silver", comment: str | None = None, owner: str = "platform") -> Row:
    return {"schema_name": name, "comment": comment, "schema_owner": owner, **AUDIT}


def key_rows(
    constraint: str, name: str, columns: Iterable[str], *, there: Iterable[int] = (), schema: str = "silver"
) -> list[Row]:
    """Return the rows of `key_column_usage` for a key; `there` are the places in the key that it references."""
    places = list(there)
    return [
        {
            "constraint_schema": schema,
            "constraint_name": constraint,
            "table_schema": schema,
            "table_name": name,
            "column_name": column,
            "ordinal_position": position,
            "position_in_unique_constraint": places[position - 1] if places else None,
        }
        for position, column in enumerate(columns, start=1)
    ]


def constraint_row(constraint: str, name: str, kind: str, schema: str = "silver") -> Row:
    return {
        "constraint_schema": schema,
        "constraint_name": constraint,
        "table_schema": schema,
        "table_name": name,
        "constraint_type": kind,
    }


def reference_row(constraint: str, target: str, schema: str = "silver", target_schema: str = "silver") -> Row:
    return {
        "constraint_catalog": "dev",
        "constraint_schema": schema,
        "constraint_name": constraint,
        "unique_constraint_catalog": "dev",
        "unique_constraint_schema": target_schema,
        "unique_constraint_name": target,
    }

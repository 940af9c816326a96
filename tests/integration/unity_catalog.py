"""A Unity Catalog in miniature: Spark's reference catalog, with an `information_schema` beside it.

Spark's own parser and analyzer judge every statement. What the reference catalog lacks is emulated
after its form was checked: SET NOT NULL, which Spark's analyzer refuses for every catalog, and the plain
DROP CONSTRAINT, which the catalog takes without doing it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from delta_engine.execute.spark_sql_runner import SparkSqlRunner
from delta_engine.sql import sql_data_type, sql_literal
from delta_engine.sql_runner import Row
from delta_engine.types import data_type_from_spark_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = {
    "schemata": "catalog_name STRING, schema_name STRING",
    "tables": "table_catalog STRING, table_schema STRING, table_name STRING, table_type STRING, "
    "data_source_format STRING, comment STRING, created TIMESTAMP, created_by STRING, last_altered TIMESTAMP, "
    "last_altered_by STRING",
    "columns": "table_catalog STRING, table_schema STRING, table_name STRING, column_name STRING, "
    "ordinal_position INT, is_nullable STRING, full_data_type STRING, comment STRING",
    "table_constraints": "constraint_catalog STRING, constraint_schema STRING, constraint_name STRING, "
    "table_catalog STRING, table_schema STRING, table_name STRING, constraint_type STRING",
    "key_column_usage": "constraint_catalog STRING, constraint_schema STRING, constraint_name STRING, "
    "table_catalog STRING, table_schema STRING, table_name STRING, column_name STRING, "
    "ordinal_position INT",
}
"""The documented columns of the views, as far as the reader uses them."""

_NOBODY = (None, None, None, None)

_CLUSTER_BY = re.compile(r"\s+CLUSTER BY (?:\((?P<columns>(?:`(?:[^`]|``)+`(?:, )?)+)\)|NONE)")

_PRIMARY_KEY = re.compile(r"PRIMARY KEY \((?P<columns>.*?)\)")


class MiniatureUnityCatalog:
    """Runs statements in the reference catalog and keeps its `information_schema` up to date.

    Args:
        spark: a session that has the reference catalog under the given name.
        catalog: the catalog's name.
    """

    def __init__(self, spark: SparkSession, catalog: str) -> None:
        self._spark = spark
        self._catalog = catalog
        self._runner = SparkSqlRunner(spark)
        self._not_null: set[tuple[str, str]] = set()
        self._is_stale = True
        self._changes: Counter[str] = Counter()
        self._audits: dict[str, tuple[datetime, str]] = {}
        self._clustering: dict[str, list[str]] = {}
        self.statements: list[str] = []
        self.foreign_tables: list[tuple[str, str, str]] = []
        self._runner.run(f"CREATE SCHEMA {catalog}.information_schema")
        for view, columns in VIEWS.items():
            self._runner.run(f"CREATE TABLE {catalog}.information_schema.{view} ({columns})")

    def run(self, sql: str) -> Sequence[Row]:
        """Run one statement, and let the views follow."""
        self.statements.append(sql)
        if "information_schema" in sql:
            self._refresh()
            return self._runner.run(sql)
        if sql.startswith("SHOW TBLPROPERTIES"):
            clustering = self._clustering.get(sql.split()[2].replace("`", ""), [])
            shown: Row = {"key": "clusteringColumns", "value": json.dumps([[name] for name in clustering])}
            return [*self._runner.run(sql), *([shown] if clustering else [])]
        if sql.startswith("SHOW "):
            return self._runner.run(sql)
        if sql.startswith(("DESCRIBE HISTORY", "DESCRIBE DETAIL")):
            return self._delta_log(sql.split()[2].replace("`", ""), sql)
        self._is_stale = True
        if sql.startswith(("CREATE TABLE", "ALTER TABLE", "COMMENT ON TABLE")):
            self._changes[_changed_table(sql)] += 1
        if sql.startswith(("CREATE TABLE", "DROP TABLE")):
            self._not_null.clear()
        if sql.startswith("CREATE TABLE"):
            self._audits[_changed_table(sql)] = (datetime.now(timezone.utc), "ann")
            self._clustering.pop(_changed_table(sql), None)
        if _CLUSTER_BY.search(sql):
            sql = self._cluster(sql)
            if not sql:
                return ()
        if " NOT NULL" in sql and sql.startswith("ALTER TABLE"):
            return self._change_nullability(sql)
        rows = self._runner.run(sql)
        if " DROP CONSTRAINT `" in sql:
            # The reference catalog accepts this form and keeps the constraint; the long form drops it.
            self._runner.run(sql.replace(" DROP CONSTRAINT ", " DROP CONSTRAINT IF EXISTS ") + " CASCADE")
        return rows

    def clear(self) -> None:
        """Drop everything."""
        for row in self._runner.run(f"SHOW SCHEMAS IN {self._catalog}"):
            self._runner.run(f"DROP SCHEMA {self._catalog}.{row['namespace']} CASCADE")

    def _delta_log(self, table: str, sql: str) -> Sequence[Row]:
        """Answer as Delta does, which the reference catalog is not: every statement is a commit."""
        if "HISTORY" in sql:
            latest, limit = self._changes[table] - 1, int(sql.split()[-1])
            return [
                {"version": version, "operation": "", "operationParameters": {}, "userName": "ann"}
                for version in range(latest, max(latest - limit, -1), -1)
            ]
        return [{"id": f"id of {table}"}]

    def _cluster(self, sql: str) -> str:
        """Take a CLUSTER BY out of a statement, and remember it; return what is left to do."""
        found = _CLUSTER_BY.search(sql)
        assert found
        columns = re.findall(r"`((?:[^`]|``)+)`", found["columns"] or "")
        self._clustering[_changed_table(sql)] = [name.replace("``", "`") for name in columns]
        return _CLUSTER_BY.sub("", sql) if sql.startswith("CREATE") else ""

    def _audit(self, table: str) -> tuple[object, ...]:
        """Say who created a table and who altered it last; the reference catalog does not know."""
        altered = (datetime.now(timezone.utc), "bob") if self._changes[table] > 1 else (None, None)
        return (*self._audits.get(table, (None, None)), *altered)

    def _change_nullability(self, sql: str) -> Sequence[Row]:
        alter = sqlglot.parse_one(sql, dialect="databricks")
        table, changes = sql.removeprefix("ALTER TABLE ").replace("`", "").split(" ALTER COLUMN ")
        assert isinstance(alter, (exp.Alter, exp.Command)), f"not understood: {sql}"
        loosened = set()
        for change in changes.split(", "):
            name, _, verb = change.partition(" ")
            assert verb in ("SET NOT NULL", "DROP NOT NULL"), f"not understood: {sql}"
            place = (table, name.lower())
            if verb == "SET NOT NULL":
                self._not_null.add(place)
            else:
                self._not_null.discard(place)
                loosened.add(name)
        return self._runner.run(sql) if loosened else ()

    def _refresh(self) -> None:
        if not self._is_stale:
            return
        rows: dict[str, list[tuple[object, ...]]] = {view: [] for view in VIEWS}
        for row in self._runner.run(f"SHOW SCHEMAS IN {self._catalog}"):
            schema = str(row["namespace"])
            if schema != "information_schema":
                rows["schemata"].append((self._catalog, schema))
                for table in self._runner.run(f"SHOW TABLES IN {self._catalog}.{schema}"):
                    self._describe(schema, str(table["tableName"]), rows)
        for schema, name, kind in self.foreign_tables:
            rows["tables"].append((self._catalog, schema, name, kind, "UNKNOWN", None, *_NOBODY))
        for view, values in rows.items():
            target = f"{self._catalog}.information_schema.{view}"
            self._runner.run(f"TRUNCATE TABLE {target}")
            if values:
                listed = ", ".join(f"({', '.join(map(_literal, value))})" for value in values)
                self._runner.run(f"INSERT INTO {target} VALUES {listed}")
        self._is_stale = False

    def _describe(self, schema: str, name: str, rows: dict[str, list[tuple[object, ...]]]) -> None:
        table = f"{self._catalog}.{schema}.{name}"
        place = (self._catalog, schema, name)
        described = self._runner.run(f"DESCRIBE TABLE EXTENDED {table}")
        details = {str(row["col_name"]): str(row["data_type"]) for row in described}
        rows["tables"].append(
            (
                *place,
                "MANAGED",
                details["Provider"].upper(),
                details.get("Comment") or None,
                *self._audit(table),
            )
        )
        for position, field in enumerate(self._spark.table(table).schema, start=1):
            is_nullable = field.nullable and (table, field.name.lower()) not in self._not_null
            kind = data_type_from_spark_json(field.dataType.jsonValue(), field.metadata)
            nullable = "YES" if is_nullable else "NO"
            comment = field.metadata.get("comment")
            rows["columns"].append((*place, field.name, position, nullable, sql_data_type(kind), comment))
        for constraint, text in details.items():
            key = _PRIMARY_KEY.match(text)
            if key:
                owner = (self._catalog, schema, constraint)
                rows["table_constraints"].append((*owner, *place, "PRIMARY KEY"))
                for position, column in enumerate(key["columns"].split(", "), start=1):
                    rows["key_column_usage"].append((*owner, *place, column.strip("`").upper(), position))


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f}+00:00'"
    return str(value) if isinstance(value, int) else sql_literal(str(value))


def _changed_table(sql: str) -> str:
    """Return the table that a CREATE TABLE, ALTER TABLE or COMMENT ON TABLE is about."""
    return sql.partition(" TABLE ")[2].split()[0].replace("`", "")

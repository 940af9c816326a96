"""A Unity Catalog in miniature: Spark's reference catalog, with an `information_schema` beside it.

Spark's own parser and analyzer judge every statement that they know. What the reference catalog lacks is emulated
after its form was checked: SET NOT NULL, which Spark's analyzer refuses for every catalog, the plain DROP CONSTRAINT,
which the catalog takes without doing it, and what `unity_catalog_ledger` writes down.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp

from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError
from delta_engine.models import Column
from delta_engine.models.types import data_type_from_spark_json
from delta_engine.sql import quote_ident, sql_data_type, sql_literal
from tests.described_columns import column_definition, json_column
from tests.integration.unity_catalog_ledger import Function, Ledger, Securable, plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TABLE = "table_catalog STRING, table_schema STRING, table_name STRING"
_TAGGED = "catalog_name STRING, schema_name STRING"
_CONSTRAINT = "constraint_catalog STRING, constraint_schema STRING, constraint_name STRING"
_GRANTED = "privilege_type STRING, is_grantable STRING, inherited_from STRING"
_AUDIT = "created TIMESTAMP, created_by STRING, last_altered TIMESTAMP, last_altered_by STRING"

VIEWS = {
    "schemata": f"catalog_name STRING, schema_name STRING, schema_owner STRING, comment STRING, {_AUDIT}",
    "tables": f"{_TABLE}, table_type STRING, data_source_format STRING, comment STRING, table_owner STRING, "
    f"storage_path STRING, {_AUDIT}",
    "columns": f"{_TABLE}, column_name STRING, ordinal_position INT, is_nullable STRING, full_data_type STRING, "
    "comment STRING",
    "table_constraints": f"{_CONSTRAINT}, {_TABLE}, constraint_type STRING",
    "key_column_usage": f"{_CONSTRAINT}, {_TABLE}, column_name STRING, ordinal_position INT, "
    "position_in_unique_constraint INT",
    "referential_constraints": f"{_CONSTRAINT}, unique_constraint_catalog STRING, "
    "unique_constraint_schema STRING, unique_constraint_name STRING",
    "table_tags": f"{_TAGGED}, table_name STRING, tag_name STRING, tag_value STRING",
    "column_tags": f"{_TAGGED}, table_name STRING, column_name STRING, tag_name STRING, tag_value STRING",
    "schema_tags": f"{_TAGGED}, tag_name STRING, tag_value STRING",
    "row_filters": f"{_TABLE}, filter_name STRING, target_columns STRING",
    "column_masks": f"{_TABLE}, column_name STRING, mask_name STRING, using_columns STRING",
    "table_privileges": f"grantor STRING, grantee STRING, {_TABLE}, {_GRANTED}",
    "catalogs": f"catalog_name STRING, catalog_owner STRING, comment STRING, {_AUDIT}",
    "catalog_privileges": f"grantor STRING, grantee STRING, catalog_name STRING, {_GRANTED}",
    "schema_privileges": f"grantor STRING, grantee STRING, {_TAGGED}, {_GRANTED}",
}
"""The documented columns of the views, as far as the reader uses them; filters and masks as workspaces have them."""

_NOBODY = (None, None, None, None)

Rows = dict[str, list[tuple[object, ...]]]


class MiniatureUnityCatalog:
    """Runs statements in the reference catalog and keeps its `information_schema` up to date.

    Args:
        spark: a session that has the reference catalog under the given name.
        catalog: the catalog's name.

    Attributes:
        ledger: what the reference catalog cannot keep.
        statements: what was run.
        foreign_tables: the schema, name and type of relations that are no Delta tables.
        streaming_tables: the dotted names of tables that pipelines own.
        knows_json: whether it knows `DESCRIBE TABLE … AS JSON`, which older runtimes do not.
        is_lagging: whether the views stay behind from now on.
    """

    def __init__(self, spark: SparkSession, catalog: str) -> None:
        self._spark = spark
        self._catalog = catalog
        self._runner = SparkSqlRunner(spark)
        self._not_null: set[tuple[str, str]] = set()
        self._is_stale = True
        self._changes: Counter[str] = Counter()
        self._audits: dict[str, tuple[datetime, str]] = {}
        self._written: Rows = {view: [] for view in VIEWS}
        self.ledger = Ledger()
        self.statements: list[str] = []
        self.foreign_tables: list[tuple[str, str, str]] = []
        self.streaming_tables: set[str] = set()
        self.knows_json = True
        self.is_lagging = False
        self._make_views()
        self._runner.run(  # nothing of Spark's knows groups
            "CREATE OR REPLACE TEMPORARY FUNCTION is_account_group_member(name STRING) RETURNS BOOLEAN RETURN false"
        )

    def run(self, sql: str) -> Sequence[Row]:
        """Run one statement, and let the views follow."""
        self.statements.append(sql)
        if "information_schema" in sql:
            self._refresh()
            return self._runner.run(sql)
        if sql.startswith(("SHOW ", "DESCRIBE ", "SELECT ")):
            return self._read(sql)
        self._is_stale = True
        if sql.startswith(("CREATE TABLE", "ALTER TABLE", "COMMENT ON TABLE")):
            self._changes[_changed_table(sql)] += 1
        if sql.startswith(("CREATE TABLE", "DROP TABLE")):
            self._not_null.clear()
        if sql.startswith("CREATE TABLE"):
            self._audits[_changed_table(sql)] = (datetime.now(timezone.utc), "ann")
        left = self.ledger.take(sql)
        if not left:
            return ()
        if " NOT NULL" in left and " ALTER COLUMN " in left and left.startswith("ALTER TABLE"):
            return self._change_nullability(left)
        rows = self._runner.run(left)
        if " DROP CONSTRAINT `" in left:
            # The reference catalog accepts this form and keeps the constraint; the long form drops it.
            self._runner.run(left.replace(" DROP CONSTRAINT ", " DROP CONSTRAINT IF EXISTS ") + " CASCADE")
        return rows

    def clear(self) -> None:
        """Drop everything but the views, which are empty afterwards."""
        for row in self._runner.run(f"SHOW SCHEMAS IN {self._catalog}"):
            if row["namespace"] != "information_schema":
                self._runner.run(f"DROP SCHEMA {self._catalog}.{row['namespace']} CASCADE")
        for view in VIEWS:
            self._write(view, [])

    def _make_views(self) -> None:
        """Make the views, unless an earlier test has."""
        self._runner.run(f"CREATE SCHEMA IF NOT EXISTS {self._catalog}.information_schema")
        listed = self._runner.run(f"SHOW TABLES IN {self._catalog}.information_schema")
        for view in VIEWS.keys() - {str(row["tableName"]) for row in listed}:
            self._runner.run(f"CREATE TABLE {self._catalog}.information_schema.{view} ({VIEWS[view]})")

    def _read(self, sql: str) -> Sequence[Row]:
        """Answer a statement that changes nothing."""
        words = sql.split()
        match words:
            case ["DESCRIBE", "HISTORY" | "DETAIL", table, *_]:
                return self._delta_log(plain(table), sql)
            case ["DESCRIBE", "TABLE", "EXTENDED", table, "AS", "JSON"]:
                return [{"json_metadata": json.dumps(self._document(plain(table), sql))}]
            case ["SHOW", "CREATE", "TABLE", table]:
                return [{"createtab_stmt": self._create_statement(plain(table))}]
            case ["SHOW", "GRANTS", "ON", kind, name]:
                return self._grants(kind, plain(name))
            case ["SHOW", "TBLPROPERTIES", table]:
                self._runner.run(sql)
                return [{"key": key, "value": value} for key, value in self._properties(plain(table)).items()]
        return self._runner.run(sql)

    def _grants(self, kind: str, name: str) -> Sequence[Row]:
        """Return what was granted on an object itself, and one privilege that comes from above."""
        governed = (self.ledger.tables if kind == "TABLE" else self.ledger.schemas)[name]
        own = [(who, privilege, kind, name) for who, privilege in sorted(governed.grants)]
        columns = ("Principal", "ActionType", "ObjectType", "ObjectKey")
        return [
            dict(zip(columns, row, strict=True))
            for row in (*own, ("everybody", "BROWSE", "CATALOG", self._catalog))
        ]

    def _delta_log(self, table: str, sql: str) -> Sequence[Row]:
        """Answer as Delta does, which the reference catalog is not: every statement is a commit."""
        if "HISTORY" in sql:
            latest, limit = self._changes[table] - 1, int(sql.split()[-1])
            return [
                {"version": version, "operation": "", "operationParameters": {}, "userName": "ann"}
                for version in range(latest, max(latest - limit, -1), -1)
            ]
        return [{"id": f"id of {table}"}]

    def _document(self, table: str, sql: str) -> dict[str, object]:
        """Return the documented JSON of a table, or refuse as an older runtime does."""
        if not self.knows_json:
            raise StatementError("no viable alternative at 'AS'", sql=sql, error_class="PARSE_SYNTAX_ERROR")
        catalog, schema, name = table.split(".")
        spark_table = self._load(table, sql)
        entry, properties = self.ledger.tables[table], self._properties(table)
        clustering = {"clustering_information": [{"name": column} for column in entry.clustering]}
        return {
            "table_name": name,
            "catalog_name": catalog,
            "schema_name": schema,
            "namespace": [schema],
            "type": self._kind(table),
            "provider": "delta",
            "columns": [json_column(column) for column in self._columns(table, spark_table)],
            "partition_columns": _partitioning(spark_table),
            "location": entry.location,
            "owner": entry.owner,
            "comment": spark_table.properties().get("comment"),
            "table_properties": {
                key: value for key, value in properties.items() if key != "clusteringColumns"
            },
            **(clustering if entry.clustering else {}),
        }

    def _create_statement(self, table: str) -> str:
        spark_table = self._load(table, f"SHOW CREATE TABLE {table}")
        body = ",\n  ".join(map(column_definition, self._columns(table, spark_table)))
        partitioning = ", ".join(map(quote_ident, _partitioning(spark_table)))
        clause = f"\nPARTITIONED BY ({partitioning})" if partitioning else ""
        comment = spark_table.properties().get("comment")
        clause += f"\nCOMMENT {sql_literal(comment)}" if comment else ""
        return f"CREATE TABLE {table} (\n  {body})\nUSING delta{clause}"

    def _properties(self, table: str) -> dict[str, str]:
        """Return the properties that Delta on Databricks shows."""
        entry = self.ledger.tables[table]
        reserved = {"comment", "location", "provider", "owner"}
        shown = {
            str(key): str(value)
            for key, value in dict(self._load(table, table).properties()).items()
            if key not in reserved
        }
        shown |= {f"delta.constraints.{name}": text for name, text in entry.checks.items()}
        if entry.is_automatic:
            shown["clusterByAuto"] = "true"
        if entry.clustering:
            shown["clusteringColumns"] = json.dumps([[name] for name in entry.clustering])
        if any(column.identity for column in entry.computed.values()):
            shown["delta.feature.identityColumns"] = "supported"
        if any(column.generated_as for column in entry.computed.values()):
            shown["delta.feature.generatedColumns"] = "supported"
        return shown

    def _load(self, table: str, sql: str) -> Any:
        """Return the reference catalog's own object for a table."""
        jvm: Any = self._spark._jvm
        catalog, schema, name = table.split(".")
        gateway: Any = self._spark.sparkContext._gateway
        namespace = gateway.new_array(jvm.java.lang.String, 1)
        namespace[0] = schema
        identifier = jvm.org.apache.spark.sql.connector.catalog.Identifier.of(namespace, name)
        found: Any = self._spark._jsparkSession.sessionState().catalogManager().catalog(catalog)
        if not found.tableExists(identifier):
            raise StatementError(f"{table} is not there", sql=sql, error_class="TABLE_OR_VIEW_NOT_FOUND")
        return found.loadTable(identifier)

    def _columns(self, table: str, spark_table: Any) -> list[Column]:
        computed = self.ledger.tables[table].computed
        columns = []
        for column in spark_table.columns():
            key, default = column.name().lower(), column.defaultValue()
            columns.append(
                Column(
                    column.name(),
                    data_type_from_spark_json(json.loads(column.dataType().json())),
                    column.nullable() and (table, key) not in self._not_null,
                    column.comment() or "",
                    default=default.getSql() if default else None,
                    generated_as=computed[key].generated_as if key in computed else None,
                    identity=computed[key].identity if key in computed else None,
                )
            )
        return columns

    def _kind(self, table: str) -> str:
        if table in self.streaming_tables:
            return "STREAMING_TABLE"
        return "EXTERNAL" if self.ledger.tables[table].location else "MANAGED"

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
        if not self._is_stale or self.is_lagging:
            return
        rows: Rows = {view: [] for view in VIEWS}
        for row in self._runner.run(f"SHOW SCHEMAS IN {self._catalog}"):
            schema = str(row["namespace"])
            if schema != "information_schema":
                self._show_schema(schema, rows)
                for table in self._runner.run(f"SHOW TABLES IN {self._catalog}.{schema}"):
                    self._show_table(schema, str(table["tableName"]), rows)
        for schema, name, kind in self.foreign_tables:
            rows["tables"].append((self._catalog, schema, name, kind, "UNKNOWN", None, "ann", None, *_NOBODY))
        for view, values in rows.items():
            self._write(view, values)
        self._is_stale = False

    def _write(self, view: str, values: list[tuple[object, ...]]) -> None:
        """Put rows into a view, if it has others."""
        if values == self._written[view]:
            return
        target = f"{self._catalog}.information_schema.{view}"
        listed = ", ".join(f"({', '.join(map(_literal, value))})" for value in values)
        self._runner.run(
            f"INSERT OVERWRITE {target} VALUES {listed}" if values else f"TRUNCATE TABLE {target}"
        )
        self._written[view] = values

    def _show_schema(self, schema: str, rows: Rows) -> None:
        governed = self.ledger.schemas[f"{self._catalog}.{schema}"]
        described = self._runner.run(f"DESCRIBE SCHEMA EXTENDED {self._catalog}.{schema}")
        comment = {str(row["info_name"]): row["info_value"] for row in described}.get("Comment") or None
        rows["schemata"].append((self._catalog, schema, governed.owner, comment, *4 * [None]))
        place = (self._catalog, schema)
        rows["schema_tags"] += [(*place, *tag) for tag in governed.tags.items()]
        rows["schema_privileges"] += _granted(place, governed)

    def _show_table(self, schema: str, name: str, rows: Rows) -> None:
        place, table = (self._catalog, schema, name), f"{self._catalog}.{schema}.{name}"
        entry, spark_table = self.ledger.tables[table], self._load(table, table)
        properties = spark_table.properties()
        rows["tables"].append(
            (
                *place,
                self._kind(table),
                properties["provider"].upper(),
                properties.get("comment"),
                entry.owner,
                entry.location,
                *self._audit(table),
            )
        )
        for position, column in enumerate(self._columns(table, spark_table), start=1):
            nullable, kind = "YES" if column.is_nullable else "NO", sql_data_type(column.data_type)
            shown = (column.name, position, nullable, kind, column.comment or None)
            rows["columns"].append((*place, *shown))
        rows["table_tags"] += [(*place, *tag) for tag in entry.tags.items()]
        for tagged, tags in entry.column_tags.items():
            rows["column_tags"] += [(*place, tagged, *tag) for tag in tags.items()]
        if entry.row_filter:
            rows["row_filters"].append((*place, *_called(entry.row_filter)))
        rows["column_masks"] += [(*place, masked, *_called(mask)) for masked, mask in entry.masks.items()]
        rows["table_privileges"] += _granted(place, entry)
        self._show_keys(place, table, rows)

    def _show_keys(self, place: tuple[str, str, str], table: str, rows: Rows) -> None:
        for key in self.ledger.tables[table].keys.values():
            constraint = (*place[:2], key.name)
            rows["table_constraints"].append((*constraint, *place, key.kind))
            target = self._target(key.target) if key.target else None
            if target:
                rows["referential_constraints"].append((*constraint, *target[0]))
            for position, column in enumerate(key.columns, start=1):
                there = target[1].index(key.referenced[position - 1].lower()) + 1 if target else None
                rows["key_column_usage"].append((*constraint, *place, column.upper(), position, there))

    def _target(self, table: str) -> tuple[tuple[str, ...], list[str]] | None:
        """Return the primary key of a table, and its columns in lower case."""
        for key in self.ledger.tables[table].keys.values():
            if key.kind == "PRIMARY KEY":
                return (*table.split(".")[:2], key.name), [column.lower() for column in key.columns]
        return None


def _partitioning(spark_table: Any) -> list[str]:
    return [
        str(transform.describe()).strip("`").replace("``", "`") for transform in spark_table.partitioning()
    ]


def _granted(place: tuple[str, ...], governed: Securable) -> list[tuple[object, ...]]:
    """Return what was granted on an object itself, and one privilege that comes from above."""
    own = [("ann", who, *place, privilege, "NO", "NONE") for who, privilege in sorted(governed.grants)]
    return [*own, ("ann", "everybody", *place, "BROWSE", "NO", "CATALOG")]


def _called(function: Function) -> tuple[str, str]:
    return function.name, ", ".join(function.columns)


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f}+00:00'"
    return str(value) if isinstance(value, int) else sql_literal(str(value))


def _changed_table(sql: str) -> str:
    """Return the table that a CREATE TABLE, ALTER TABLE or COMMENT ON TABLE is about."""
    return sql.partition(" TABLE ")[2].split()[0].replace("`", "")

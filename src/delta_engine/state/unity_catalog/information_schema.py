"""The views of `information_schema` that the engine reads, one query each, and how to find a table's rows in them.

Their columns are documented in Databricks' SQL reference, "Information schema". Names are in lower case, and what the
principal may not see is silently missing. Three views are read with all columns, because workspaces differ from the
documentation: `row_filters` and `column_masks` (seen with `table_schema`, `filter_name`, `target_columns`; documented
with `schema_name`, `filter_catalog`, `filter_col_usage`), and `referential_constraints` (documented once as
`unique_constarint_schema`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import CatalogReadError
from delta_engine.models import QualifiedName
from delta_engine.sql.queries import sql_information_schema
from delta_engine.sql.text import sql_literal


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A view and what the engine selects from it.

    Args:
        columns: empty for all.
        schema_column: restricts the rows to some schemas; empty to read the whole catalog.
        catalog_column: distinguishes the catalogs in the views of `system`; see `query_everywhere`.
        needed: the columns that are never NULL, in all their spellings; see `require_whole`.
    """

    name: str
    columns: tuple[str, ...] = ()
    schema_column: str = ""
    catalog_column: str = ""
    condition: str = ""
    needed: tuple[str, ...] = ()

    def query(self, catalog: str, schemas: Iterable[str]) -> str:
        """Return the query of a catalog's own view for some schemas."""
        return sql_information_schema(catalog, self.name, self.columns, self._conditions(schemas))

    def query_everywhere(self, catalog: str, schemas: Iterable[str]) -> str:
        """Return the query of the view in `system`, of all catalogs without `catalog_column`; see `in_catalog`."""
        conditions = self._conditions(schemas)
        if self.catalog_column:
            conditions.insert(0, f"{self.catalog_column} = {sql_literal(catalog)}")
        return sql_information_schema("system", self.name, self.columns, conditions)

    def _conditions(self, schemas: Iterable[str]) -> list[str]:
        of_schemas = f"{self.schema_column} IN ({', '.join(map(sql_literal, sorted(schemas)))})"
        return [*([of_schemas] if self.schema_column else []), *([self.condition] if self.condition else [])]


_TABLE = ("table_schema", "table_name")
_CONSTRAINT = ("constraint_schema", "constraint_name")
_AUDIT = ("created", "created_by", "last_altered", "last_altered_by")
_GRANTED_HERE = "coalesce(inherited_from, 'NONE') = 'NONE'"
"""Selects privileges granted on the object itself; others have the type of their parent, CATALOG or SCHEMA."""

SCHEMATA = View(
    name="schemata",
    catalog_column="catalog_name",
    columns=("schema_name", "comment", "schema_owner", *_AUDIT),
    schema_column="schema_name",
)
TABLES = View(
    name="tables",
    catalog_column="table_catalog",
    columns=(
        *_TABLE,
        "table_type",
        "data_source_format",
        "comment",
        "table_owner",
        "storage_path",
        *_AUDIT,
    ),
    schema_column="table_schema",
)
COLUMNS = View(
    name="columns",
    catalog_column="table_catalog",
    columns=(*_TABLE, "column_name", "ordinal_position", "full_data_type", "is_nullable", "comment"),
    schema_column="table_schema",
)
TABLE_CONSTRAINTS = View(
    name="table_constraints",
    catalog_column="constraint_catalog",
    columns=(*_CONSTRAINT, *_TABLE, "constraint_type"),
    needed=(*_CONSTRAINT, "constraint_type"),
)
KEY_COLUMN_USAGE = View(
    name="key_column_usage",
    catalog_column="constraint_catalog",
    columns=(
        *_CONSTRAINT,
        *_TABLE,
        "column_name",
        "ordinal_position",
        "position_in_unique_constraint",
    ),
    needed=(*_TABLE, "column_name", "ordinal_position"),
)
REFERENTIAL_CONSTRAINTS = View(name="referential_constraints", catalog_column="constraint_catalog")
TABLE_TAGS = View(
    name="table_tags",
    catalog_column="catalog_name",
    columns=("schema_name", "table_name", "tag_name", "tag_value"),
    schema_column="schema_name",
    needed=("tag_name",),
)
COLUMN_TAGS = View(
    name="column_tags",
    catalog_column="catalog_name",
    columns=("schema_name", "table_name", "column_name", "tag_name", "tag_value"),
    schema_column="schema_name",
    needed=("column_name", "tag_name"),
)
SCHEMA_TAGS = View(
    name="schema_tags",
    catalog_column="catalog_name",
    columns=("schema_name", "tag_name", "tag_value"),
    schema_column="schema_name",
    needed=("tag_name",),
)
ROW_FILTERS = View(name="row_filters", needed=("filter_catalog", "filter_schema", "filter_name"))
COLUMN_MASKS = View(name="column_masks", needed=("column_name", "mask_catalog", "mask_schema", "mask_name"))
TABLE_PRIVILEGES = View(
    name="table_privileges",
    catalog_column="table_catalog",
    columns=(*_TABLE, "grantee", "privilege_type"),
    schema_column="table_schema",
    condition=_GRANTED_HERE,
    needed=("grantee", "privilege_type"),
)
SCHEMA_PRIVILEGES = View(
    name="schema_privileges",
    catalog_column="catalog_name",
    columns=("schema_name", "grantee", "privilege_type"),
    schema_column="schema_name",
    condition=_GRANTED_HERE,
    needed=("grantee", "privilege_type"),
)

OF_SCHEMAS = (SCHEMA_TAGS, SCHEMA_PRIVILEGES)
"""The views about schemas, besides `SCHEMATA`."""

OF_TABLES = (
    COLUMNS,
    TABLE_CONSTRAINTS,
    KEY_COLUMN_USAGE,
    REFERENTIAL_CONSTRAINTS,
    TABLE_TAGS,
    COLUMN_TAGS,
    ROW_FILTERS,
    COLUMN_MASKS,
    TABLE_PRIVILEGES,
)
"""The views about tables, besides `TABLES`."""

TableKey = tuple[str, str]
"""A schema's and a table's name in lower case."""


LAGGING = (
    "Run it again in a minute: the views of information_schema can lag. If it persists, run "
    "REPAIR TABLE … SYNC METADATA."
)
"""The way out if the views contradict other sources."""


def table_key(schema: object, table: object) -> TableKey:
    """Return the key of a table's rows; CatalogReadError if the row names no table, so that any table may lack it."""
    if schema is None or table is None:
        raise CatalogReadError("information_schema has a row that names no table", way_out=LAGGING)
    return str(schema).lower(), str(table).lower()


def require_whole(view: View, rows: Iterable[Row], table: QualifiedName | None = None) -> None:
    """Refuse rows of a table (None: a schema) with NULL in columns that are documented to have values."""
    for row in rows:
        missing = [name for name in view.needed if row.get(name, "") is None]
        if missing:
            raise CatalogReadError(
                f"information_schema.{view.name} has a row that is not whole: {', '.join(missing)} "
                f"{'is' if len(missing) == 1 else 'are'} None",
                table=None if table is None else str(table),
                way_out=LAGGING,
            )


def in_catalog(view: View, rows: Sequence[Row], catalog: str) -> Sequence[Row]:
    """Return the rows of `View.query_everywhere` that are about a catalog."""
    if view.catalog_column or not rows:
        return rows
    column = spelling(rows[0], "table_catalog", "catalog_name")
    return [row for row in rows if str(row[column]).lower() == catalog]


def by_table(rows: Sequence[Row]) -> Mapping[TableKey, Sequence[Row]]:
    """Return rows by table; views of tags have `schema_name`, others `table_schema`."""
    grouped: dict[TableKey, list[Row]] = defaultdict(list)
    schema = spelling(rows[0], "table_schema", "schema_name") if rows else ""
    for row in rows:
        grouped[table_key(row[schema], row["table_name"])].append(row)
    return grouped


def by_schema(rows: Iterable[Row]) -> Mapping[str, Sequence[Row]]:
    """Return rows by schema, in lower case."""
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[str(row["schema_name"]).lower()].append(row)
    return grouped


def spelled(row: Row, *names: str) -> object:
    """Return a row's value under the first of several column names that it has; see `spelling`."""
    return row[spelling(row, *names)]


def spelling(row: Row, *names: str) -> str:
    """Return the first of several column names that a row has; CatalogReadError if it has none."""
    for name in names:
        if name in row:
            return name
    raise CatalogReadError(
        f"information_schema has a view without {' or '.join(names)}: its columns are {', '.join(row)}",
        way_out="Report it: the view is not as documented.",
    )


def optional_text(value: object) -> str | None:
    """Return a value as text; None for NULL."""
    return None if value is None else str(value)

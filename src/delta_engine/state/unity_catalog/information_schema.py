"""The views of `information_schema` that are read, one query each, and how a table's rows are found in them.

Their columns are documented in Databricks' SQL reference, "Information schema", a page per view. Object names in them
are in lower case, and what the principal may not see is left out without a word. Three views are asked for all they
have, because workspaces name some columns otherwise than the documentation: `row_filters` and `column_masks` (seen live
with `table_schema`, `filter_name`, `target_columns`; documented with `schema_name`, `filter_catalog`,
`filter_col_usage`), and `referential_constraints` (documented once as `unique_constarint_schema`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import CatalogReadError
from delta_engine.models import QualifiedName
from delta_engine.sql import quote_ident, sql_literal


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A view, and what is asked of it.

    Args:
        name: the view's name.
        columns: what is selected; everything for none.
        schema_column: what restricts it to some schemas; the whole catalog is read for none.
        catalog_column: what tells the catalogs apart in the views of `system`; see `query_everywhere`.
        condition: what else holds for the rows.
        needed: what a row always has, by all names that the columns go by; see `require_whole`.
    """

    name: str
    columns: tuple[str, ...] = ()
    schema_column: str = ""
    catalog_column: str = ""
    condition: str = ""
    needed: tuple[str, ...] = ()

    def query(self, catalog: str, schemas: Iterable[str]) -> str:
        """Return the query of a catalog's own view for some schemas."""
        return self._query(catalog, schemas)

    def query_everywhere(self, catalog: str, schemas: Iterable[str]) -> str:
        """Return the query of the view in `system`, which has all catalogs, for some schemas of one.

        A view without a `catalog_column` is read whole: see `in_catalog`.
        """
        of_catalog = f"{self.catalog_column} = {sql_literal(catalog)}" if self.catalog_column else ""
        return self._query("system", schemas, of_catalog)

    def _query(self, catalog: str, schemas: Iterable[str], of_catalog: str = "") -> str:
        conditions = [of_catalog] if of_catalog else []
        if self.schema_column:
            names = ", ".join(map(sql_literal, sorted(schemas)))
            conditions.append(f"{self.schema_column} IN ({names})")
        if self.condition:
            conditions.append(self.condition)
        where = f"\nWHERE {' AND '.join(conditions)}" if conditions else ""
        selected = ", ".join(self.columns) or "*"
        return f"SELECT {selected}\nFROM {quote_ident(catalog)}.information_schema.{self.name}{where}"


_TABLE = ("table_schema", "table_name")
_CONSTRAINT = ("constraint_schema", "constraint_name")
_AUDIT = ("created", "created_by", "last_altered", "last_altered_by")
_GRANTED_HERE = "coalesce(inherited_from, 'NONE') = 'NONE'"
"""Whether a privilege was granted on the object itself; CATALOG or SCHEMA stands for what holds it above."""

SCHEMATA = View(
    name="schemata",
    catalog_column="catalog_name",
    columns=(
        "schema_name",
        "comment",
        "schema_owner",
        *_AUDIT,
    ),
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
"""What there is about schemas beside `SCHEMATA`."""

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
"""What there is about tables beside `TABLES`."""

TableKey = tuple[str, str]
"""A schema's and a table's name in lower case."""


LAGGING = (
    "Run it again in a minute: the views of information_schema can lag behind. If it stays, run "
    "REPAIR TABLE … SYNC METADATA."
)
"""The way out where the views say something that cannot be."""


def table_key(schema: object, table: object) -> TableKey:
    """Return what finds a table's rows.

    Raises:
        CatalogReadError: a row does not say which table it is about: any table may lack it.
    """
    if schema is None or table is None:
        raise CatalogReadError("information_schema has a row that names no table", way_out=LAGGING)
    return str(schema).lower(), str(table).lower()


def require_whole(view: View, rows: Iterable[Row], table: QualifiedName | None = None) -> None:
    """Refuse rows that lack what the documentation says they always have: nothing is made of half a row.

    Args:
        view: where they come from.
        rows: the rows.
        table: which table they are about; None for a schema.

    Raises:
        CatalogReadError: a row is not whole.
    """
    for row in rows:
        lacking = [name for name in view.needed if row.get(name, "") is None]
        if lacking:
            raise CatalogReadError(
                f"information_schema.{view.name} has a row that is not whole: {', '.join(lacking)} "
                f"{'is' if len(lacking) == 1 else 'are'} None",
                table=None if table is None else str(table),
                way_out=LAGGING,
            )


def in_catalog(view: View, rows: Sequence[Row], catalog: str) -> Sequence[Row]:
    """Return those of the rows of `View.query_everywhere` that are about a catalog."""
    if view.catalog_column or not rows:
        return rows
    column = spelling(rows[0], "table_catalog", "catalog_name")
    return [row for row in rows if str(row[column]).lower() == catalog]


def by_table(rows: Sequence[Row]) -> Mapping[TableKey, Sequence[Row]]:
    """Return rows by the table that they are about; views of tags say `schema_name`, others `table_schema`."""
    grouped: dict[TableKey, list[Row]] = defaultdict(list)
    schema = spelling(rows[0], "table_schema", "schema_name") if rows else ""
    for row in rows:
        grouped[table_key(row[schema], row["table_name"])].append(row)
    return grouped


def by_schema(rows: Iterable[Row]) -> Mapping[str, Sequence[Row]]:
    """Return rows by the schema that they are about, in lower case."""
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[str(row["schema_name"]).lower()].append(row)
    return grouped


def spelled(row: Row, *names: str) -> object:
    """Return what a row has under the first of several names that it knows; see `spelling`."""
    return row[spelling(row, *names)]


def spelling(row: Row, *names: str) -> str:
    """Return the first of several names that a row knows.

    Raises:
        CatalogReadError: it knows none of them.
    """
    for name in names:
        if name in row:
            return name
    raise CatalogReadError(
        f"information_schema has a view without {' or '.join(names)}: its columns are {', '.join(row)}",
        way_out="Report it: the view is not as documented.",
    )


def optional_text(value: object) -> str | None:
    """Return text, and None for a NULL."""
    return None if value is None else str(value)

"""The views of `information_schema`: their queries, the rows of each table and schema, and what the rows mean.

Their columns are documented in Databricks' SQL reference, "Information schema". Names are in lower case, and what the
principal may not see is silently missing. Three views are read with all columns, because workspaces differ from the
documentation: `row_filters` and `column_masks` (seen with `table_schema`, `filter_name`, `target_columns`; documented
with `schema_name`, `filter_catalog`, `filter_col_usage`), and `referential_constraints` (documented once as
`unique_constarint_schema`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from delta_engine.backends.error_conditions import (
    is_forbidden,
    is_missing_catalog,
    is_missing_schema,
    is_missing_table,
)
from delta_engine.backends.sql_runner import Row, SqlRunner, query_each
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models import Grants, QualifiedName, ViewName
from delta_engine.models.parts import to_grants
from delta_engine.sql.queries import sql_information_schema, sql_show_schemas
from delta_engine.sql.text import sql_literal
from delta_engine.state.failed_reads import require_answers
from delta_engine.state.interpretation import listed_schemas


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemView:
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
        """Return the query of the view in `system`; without `catalog_column`, it is of all catalogs."""
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

SCHEMATA = SystemView(
    name="schemata",
    catalog_column="catalog_name",
    columns=("schema_name", "comment", "schema_owner", *_AUDIT),
    schema_column="schema_name",
)
TABLES = SystemView(
    name="tables",
    catalog_column="table_catalog",
    columns=(*_TABLE, "table_type", "data_source_format", "comment", "table_owner", "storage_path", *_AUDIT),
    schema_column="table_schema",
)
COLUMNS = SystemView(
    name="columns",
    catalog_column="table_catalog",
    columns=(*_TABLE, "column_name", "ordinal_position", "full_data_type", "is_nullable", "comment"),
    schema_column="table_schema",
    needed=("column_name", "full_data_type", "is_nullable", "ordinal_position"),
)
TABLE_CONSTRAINTS = SystemView(
    name="table_constraints",
    catalog_column="constraint_catalog",
    columns=(*_CONSTRAINT, *_TABLE, "constraint_type"),
    needed=(*_CONSTRAINT, "constraint_type"),
)
KEY_COLUMN_USAGE = SystemView(
    name="key_column_usage",
    catalog_column="constraint_catalog",
    columns=(*_CONSTRAINT, *_TABLE, "column_name", "ordinal_position", "position_in_unique_constraint"),
    needed=(*_TABLE, "column_name", "ordinal_position"),
)
REFERENTIAL_CONSTRAINTS = SystemView(name="referential_constraints", catalog_column="constraint_catalog")
TABLE_TAGS = SystemView(
    name="table_tags",
    catalog_column="catalog_name",
    columns=("schema_name", "table_name", "tag_name", "tag_value"),
    schema_column="schema_name",
    needed=("tag_name",),
)
COLUMN_TAGS = SystemView(
    name="column_tags",
    catalog_column="catalog_name",
    columns=("schema_name", "table_name", "column_name", "tag_name", "tag_value"),
    schema_column="schema_name",
    needed=("column_name", "tag_name"),
)
SCHEMA_TAGS = SystemView(
    name="schema_tags",
    catalog_column="catalog_name",
    columns=("schema_name", "tag_name", "tag_value"),
    schema_column="schema_name",
    needed=("tag_name",),
)
ROW_FILTERS = SystemView(name="row_filters", needed=("filter_catalog", "filter_schema", "filter_name"))
COLUMN_MASKS = SystemView(
    name="column_masks", needed=("column_name", "mask_catalog", "mask_schema", "mask_name")
)
TABLE_PRIVILEGES = SystemView(
    name="table_privileges",
    catalog_column="table_catalog",
    columns=(*_TABLE, "grantee", "privilege_type"),
    schema_column="table_schema",
    condition=_GRANTED_HERE,
    needed=("grantee", "privilege_type"),
)
SCHEMA_PRIVILEGES = SystemView(
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

OF_PARTS = (COLUMNS, TABLE_TAGS, COLUMN_TAGS, ROW_FILTERS, COLUMN_MASKS)
"""The views whose rows are read table by table; keys and privileges need more than the rows of one table."""

INFORMATION_SCHEMA: Final = "information_schema"
"""The schema of the views, which every catalog has."""

TableKey = tuple[str, str]
"""A schema's and a table's name in lower case."""


LAGGING = (
    "Run the command again in a minute, because the views of information_schema can lag. If it persists, run "
    "REPAIR TABLE … SYNC METADATA."
)
"""The way out if the views contradict other sources."""


def table_key(schema: object, table: object) -> TableKey:
    """Return the key of a table's rows; CatalogReadError if the row names no table, so that any table may lack it."""
    if schema is None or table is None:
        raise CatalogReadError("information_schema has a row without the name of a table", way_out=LAGGING)
    return str(schema).lower(), str(table).lower()


def require_whole(view: SystemView, rows: Iterable[Row], of: QualifiedName | ViewName | None = None) -> None:
    """Refuse rows of a table or a view (None: a schema) with NULL in columns that are documented to have values."""
    for row in rows:
        missing = [name for name in view.needed if row.get(name, "") is None]
        if missing:
            raise CatalogReadError(
                f"information_schema.{view.name} has an incomplete row: {', '.join(missing)} "
                f"{'is' if len(missing) == 1 else 'are'} None",
                table=str(of) if isinstance(of, QualifiedName) else None,
                securable=f"{of.kind} {of}" if isinstance(of, ViewName) else None,
                column=optional_text(row.get("column_name")),
                way_out=LAGGING,
            )


def hidden_schema(catalog: str, schema: str) -> CatalogReadError:
    """Return the refusal of a schema that SHOW SCHEMAS lists and the views do not show."""
    reason = f"schema {catalog}.{schema}: information_schema does not show it, though it exists"
    return CatalogReadError(reason, way_out=LAGGING)


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
    """Return the first of several column names that a row has; CatalogReadError if it has none of them."""
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


def tags(rows: Iterable[Row]) -> Mapping[str, str]:
    """Return tags from the rows of a view of tags."""
    return {str(row["tag_name"]): str(row["tag_value"] or "") for row in rows}


def grants(rows: Iterable[Row]) -> Grants:
    """Return privileges by principal, in its first spelling, from the rows of a view of privileges."""
    granted: dict[str, list[str]] = defaultdict(list)
    spellings: dict[str, str] = {}
    for row in rows:
        principal = str(row["grantee"])
        granted[spellings.setdefault(principal.lower(), principal)].append(str(row["privilege_type"]))
    return to_grants(granted)


_MAY_BE_RENAMED = (
    "If the catalog was renamed, ask for SELECT on system.information_schema ({reason}). If a schema is new, run it "
    "again in a minute."
)


_Existing = tuple[Mapping[str, Row], Mapping[TableKey, Row]]
"""The rows of schemas by name, and of their tables."""


class InformationSchemaReader:
    """Reads the views of one catalog, named in lower case: its own, or those of `system` after a rename."""

    def __init__(self, catalog: str, runner: SqlRunner, *, parallelism: int) -> None:
        self._catalog = catalog
        self._runner = runner
        self._parallelism = parallelism
        self._reads_system = False

    def existing(self, schemas: set[str], *, accepts_hidden: bool) -> _Existing:
        """Return the rows of existing schemas, named in lower case, and of their tables.

        A catalog's views are written when it is created, and are empty after a rename (dbt-databricks 691, 692). If
        they show none of the schemas but SHOW SCHEMAS does, this reader changes to the views of `system` for good.

        Args:
            accepts_hidden: whether the views may lack a schema that exists, because they lag.

        Raises:
            CatalogReadError: the catalog does not exist or is not visible, or its views lack an existing schema.
        """
        try:
            asked = partial(self.query, schemas=schemas)
            (_, named), (_, listed) = query_each(asked, (SCHEMATA, TABLES), min(self._parallelism, 2))
        except StatementError as error:
            if self._reads_system or not is_missing_catalog(error):
                raise
            raise self._missing_catalog() from error
        rows_by_key: _Existing = (
            {str(row["schema_name"]).lower(): row for row in named},
            {table_key(row["table_schema"], row["table_name"]): row for row in listed},
        )
        hidden = schemas - rows_by_key[0].keys()
        if not hidden or self._reads_system:
            return rows_by_key
        try:
            hidden &= self.listed_schemas()
        except StatementError as error:
            if not is_forbidden(error):
                raise
            hidden = set()
        way_out = LAGGING
        if hidden and not rows_by_key[0]:
            rows_by_key, way_out = self._existing_in_system(schemas)
        hidden -= rows_by_key[0].keys()
        if hidden and not accepts_hidden:
            names = ", ".join(sorted(hidden))
            reason = f"the information_schema of catalog {self._catalog!r} does not show what exists there: {names}"
            raise CatalogReadError(reason, way_out=way_out)
        return rows_by_key

    def query(self, view: SystemView, schemas: Collection[str]) -> Sequence[Row]:
        """Return the rows of a view about some schemas."""
        if not self._reads_system:
            return self._runner.run(view.query(self._catalog, schemas))
        rows = self._runner.run(view.query_everywhere(self._catalog, schemas))
        if view.catalog_column or not rows:
            return rows
        column = spelling(rows[0], "table_catalog", "catalog_name")
        return [row for row in rows if str(row[column]).lower() == self._catalog]

    def usage_elsewhere(self, catalog: str) -> Sequence[Row]:
        """Return another catalog's own `key_column_usage`; CatalogReadError if that catalog cannot be read."""
        try:
            return self._runner.run(KEY_COLUMN_USAGE.query(catalog, ()))
        except StatementError as error:
            require_answers(error, f"catalog {catalog}")
            reason = f"{catalog!r} cannot be read ({error.first_line.rstrip('.')})"
            raise CatalogReadError(reason) from error

    def _existing_in_system(self, schemas: set[str]) -> tuple[_Existing, str]:
        """Change to the views of `system` if they are readable; return what they show, and the way out if they lag."""
        self._reads_system = True
        try:
            return self.existing(schemas, accepts_hidden=True), LAGGING
        except StatementError as error:
            if not is_forbidden(error) and not is_missing_table(error):
                raise
            self._reads_system = False
            return ({}, {}), _MAY_BE_RENAMED.format(reason=error.first_line)

    def listed_schemas(self) -> set[str]:
        """Return the schemas that SHOW SCHEMAS lists, in lower case; CatalogReadError if the catalog does not exist."""
        try:
            rows = self._runner.run(sql_show_schemas(self._catalog))
        except StatementError as error:
            if not (is_missing_catalog(error) or is_missing_schema(error)):
                raise
            raise self._missing_catalog() from error
        return {name.lower() for name in listed_schemas(rows)}

    def _missing_catalog(self) -> CatalogReadError:
        return CatalogReadError(
            f"catalog {self._catalog!r} does not exist or is not visible to you",
            way_out="Create it, ask for USE CATALOG on it, or correct the variable that names it.",
        )

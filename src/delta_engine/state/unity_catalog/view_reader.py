"""Queries the `information_schema` views of one catalog: its own, or those of `system` if the catalog was renamed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from delta_engine.backends.error_conditions import (
    is_forbidden,
    is_missing_catalog,
    is_missing_schema,
    is_missing_table,
)
from delta_engine.backends.sql_runner import Row, SqlRunner, query_threads
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.sql.queries import sql_show_schemas
from delta_engine.state.catalog_reader import listed_schemas
from delta_engine.state.unity_catalog.information_schema import (
    KEY_COLUMN_USAGE,
    LAGGING,
    SCHEMATA,
    TABLES,
    TableKey,
    View,
    in_catalog,
    table_key,
)

_MAY_BE_RENAMED = (
    "If the catalog was renamed, ask for SELECT on system.information_schema ({reason}). If a schema is new, run it "
    "again in a minute."
)

Existing = tuple[Mapping[str, Row], Mapping[TableKey, Row]]
"""The rows of schemas by name, and of their tables."""


class ViewReader:
    """Reads the views of one catalog, named in lower case."""

    def __init__(self, catalog: str, runner: SqlRunner, *, parallelism: int) -> None:
        self._catalog = catalog
        self._runner = runner
        self._parallelism = parallelism
        self._reads_system = False

    def existing(self, schemas: set[str], *, accepts_hidden: bool) -> Existing:
        """Return the rows of existing schemas, named in lower case, and of their tables.

        A catalog's views are written when it is created, and are empty after a rename (dbt-databricks 691, 692). If
        they show none of the schemas but SHOW SCHEMAS does, this reader changes to the views of `system` for good.

        Args:
            accepts_hidden: whether the views may lack a schema that exists, because they lag.

        Raises:
            CatalogReadError: the catalog does not exist or is not visible, or its views lack an existing schema.
        """
        found = self._existing(schemas)
        unseen = schemas - found[0].keys()
        hidden = unseen & self._listed_schemas() if unseen else unseen
        way_out = LAGGING
        if hidden and not found[0]:
            try:
                self._reads_system = True
                found = self._existing(schemas)
            except StatementError as error:
                if not is_forbidden(error) and not is_missing_table(error):
                    raise
                self._reads_system = False
                way_out = _MAY_BE_RENAMED.format(reason=error.first_line)
        hidden -= found[0].keys()
        if hidden and not accepts_hidden:
            names = ", ".join(sorted(hidden))
            raise CatalogReadError(
                f"the information_schema of catalog {self._catalog!r} does not show what exists there: {names}",
                way_out=way_out,
            )
        return found

    def query(self, view: View, schemas: Collection[str]) -> Sequence[Row]:
        """Return the rows of a view about some schemas."""
        if not self._reads_system:
            return self._runner.run(view.query(self._catalog, schemas))
        rows = self._runner.run(view.query_everywhere(self._catalog, schemas))
        return in_catalog(view, rows, self._catalog)

    def usage_elsewhere(self, catalog: str) -> Sequence[Row]:
        """Return another catalog's own `key_column_usage`; CatalogReadError if the catalog is missing or forbidden."""
        try:
            return self._runner.run(KEY_COLUMN_USAGE.query(catalog, ()))
        except StatementError as error:
            is_hidden = is_missing_catalog(error) or is_missing_schema(error) or is_missing_table(error)
            if not is_forbidden(error) and not is_hidden:
                raise
            reason = f"{catalog!r} may not be read ({error.first_line.rstrip('.')})"
            raise CatalogReadError(reason) from error

    def _existing(self, schemas: set[str]) -> Existing:
        with query_threads(min(self._parallelism, 2)) as pool:
            schemata = pool.submit(self._schemata, schemas)
            tables = pool.submit(self.query, TABLES, schemas)
            by_name = schemata.result()
            rows = tables.result()
        return by_name, {table_key(row["table_schema"], row["table_name"]): row for row in rows}

    def _schemata(self, schemas: set[str]) -> Mapping[str, Row]:
        try:
            rows = self.query(SCHEMATA, schemas)
        except StatementError as error:
            if self._reads_system or not is_missing_catalog(error):
                raise
            raise CatalogReadError(
                f"catalog {self._catalog!r} does not exist or is not visible to you",
                way_out="Create it, ask for USE CATALOG on it, or correct the variable that names it.",
            ) from error
        return {str(row["schema_name"]).lower(): row for row in rows}

    def _listed_schemas(self) -> set[str]:
        try:
            rows = self._runner.run(sql_show_schemas(self._catalog))
        except StatementError as error:
            if not is_forbidden(error):
                raise
            return set()
        return {name.lower() for name in listed_schemas(rows)}

"""Reads the definitions of views from `information_schema.views` (docs: "VIEWS")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from delta_engine.backends.sql_runner import NO_ROWS, SqlRunner
from delta_engine.models import QualifiedName, SchemaName
from delta_engine.sql.queries import sql_information_schema
from delta_engine.sql.text import sql_literal


@dataclass(frozen=True, slots=True)
class ViewDefinitionReader:
    """Reads the views of schemas: one query for each catalog."""

    runner: SqlRunner

    def read(self, schemas: Iterable[SchemaName]) -> Mapping[QualifiedName, str | None]:
        """Return the queries of the views, sorted by name, None for hidden ones; raises StatementError."""
        queries: dict[QualifiedName, str | None] = {}
        for catalog, group in groupby(
            sorted({*schemas}, key=lambda schema: schema.key), key=lambda schema: schema.catalog
        ):
            names = ", ".join(sql_literal(schema.schema.lower()) for schema in group)
            sql = sql_information_schema(
                catalog,
                "views",
                ("table_schema", "table_name", "view_definition"),
                [f"table_schema IN ({names})"],
            )
            for row in self.runner.run(sql):
                name = QualifiedName(catalog, str(row["table_schema"]), str(row["table_name"]))
                query = row["view_definition"]
                queries[name] = None if query is None else str(query)
        return dict(sorted(queries.items(), key=lambda view: view[0].key))


NO_VIEWS: Final = ViewDefinitionReader(NO_ROWS)
"""The views of catalogs that list none."""

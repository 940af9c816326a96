"""A platform for conformance runs: Unity Catalog in memory, with functions and a table for MERGE."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from databricks.sdk.service.catalog import TableInfo

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError
from tests.fakes.governance_api import as_table_info
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.fakes.unity_catalog.views import storage_path
from tests.fakes.warehouse_sql import SmallTables

USER = "ann@example.com"
TARGET = "dev.scratch"

_SCHEMA = re.compile(r"DROP SCHEMA IF EXISTS `(\w+)`\.`(\w+)` RESTRICT")
_SMALL = re.compile(r"`[^`]*_merge`")


@dataclass
class ConformancePlatform:
    """Runs the statements of a conformance run.

    Args:
        catalog: holds the tables.
        faults: called before each statement; one that raises refuses it.
        statements: everything that was sent.
    """

    catalog: FakeUnityCatalog = field(default_factory=lambda: FakeUnityCatalog([TARGET]))
    faults: list[Callable[[str], None]] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    small: SmallTables = field(default_factory=SmallTables)

    def run(self, sql: str) -> Sequence[Row]:
        self.statements.append(sql)
        for fault in self.faults:
            fault(sql)
        if "information_schema" in sql and not sql.startswith("SELECT"):
            raise StatementError(
                "it is read-only", sql=sql, error_class="INSUFFICIENT_PERMISSIONS", sql_state="42501"
            )
        if match := _SCHEMA.match(sql):
            self.catalog.schemas.pop(f"{match[1]}.{match[2]}", None)
            return ()
        if _SMALL.search(sql):
            return () if sql.startswith("DROP") else self.small.run(sql)
        return self.catalog.run(sql)

    def leftovers(self) -> list[str]:
        """Return the scratch objects that are there, and the tables beside them."""
        schemas = [name for name in self.catalog.schemas if name != TARGET]
        policies = [policy.name for policy in self.catalog.policies]
        views = sorted(self.catalog.user_views)
        return [*self.catalog.tables, *views, *sorted(self.catalog.functions), *policies, *schemas]

    def list(
        self, catalog_name: str, schema_name: str, *, include_browse: bool | None = None
    ) -> Iterator[Any]:
        """Return the tables of a schema as databricks-sdk lists them, without their columns, and its views."""
        for key, (view, is_owner) in self.catalog._shown_views().items():
            if key.startswith(f"{catalog_name}.{schema_name}."):
                yield TableInfo.from_dict({**as_table_info(view, is_owner=is_owner)})
        for stored in self.catalog.tables.values():
            if (stored.name.catalog, stored.name.schema) == (catalog_name, schema_name):
                yield SimpleNamespace(
                    catalog_name=catalog_name,
                    schema_name=schema_name,
                    name=stored.name.table,
                    table_type=SimpleNamespace(value="EXTERNAL" if stored.state.location else "MANAGED"),
                    storage_location=storage_path(stored),
                    properties=None,
                    columns=None,
                    browse_only=None,
                )

"""Describes tables in SQL, one by one: without databricks-sdk, and right after a change.

One statement per table if the platform supports `DESCRIBE TABLE EXTENDED … AS JSON` (Databricks Runtime 16.2 and later,
serverless, SQL warehouses), otherwise two. Tables with generated or identity columns, which the JSON lacks, also need
SHOW CREATE TABLE. No runtime has JSON for foreign tables, and some have none for streaming tables
(github.com/databricks/dbt-databricks, issues 1115 and 1128).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.error_conditions import (
    is_forbidden,
    is_missing_table,
    is_unsupported,
    is_unsupported_for_its_kind,
)
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models import Column, QualifiedName
from delta_engine.sql.queries import (
    sql_describe_as_json,
    sql_show_create_table,
    sql_show_table_properties,
)
from delta_engine.state.states import TableState
from delta_engine.state.unity_catalog.create_statement import declaration
from delta_engine.state.unity_catalog.table_details import (
    Answer,
    DetailsQuery,
    TableDetails,
    has_old_protocol,
    has_undescribed_columns,
    parse_description,
    with_properties,
)


class DescribedDetailsReader:
    """Describes tables in SQL."""

    def __init__(self, runner: SqlRunner) -> None:
        self._runner = runner
        self._knows_json = True

    def queries(self, tables: Sequence[QualifiedName]) -> Sequence[DetailsQuery]:
        """Return one query per table; see `TableDetailsReader.queries`."""
        return [partial(self._ask, table) for table in tables]

    def answer(self, table: QualifiedName) -> Answer:
        """Describe one table; StatementError if the platform refuses for a reason other than the table."""
        try:
            return self._described(table)
        except CatalogReadError as refusal:
            return refusal
        except StatementError as error:
            if is_missing_table(error):
                return None
            if not is_forbidden(error):
                raise
            return CatalogReadError(
                f"its description may not be read: {error.first_line}",
                table=str(table),
                way_out="Ask for SELECT on it.",
            )

    def _ask(self, table: QualifiedName) -> Mapping[str, Answer]:
        return {table.key: self.answer(table)}

    def _described(self, table: QualifiedName) -> TableDetails:
        if not self._knows_json:
            return self._shown(table)
        try:
            document = self._first(sql_describe_as_json, table)
        except StatementError as error:
            if not is_unsupported(error):
                raise
            self._knows_json = is_unsupported_for_its_kind(error)
            return self._shown(table)
        details = parse_description(table, document)
        if has_undescribed_columns(details.state) or has_old_protocol(details.state):
            columns = self._with_computed_columns(table, details.state.columns)
            return replace(details, state=replace(details.state, columns=columns))
        return details

    def _with_computed_columns(self, table: QualifiedName, columns: Sequence[Column]) -> tuple[Column, ...]:
        statement = self._first(sql_show_create_table, table)
        declared = declaration(table, statement, knows_policies=True)
        computed = {column.key: column for column in declared.columns}
        if computed.keys() != {column.key for column in columns}:
            raise CatalogReadError(
                "its columns changed while it was read", table=str(table), way_out="Run it again."
            )
        pairs = [(column, computed[column.key]) for column in columns]
        return tuple(
            replace(column, generated_as=other.generated_as, identity=other.identity)
            for column, other in pairs
        )

    def _shown(self, table: QualifiedName) -> TableDetails:
        """Read a table without JSON; the views have its owner and location."""
        rows = self._runner.run(sql_show_table_properties(CatalogAddressing().table(table)))
        declared = declaration(table, self._first(sql_show_create_table, table))
        state = TableState(
            columns=declared.columns,
            table_comment=declared.comment,
            partitioned_by=declared.partitioned_by,
        )
        properties = {str(row["key"]): str(row["value"]) for row in rows}
        return TableDetails(state=with_properties(state, properties))

    def _first(self, statement: Callable[[str], str], table: QualifiedName) -> str:
        rows: Sequence[Row] = self._runner.run(statement(CatalogAddressing().table(table)))
        for row in rows:
            for value in row.values():
                return str(value)
        raise CatalogReadError(
            "the platform returned an empty description", table=str(table), way_out="Run it again."
        )

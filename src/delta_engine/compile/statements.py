"""The statements of one table or schema, with their actions; the aspects spell them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from delta_engine import aspects
from delta_engine.actions import Action, AlignSchema, AlignTable, CreateSchema, CreateTable, DropTable, Phase
from delta_engine.aspects.aspect import CreateClauses, RenderContext, SchemaContext
from delta_engine.backends.addressing import Addressing
from delta_engine.backends.capabilities import Capabilities, InlineClustering
from delta_engine.compile.compiled_plan import Statement
from delta_engine.models import SchemaName
from delta_engine.sql.tables import (
    sql_alter_clustering,
    sql_create_table,
    sql_drop_table,
    sql_on_streaming_table,
)

_LAST_OF_BMP = 0xFFFF


@dataclass(frozen=True, slots=True)
class Renderer:
    """Renders plan actions as statements of one platform."""

    addressing: Addressing
    capabilities: Capabilities

    def schema_creation(self, create: CreateSchema) -> tuple[Statement, ...]:
        """Return CREATE SCHEMA; empty on platforms where a schema is a folder."""
        sql = self.addressing.create_schema(create.catalog_name, create.schema_name, create.comment)
        return () if sql is None else (Statement(sql=sql, actions=(create,)),)

    def schema_alignment(self, align: AlignSchema) -> Iterator[Statement]:
        """Yield the statements that change a schema, in the order of their phases."""
        name = SchemaName(align.catalog_name, align.schema_name)
        yield from _statements(aspects.render(align, SchemaContext(name)))

    def table_creation(self, create: CreateTable) -> Iterator[Statement]:
        """Yield CREATE TABLE with everything that it can express, so that no table is half created, then the rest."""
        context = RenderContext(create.table, self.addressing, self.capabilities)
        clauses = aspects.create_clauses(create.desired, context)
        whole = _create_table(context.table, clauses)
        if not clauses.cluster_by or self._takes_clustering(whole):
            yield Statement(sql=whole, actions=(create,))
            return
        actions = (create,)
        unclustered = _create_table(context.table, replace(clauses, cluster_by=()))
        clustering = sql_alter_clustering(context.table, clauses.cluster_by)
        yield Statement(sql=unclustered, actions=actions)
        yield Statement(sql=clustering, actions=actions, phase=Phase.CHANGE_CLUSTERING)

    def table_alignment(self, align: AlignTable) -> Iterator[Statement]:
        """Yield the statements that change a table, in the order of their phases."""
        context = RenderContext(align.table, self.addressing, self.capabilities, align.is_streaming)
        for statement in _statements(aspects.render(align, context)):
            if align.is_streaming:
                yield replace(statement, sql=sql_on_streaming_table(statement.sql))
            else:
                yield statement

    def table_drop(self, drop: DropTable) -> Statement:
        """Return DROP TABLE."""
        return Statement(sql=sql_drop_table(self.addressing.table(drop.table)), actions=(drop,))

    def _takes_clustering(self, sql: str) -> bool:
        is_plain = all(ord(char) <= _LAST_OF_BMP for char in sql)
        return is_plain or self.capabilities.inline_clustering is InlineClustering.ANYWHERE


def _statements(rendered: Iterable[tuple[Sequence[Action], str]]) -> Iterator[Statement]:
    for actions, sql in rendered:
        yield Statement(sql=sql, actions=tuple(actions), phase=actions[0].phase)


def _create_table(table: str, clauses: CreateClauses) -> str:
    return sql_create_table(
        table,
        columns=clauses.columns,
        constraints=clauses.constraints,
        comment=clauses.comment,
        properties=clauses.properties,
        clauses=clauses.clauses,
        cluster_by=clauses.cluster_by,
    )

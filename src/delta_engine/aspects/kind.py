"""What a kind of securable is, as data, and how CREATE and DROP of each kind are spelled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from delta_engine.actions import Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, CreateClauses, RenderContext, Requirement, Right
from delta_engine.aspects.facet import Facet
from delta_engine.backends.capabilities import InlineClustering
from delta_engine.models import (
    PolicyName,
    Schema,
    SchemaName,
    Securable,
    SecurableName,
)
from delta_engine.sql.tables import (
    sql_alter_clustering,
    sql_create_schema,
    sql_create_table,
)
from delta_engine.state.states import SecurableState

CreateStatement: TypeAlias = tuple[Phase | None, str]
"""A statement of a creation, with the phase of one that follows CREATE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of securable.

    Args:
        name: the type of its names, whose `kind` is its word.
        named_by: the fields of a model that name it and are no facets, by their keys in documents.
        facets: what a model says of it, in the order in which model files have it.
        column_facets: what a model says of its columns besides name and type, in that order.
        aspects: how its parts are compared and changed.
        created: the state of one that its CREATE statement has just made.
        stated: the state of one that is exactly as its model declares it.
        create: spells CREATE with everything that it can express.
        drop: spells DROP; None for a kind that is never dropped.
        create_right: the requirement of CREATE.
        drop_right: the requirement of DROP; None for a kind that is never dropped.
        needs: what a model needs besides the securables that it is in; tables have their foreign keys for that.
        shown_by: the rights on the parent that show all of them in it, also one that is not there.
        drift_kinds: the kinds of drift that shared aspects report for it.
        is_repeatable: whether any of its statements may run again after an ambiguous error.
    """

    name: type[SecurableName]
    named_by: Mapping[str, str]
    model: type[Securable]
    state: type[SecurableState]
    facets: tuple[Facet[Any, Any, Any], ...]
    aspects: tuple[Aspect[Any, Any, Any], ...]
    created: Callable[[Any], SecurableState]
    stated: Callable[[Any], SecurableState]
    create: Callable[[Any, RenderContext[Any]], Iterable[CreateStatement]]
    drop: Callable[[RenderContext[Any]], str] | None = None
    column_facets: tuple[Facet[Any, Any, Any], ...] = ()
    create_right: Requirement
    drop_right: Requirement | None = None
    shown_by: tuple[Right, ...]
    needs: Callable[[Any], Iterable[SecurableName]] = lambda _model: ()
    drift_kinds: Mapping[DriftKind, DriftKind] = field(default_factory=dict)
    is_repeatable: bool = False

    @property
    def word(self) -> str:
        """What it is called in keys, messages and documents."""
        return self.name.kind

    def named(self, text: str) -> SecurableName:
        """Return the name of an id in documents, or of a key; TypeError or ValueError for another text."""
        if self.name is PolicyName:
            return PolicyName.of_key(text)
        name: Any = self.name
        named: SecurableName = name(*text.split("."))
        return named

    @property
    def definition(self) -> tuple[str, ...]:
        """The fields of a model that one statement replaces as a whole."""
        return tuple(name for aspect in self.aspects for name in aspect.definition)


def takes_drop(word: str) -> Requirement:
    """Return the requirement of the DROP statement of what is in a schema."""
    return Requirement(
        statement=f"DROP {word.upper()}",
        right=Right.MANAGE,
        demands=f"ownership of the {word}, its schema or its catalog, or `MANAGE`",
        source=f"DROP {word.upper()}",
        owners_above=True,
    )


def create_schema(desired: Schema, context: RenderContext[SchemaName]) -> Iterator[CreateStatement]:
    """Yield CREATE SCHEMA; nothing on platforms where a schema is a folder."""
    if context.addressing.has_schemas:
        yield None, sql_create_schema(*context.name.parts, desired.comment or "")


def create_table(clauses: CreateClauses, context: RenderContext) -> Iterator[CreateStatement]:
    """Yield CREATE TABLE with everything that it can express, so that no table is half created, then the rest."""
    whole = _create_table(context.table, clauses)
    if not clauses.cluster_by or _takes_clustering(whole, context):
        yield None, whole
        return
    yield None, _create_table(context.table, replace(clauses, cluster_by=()))
    yield Phase.CHANGE_CLUSTERING, sql_alter_clustering(context.table, clauses.cluster_by)


_LAST_OF_BMP: Final = 0xFFFF


def _takes_clustering(sql: str, context: RenderContext) -> bool:
    is_plain = all(ord(char) <= _LAST_OF_BMP for char in sql)
    return is_plain or context.capabilities.inline_clustering is InlineClustering.ANYWHERE


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

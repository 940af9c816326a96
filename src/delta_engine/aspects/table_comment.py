"""The comment of a table or schema. Empty means none, and keeps a comment that a table's baseline has.

None in a schema's model means unmanaged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import (
    Aspect,
    CreateClauses,
    SchemaAspect,
    ValueAction,
    takes_manage,
    takes_modify,
    value_aspect,
)
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.facet import OPTIONAL_TEXT, TEXT, Facet
from delta_engine.models import Part, Schema, Table
from delta_engine.sql.tables import sql_set_comment
from delta_engine.state.states import SchemaState, TableState


class SetTableComment(ValueAction[str, str]):
    """Set or clear the table's comment."""

    __slots__ = ()
    phase: ClassVar[Phase] = Phase.SET_TABLE_COMMENT
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE


class SetSchemaComment(ValueAction[str, str]):
    """Set or clear the schema's comment."""

    __slots__ = ()
    phase: ClassVar[Phase] = Phase.SET_TABLE_COMMENT
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE


def _diff(comparison: Comparison) -> Iterable[SetTableComment]:
    desired, observed = comparison.desired.comment, comparison.observed.table_comment
    if desired != observed and (desired or comparison.clears(lambda model: model.comment)):
        yield SetTableComment(desired, observed)


FACET: Facet[Table, TableState, str] = Facet(
    key="comment",
    declared=lambda model: model.comment,
    absent="",
    form=TEXT,
    meaning="the table's comment; empty means none",
    observed=lambda table: table.table_comment,
    is_always_recorded=True,
    part=Part.COMMENTS,
    title="comments",
)

SCHEMA_FACET: Facet[Schema, SchemaState, str | None] = Facet(
    key="comment",
    declared=lambda model: model.comment,
    observed=lambda state: state.comment,
    absent=None,
    form=OPTIONAL_TEXT,
    meaning="the schema's comment; empty clears it",
    default="unmanaged",
    imported=lambda _name, schema: schema.comment or None,
)

ASPECT: Aspect[SetTableComment] = value_aspect(
    SetTableComment,
    FACET,
    takes_modify("COMMENT ON TABLE", "COMMENT ON"),
    name="table comment",
    diff=_diff,
    statement=sql_set_comment,
    drift_kind=DriftKind.TABLE_COMMENT,
    create=lambda desired: CreateClauses(comment=desired.comment),
)

SCHEMA_ASPECT: SchemaAspect[SetSchemaComment] = value_aspect(
    SetSchemaComment,
    SCHEMA_FACET,
    takes_manage("COMMENT ON SCHEMA", "COMMENT ON"),
    name="schema comment",
    statement=sql_set_comment,
    drift_kind=DriftKind.SCHEMA_COMMENT,
)

"""Generated and identity columns, fixed by CREATE TABLE. Actions here have no statement: a rule refuses them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, TypeAlias

from delta_engine.actions import Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, ColumnValueAction
from delta_engine.aspects.changed_models import with_column
from delta_engine.aspects.comparison import Comparison, lost_places, retyped_places
from delta_engine.aspects.facet import OPTIONAL_TEXT, Facet, Form, Place, written_part
from delta_engine.backends.capabilities import Feature
from delta_engine.models import Column, Identity, Part, Table
from delta_engine.models.nested_types import Widening, widening
from delta_engine.models.open_struct import OpenStruct
from delta_engine.sql.columns import sql_generation
from delta_engine.sql.expressions import is_same_expression, reads
from delta_engine.state.states import TableState


class ChangeGeneration(ColumnValueAction[str | Identity | None, str | Identity | None]):
    """Change the source of column values, which no platform does. None stands for values from writers."""

    __slots__ = ()
    phase: ClassVar[Phase] = Phase.CHANGE_DEFAULTS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.REWRITES_DATA,)

    def is_no_op(self) -> bool:
        """Whether the values come from the same source."""
        return _is_same(self.desired, self.observed)


@dataclass(frozen=True, slots=True)
class ChangeFixedColumn:
    """Change a column that its own or another column's generation fixes, which no platform does.

    Args:
        name: the column, or the path of a field inside one, by the present names.
        used_by: the generated column that reads it, or itself if it is generated; None for an identity column.
    """

    phase: ClassVar[Phase] = Phase.CHANGE_DEFAULTS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.REWRITES_DATA,)
    name: str
    used_by: str | None = None


_Action: TypeAlias = ChangeGeneration | ChangeFixedColumn


def _differences(comparison: Comparison) -> Iterator[ChangeGeneration]:
    """Yield the differences of the shared columns. The drop of a column covers its generation."""
    added = {column.key for column in comparison.added}
    yield from (action for action in _changes(comparison) if action.name.lower() not in added)


def _changes(comparison: Comparison) -> Iterator[ChangeGeneration]:
    """Yield the columns, new ones included, with another source of values."""
    if not comparison.desired.is_about(Part.COLUMNS):
        return
    for desired, observed in comparison.differing_or_new:
        if desired.identity == observed.identity and desired.generated_as == observed.generated_as:
            continue
        if not _is_same(_generation(desired), _generation(observed)):
            yield ChangeGeneration(observed.name, _generation(desired), _generation(observed))


def _diff(comparison: Comparison) -> Iterator[_Action]:
    """Yield the differences and every change of fixed columns: ALTER COLUMN cannot even comment identity columns."""
    yield from _changes(comparison)
    model = comparison.desired
    changed_types = {pair.path[0].lower() for pair in comparison.types}
    counted_up = [pair for pair in comparison.differing if pair[1].identity is not None]
    for desired, observed in counted_up:
        if (
            observed.key in changed_types
            or (desired.is_nullable != observed.is_nullable and model.is_about(Part.COLUMNS))
            or (desired.comment != observed.comment and model.is_about(Part.COMMENTS))
        ):
            yield ChangeFixedColumn(observed.name)
    if comparison.has_equal_structure:
        return
    touched = sorted({*lost_places(comparison), *retyped_places(comparison)})
    gone = {column.key for column in comparison.dropped}
    widened = {
        pair.path[0].lower()
        for pair in comparison.types
        if widening(pair.observed, pair.desired) is not Widening.NOTHING
    }
    for column in comparison.observed.columns:
        if column.generated_as is None or column.key in gone:
            continue
        if column.key in widened:
            yield ChangeFixedColumn(column.name, column.name)
        for path in touched:
            if reads(column.generated_as, path):
                yield ChangeFixedColumn(".".join(path), column.name)


def _explain(action: _Action) -> Iterable[Change]:
    match action:
        case ChangeGeneration(name, desired, observed):
            yield Change(f"column {name} generation", described(observed), described(desired))
        case ChangeFixedColumn(name, None):
            yield Change(f"column {name}", "an identity column", "another one")
        case ChangeFixedColumn(name, used_by):
            reason = "a generated column" if used_by == name else f"column {used_by} is computed from it"
            yield Change(f"column {name}", reason, "another one")


def _accept(model: Table, _observed: TableState, action: _Action) -> Table:
    if isinstance(action, ChangeFixedColumn):
        return model
    source = action.observed
    identity, generated_as = (source, None) if isinstance(source, Identity) else (None, source)
    change = partial(replace, identity=identity, generated_as=generated_as)
    return with_column(model, action.name, change)


def described(generation: str | Identity | None) -> str:
    """Return the source of values in SQL."""
    if isinstance(generation, Identity):
        return sql_generation(None, generation)
    return "written values" if generation is None else sql_generation(generation, None)


def _is_same(source: str | Identity | None, other: str | Identity | None) -> bool:
    if isinstance(source, str) and isinstance(other, str):
        return is_same_expression(source, other)
    return source == other


def _generation(column: Column) -> str | Identity | None:
    return column.identity or column.generated_as


class IdentityDefinition(OpenStruct, frozen=True, kw_only=True):
    """How values are counted up."""

    start: int
    step: int
    always: bool


def _read_identity(place: Place, identity: bool | str | Identity | None) -> Identity | None:
    if isinstance(identity, str):
        raise place.error(
            f"identity must be true, or a mapping with start, step and always, not {identity!r}",
            "Write true.",
        )
    return Identity() if identity is True else identity or None


GENERATED_FACET: Facet[Column, Column, str | None] = Facet(
    key="generated_as",
    declared=lambda model: model.generated_as,
    observed=lambda state: state.generated_as,
    absent=None,
    form=OPTIONAL_TEXT,
    meaning="the SQL expression that computes the values; at creation only",
    part=Part.COLUMNS,
    title="generated columns",
    feature=Feature.GENERATED_COLUMNS,
)

IDENTITY_FACET: Facet[Column, Column, Identity | None] = Facet(
    key="identity",
    declared=lambda model: model.identity,
    observed=lambda state: state.identity,
    absent=None,
    form=Form(
        recorded_type=IdentityDefinition | None,
        encode=lambda identity: (
            identity and IdentityDefinition(start=identity.start, step=identity.step, always=identity.always)
        ),
        decode=lambda identity: identity and Identity(identity.start, identity.step, identity.always),
        written_type=bool | str | Identity | None,
        read=_read_identity,
        write=lambda identity: None if identity is None else written_part(identity) or True,
        words="`true` or mapping",
        schema={"anyOf": [{"type": ["boolean", "null"]}, {"$ref": "#/$defs/Identity"}]},
    ),
    meaning="the platform numbers the rows: `start`, `step` (1 each), `always` (`true`); at creation only. It "
    "disables [concurrent transactions](https://docs.databricks.com/aws/en/sql/language-manual/"
    "sql-ref-syntax-ddl-create-table-using) on the table",
    constructor="Identity",
    part=Part.COLUMNS,
    title="generated columns",
    feature=Feature.IDENTITY_COLUMNS,
)

ASPECT: Aspect[_Action] = Aspect(
    name="generated columns",
    part=None,
    actions={ChangeGeneration: None, ChangeFixedColumn: None},
    diff=_diff,
    differences=_differences,
    explain=_explain,
    accept=_accept,
    drift_kind=lambda _action: DriftKind.COLUMN_GENERATION,
    is_of_columns=True,
)

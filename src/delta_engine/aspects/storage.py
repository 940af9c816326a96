"""Where the files of a table lie. CREATE TABLE sets the location.

An external table becomes a managed one by SET MANAGED, which copies the files while writers go on, moves the commits
that they add meanwhile, and keeps name, history, rights and settings. UNSET MANAGED returns it to its former location,
within 14 days (docs: "Convert an external table to a managed Unity Catalog table"). A rule refuses every other change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, TypeAlias

from delta_engine.actions import Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import (
    Aspect,
    Change,
    CreateClauses,
    RenderContext,
    ValueAction,
    takes_ownership,
)
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.facet import FILLED_TEXT, Facet
from delta_engine.aspects.protection import protection
from delta_engine.backends.capabilities import Feature
from delta_engine.models import Part, Table
from delta_engine.sql.tables import sql_location, sql_set_managed, sql_unset_managed
from delta_engine.state.states import TableState

_OTHER_NAMES = {"s3a": "s3", "s3n": "s3", "dbfs": "", "file": ""}
"""Schemes that mean another one; files of no scheme are on Databricks' file system, or on that of a local Spark."""

RETURNS_FOR_DAYS: Final = 14
"""How long UNSET MANAGED returns a table to its former location."""

_ICEBERG_READS: Final = "delta.universalFormat.enabledFormats"


class ChangeLocation(ValueAction[str | None, str | None]):
    """Move the files of a table to another location, which no platform does. None is a managed table."""

    __slots__ = ()
    phase: ClassVar[Phase] = Phase.CHANGE_CLUSTERING
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.REWRITES_DATA,)

    def is_no_op(self) -> bool:
        """Whether the files are there already."""
        return is_same_location(self.desired, self.observed)


@dataclass(frozen=True, slots=True)
class SetManaged:
    """Make a managed table of an external one.

    Args:
        observed: the location of the external table.
        problem: why it cannot become one; empty if it can. A rule refuses it.
        way_out: what to do about that.
    """

    phase: ClassVar[Phase] = Phase.MOVE_FILES
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.REWRITES_DATA, Hazard.LOCKS, Hazard.BREAKS_READERS)
    observed: str
    problem: str = ""
    way_out: str = ""


@dataclass(frozen=True, slots=True)
class UnsetManaged:
    """Return a table to the location that it had before `SetManaged`. Only an undo plans it."""

    phase: ClassVar[Phase] = Phase.RETURN_FILES
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.LOCKS, Hazard.BREAKS_READERS)
    desired: str


_Action: TypeAlias = ChangeLocation | SetManaged | UnsetManaged


def is_moved(observed: TableState, attempted: Sequence[Table], declared: Table | None) -> bool:
    """Whether an unfinished run has moved a table: its files are where the run attempted, and not where they were.

    Args:
        attempted: the models of unfinished runs.
        declared: what was applied before.
    """
    is_attempted = any(is_same_location(model.location, observed.location) for model in attempted)
    return (
        is_attempted and declared is not None and not is_same_location(declared.location, observed.location)
    )


def is_same_location(location: str | None, other: str | None) -> bool:
    """Whether two locations are equal, ignoring case and aliases of the scheme, and trailing slashes."""
    if location is None or other is None:
        return location is other
    return _normal_form(location) == _normal_form(other)


def described_location(location: str | None) -> str:
    """Return the text of a location for reports."""
    return "managed by the catalog" if location is None else location


def _diff(comparison: Comparison) -> Iterable[_Action]:
    desired, observed = comparison.desired.location, comparison.observed.location
    if is_same_location(desired, observed):
        return
    if desired is None and observed is not None:
        yield SetManaged(observed, *next(_problems(comparison), ("", "")))
    else:
        yield ChangeLocation(desired, observed)


def _problems(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield each reason against SET MANAGED, with the way out."""
    set_managed = sql_set_managed(str(comparison.desired.qualified_name))
    if obstacle := protection(comparison):
        reason, fix = obstacle
        yield reason, f"Run {set_managed} by hand, and sync again. Or: {fix}"
    if comparison.observed.table_properties.get(_ICEBERG_READS):
        reason = "it has Iceberg reads (UniForm), whose history has to be truncated"
        yield reason, f"Run {set_managed} TRUNCATE UNIFORM HISTORY by hand, and sync again."


def _render(actions: Sequence[_Action], context: RenderContext) -> Iterable[str]:
    for action in actions:
        if isinstance(action, SetManaged):
            yield sql_set_managed(context.table)
        elif isinstance(action, UnsetManaged):
            yield sql_unset_managed(context.table)


def _explain(action: _Action) -> Iterable[Change]:
    observed, desired = sides(action)
    yield Change("location", described_location(observed), described_location(desired))


def sides(action: _Action) -> tuple[str | None, str | None]:
    """Return the observed and the desired location; None is a managed table."""
    match action:
        case SetManaged(observed):
            return observed, None
        case UnsetManaged(desired):
            return None, desired
        case ChangeLocation(desired, observed):
            return observed, desired


def _normal_form(location: str) -> tuple[str, str]:
    scheme, colon, path = location.partition(":")
    if not colon or "/" in scheme:
        scheme, path = "", location
    scheme = _OTHER_NAMES.get(scheme.lower(), scheme.lower())
    return scheme, path.rstrip("/") if scheme else "/" + path.strip("/")


LOCATION_FACET: Facet[Table, TableState, str | None] = Facet(
    key="location",
    declared=lambda model: model.location,
    observed=lambda state: state.location,
    absent=None,
    form=FILLED_TEXT,
    meaning="the folder of an external table's files; see [Data changes](data-changes.md#from-external-to-managed)",
    part=Part.COLUMNS,
    title="a location",
    feature=Feature.EXTERNAL_TABLES,
)

LOCATION: Aspect[_Action] = Aspect(
    name="location",
    part=Part.COLUMNS,
    actions={
        ChangeLocation: None,
        SetManaged: takes_ownership("ALTER TABLE … SET MANAGED"),
        UnsetManaged: takes_ownership("ALTER TABLE … UNSET MANAGED"),
    },
    diff=_diff,
    render=_render,
    explain=_explain,
    accept=lambda model, observed, _action: replace(model, location=observed.location),
    drift_kind=lambda _action: DriftKind.LOCATION,
    is_in_history=False,
    create=lambda desired, _context: CreateClauses(
        clauses=() if desired.location is None else (sql_location(desired.location),)
    ),
)

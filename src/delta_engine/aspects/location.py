"""The storage location of an external table, set by CREATE TABLE and fixed afterwards. A rule refuses a change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from delta_engine.actions import Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, Comparison, CreateClauses, RenderContext, Sign
from delta_engine.aspects.facet import FILLED_TEXT, Facet
from delta_engine.backends.capabilities import Feature
from delta_engine.models import Part, Table
from delta_engine.sql.tables import sql_location
from delta_engine.state.states import TableState

_OTHER_NAMES = {"s3a": "s3", "s3n": "s3", "dbfs": "", "file": ""}
"""Schemes that mean another one; files of no scheme are on Databricks' file system, or on that of a local Spark."""


@dataclass(frozen=True, slots=True)
class ChangeLocation:
    """Move the files of a table, which no platform does. None is a managed table."""

    phase: ClassVar[Phase] = Phase.CHANGE_CLUSTERING
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.REWRITES_DATA,)
    desired: str | None
    observed: str | None

    def __post_init__(self) -> None:
        if is_same_location(self.desired, self.observed):
            raise ValueError("the table is there already")


def diff(comparison: Comparison) -> Iterable[ChangeLocation]:
    """Yield an action if the locations differ, or if one side is managed."""
    desired, observed = comparison.desired.location, comparison.observed.location
    if not is_same_location(desired, observed):
        yield ChangeLocation(desired, observed)


def create(desired: Table, _context: RenderContext) -> CreateClauses:
    """Return the LOCATION clause."""
    location = desired.location
    return CreateClauses(clauses=() if location is None else (sql_location(location),))


def explain(action: ChangeLocation) -> Iterable[Change]:
    """Yield both locations."""
    yield Change(
        sign=Sign.CHANGED,
        subject="location",
        observed=described(action.observed),
        desired=described(action.desired),
    )


def accept(model: Table, observed: TableState, _action: ChangeLocation) -> Table:
    """Return the model with the observed location."""
    return replace(model, location=observed.location)


def described(location: str | None) -> str:
    """Return the text of a location for reports."""
    return "managed by the catalog" if location is None else location


def is_same_location(one: str | None, other: str | None) -> bool:
    """Whether two locations are equal, ignoring case and aliases of the scheme, and trailing slashes."""
    if one is None or other is None:
        return one is other
    return _normal_form(one) == _normal_form(other)


def _normal_form(location: str) -> tuple[str, str]:
    scheme, colon, path = location.partition(":")
    if not colon or "/" in scheme:
        scheme, path = "", location
    scheme = _OTHER_NAMES.get(scheme.lower(), scheme.lower())
    return scheme, path.rstrip("/") if scheme else "/" + path.strip("/")


FACET: Facet[Table, TableState, str | None] = Facet(
    key="location",
    declared=lambda table: table.location,
    absent=None,
    form=FILLED_TEXT,
    meaning="the folder of an external table's files; at creation only",
    observed=lambda table: table.location,
    part=Part.COLUMNS,
    title="a location",
    feature=Feature.EXTERNAL_TABLES,
)

ASPECT: Aspect[ChangeLocation] = Aspect(
    name="location",
    part=Part.COLUMNS,
    actions={ChangeLocation: None},
    diff=diff,
    explain=explain,
    accept=accept,
    drift_kind=lambda _action: DriftKind.LOCATION,
    create=create,
)

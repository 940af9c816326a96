"""Where the files of a table lie. CREATE TABLE sets the location, and a rule refuses a change of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from delta_engine.actions import Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, CreateClauses, value_aspect
from delta_engine.aspects.comparison import Comparison
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


def is_same_location(one: str | None, other: str | None) -> bool:
    """Whether two locations are equal, ignoring case and aliases of the scheme, and trailing slashes."""
    if one is None or other is None:
        return one is other
    return _normal_form(one) == _normal_form(other)


def described_location(location: str | None) -> str:
    """Return the text of a location for reports."""
    return "managed by the catalog" if location is None else location


def _diff_locations(comparison: Comparison) -> Iterable[ChangeLocation]:
    desired, observed = comparison.desired.location, comparison.observed.location
    if not is_same_location(desired, observed):
        yield ChangeLocation(desired, observed)


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
    meaning="the folder of an external table's files; at creation only",
    part=Part.COLUMNS,
    title="a location",
    feature=Feature.EXTERNAL_TABLES,
)

LOCATION: Aspect[ChangeLocation] = value_aspect(
    ChangeLocation,
    LOCATION_FACET,
    None,
    name="location",
    diff=_diff_locations,
    described=described_location,
    drift_kind=DriftKind.LOCATION,
    create=lambda desired: CreateClauses(
        clauses=() if desired.location is None else (sql_location(desired.location),)
    ),
)

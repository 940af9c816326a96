"""Where and how the files of a table lie: location and Hive-style partitioning.

CREATE TABLE sets both, and they are fixed afterwards. A rule refuses a change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from delta_engine.actions import Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, CreateClauses, value_aspect
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.facet import FILLED_TEXT, NAMES, Facet
from delta_engine.backends.capabilities import Feature
from delta_engine.models import Part, Table
from delta_engine.sql.tables import sql_location, sql_partitioned_by
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


@dataclass(frozen=True, slots=True)
class ChangePartitioning:
    """Partition by other columns, which no platform does."""

    phase: ClassVar[Phase] = Phase.CHANGE_CLUSTERING
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.REWRITES_DATA,)
    desired: tuple[str, ...]
    observed: tuple[str, ...]

    def __post_init__(self) -> None:
        if _keys(self.desired) == _keys(self.observed):
            raise ValueError("the table is partitioned by these columns already")


def is_same_location(one: str | None, other: str | None) -> bool:
    """Whether two locations are equal, ignoring case and aliases of the scheme, and trailing slashes."""
    if one is None or other is None:
        return one is other
    return _normal_form(one) == _normal_form(other)


def described_location(location: str | None) -> str:
    """Return the text of a location for reports."""
    return "managed by the catalog" if location is None else location


def described_partitioning(columns: tuple[str, ...]) -> str:
    """Return the text of the columns for reports."""
    return f"({', '.join(columns)})" if columns else "none"


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


def _keys(columns: tuple[str, ...]) -> list[str]:
    return [name.lower() for name in columns]


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

PARTITIONING_FACET: Facet[Table, TableState, tuple[str, ...]] = Facet(
    key="partitioned_by",
    declared=lambda model: model.partitioned_by,
    observed=lambda state: state.partitioned_by,
    absent=(),
    form=NAMES,
    meaning="the columns of Hive-style partitioning; at creation only",
    part=Part.COLUMNS,
    title="partitioned_by",
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

PARTITIONING: Aspect[ChangePartitioning] = value_aspect(
    ChangePartitioning,
    PARTITIONING_FACET,
    None,
    name="partitioning",
    is_same=lambda one, other: _keys(one) == _keys(other),
    described=described_partitioning,
    drift_kind=DriftKind.PARTITIONING,
    create=lambda desired: CreateClauses(
        clauses=(sql_partitioned_by(desired.partitioned_by),) if desired.partitioned_by else ()
    ),
)

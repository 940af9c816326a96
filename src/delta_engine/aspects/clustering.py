"""Liquid clustering. Changing it rewrites no data. Clustering of the baseline stays, but for dropped columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, CreateClauses, RenderContext, takes_ownership
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.facet import FLAG, NAMES, Facet, Place
from delta_engine.aspects.renames import place_of_key
from delta_engine.aspects.statistics import MissingStatistics, missing_statistics
from delta_engine.aspects.table_properties import statistics_properties
from delta_engine.backends.capabilities import Feature
from delta_engine.models import AUTO, Column, Part, Table
from delta_engine.models.nested_types import Path, with_field
from delta_engine.models.types import AtomicType, CharacterType, DataType, DecimalType
from delta_engine.sql.tables import sql_alter_clustering, sql_cluster_automatically
from delta_engine.state.states import TableState

_FEATURE: Final = "delta.feature.clustering"


@dataclass(frozen=True, slots=True)
class ChangeClustering:
    """Cluster by other columns, by none, or automatically. Existing data keeps its layout until OPTIMIZE runs.

    Args:
        places: the paths of `desired`: a field's name may itself have dots. By default they are columns.
        missing: the keys without statistics. A rule refuses them.
    """

    phase: ClassVar[Phase] = Phase.CHANGE_CLUSTERING
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    desired: tuple[str, ...]
    observed: tuple[str, ...]
    becomes_automatic: bool = False
    was_automatic: bool = False
    places: tuple[Path, ...] = ()
    missing: MissingStatistics | None = None

    def __post_init__(self) -> None:
        if self.desired == self.observed and self.becomes_automatic == self.was_automatic:
            raise ValueError("the table is clustered by these columns already")
        if not self.places:
            object.__setattr__(self, "places", tuple((name,) for name in self.desired))


def _diff(comparison: Comparison) -> Iterable[ChangeClustering]:
    """Yield an action if automatic clustering, the columns or their order differ."""
    desired, observed = comparison.desired, comparison.observed
    if desired.clusters_automatically and observed.clusters_automatically:
        return  # the columns are the platform's
    if not _names_any(desired) and not observed.cluster_by and not observed.clusters_automatically:
        return
    if not _names_any(desired) and not comparison.clears(_names_any):
        yield from _without_dropped(comparison)
        return
    if desired.clusters_automatically != observed.clusters_automatically or _keys(desired) != _keys(observed):
        yield ChangeClustering(
            desired.cluster_by,
            observed.cluster_by,
            desired.clusters_automatically,
            observed.clusters_automatically,
            _places(comparison, desired.cluster_by),
            _missing(comparison, desired.cluster_by),
        )


def _create(desired: Table, _context: RenderContext) -> CreateClauses:
    if desired.clusters_automatically:
        return CreateClauses(clauses=("CLUSTER BY AUTO",))
    return CreateClauses(cluster_by=tuple(place_of_key(key, desired.columns) for key in desired.cluster_by))


def _render(actions: Sequence[ChangeClustering], context: RenderContext) -> Iterable[str]:
    for action in actions:
        if action.becomes_automatic:
            yield sql_cluster_automatically(context.table)
        else:
            yield sql_alter_clustering(context.table, action.places)


def _explain(action: ChangeClustering) -> Iterable[Change]:
    observed = "automatic" if action.was_automatic else _listed(action.observed)
    desired = "automatic" if action.becomes_automatic else _listed(action.desired)
    yield Change("clustering", observed, desired)


def _accept(model: Table, observed: TableState, _action: ChangeClustering) -> Table:
    is_automatic = observed.clusters_automatically
    columns = () if is_automatic else observed.cluster_by
    return replace(model, cluster_by=columns, clusters_automatically=is_automatic)


def keys_after(comparison: Comparison) -> tuple[str, ...]:
    """Return the keys of a table after the plan; none if the platform chooses them."""
    change = next(iter(_diff(comparison)), None)
    if change is None:
        return () if comparison.observed.clusters_automatically else comparison.observed.cluster_by
    return () if change.becomes_automatic else change.desired


def keys_without_statistics(
    comparison: Comparison, keys: Sequence[str], columns: Sequence[Column]
) -> MissingStatistics | None:
    """Return the keys that have no statistics when a table has its columns in some order."""
    if not keys:
        return None
    is_managed = comparison.observed.location is None
    return missing_statistics(keys, columns, statistics_properties(comparison), is_managed=is_managed)


def was_ever_clustered(observed: TableState) -> bool:
    """Whether a table is or was clustered: its protocol keeps the feature.

    Measured on Delta 4.3.1: CLUSTER BY NONE, RESTORE and a replacement keep it, and DROP FEATURE refuses to remove it.
    """
    is_clustered = bool(observed.cluster_by) or observed.clusters_automatically
    return is_clustered or _FEATURE in observed.table_properties


def can_cluster(data_type: DataType) -> bool:
    """Whether columns of a type can cluster a table (Databricks docs, "Use liquid clustering for tables")."""
    match data_type:
        case AtomicType(name):
            return name not in ("boolean", "binary", "variant")
        case DecimalType() | CharacterType():
            return True
    return False


def _names_any(model: Table) -> bool:
    return model.clusters_automatically or bool(model.cluster_by)


def _without_dropped(comparison: Comparison) -> Iterable[ChangeClustering]:
    """Yield the removal of dropped columns and fields from unmanaged clustering: Delta refuses to drop them before."""
    observed = comparison.observed
    dropped: list[Path] = [(column.name,) for column in comparison.dropped]
    dropped += [pair.path for pair in comparison.fields if pair.desired is None]
    left = tuple(name for name in observed.cluster_by if not any(is_inside(name, path) for path in dropped))
    if not observed.clusters_automatically and left != observed.cluster_by:
        yield ChangeClustering(
            left,
            observed.cluster_by,
            places=_places(comparison, left),
            missing=_missing(comparison, left),
        )


def _missing(comparison: Comparison, keys: Sequence[str]) -> MissingStatistics | None:
    """Return the keys without statistics when the table is clustered: new columns are the last, none is dropped yet."""
    columns = {column.key: column for column in (*comparison.observed.columns, *comparison.added)}
    for pair in comparison.fields:
        if pair.observed is None and pair.desired is not None:
            whole = columns[pair.path[0].lower()]
            data_type = with_field(whole.data_type, pair.path[1:], pair.desired)
            columns[whole.key] = replace(whole, data_type=data_type)
    return keys_without_statistics(comparison, keys, tuple(columns.values()))


def _places(comparison: Comparison, keys: Sequence[str]) -> tuple[Path, ...]:
    """Return the paths of clustering keys, as the table spells what it has, and the model what is new."""
    columns = (*comparison.observed.columns, *comparison.desired.columns)
    return tuple(place_of_key(key, columns) for key in keys)


def _keys(side: Table | TableState) -> list[str]:
    return [name.lower() for name in side.cluster_by]


def _listed(columns: tuple[str, ...]) -> str:
    return f"({', '.join(columns)})" if columns else "none"


def is_inside(name: str, path: Path) -> bool:
    """Whether a clustering column is at a path or inside it; the name of a field has dots, as a column's may."""
    place = ".".join(path).lower()
    return name.lower() == place or name.lower().startswith(f"{place}.")


def _read(place: Place, columns: list[str] | str) -> list[str] | str:
    if isinstance(columns, str) and columns.upper() != AUTO:
        raise place.error("cluster_by must be a list of columns, or AUTO", f"Write [{columns}].")
    return columns


FACET: Facet[Table, TableState, tuple[str, ...]] = Facet(
    key="cluster_by",
    declared=lambda model: model.cluster_by,
    observed=lambda state: state.cluster_by,
    absent=(),
    form=replace(
        NAMES,
        written_type=list[str] | str,
        read=_read,
        words=f"list, or `{AUTO}`",
        schema={
            "anyOf": [
                {"type": "array", "items": {"type": "string"}},
                {"enum": [AUTO]},
                {"type": "string", "pattern": "^[aA][uU][tT][oO]$"},
            ]
        },
    ),
    meaning="the columns of [liquid clustering](#clustering), or fields in structs such as `address.country`",
    default="none",
    written=lambda table: AUTO if table.clusters_automatically else list(table.cluster_by),
    constants=(AUTO,),
    imported=lambda _name, table: () if table.clusters_automatically else table.cluster_by,
    part=Part.CLUSTERING,
    title="clustering",
)

AUTOMATIC_FACET: Facet[Table, TableState, bool] = Facet(
    key="clusters_automatically",
    declared=lambda model: model.clusters_automatically,
    observed=lambda state: state.clusters_automatically,
    absent=False,
    form=FLAG,
    part=Part.CLUSTERING,
    title="clustering",
    feature=Feature.AUTOMATIC_CLUSTERING,
)

ASPECT: Aspect[ChangeClustering] = Aspect(
    name="clustering",
    part=Part.CLUSTERING,
    actions={ChangeClustering: takes_ownership("CLUSTER BY")},
    diff=_diff,
    render=_render,
    explain=_explain,
    accept=_accept,
    drift_kind=lambda _action: DriftKind.CLUSTERING,
    create=_create,
)

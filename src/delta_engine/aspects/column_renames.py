"""Renames of columns and fields, which keep their data. The platform adjusts clustering and partitioning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from delta_engine.actions import AlignTable, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, RenderContext, takes_ownership, with_column
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.facet import FORMER_FIELD_NAMES, FORMER_NAMES, Facet
from delta_engine.aspects.renames import Renames, with_renames
from delta_engine.models import Column, Part, Table
from delta_engine.models.nested_types import FieldRename, Path, lower_path, type_at, with_field_renamed
from delta_engine.models.parts import NO_FORMER_NAMES
from delta_engine.sql.columns import sql_rename_column
from delta_engine.state.states import TableState


@dataclass(frozen=True, slots=True)
class ColumnRename:
    """Rename a column, or the field of the struct at `inside`, a path of desired names."""

    phase: ClassVar[Phase] = Phase.RENAME_COLUMNS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.BREAKS_READERS,)
    observed: str
    desired: str
    inside: Path = ()

    def __post_init__(self) -> None:
        if self.desired.lower() == self.observed.lower():
            raise ValueError(f"column {self.desired} already has this name")


def renamed_columns(align: AlignTable) -> Mapping[str, str]:
    """Return the new names of the renamed columns by their present names."""
    return {one.observed: one.desired for one in align.of_type(ColumnRename) if not one.inside}


def _diff(comparison: Comparison) -> Iterable[ColumnRename]:
    """Yield a rename per column, then per field from the outside in: inner paths use the new names."""
    for observed, desired in comparison.renames.columns:
        yield ColumnRename(observed, desired)
    for rename in comparison.renames.fields:
        if not rename.both_exist:
            yield ColumnRename(rename.observed, rename.desired, rename.path)


def _render(actions: Sequence[ColumnRename], context: RenderContext) -> Iterable[str]:
    """Yield a statement per rename: no platform accepts several in one."""
    for action in actions:
        yield sql_rename_column(context.table, (*action.inside, action.observed), action.desired)


def _explain(action: ColumnRename) -> Iterable[Change]:
    place = (*action.inside, action.desired)
    yield Change(f"column {'.'.join(place)}", action.observed, action.desired, place=place, is_rename=True)


def _accept(model: Table, _observed: TableState, action: ColumnRename) -> Table:
    if not action.inside:
        return with_renames(model, {action.desired: action.observed})
    return with_field_renames(model, {(*action.inside, action.desired): (*action.inside, action.observed)})


def with_field_renames(model: Table, renames: Mapping[Path, Path]) -> Table:
    """Return a model with renamed fields, also in `renamed_fields`. Fields that it lacks change nothing.

    Args:
        renames: new paths by former ones, outer fields first. The model has the new names of columns.
    """
    for old, new in renames.items():
        rename = FieldRename(path=new[1:-1], observed=old[-1], desired=new[-1])
        whole = Renames(fields=(replace(rename, path=new[:-1]),))
        keys = whole.applied_to_keys(model.cluster_by, model.columns)
        model = with_column(model, new[0], partial(_with_field_renamed, rename=rename))
        model = replace(model, cluster_by=keys)
    return model


def _with_field_renamed(column: Column, rename: FieldRename) -> Column:
    if type_at(column.data_type, (*rename.path, rename.observed)) is None:
        return column
    column = replace(column, data_type=with_field_renamed(column.data_type, rename))
    return _with_new_field_paths(column, rename)


def _with_new_field_paths(column: Column, rename: FieldRename) -> Column:
    """Return a column with the new path of a field in `renamed_fields`, unless the field has its former name again."""
    old, new = ((*rename.path, name) for name in (rename.observed, rename.desired))
    paths = {text: tuple(text.split(".")) for text in column.renamed_fields}
    moved = {
        text: ".".join((*new, *path[len(old) :])) if lower_path(path[: len(old)]) == lower_path(old) else text
        for text, path in paths.items()
    }
    names = {
        moved[text]: tuple(
            name
            for name in former
            if (lower_path(paths[text]), name.lower()) != (lower_path(old), rename.desired.lower())
        )
        for text, former in column.renamed_fields.items()
    }
    return replace(column, renamed_fields={text: former for text, former in names.items() if former})


FACET: Facet[Column, Column, tuple[str, ...]] = Facet(
    key="renamed_from",
    declared=lambda model: model.renamed_from,
    absent=(),
    default="none",
    form=FORMER_NAMES,
    meaning="the column's former name, or several with the latest first; its data is kept",
    part=Part.COLUMNS,
    title="renamed_from",
)

FIELDS_FACET: Facet[Column, Column, Mapping[str, tuple[str, ...]]] = Facet(
    key="renamed_fields",
    declared=lambda model: model.renamed_fields,
    absent=NO_FORMER_NAMES,
    form=FORMER_FIELD_NAMES,
    meaning="former names of fields inside, by their present path: `address.postcode: zip`, with `element`, `key` and "
    "`value` as steps. Several former names are a list",
    entry="renamed field",
    part=Part.COLUMNS,
)

ASPECT: Aspect[ColumnRename] = Aspect(
    name="column renames",
    part=Part.COLUMNS,
    actions={ColumnRename: takes_ownership("RENAME COLUMN")},
    diff=_diff,
    render=_render,
    explain=_explain,
    accept=_accept,
    drift_kind=lambda _action: DriftKind.COLUMN_RENAMED,
    is_of_columns=True,
)

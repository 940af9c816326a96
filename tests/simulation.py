"""What a plan's actions do to an observed state, without a platform: the meaning of every action."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from delta_engine.actions import Action, AlignTable, CreateTable, TablePlan
from delta_engine.aspects.clustering import ChangeClustering
from delta_engine.aspects.column_comments import SetColumnComments
from delta_engine.aspects.column_tags import SetColumnTags, UnsetColumnTags
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop
from delta_engine.aspects.nullability import ColumnNullabilityChange
from delta_engine.aspects.primary_key import PrimaryKeyAdd, PrimaryKeyDrop, named_primary_key
from delta_engine.aspects.table_comment import SetTableComment
from delta_engine.aspects.table_features import EnableTableFeature
from delta_engine.aspects.table_names import RenameTable
from delta_engine.aspects.table_properties import SetTableProperties, UnsetTableProperties
from delta_engine.aspects.table_tags import SetTableTags, UnsetTableTags
from delta_engine.aspects.tags import TagChange
from delta_engine.models import Column, PrimaryKey
from delta_engine.state.states import CatalogState, TableState
from delta_engine.type_widening import Widening, with_type_at


def simulate(plan: TablePlan, state: CatalogState) -> CatalogState:
    """Return the state after a plan."""
    tables = dict(state.tables)
    for action in plan.table_actions():
        match action:
            case CreateTable():
                tables[action.table.key] = created(action)
            case AlignTable():
                for part in action.actions:
                    tables[action.table.key] = after(part, tables[action.table.key])
    return CatalogState(tables=tables)


def created(create: CreateTable) -> TableState:
    """Return the state of a table that was just created."""
    model = create.desired
    return TableState(
        columns=model.columns,
        table_comment=model.comment,
        table_properties=model.effective_table_properties,
        primary_key=named_primary_key(model),
        cluster_by=model.cluster_by,
        tags=model.tags,
    )


def after(action: Action, state: TableState) -> TableState:
    """Return the state after one action; fails where the platform would."""
    match action:
        case ColumnAdd(desired):
            assert all(column.key != desired.key for column in state.columns)
            return replace(state, columns=(*state.columns, replace(desired, tags={})))
        case ColumnDrop(observed):
            key = state.primary_key
            assert key is None or observed.key not in map(str.lower, key.columns)
            assert state.table_properties.get("delta.columnMapping.mode", "none") != "none"
            assert len(state.columns) > 1
            assert observed.key not in map(str.lower, state.cluster_by)
            assert not _column(state, observed.name).tags
            return replace(state, columns=tuple(c for c in state.columns if c.key != observed.key))
        case RenameTable():
            return replace(state, former_name=None)
        case ChangeClustering(desired):
            assert all(_column(state, name) for name in desired)
            return replace(state, cluster_by=desired)
        case ColumnTypeChange(name, desired, _, path):
            if action.widening in (Widening.TYPE_WIDENING, Widening.TIMESTAMP_NTZ):
                assert state.table_properties["delta.enableTypeWidening"] == "true"
            whole = _column(state, name).data_type
            return _with_column(state, name, data_type=with_type_at(whole, path, desired))
        case ColumnNullabilityChange(name, make_nullable):
            return _with_column(state, name, is_nullable=make_nullable)
        case SetColumnComments(comments):
            for comment in comments:
                state = _with_column(state, comment.name, comment=comment.desired)
            return state
        case SetTableComment(desired):
            return replace(state, table_comment=desired)
        case SetTableProperties(properties):
            found = {change.key: change.desired for change in properties}
            return replace(state, table_properties={**state.table_properties, **found})
        case UnsetTableProperties(properties):
            gone = dict(properties)
            kept = {key: value for key, value in state.table_properties.items() if key not in gone}
            return replace(state, table_properties=kept)
        case EnableTableFeature(key, desired):
            return replace(state, table_properties={**state.table_properties, key: desired})
        case PrimaryKeyAdd(name, columns):
            assert state.primary_key is None
            assert all(not _column(state, column).is_nullable for column in columns)
            return replace(state, primary_key=PrimaryKey(columns, name))
        case PrimaryKeyDrop(name):
            assert state.primary_key is not None
            assert state.primary_key.name == name
            return replace(state, primary_key=None)
        case SetTableTags(changes):
            return replace(state, tags=_with_tags(state.tags, changes))
        case UnsetTableTags(unwanted):
            return replace(state, tags=_without_tags(state.tags, unwanted))
        case SetColumnTags(column, changes):
            return _with_column(state, column, tags=_with_tags(_column(state, column).tags, changes))
        case UnsetColumnTags(column, unwanted):
            return _with_column(state, column, tags=_without_tags(_column(state, column).tags, unwanted))
    raise AssertionError(f"the simulation does not know {action}")


def _with_tags(tags: Mapping[str, str], changes: Iterable[TagChange]) -> dict[str, str]:
    return {**tags, **{change.key: change.desired for change in changes}}


def _without_tags(tags: Mapping[str, str], unwanted: Iterable[tuple[str, str]]) -> dict[str, str]:
    gone = dict(unwanted)
    assert gone.keys() <= tags.keys()
    return {key: value for key, value in tags.items() if key not in gone}


def _column(state: TableState, name: str) -> Column:
    (column,) = (column for column in state.columns if column.key == name.lower())
    return column


def _with_column(state: TableState, name: str, **changes: object) -> TableState:
    changed = replace(_column(state, name), **changes)  # type: ignore[arg-type]
    return replace(
        state,
        columns=tuple(changed if column.key == changed.key else column for column in state.columns),
    )

"""What a plan's actions do to an observed state, without a platform: the meaning of every action."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from delta_engine.actions import Action, CreateSchema, CreateTable, DropTable, TablePlan
from delta_engine.aspects.aspect import bare_column
from delta_engine.aspects.check_constraints import CheckAdd, CheckDrop
from delta_engine.aspects.clustering import ChangeClustering
from delta_engine.aspects.column_comments import ColumnComment, SetColumnComments
from delta_engine.aspects.column_defaults import DropColumnDefault, SetColumnDefault
from delta_engine.aspects.column_masks import DropColumnMask, SetColumnMask
from delta_engine.aspects.column_order import MoveColumn
from delta_engine.aspects.column_renames import ColumnRename
from delta_engine.aspects.column_tags import SetColumnTags, UnsetColumnTags
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop, FieldAdd, FieldDrop
from delta_engine.aspects.foreign_keys import ForeignKeyAdd, ForeignKeyDrop
from delta_engine.aspects.generated_columns import ChangeFixedColumn, ChangeGeneration
from delta_engine.aspects.grants import GrantPrivileges, RevokePrivileges
from delta_engine.aspects.location import ChangeLocation
from delta_engine.aspects.not_null_checks import AddNotNullCheck, DropNotNullCheck
from delta_engine.aspects.nullability import ColumnNullabilityChange
from delta_engine.aspects.owner import ChangeOwner
from delta_engine.aspects.partitioning import ChangePartitioning
from delta_engine.aspects.primary_key import PrimaryKeyAdd, PrimaryKeyDrop, named_primary_key
from delta_engine.aspects.row_filters import DropRowFilter, SetRowFilter
from delta_engine.aspects.table_comment import SetTableComment
from delta_engine.aspects.table_features import COLUMN_DEFAULTS, EnableTableFeature
from delta_engine.aspects.table_names import RenameTable
from delta_engine.aspects.table_properties import SetTableProperties, UnsetTableProperties
from delta_engine.aspects.table_tags import SetTableTags, UnsetTableTags
from delta_engine.aspects.tags import TagChange
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import DATABRICKS
from delta_engine.compile.compiler import compile_plan
from delta_engine.models import Column, ColumnMask, Identity, PrimaryKey
from delta_engine.models.nested_types import (
    FieldRename,
    type_at,
    with_field,
    with_field_at,
    with_field_renamed,
    with_type_at,
    within_structs,
    without_field,
)
from delta_engine.models.type_widening import Widening
from delta_engine.models.types import DataType, StructType
from delta_engine.models.values import to_grants
from delta_engine.sql.expressions import reads, referenced_columns
from delta_engine.state.states import ABSENT, CatalogState, TableState


def simulate(plan: TablePlan, state: CatalogState) -> CatalogState:
    """Return the state after a plan, step by step; fails where the platform would."""
    tables = dict(state.tables)
    is_new = {create.table.key for create in plan.create_tables}
    for key, action in _actions(plan):
        match action:
            case CreateTable():
                tables[key] = created(action)
            case DropTable():
                tables[key] = ABSENT
            case _:
                _require_legal_keys(action, key, tables)
                if key not in is_new or isinstance(action, ForeignKeyAdd):
                    tables[key] = after(action, tables[key])
    return CatalogState(tables=tables)


def _actions(plan: TablePlan) -> Iterator[tuple[str, CreateTable | DropTable | Action]]:
    """Yield what is done to tables, each after its table's key, in an order in which it may happen.

    Actions that no statement carries out, which rules refuse, come last.
    """
    seen: set[int] = set()
    for step in compile_plan(plan, CatalogAddressing(), DATABRICKS).steps:
        for action in chain.from_iterable(one.actions for one in step.statements):
            if step.table_key and id(action) not in seen:
                assert not isinstance(action, CreateSchema)
                seen.add(id(action))
                yield step.table_key, action
    for align in plan.align_tables:
        yield from ((align.table.key, action) for action in align.actions if id(action) not in seen)


def _require_legal_keys(action: Action, table: str, tables: Mapping[str, TableState]) -> None:
    """Fail where a key would point at no primary key, or at columns of other types."""
    match action:
        case PrimaryKeyDrop():
            everybody = [key for state in tables.values() for key in state.foreign_keys]
            assert table not in [key.references.lower() for key in everybody]
        case ColumnTypeChange(name):
            pointing_here = [
                key for state in tables.values() for key in state.foreign_keys if key.references == table
            ]
            referenced = [column for key in pointing_here for column in key.referenced_columns]
            bound = [column for key in tables[table].foreign_keys for column in key.columns]
            assert name.lower() not in map(str.lower, [*referenced, *bound])
        case ForeignKeyAdd(desired):
            parent = tables[desired.references.lower()].primary_key
            assert parent
            own = {column.key: column.data_type for column in tables[table].columns}
            others = {column.key: column.data_type for column in tables[desired.references.lower()].columns}
            for one, other in zip(desired.columns, desired.referenced_columns, strict=True):
                assert own[one.lower()] == others[other.lower()]
            assert [*map(str.lower, parent.columns)] == [*map(str.lower, desired.referenced_columns)]


def created(create: CreateTable) -> TableState:
    """Return the state of a table that was just created."""
    model = create.desired
    return TableState(
        columns=model.columns,
        table_comment=model.comment,
        table_properties={
            **({COLUMN_DEFAULTS: "supported"} if any(one.default for one in model.columns) else {}),
            **model.effective_table_properties,
        },
        primary_key=named_primary_key(model),
        foreign_keys=model.foreign_keys,
        checks=model.checks,
        cluster_by=model.cluster_by,
        clusters_automatically=model.clusters_automatically,
        partitioned_by=model.partitioned_by,
        location=model.location,
        tags=model.tags,
        row_filter=model.row_filter,
        owner=model.owner or "creator",
        grants=to_grants({name: _without_implied(found) for name, found in model.grants.items()}),
    )


def after(action: Action, state: TableState) -> TableState:
    """Return the state after one action; fails where the platform would."""
    match action:
        case ColumnAdd(desired):
            assert all(column.key != desired.key for column in state.columns)
            mask = desired.mask and (None if _is_set_later(desired.mask, state) else desired.mask)
            return replace(state, columns=(*state.columns, replace(bare_column(desired), mask=mask)))
        case ColumnDrop(observed):
            key = state.primary_key
            assert key is None or observed.key not in map(str.lower, key.columns)
            assert state.table_properties.get("delta.columnMapping.mode", "none") != "none"
            assert len(state.columns) > 1
            assert observed.key not in map(str.lower, state.cluster_by)
            assert not _checks_of(state, observed.name)
            assert not _column(state, observed.name).tags
            return replace(state, columns=tuple(c for c in state.columns if c.key != observed.key))
        case RenameTable():
            return replace(state, former_name=None)
        case FieldAdd(path, field):
            assert _field(state, path) is None
            return _with_type(state, path[0], with_field(_column(state, path[0]).data_type, path[1:], field))
        case FieldDrop(path):
            assert _field(state, path) is not None
            assert state.table_properties.get("delta.columnMapping.mode", "none") != "none"
            struct = type_at(_column(state, path[0]).data_type, path[1:-1])
            assert isinstance(struct, StructType)
            assert len(struct.fields) > 1
            assert path[0].lower() not in map(str.lower, state.not_null_checks)
            return _with_type(state, path[0], without_field(_column(state, path[0]).data_type, path[1:]))
        case ColumnRename(observed, desired, inside):
            assert state.table_properties.get("delta.columnMapping.mode", "none") != "none"
            return _renamed_field(state, action) if inside else _renamed_column(state, observed, desired)
        case DropNotNullCheck(name):
            return replace(_with_column(state, name, is_nullable=True), not_null_checks=_others(state, name))
        case AddNotNullCheck(name):
            checked = (*state.not_null_checks, _column(state, name).name)
            return replace(_with_column(state, name, is_nullable=False), not_null_checks=checked)
        case ChangeClustering(desired):
            assert all(_column(state, name) for name in desired)
            return replace(state, cluster_by=desired, clusters_automatically=action.becomes_automatic)
        case MoveColumn(name, after):
            moved = _column(state, name)
            others = [column for column in state.columns if column.key != moved.key]
            place = others.index(_column(state, after)) + 1 if after else 0
            return replace(state, columns=(*others[:place], moved, *others[place:]))
        case SetColumnDefault(name, desired, observed):
            assert state.table_properties.get(COLUMN_DEFAULTS) == "supported"
            assert _column(state, name).default == observed
            return _with_column(state, name, default=desired)
        case DropColumnDefault(name, observed):
            assert _column(state, name).default == observed
            return _with_column(state, name, default=None)
        case ChangeGeneration() | ChangeFixedColumn() | ChangePartitioning() | ChangeLocation():
            return _made_anew(action, state)
        case ColumnTypeChange(name, desired, _, path):
            whole = _column(state, name).data_type
            assert not _checks_of(state, name, *within_structs(whole, path))
            if action.widening in (Widening.TYPE_WIDENING, Widening.TIMESTAMP_NTZ):
                assert state.table_properties["delta.enableTypeWidening"] == "true"
            assert type_at(whole, path) == action.observed
            assert name.lower() not in map(str.lower, state.not_null_checks)
            return _with_type(state, name, with_type_at(whole, path, desired))
        case ColumnNullabilityChange(name, make_nullable, path) if path:
            whole = _column(state, name).data_type
            changed = with_field_at(whole, path, lambda field: replace(field, is_nullable=make_nullable))
            return _with_type(state, name, changed)
        case ColumnNullabilityChange(name, make_nullable):
            state = replace(state, not_null_checks=_others(state, name))
            return _with_column(state, name, is_nullable=make_nullable)
        case SetColumnComments(comments):
            for comment in comments:
                state = _with_comment(state, comment)
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
        case ForeignKeyAdd(key):
            assert key.name not in [one.name for one in state.foreign_keys]
            assert all(_column(state, column) for column in key.columns)
            return replace(state, foreign_keys=(*state.foreign_keys, key))
        case ForeignKeyDrop(key):
            assert key in state.foreign_keys
            return replace(state, foreign_keys=tuple(one for one in state.foreign_keys if one != key))
        case CheckAdd(check):
            assert check.name.lower() not in [one.name.lower() for one in state.checks]
            assert all(_column(state, column) for column in referenced_columns(check.expression))
            return replace(state, checks=(*state.checks, check))
        case CheckDrop(check):
            assert check in state.checks
            return replace(state, checks=tuple(one for one in state.checks if one != check))
        case PrimaryKeyAdd(name, columns):
            assert state.primary_key is None
            assert all(not _column(state, column).is_nullable for column in columns)
            return replace(state, primary_key=PrimaryKey(columns, name))
        case PrimaryKeyDrop(name):
            assert state.primary_key is not None
            assert state.primary_key.name == name
            return replace(state, primary_key=None)
        case ChangeOwner(desired):
            return replace(state, owner=desired)
        case GrantPrivileges(principal, privileges):
            held = {*state.grants.get(principal, ()), *privileges}
            return replace(state, grants=to_grants({**state.grants, principal: held}))
        case RevokePrivileges(principal, privileges):
            assert {*privileges} <= {*state.grants[principal]}
            left = {*state.grants[principal]} - {*privileges}
            rest = {name: found for name, found in state.grants.items() if name != principal}
            return replace(state, grants=to_grants({**rest, principal: left} if left else rest))
        case SetRowFilter(desired):
            assert all(_column(state, name) for name in desired.columns)
            return replace(state, row_filter=desired)
        case DropRowFilter():
            assert state.row_filter is not None
            return replace(state, row_filter=None)
        case SetColumnMask(column, desired):
            assert all(_column(state, name) for name in desired.using_columns)
            return _with_column(state, column, mask=desired)
        case DropColumnMask(column):
            assert _column(state, column).mask is not None
            return _with_column(state, column, mask=None)
        case SetTableTags(changes):
            return replace(state, tags=_with_tags(state.tags, changes))
        case UnsetTableTags(unwanted):
            return replace(state, tags=_without_tags(state.tags, unwanted))
        case SetColumnTags(column, changes):
            return _with_column(state, column, tags=_with_tags(_column(state, column).tags, changes))
        case UnsetColumnTags(column, unwanted):
            return _with_column(state, column, tags=_without_tags(_column(state, column).tags, unwanted))
    raise AssertionError(f"the simulation does not know {action}")


def _without_implied(privileges: tuple[str, ...]) -> tuple[str, ...]:
    return ("ALL PRIVILEGES",) if "ALL PRIVILEGES" in privileges else privileges


def _is_set_later(mask: ColumnMask, state: TableState) -> bool:
    """Whether a mask takes a column that is added in the same statement."""
    return not {name.lower() for name in mask.using_columns} <= {column.key for column in state.columns}


def _with_tags(tags: Mapping[str, str], changes: Iterable[TagChange]) -> dict[str, str]:
    return {**tags, **{change.key: change.desired for change in changes}}


def _without_tags(tags: Mapping[str, str], unwanted: Iterable[tuple[str, str]]) -> dict[str, str]:
    gone = dict(unwanted)
    assert gone.keys() <= tags.keys()
    return {key: value for key, value in tags.items() if key not in gone}


def _checks_of(state: TableState, *path: str) -> list[str]:
    return [check.name for check in state.checks if reads(check.expression, path)]


def _column(state: TableState, name: str) -> Column:
    (column,) = (column for column in state.columns if column.key == name.lower())
    return column


def _made_anew(
    action: ChangeGeneration | ChangeFixedColumn | ChangePartitioning | ChangeLocation, state: TableState
) -> TableState:
    """Return the state as if somebody had made the table anew: a rule refuses these."""
    match action:
        case ChangeGeneration(name, desired):
            is_identity = isinstance(desired, Identity)
            return _with_column(
                state,
                name,
                identity=desired if is_identity else None,
                generated_as=None if is_identity else desired,
            )
        case ChangeFixedColumn():
            return state
        case ChangePartitioning(desired):
            return replace(state, partitioned_by=desired)
        case ChangeLocation(desired):
            return replace(state, location=desired)


def _field(state: TableState, path: tuple[str, ...]) -> DataType | None:
    return type_at(_column(state, path[0]).data_type, path[1:])


def _with_type(state: TableState, name: str, data_type: DataType) -> TableState:
    return _with_column(state, name, data_type=data_type)


def _with_comment(state: TableState, comment: ColumnComment) -> TableState:
    if not comment.path:
        return _with_column(state, comment.name, comment=comment.desired)
    assert _field(state, comment.place) is not None
    whole = _column(state, comment.name).data_type
    changed = with_field_at(whole, comment.path, lambda field: replace(field, comment=comment.desired))
    return _with_type(state, comment.name, changed)


def _renamed_field(state: TableState, rename: ColumnRename) -> TableState:
    column, *path = rename.inside
    assert column.lower() not in map(str.lower, state.not_null_checks)
    assert _field(state, (*rename.inside, rename.observed)) is not None
    assert _field(state, (*rename.inside, rename.desired)) is None
    inside = FieldRename(path=tuple(path), observed=rename.observed, desired=rename.desired)
    return _with_type(state, column, with_field_renamed(_column(state, column).data_type, inside))


def _renamed_column(state: TableState, observed: str, desired: str) -> TableState:
    key = state.primary_key
    assert key is None or observed.lower() not in map(str.lower, key.columns)
    assert observed.lower() not in map(str.lower, state.not_null_checks)
    assert all(column.key != desired.lower() for column in state.columns)

    def names(found: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(desired if name.lower() == observed.lower() else name for name in found)

    return replace(
        _with_column(state, observed, name=desired),
        cluster_by=names(state.cluster_by),
        partitioned_by=names(state.partitioned_by),
    )


def _others(state: TableState, name: str) -> tuple[str, ...]:
    """Return the checks for NOT NULL but for a column's."""
    return tuple(one for one in state.not_null_checks if one.lower() != name.lower())


def _with_column(state: TableState, name: str, /, **changes: Any) -> TableState:
    changed = replace(_column(state, name), **changes)
    return replace(
        state,
        columns=tuple(changed if column.key == name.lower() else column for column in state.columns),
    )

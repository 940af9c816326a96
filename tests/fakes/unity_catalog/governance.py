"""Tags, masks, row filters and grants of the fake catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from delta_engine.models import Column, Grants, RowFilter
from delta_engine.state.states import TableState
from tests.fakes.unity_catalog.properties import features_of
from tests.fakes.unity_catalog.refusals import require
from tests.fakes.unity_catalog.statements import Grant, Revoke, SetTags, Tags, UnsetTags
from tests.fakes.unity_catalog.stored import Stored, keys

_MAX_TAGS = 50
_MAX_TAG_LENGTH = 256
_NOT_IN_TAG_KEYS = frozenset(".,-=/:")
_PRIVILEGES = {
    "FUNCTION": {"ALL PRIVILEGES", "APPLY TAG", "EXECUTE", "MANAGE"},
    "VIEW": {"ALL PRIVILEGES", "APPLY TAG", "MANAGE", "SELECT"},
    "TABLE": {"ALL PRIVILEGES", "APPLY TAG", "MANAGE", "MODIFY", "REFRESH", "SELECT"},
    "SCHEMA": {
        "ALL PRIVILEGES", "APPLY TAG", "CREATE FUNCTION", "CREATE MATERIALIZED VIEW", "CREATE MODEL",
        "CREATE TABLE", "CREATE VOLUME", "EXECUTE", "EXTERNAL USE SCHEMA", "MANAGE", "MODIFY", "READ VOLUME",
        "REFRESH", "SELECT", "USE SCHEMA", "WRITE VOLUME",
    },
}  # fmt: skip


def altered_tags(tags: Tags, change: SetTags | UnsetTags) -> Tags:
    """Return tags with some set, or some taken away; a key that is not there is no error."""
    if isinstance(change, UnsetTags):
        return {key: value for key, value in tags.items() if key not in change.keys}
    for key, value in change.tags.items():
        is_short = 0 < len(key) <= _MAX_TAG_LENGTH and len(value) <= _MAX_TAG_LENGTH
        require(is_short, "INVALID_PARAMETER_VALUE", f"tag {key!r} is too long, or empty")
        is_plain = not _NOT_IN_TAG_KEYS & set(key) and key == key.strip()
        require(is_plain, "INVALID_PARAMETER_VALUE", f"tag {key!r} has a character that is not allowed")
    all_tags = {**tags, **change.tags}
    require(len(all_tags) <= _MAX_TAGS, "INVALID_PARAMETER_VALUE", f"more than {_MAX_TAGS} tags")
    return all_tags


def check_mask(stored: Stored, column: Column) -> None:
    """Refuse a mask over columns that are not there."""
    if column.mask is None:
        return
    require(not stored.state.checks, None, f"{stored.name} has checks, so {column.name} cannot be masked")
    names = keys(column.mask.using_columns)
    require(
        column.key not in names,
        "COLUMN_MASKS_USING_COLUMN_NAME_SAME_AS_TARGET_COLUMN",
        f"the mask of {column.name} takes it twice",
    )
    require(len({*names}) == len(names), "COLUMN_MASKS_DUPLICATE_USING_COLUMN_NAME", f"{names}")
    for name in names:
        stored.column(name)


def with_row_filter(stored: Stored, row_filter: RowFilter | None) -> Stored:
    names = keys(row_filter.columns) if row_filter else []
    require(len({*names}) == len(names), "ROW_LEVEL_SECURITY_DUPLICATE_COLUMN_NAME", f"{names}")
    for name in names:
        stored.column(name)
    is_checked = row_filter is not None and stored.state.checks
    require(not is_checked, None, f"{stored.name} has checks, so its rows cannot be filtered")
    return stored.with_state(row_filter=row_filter)


def altered_grants(grants: Grants, change: Grant | Revoke) -> Grants:
    """Return grants with privileges of a principal given, or taken away."""
    grantable = _PRIVILEGES[change.kind]
    strange = {*change.privileges} - grantable
    require(not strange, "INVALID_PARAMETER_VALUE", f"no privileges on a {change.kind}: {sorted(strange)}")
    mine = {*grants.get(change.principal, ())}
    mine = mine | {*change.privileges} if isinstance(change, Grant) else mine - {*change.privileges}
    all_grants: Mapping[str, tuple[str, ...]] = {**grants, change.principal: tuple(sorted(mine))}
    return {principal: all_grants[principal] for principal in sorted(all_grants) if all_grants[principal]}


def restored(former: TableState, present: TableState) -> TableState:
    """Return a table after RESTORE: what Delta's history has is former, and what the catalog alone has is present."""
    present_columns = {column.key: column for column in present.columns}
    columns = tuple(
        replace(column, tags=present_columns[column.key].tags, mask=present_columns[column.key].mask)
        if column.key in present_columns
        else replace(column, tags={}, mask=None)
        for column in former.columns
    )
    return replace(
        present,
        columns=columns,
        table_comment=former.table_comment,
        table_properties={**former.table_properties, **features_of(present)},
        checks=former.checks,
        not_null_checks=former.not_null_checks,
        cluster_by=former.cluster_by,
        clusters_automatically=former.clusters_automatically,
        partitioned_by=former.partitioned_by,
    )

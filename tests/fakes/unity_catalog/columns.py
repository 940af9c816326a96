"""Columns and the fields inside them: added, dropped, renamed, altered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from delta_engine.models import Column
from delta_engine.models.nested_types import Widening, has_not_null_field, widening
from delta_engine.models.types import (
    NOT_MANAGED,
    AtomicType,
    CharacterType,
    DataType,
    DecimalType,
    StructField,
    first_unsupported,
    is_same_type,
    uses_type,
)
from tests.fakes.unity_catalog import statements
from tests.fakes.unity_catalog.collations import collated, collated_type
from tests.fakes.unity_catalog.governance import altered_tags, check_mask
from tests.fakes.unity_catalog.properties import check_change_feed
from tests.fakes.unity_catalog.refusals import Refusal, require
from tests.fakes.unity_catalog.statements import Path
from tests.fakes.unity_catalog.stored import (
    Fields,
    Stored,
    changed_field,
    changed_fields,
    changed_type,
    keys,
    refuse_readers,
)

_NOT_UNMAPPED = frozenset(" ,;{}()\n\t=")
_ICEBERG = ("delta.enableIcebergCompatV1", "delta.enableIcebergCompatV2")
_FEATURES = {"timestamp_ntz": "delta.feature.timestampNtz", "variant": "delta.feature.variantType"}


def added(stored: Stored, change: statements.AddColumns) -> Stored:
    for path, column in change.columns:
        what = f"{stored.name}: {'.'.join(path)}"
        is_required = not column.is_nullable or has_not_null_field(column.data_type)
        require(not is_required, "DELTA_OPERATION_NOT_ALLOWED", f"{what} cannot be added NOT NULL")
        require(
            column.default is None,
            "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED",
            f"{what} cannot be added with a default",
        )
        is_computed = column.generated_as is not None or column.identity is not None
        require(not is_computed, "DELTA_OPERATION_NOT_ALLOWED", f"{what} can be computed at creation only")
        _check_features(stored, column.data_type)
        if len(path) > 1:
            stored = _with_new_field(stored, path, column)
        else:
            stored = _with_new_column(stored, column, change.after.get(column.key))
    check_change_feed(stored, "RESERVED_CDC_COLUMNS_ON_WRITE")
    return stored


def _with_new_column(stored: Stored, column: Column, after: str | None) -> Stored:
    check_column(stored, column)
    taken = [column.key for column in stored.state.columns]
    require(column.key not in taken, "FIELD_ALREADY_EXISTS", f"{stored.name} has {column.name} already")
    place = len(taken) if after is None else taken.index(after.lower()) + 1
    columns, added = stored.state.columns, collated(column, stored.collation)
    stored = stored.with_state(columns=(*columns[:place], added, *columns[place:]))
    check_mask(stored, column)
    return stored


def _with_new_field(stored: Stored, path: Path, column: Column) -> Stored:
    def with_it(fields: Fields) -> Fields:
        taken = keys(field.name for field in fields)
        require(column.key not in taken, "FIELD_ALREADY_EXISTS", f"{'.'.join(path)} is there already")
        added = collated_type(column.data_type, stored.collation)
        return (*fields, StructField(column.name, added, True, column.comment))

    outer = stored.column(path[0])
    return stored.with_column(path[0], data_type=changed_fields(outer.data_type, path[1:-1], with_it))


def check_column(stored: Stored, column: Column) -> None:
    """Refuse a column that no table can have."""
    unsupported = first_unsupported(column.data_type)
    is_known = unsupported is None or unsupported.reason == NOT_MANAGED
    require(is_known, "UNSUPPORTED_DATATYPE", f"{column.name}: {unsupported}")
    is_stored = unsupported is None or not unsupported.text.startswith("interval")
    require(is_stored, "DELTA_UNSUPPORTED_DATA_TYPES", f"{column.name}: {unsupported}")
    is_plain = not _NOT_UNMAPPED & set(column.name)
    require(
        is_plain or stored.maps_columns,
        "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAME",
        f"{column.name!r} needs column mapping",
    )


def _check_features(stored: Stored, data_type: DataType) -> None:
    for name, feature in _FEATURES.items():
        has_it = any(key.startswith(feature) for key in stored.state.table_properties)
        require(
            has_it or not uses_type(data_type, name),
            "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT",
            f"{stored.name}: {name} needs {feature}",
        )


def dropped(stored: Stored, change: statements.DropColumns) -> Stored:
    require(stored.maps_columns, "DELTA_UNSUPPORTED_DROP_COLUMN", f"{stored.name} needs column mapping")
    for path in change.paths:
        _check_clustering(stored, path)
        if len(path) > 1:
            refuse_readers(stored, path)
            outer = changed_field(stored.column(path[0]).data_type, path[1:], lambda _field: None)
            stored = stored.with_column(path[0], data_type=outer)
            continue
        _check_drop(stored, path[0])
        kept = tuple(column for column in stored.state.columns if column.key != path[0].lower())
        require(kept, "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA", f"{path[0]} is the only column")
        nulls = {name: count for name, count in stored.nulls.items() if name != path[0].lower()}
        stored = replace(stored.with_state(columns=kept), nulls=nulls)
    return stored


def _check_clustering(stored: Stored, path: Path) -> None:
    """Refuse to drop what the table is clustered by, whoever chose it.

    Delta drops a struct around a clustering field, and cannot read the table afterwards (measured on 4.3.1).
    """
    clustered = [keys(place.split("."))[: len(path)] for place in stored.state.cluster_by]
    condition = "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"
    require(keys(path) not in clustered, condition, f"{stored.name} is clustered by {'.'.join(path)}")


def _check_drop(stored: Stored, name: str) -> None:
    state, column = stored.state, stored.column(name)
    refuse_readers(stored, (name,))
    key = [] if state.primary_key is None else keys(state.primary_key.columns)
    uses = {
        "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN": keys(state.partitioned_by),
        "ROW_LEVEL_SECURITY_INCOMPATIBLE_SCHEMA_CHANGE": _filtered(stored),
        "COLUMN_MASKS_INCOMPATIBLE_SCHEMA_CHANGE": _masked_by(stored),
        "INVALID_PARAMETER_VALUE": [*key, *_in_foreign_keys(stored)],
    }
    for error_class, names in uses.items():
        require(column.key not in names, error_class, f"{stored.name} needs {name}")
    governed = stored.governed_tags & set(column.tags)
    condition = "INVALID_PARAMETER_VALUE.CANNOT_DROP_TAGGED_COLUMN"
    require(not governed, condition, f"{name} has governed tags: {sorted(governed)}")


def _filtered(stored: Stored) -> list[str]:
    return keys(stored.state.row_filter.columns) if stored.state.row_filter else []


def _masked_by(stored: Stored) -> list[str]:
    return [
        name for column in stored.state.columns if column.mask for name in keys(column.mask.using_columns)
    ]


def _in_foreign_keys(stored: Stored) -> list[str]:
    return [name for key in stored.state.foreign_keys for name in keys(key.columns)]


def renamed(stored: Stored, change: statements.RenameColumn) -> Stored:
    """Rename a column or a field; its keys are the catalog's business, everything else follows or refuses."""
    require(stored.maps_columns, "DELTA_UNSUPPORTED_RENAME_COLUMN", f"{stored.name} needs column mapping")
    path, name = change.path, change.name
    refuse_readers(stored, path)
    if len(path) > 1:
        return _with_renamed_field(stored, path, name)
    column = stored.column(path[0])
    taken = {column.key for column in stored.state.columns} - {column.key}
    require(name.lower() not in taken, "FIELD_ALREADY_EXISTS", f"{stored.name} has {name} already")
    is_filtered = column.key in _filtered(stored)
    require(
        not is_filtered, "ROW_LEVEL_SECURITY_INCOMPATIBLE_SCHEMA_CHANGE", f"the row filter needs {path[0]}"
    )
    is_masking = column.key in _masked_by(stored)
    require(not is_masking, "COLUMN_MASKS_INCOMPATIBLE_SCHEMA_CHANGE", f"a mask needs {path[0]}")
    stored = stored.with_column(path[0], name=name)
    check_change_feed(stored, "RESERVED_CDC_COLUMNS_ON_WRITE")
    nulls = {
        name.lower() if null_column == column.key else null_column: count
        for null_column, count in stored.nulls.items()
    }
    return replace(
        stored.with_state(
            cluster_by=_with_new_step(stored.state.cluster_by, path, name),
            partitioned_by=_with_new_name(stored.state.partitioned_by, column.key, name),
        ),
        nulls=nulls,
    )


def _with_renamed_field(stored: Stored, path: Path, name: str) -> Stored:
    def check(fields: Fields) -> Fields:
        taken = set(keys(field.name for field in fields)) - {path[-1].lower()}
        require(name.lower() not in taken, "FIELD_ALREADY_EXISTS", f"there is a {name} beside {path[-1]}")
        return fields

    whole = changed_fields(stored.column(path[0]).data_type, path[1:-1], check)
    whole = changed_field(whole, path[1:], lambda field: replace(field, name=name))
    stored = stored.with_state(cluster_by=_with_new_step(stored.state.cluster_by, path, name))
    return stored.with_column(path[0], data_type=whole)


def _with_new_step(places: Sequence[str], path: Path, name: str) -> tuple[str, ...]:
    """Return the dotted places of clustering with the new name of the column or field at a path."""
    old, new = ".".join(path).lower(), ".".join((*path[:-1], name))
    return tuple(
        new + place[len(old) :] if f"{place.lower()}.".startswith(f"{old}.") else place for place in places
    )


def _with_new_name(names: Sequence[str], key: str, name: str) -> tuple[str, ...]:
    return tuple(name if listed_name.lower() == key else listed_name for listed_name in names)


def altered(stored: Stored, change: statements.AlterColumns) -> Stored:
    """Alter columns and fields: one change of each, all or none."""
    paths = [tuple(keys(path)) for path, _ in change.changes]
    require(len({*paths}) == len(paths), "NOT_SUPPORTED_CHANGE_SAME_COLUMN", "one column twice")
    for path, altered_part in change.changes:
        stored = (
            _altered_field(stored, path, altered_part)
            if len(path) > 1
            else _altered_column(stored, path[0], altered_part)
        )
    return stored


def _altered_column(stored: Stored, name: str, change: statements.ColumnChange) -> Stored:
    column = stored.column(name)
    is_data_change = not isinstance(change, statements.SetMask | statements.SetTags | statements.UnsetTags)
    require(
        column.identity is None or not is_data_change,
        "DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED",
        f"{name} is an identity column",
    )
    match change:
        case statements.SetComment(comment):
            return stored.with_column(name, comment=comment)
        case statements.SetType(data_type):
            return _with_type(stored, (name,), data_type)
        case statements.SetNullable(is_nullable):
            return _with_nullability(stored, column, is_nullable)
        case statements.SetDefault(default):
            return _with_default(stored, column, default)
        case statements.MoveColumn(after):
            return _moved(stored, column, after)
        case statements.SetMask(mask):
            stored = stored.with_column(name, mask=mask)
            check_mask(stored, stored.column(name))
            return stored
        case statements.SetTags() | statements.UnsetTags():
            return stored.with_column(name, tags=altered_tags(column.tags, change))


def _altered_field(stored: Stored, path: Path, change: statements.ColumnChange) -> Stored:
    whole = stored.column(path[0]).data_type
    match change:
        case statements.SetType(data_type):
            return _with_type(stored, path, data_type)
        case statements.SetComment(comment):
            whole = changed_field(whole, path[1:], lambda field: replace(field, comment=comment))
        case statements.SetNullable(is_nullable):
            require(is_nullable, "DELTA_NESTED_NOT_NULL_CONSTRAINT", f"{path} cannot become NOT NULL")
            whole = changed_field(whole, path[1:], lambda field: replace(field, is_nullable=True))
        case statements.MoveColumn(after):
            whole = changed_fields(whole, path[1:-1], lambda fields: _moved_field(fields, path[-1], after))
        case _:
            raise Refusal("PARSE_SYNTAX_ERROR", f"no {change} of a field")
    return stored.with_column(path[0], data_type=whole)


def _with_type(stored: Stored, path: Path, desired: DataType) -> Stored:
    column = stored.column(path[0])
    _check_keys_keep_types(stored, column)

    def checked(observed: DataType) -> DataType:
        if is_same_type(observed, desired):
            return desired
        needed = widening(observed, desired)
        what = f"{'.'.join(path)} from {observed} to {desired}"
        require(needed is not Widening.IMPOSSIBLE, "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP", what)
        is_free = needed is Widening.NOTHING or stored.value_of("delta.enableTypeWidening") == "true"
        require(is_free, "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP", f"{what} needs type widening")
        _check_features(stored, desired)
        is_iceberg = any(stored.value_of(key) == "true" for key in _ICEBERG)
        require(
            not (is_iceberg and _is_beyond_iceberg(observed, desired)),
            "DELTA_ICEBERG_COMPAT_VIOLATION.UNSUPPORTED_TYPE_WIDENING",
            what,
        )
        is_computed = column.generated_as is not None and needed is not Widening.NOTHING
        require(not is_computed, "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH", what)
        return desired

    whole = changed_type(column.data_type, path[1:], checked)
    if not _is_same_but_for_length(column.data_type, whole):
        refuse_readers(stored, path)
    return stored.with_column(column.name, data_type=whole)


def _is_beyond_iceberg(observed: DataType, desired: DataType) -> bool:
    """Whether Iceberg lacks a widening of Delta's (measured on 4.3.1 with both versions of the compatibility)."""
    match observed, desired:
        case DecimalType(_, scale), DecimalType(_, finer):
            return finer > scale
        case AtomicType("tinyint" | "smallint" | "int" | "bigint"), DecimalType() | AtomicType("double"):
            return True
    return observed == AtomicType("date")


def _is_same_but_for_length(data_type: DataType, other: DataType) -> bool:
    return isinstance(data_type, CharacterType) and widening(data_type, other) is Widening.NOTHING


def _check_keys_keep_types(stored: Stored, column: Column) -> None:
    """A foreign key's columns have the types of those that they reference, on both sides, always."""
    key = stored.state.primary_key
    is_referenced = bool(stored.state.referenced_by) and key is not None and column.key in keys(key.columns)
    is_bound = column.key in _in_foreign_keys(stored) or is_referenced
    require(not is_bound, "INVALID_PARAMETER_VALUE", f"a foreign key needs the type of {column.name}")


def _with_nullability(stored: Stored, column: Column, is_nullable: bool) -> Stored:
    key = stored.state.primary_key
    is_key = key is not None and column.key in keys(key.columns)
    require(not (is_nullable and is_key), "INVALID_PARAMETER_VALUE", f"{column.name} is in the primary key")
    nulls = 0 if is_nullable else stored.nulls.get(column.key, 0)
    require(not nulls, "DELTA_NEW_NOT_NULL_VIOLATION", f"{nulls} rows have NULL in {column.name}")
    return stored.with_column(column.name, is_nullable=is_nullable)


def _with_default(stored: Stored, column: Column, default: str | None) -> Stored:
    check_defaults(stored, default)
    require(
        default is None or column.generated_as is None,
        "GENERATED_COLUMN_WITH_DEFAULT_VALUE",
        f"{column.name} is generated",
    )
    return stored.with_column(column.name, default=default)


def check_defaults(stored: Stored, default: str | None) -> None:
    """Refuse a default on a table that does not have the feature."""
    require(
        default is None or stored.value_of("delta.feature.allowColumnDefaults"),
        "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
        f"{stored.name} needs delta.feature.allowColumnDefaults",
    )


def _moved(stored: Stored, column: Column, after: str | None) -> Stored:
    others = [existing for existing in stored.state.columns if existing.key != column.key]
    place = 0 if after is None else others.index(stored.column(after)) + 1
    return stored.with_state(columns=(*others[:place], column, *others[place:]))


def _moved_field(fields: Fields, name: str, after: str | None) -> Fields:
    (moved,) = [field for field in fields if field.name.lower() == name.lower()]
    others = [field for field in fields if field is not moved]
    names = keys(field.name for field in others)
    place = 0 if after is None else names.index(after.lower()) + 1
    return (*others[:place], moved, *others[place:])

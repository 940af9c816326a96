"""Keys and checks: names that are one's own, parents that have the key, keys that nobody pulls away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from delta_engine.models import CheckConstraint, ForeignKey, PrimaryKey, QualifiedName
from delta_engine.models.types import is_same_type
from delta_engine.sql.expressions import databricks_dialect
from tests.fakes.spark_strings import as_delta_stores
from tests.fakes.unity_catalog.refusals import Refusal, require
from tests.fakes.unity_catalog.statements import DropConstraint, UniqueConstraint
from tests.fakes.unity_catalog.stored import Stored, columns_in, keys

Tables = Mapping[str, Stored]
"""All tables of the catalog, by their names' keys."""

_MAX_NAME = 255


def with_constraint(
    stored: Stored, constraint: PrimaryKey | ForeignKey | CheckConstraint | UniqueConstraint, tables: Tables
) -> Stored:
    match constraint:
        case UniqueConstraint(name, columns):
            for column in columns:
                stored.column(column)
            names = (*stored.state.unique_constraints, _new_name(stored, name, tables))
            return stored.with_state(unique_constraints=names)
        case PrimaryKey():
            return _with_primary_key(stored, constraint, tables)
        case ForeignKey():
            return _with_foreign_key(stored, constraint, tables)
        case CheckConstraint():
            return _with_check(stored, constraint)


def _with_primary_key(stored: Stored, key: PrimaryKey, tables: Tables) -> Stored:
    require(stored.state.primary_key is None, "INVALID_PARAMETER_VALUE", f"{stored.name} has a primary key")
    name = _new_name(stored, key.name, tables)
    columns = [stored.column(column) for column in key.columns]
    nullable = [column.name for column in columns if column.is_nullable]
    require(not nullable, "INVALID_PARAMETER_VALUE", f"primary key columns are nullable: {nullable}")
    _require_distinct(key.columns)
    return stored.with_state(primary_key=PrimaryKey((column.name for column in columns), name, key.rely))


def _with_foreign_key(stored: Stored, key: ForeignKey, tables: Tables) -> Stored:
    name = _new_name(stored, key.name, tables)
    parent_name = QualifiedName(*stored.name.resolve(key.references).key.split("."))
    parent = stored if parent_name == stored.name else tables.get(parent_name.key)
    if parent is None:
        raise Refusal("TABLE_OR_VIEW_NOT_FOUND", f"there is no {parent_name}")
    referenced = parent.state.primary_key
    if referenced is None:
        raise Refusal("INVALID_PARAMETER_VALUE", f"{parent_name} has no primary key")
    wanted = key.referenced_columns or referenced.columns
    is_key = keys(wanted) == keys(referenced.columns) and len(key.columns) == len(wanted)
    require(is_key, "FOREIGN_KEY_MISMATCH", f"{wanted} is not the primary key of {parent_name}")
    _require_distinct(key.columns)
    for own, other in zip(key.columns, wanted, strict=True):
        types = stored.column(own).data_type, parent.column(other).data_type
        require(is_same_type(*types), "INVALID_PARAMETER_VALUE", f"{own} is not of the type of {other}")
    made = ForeignKey(
        (stored.column(name_of_key).name for name_of_key in key.columns),
        str(parent_name),
        referenced.columns,
        name,
        key.rely,
    )
    return stored.with_state(foreign_keys=(*stored.state.foreign_keys, made))


def _with_check(stored: Stored, check: CheckConstraint) -> Stored:
    is_protected = stored.state.row_filter or any(column.mask for column in stored.state.columns)
    require(not is_protected, None, f"{stored.name} has a row filter or masks, so it cannot have checks")
    name = check.name.lower()
    taken = {check.name for check in stored.state.checks}
    require(name not in taken, "DELTA_CONSTRAINT_ALREADY_EXISTS", f"{stored.name} has {name} already")
    expression = as_delta_stores(check.expression)
    _check_condition(expression)
    for column in columns_in(expression):
        stored.column(column)
    return stored.with_state(checks=(*stored.state.checks, CheckConstraint(name, expression)))


def _check_condition(text: str) -> None:
    """Refuse what is no condition on single rows; subqueries Delta takes, and then fails every write."""
    try:
        tree = sqlglot.parse_one(text, dialect=databricks_dialect())
    except SqlglotError as error:
        raise Refusal("PARSE_SYNTAX_ERROR", f"{text!r} is no expression") from error
    refused: dict[str | None, type[exp.Expr] | tuple[type[exp.Expr], ...]] = {
        "UNBOUND_SQL_PARAMETER": exp.Placeholder,
        "UNSUPPORTED_GENERATOR.OUTSIDE_SELECT": exp.UDTF,
        "INVALID_WHERE_CONDITION": (exp.AggFunc, exp.Window),
        "INVALID_USAGE_OF_STAR_OR_REGEX": exp.Star,
        None: exp.Query,
    }
    for error_class, kinds in refused.items():
        subqueries = [node for node in tree.walk() if isinstance(node, kinds)]
        require(not subqueries, error_class, f"{text!r} is no condition on single rows")
    require(
        not isinstance(tree, exp.Literal), "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT", f"{text} is no condition"
    )


def without_constraint(stored: Stored, change: DropConstraint) -> Stored:
    """Drop a key by its stored spelling, or a check by its name."""
    state, name = stored.state, change.name
    if state.primary_key is not None and state.primary_key.name == name:
        require(not state.referenced_by, "INVALID_PARAMETER_VALUE", f"foreign keys reference {name}")
        return stored.with_state(primary_key=None)
    keys_left = tuple(key for key in state.foreign_keys if key.name != name)
    checks_left = tuple(check for check in state.checks if check.name != name.lower())
    unique_left = tuple(unique for unique in state.unique_constraints if unique != name)
    left = {"foreign_keys": keys_left, "checks": checks_left, "unique_constraints": unique_left}
    is_found = any(getattr(state, field) != parts for field, parts in left.items())
    require(is_found or change.if_exists, "CONSTRAINT_DOES_NOT_EXIST", f"{stored.name} has no {name}")
    return stored.with_state(**left)


def without_keys_on(stored: Stored, column: str) -> Stored:
    """Take away the keys over a column: what RENAME COLUMN does without a word."""
    key = stored.state.primary_key
    return stored.with_state(
        primary_key=None if key and column.lower() in keys(key.columns) else key,
        foreign_keys=tuple(
            foreign_key
            for foreign_key in stored.state.foreign_keys
            if column.lower() not in keys(foreign_key.columns)
        ),
    )


def without_references_to(stored: Stored, parent: QualifiedName) -> Stored:
    left = tuple(key for key in stored.state.foreign_keys if key.references != str(parent))
    return stored.with_state(foreign_keys=left)


def with_renamed_parent(stored: Stored, parent: QualifiedName, name: QualifiedName) -> Stored:
    return stored.with_state(
        foreign_keys=tuple(
            replace_reference(key, str(name)) if key.references == str(parent) else key
            for key in stored.state.foreign_keys
        )
    )


def replace_reference(key: ForeignKey, parent: str) -> ForeignKey:
    return ForeignKey(key.columns, parent, key.referenced_columns, key.name, key.rely)


def _new_name(stored: Stored, name: str | None, tables: Tables) -> str:
    lower_name = (name or "").lower()
    require(0 < len(lower_name) <= _MAX_NAME, "INVALID_PARAMETER_VALUE", f"{name!r} is no constraint's name")
    within = {**tables, stored.name.key: stored}.values()
    schema = (stored.name.catalog, stored.name.schema)
    beside = (
        stored_table
        for stored_table in within
        if (stored_table.name.catalog, stored_table.name.schema) == schema
    )
    taken = {name for stored_table in beside for name in _key_names(stored_table)}
    require(
        lower_name not in taken,
        "INVALID_PARAMETER_VALUE",
        f"the schema has a constraint {lower_name} already",
    )
    return lower_name


def _key_names(stored: Stored) -> Iterable[str | None]:
    if stored.state.primary_key:
        yield stored.state.primary_key.name
    for key in stored.state.foreign_keys:
        yield key.name
    yield from stored.state.unique_constraints


def _require_distinct(names: Iterable[str]) -> None:
    lower_names = keys(names)
    require(
        len({*lower_names}) == len(lower_names),
        "COLUMN_ALREADY_EXISTS",
        f"a key has a column twice: {lower_names}",
    )

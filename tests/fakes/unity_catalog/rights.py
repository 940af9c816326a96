"""Who may do what: only owners change tables, reference them, and create or drop them in their schemas.

`MANAGE` lets a principal grant, revoke and SHOW GRANTS. The views show it its own grants alone, and owners all of them
(Databricks' SQL reference, "TABLE_PRIVILEGES").
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from delta_engine.models import ForeignKey, Grants, QualifiedName
from delta_engine.state.function_states import FunctionState
from delta_engine.state.principals import Permissions
from delta_engine.state.states import SchemaState
from tests.fakes.unity_catalog import statements
from tests.fakes.unity_catalog.refusals import require
from tests.fakes.unity_catalog.stored import Stored
from tests.fakes.unity_catalog.user_views import StoredView

ERROR_CLASS = "INSUFFICIENT_PERMISSIONS"


def check_rights(
    statement: statements.Statement,
    user: str,
    tables: Mapping[str, Stored],
    schemas: Mapping[str, SchemaState],
    functions: Mapping[str, FunctionState],
    views: Mapping[str, StoredView],
) -> None:
    """Refuse a statement about tables, functions and views that are not the user's, or in a schema that is not."""
    key = ".".join(statement.name).lower()
    match statement:
        case statements.CreateView() | statements.AlterView() | statements.DropView():
            _check_view(key, user, schemas, views)
            return
        case statements.CommentOn("COLUMN", (*path, _)):
            _check_view(".".join(path).lower(), user, schemas, views)
            return
        case statements.CommentOn() | statements.AlterTable() if key in views:
            _check_view(key, user, schemas, views)
            return
        case statements.Grant("VIEW") | statements.Revoke("VIEW"):
            view = views.get(key)
            may = view is None or view.owner == user or "MANAGE" in view.grants.get(user, ())
            require(may, ERROR_CLASS, f"you neither own {key} nor have MANAGE on it")
            return
        case statements.Grant("FUNCTION") | statements.Revoke("FUNCTION"):
            _require_function_manager(key, user, functions)
            return
        case statements.Grant() | statements.Revoke() | statements.DropPolicy():
            require_manager(key, user, tables, schemas)
            return
        case statements.CreatePolicy(_, policy):
            require_manager(key, user, tables, schemas)
            _require_execute(str(policy.function), user, functions)
            return
        case statements.CreateFunction() | statements.DropFunction() | statements.AlterFunction():
            _check_function(key, user, schemas, functions)
            return
    for name in _tables(statement):
        schema = schemas.get(f"{name.catalog}.{name.schema}".lower())
        require(schema is None or schema.owner == user, ERROR_CLASS, f"the schema of {name} is not yours")
        table = tables.get(name.key)
        require(table is None or table.state.owner == user, ERROR_CLASS, f"{name} is not yours")


def _check_function(
    key: str, user: str, schemas: Mapping[str, SchemaState], functions: Mapping[str, FunctionState]
) -> None:
    """Refuse to create a function without CREATE FUNCTION on the schema, and to change that of another owner."""
    if key in functions:
        require(functions[key].owner == user, ERROR_CLASS, f"{key} is not yours")
        return
    schema = schemas.get(key.rpartition(".")[0])
    held = () if schema is None else schema.grants.get(user, ())
    may = schema is None or schema.owner == user or "CREATE FUNCTION" in held
    require(may, ERROR_CLASS, f"you lack CREATE FUNCTION on the schema of {key}")


def _check_view(
    key: str, user: str, schemas: Mapping[str, SchemaState], views: Mapping[str, StoredView]
) -> None:
    """Refuse to create a view without CREATE TABLE on the schema, and to change that of another owner."""
    if key in views:
        require(views[key].owner == user, ERROR_CLASS, f"{key} is not yours")
        return
    schema = schemas.get(key.rpartition(".")[0])
    held = () if schema is None else schema.grants.get(user, ())
    may = schema is None or schema.owner == user or "CREATE TABLE" in held
    require(may, ERROR_CLASS, f"you lack CREATE TABLE on the schema of {key}")


def _require_function_manager(key: str, user: str, functions: Mapping[str, FunctionState]) -> None:
    function = functions.get(key)
    may = function is None or function.owner == user or "MANAGE" in function.grants.get(user, ())
    require(may, ERROR_CLASS, f"you neither own {key} nor have MANAGE on it")


def _require_execute(key: str, user: str, functions: Mapping[str, FunctionState]) -> None:
    function = functions.get(key)
    held = {} if function is None else function.grants
    rights = {*held.get(user, ()), *held.get("account users", ())}
    may = function is None or function.owner == user or not rights.isdisjoint({"EXECUTE", "ALL PRIVILEGES"})
    require(may, ERROR_CLASS, f"you lack EXECUTE on {key}")


def require_manager(
    key: str, user: str, tables: Mapping[str, Stored], schemas: Mapping[str, SchemaState]
) -> None:
    """Refuse a user who neither owns a table or schema nor has MANAGE on it; what is not there is refused later."""
    securable = tables[key].state if key in tables else schemas.get(key)
    may = securable is None or securable.owner == user or "MANAGE" in securable.grants.get(user, ())
    require(may, ERROR_CLASS, f"you neither own {key} nor have MANAGE on it")


def shown_to(
    user: str | None, tables: Mapping[str, Stored], schemas: Mapping[str, SchemaState]
) -> tuple[Mapping[str, Stored], Mapping[str, SchemaState]]:
    """Return tables and schemas with those of their grants that the views show a user; None sees everything."""
    if user is None:
        return tables, schemas
    return (
        {
            key: table.with_state(grants=_shown(table.state.grants, table.state.owner, user))
            for key, table in tables.items()
        },
        {
            key: replace(schema, grants=_shown(schema.grants, schema.owner, user))
            for key, schema in schemas.items()
        },
    )


def visible_to(
    who: Collection[str],
    tables: Mapping[str, Stored],
    schemas: Mapping[str, SchemaState],
    catalogs: Mapping[str, Permissions],
) -> tuple[Mapping[str, Stored], Mapping[str, SchemaState]]:
    """Return the tables and schemas on which one of some principals has a privilege, inherited ones included.

    Databricks' SQL reference, "Information schema": it shows only the objects that the user may access. Access to a
    table also needs USE SCHEMA and USE CATALOG ("Unity Catalog permissions model concepts").
    """

    holders = {
        **{key: _holders(table.state.owner, table.state.grants) for key, table in tables.items()},
        **{key: _holders(schema.owner, schema.grants) for key, schema in schemas.items()},
        **{key: _holders(catalog.owner, catalog.grants) for key, catalog in catalogs.items()},
    }

    def is_visible(key: str) -> bool:
        levels = [key.rsplit(".", count)[0] for count in range(key.count(".") + 1)]
        held = {holding for level in levels for holding in holders.get(level, ())}
        held = {*holders.get(key, ()), *(holding for holding in held if holding[1] not in _USES)}
        return any(name in who for name, _ in held)

    def may_use(key: str) -> bool:
        catalog, _, _ = key.partition(".")
        schema = key.rpartition(".")[0]
        return _holds("USE CATALOG", who, holders.get(catalog, ())) and _holds(
            "USE SCHEMA", who, (*holders.get(catalog, ()), *holders.get(schema, ()))
        )

    return (
        {key: table for key, table in tables.items() if is_visible(key) and may_use(key)},
        {key: schema for key, schema in schemas.items() if is_visible(key)},
    )


_USES = ("USE CATALOG", "USE SCHEMA")
"""Privileges that show what they are granted on, and nothing inside it."""


def _holds(privilege: str, who: Collection[str], held: Iterable[tuple[str | None, str]]) -> bool:
    return any(name in who and right in (privilege, "ALL PRIVILEGES", "OWN") for name, right in held)


def _holders(owner: str | None, grants: Grants) -> set[tuple[str | None, str]]:
    return {(owner, "OWN"), *((who, privilege) for who, held in grants.items() for privilege in held)}


def _shown(grants: Grants, owner: str | None, user: str) -> Grants:
    return grants if owner == user else {name: held for name, held in grants.items() if name == user}


def _tables(statement: statements.Statement) -> Iterator[QualifiedName]:
    """Yield the tables that a statement changes or references."""
    match statement:
        case (
            statements.CreateTable(path)
            | statements.AlterTable(path)
            | statements.DropTable(path)
            | statements.Update(path)
            | statements.Restore(path)
            | statements.RewriteTable(path)
        ):
            yield QualifiedName(*path)
        case statements.CommentOn("TABLE", path):
            yield QualifiedName(*path)
    for key in _foreign_keys(statement):
        yield QualifiedName(*statement.name).resolve(key.references)


def _foreign_keys(statement: statements.Statement) -> tuple[ForeignKey, ...]:
    match statement:
        case statements.CreateTable(_, state):
            return state.foreign_keys
        case statements.AlterTable(_, statements.AddConstraint(ForeignKey() as key)):
            return (key,)
    return ()

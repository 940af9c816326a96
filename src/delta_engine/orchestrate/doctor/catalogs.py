"""Checks of Unity Catalog: catalogs, schemas, the reader's views, the plan of a sync, and rights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from delta_engine.actions import TablePlan
from delta_engine.aspects.rights import Right
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.errors import RefusedError
from delta_engine.models import QualifiedName, Schema
from delta_engine.orchestrate.runs import PlannedRun
from delta_engine.report.doctor_report import Check, Topic
from delta_engine.report.plan_tree import counted, plan_summary
from delta_engine.sql.governance import sql_grant
from delta_engine.sql.tables import sql_create_schema
from delta_engine.sql.text import quote_ident
from delta_engine.state.principals import PrincipalReader
from delta_engine.state.states import CatalogState
from delta_engine.state.unity_catalog.information_schema import OF_SCHEMAS, OF_TABLES, SCHEMATA, TABLES, View
from delta_engine.validation.needed_rights import (
    Need,
    Securable,
    Verdict,
    functions_of,
    locations_of,
    merged,
    rights_at_hand,
    table_securable,
)

_VIEW_COLUMNS: Final = View(
    name="columns", columns=("table_name", "column_name"), schema_column="table_schema"
)

_QUERIED: Final[Mapping[str, Sequence[str]]] = {
    **{view.name: view.columns for view in (SCHEMATA, TABLES, *OF_SCHEMAS, *OF_TABLES)},
    "catalogs": ("catalog_name", "catalog_owner"),
    "catalog_privileges": ("catalog_name", "grantee", "privilege_type"),
}
"""The columns that the reader names, by view. Views without columns are read whole: spellings vary by workspace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogUse:
    """The declared tables, the engine's own tables and the schemas that an environment uses in one catalog.

    Catalog and schema names are in lower case. `created` holds the schemas that a sync creates if they are missing.
    """

    catalog: str
    tables: tuple[QualifiedName, ...]
    schemas: tuple[str, ...]
    created: frozenset[str] = frozenset()


def catalog_uses(
    declared: Sequence[QualifiedName],
    schemas: Sequence[Schema],
    own: Sequence[QualifiedName],
    *,
    creates_schemas: bool,
) -> tuple[CatalogUse, ...]:
    """Return an environment's use of each catalog, sorted by name."""
    tables: dict[str, list[QualifiedName]] = defaultdict(list)
    for name in (*declared, *own):
        tables[name.catalog.lower()].append(name)
    pairs = {(name.catalog.lower(), name.schema.lower()) for name in declared}
    pairs |= {(one.catalog_name.lower(), one.schema_name.lower()) for one in schemas}
    all_pairs = pairs | {(name.catalog.lower(), name.schema.lower()) for name in own}
    return tuple(
        CatalogUse(
            catalog=catalog,
            tables=tuple(tables[catalog]),
            schemas=tuple(sorted(schema for of, schema in all_pairs if of == catalog)),
            created=frozenset(schema for of, schema in pairs if of == catalog and creates_schemas),
        )
        for catalog in sorted({catalog for catalog, _ in all_pairs})
    )


def catalog_checks(
    use: CatalogUse, observed: CatalogState, refusals: Sequence[RefusedError]
) -> Iterator[Check]:
    """Yield the missing catalogs and schemas, and the unreadable tables."""
    read = [table for table in use.tables if observed.tables.get(table.key) is not None]
    count = sum(observed.table(table).exists for table in read)
    found = f"it can be read; {counted(count, 'table')} of {len(use.tables)} there"
    yield Check.ok(Topic.CATALOGS, f"catalog {use.catalog}", found)
    missing = {schema for _, schema in observed.missing_schemas}
    for schema in use.schemas:
        subject = f"schema {use.catalog}.{schema}"
        if schema not in missing:
            yield Check.ok(Topic.CATALOGS, subject, "it is there")
        elif schema in use.created:
            yield Check.ok(Topic.CATALOGS, subject, "it is not there; the next sync creates it")
        else:
            create = sql_create_schema(use.catalog, schema)
            way_out = f"{create}. If it exists: GRANT {Right.USE_SCHEMA.privilege} on it."
            found = "it does not exist, or is not visible to this identity"
            yield Check.missing(Topic.CATALOGS, subject, found, way_out)
    for refusal in refusals:
        yield Check.missing(Topic.CATALOGS, f"table {refusal.table}", refusal.reason, refusal.way_out)


def view_check(runner: SqlRunner, catalog: str) -> Check:
    """Return whether the views of a catalog have the columns that the reader names; may raise StatementError."""
    subject = f"{catalog}.information_schema"
    listed: dict[str, set[str]] = defaultdict(set)
    for row in runner.run(_VIEW_COLUMNS.query(catalog, ["information_schema"])):
        listed[str(row["table_name"]).lower()].add(str(row["column_name"]).lower())
    if not listed:
        found = "the views do not list themselves, so their columns are not known"
        return Check.unknown(Topic.VIEWS, subject, found)
    lacking = [
        f"{view}.{column}" if view in listed else view
        for view, columns in _QUERIED.items()
        for column in ((set(columns) - listed[view]) if view in listed else [""])
    ]
    if not lacking:
        found = f"{len(_QUERIED)} views have the columns that the reader asks for"
        return Check.ok(Topic.VIEWS, subject, found)
    way_out = "Report it with this output: the reader asks for these columns."
    return Check.missing(Topic.VIEWS, subject, f"not there: {', '.join(sorted(lacking))}", way_out)


def plan_checks(planned: PlannedRun, *, is_recorded: bool) -> Iterator[Check]:
    """Yield the pending changes and the refusals of a sync; `is_recorded` if the plan used the deployment state."""
    without = "" if is_recorded else " (planned without the deployment state)"
    yield Check.ok(Topic.PLAN, "sync", f"{plan_summary(planned.plan)}{without}")
    for refusal in planned.refusals:
        found = f"it would refuse: {str(refusal).removesuffix(refusal.way_out).strip()}"
        yield Check.missing(Topic.PLAN, "sync", found, refusal.way_out)


def unchecked_rights(plan: TablePlan, principal: str) -> Iterator[Check]:
    """Yield the rights of a plan that the doctor cannot check: on functions and on external locations."""
    found = "the plan needs it, and the doctor does not check it"
    for function in functions_of(plan):
        address = ".".join(map(quote_ident, (function.catalog, function.schema, function.table)))
        grant = sql_grant(f"FUNCTION {address}", ["EXECUTE"], principal)
        yield Check.unknown(
            Topic.RIGHTS, f"EXECUTE on function {function}", found, f"If it is missing: {grant}"
        )
    for location in locations_of(plan):
        grant = sql_grant("EXTERNAL LOCATION `<name>`", ["CREATE EXTERNAL TABLE"], principal)
        subject = f"CREATE EXTERNAL TABLE on the external location of {location}"
        way_out = f"If it is missing, with the name of that location: {grant}"
        yield Check.unknown(Topic.RIGHTS, subject, found, way_out)


def basic_needs(
    uses: Sequence[CatalogUse], own: Sequence[QualifiedName], observed: CatalogState
) -> Iterator[Need]:
    """Yield the rights for reading the catalogs, as far as they are readable, and for the engine's own tables."""
    for use in uses:
        yield Need(securable=Securable((use.catalog,)), right=Right.USE_CATALOG)
        for schema in use.schemas:
            if f"{use.catalog}.{schema}" in observed.schema_states:
                above = Securable((use.catalog, schema))
                yield Need(securable=above, right=Right.USE_SCHEMA, owners_above=True)
    for table in (table for use in uses for table in use.tables):
        if _exists(table, observed):
            yield Need(securable=table_securable(table), right=Right.SELECT)
    for table in own:
        above = Securable((table.catalog, table.schema))
        if _exists(table, observed):
            yield Need(securable=table_securable(table), right=Right.MODIFY, statements=("its rows",))
        elif above.levels[0] in observed.schema_states:
            yield Need(securable=above, right=Right.CREATE_TABLE, statements=(f"CREATE TABLE {table}",))


def _exists(table: QualifiedName, observed: CatalogState) -> bool:
    return table.key in observed.tables and observed.table(table).exists


def right_checks(reader: PrincipalReader, needed: Sequence[Need], observed: CatalogState) -> Iterator[Check]:
    """Yield whether the identity has each right, as far as it can see; may raise StatementError."""
    at_hand = rights_at_hand(reader, needed, observed)
    name = at_hand.principal.name
    for need in merged(needed):
        statements = f" for {', '.join(need.statements)}" if need.statements else ""
        subject = f"{need.right.privilege} on {need.securable}"
        grant = need.securable.grant(need.right, name)
        match at_hand.verdict(need):
            case Verdict.HELD:
                yield Check.ok(Topic.RIGHTS, subject, f"held{statements}")
            case Verdict.LACKING:
                owner = at_hand.owner(need.securable)
                owned = f"; its owner is {owner}" if owner else ""
                yield Check.missing(Topic.RIGHTS, subject, f"not granted{statements}{owned}", grant)
            case Verdict.HIDDEN:
                found = f"no right of {name} is visible{statements}: information_schema hides some grants"
                yield Check.unknown(Topic.RIGHTS, subject, found, f"If it is missing: {grant}")

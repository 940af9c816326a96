"""Catalogs and schemas, as the reader sees them, and the columns that it asks the views for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from delta_engine.aspects.rights import Right
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.models import QualifiedName, Schema
from delta_engine.orchestrate.backend import Backend
from delta_engine.report.doctor_report import Check, Status, Topic
from delta_engine.report.plan_tree import counted
from delta_engine.sql import sql_create_schema
from delta_engine.state.catalog_reader import bare_model, readable_snapshot
from delta_engine.state.states import CatalogState
from delta_engine.state.unity_catalog.information_schema import OF_SCHEMAS, OF_TABLES, SCHEMATA, TABLES, View
from delta_engine.validation.needed_rights import Securable

_THEMSELVES: Final = View(name="columns", columns=("table_name", "column_name"), schema_column="table_schema")

_ASKED: Final[Mapping[str, Sequence[str]]] = {
    **{view.name: view.columns for view in (SCHEMATA, TABLES, *OF_SCHEMAS, *OF_TABLES)},
    "catalogs": ("catalog_name", "catalog_owner"),
    "catalog_privileges": ("catalog_name", "grantee", "privilege_type"),
}
"""What is asked of each view; of those without columns everything is, because workspaces spell some otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What an environment uses of one catalog.

    Args:
        catalog: its name, in lower case.
        tables: the declared tables, and those that the engine keeps for itself.
        schemas: the schemas of them, and the declared ones, in lower case.
        made: the schemas that a sync creates where they are missing.
    """

    catalog: str
    tables: tuple[QualifiedName, ...]
    schemas: tuple[str, ...]
    made: frozenset[str] = frozenset()

    @property
    def use_catalog(self) -> Securable:
        """The catalog as something that rights are granted on."""
        return Securable((self.catalog,))


def wanted_by_catalog(
    declared: Sequence[QualifiedName],
    schemas: Sequence[Schema],
    own: Sequence[QualifiedName],
    *,
    makes_schemas: bool,
) -> tuple[Wanted, ...]:
    """Return what is used of each catalog, sorted by name.

    Args:
        declared: the declared tables.
        schemas: the declared schemas.
        own: tables that the engine keeps for itself.
        makes_schemas: whether a sync creates the schemas of declared tables.
    """
    tables: dict[str, list[QualifiedName]] = defaultdict(list)
    for name in (*declared, *own):
        tables[name.catalog.lower()].append(name)
    pairs = {(name.catalog.lower(), name.schema.lower()) for name in declared}
    pairs |= {(one.catalog_name.lower(), one.schema_name.lower()) for one in schemas}
    all_pairs = pairs | {(name.catalog.lower(), name.schema.lower()) for name in own}
    return tuple(
        Wanted(
            catalog=catalog,
            tables=tuple(tables[catalog]),
            schemas=tuple(sorted(schema for of, schema in all_pairs if of == catalog)),
            made=frozenset(schema for of, schema in pairs if of == catalog and makes_schemas),
        )
        for catalog in sorted({catalog for catalog, _ in all_pairs})
    )


def look_at_catalog(backend: Backend, wanted: Wanted) -> tuple[tuple[Check, ...], CatalogState]:
    """Return whether a catalog and its schemas are there, which tables cannot be read, and what was read.

    Raises:
        CatalogReadError, StatementError: the catalog cannot be read at all.
    """
    schemas = [Schema(wanted.catalog, schema) for schema in wanted.schemas]
    observed, refusals = readable_snapshot(backend.reader, list(map(bare_model, wanted.tables)), schemas)
    there = [table for table in wanted.tables if observed.tables.get(table.key) is not None]
    count = sum(observed.table(table).exists for table in there)
    found = f"it can be read; {counted(count, 'table')} of {len(wanted.tables)} there"
    checks = [Check(topic=Topic.CATALOGS, subject=f"catalog {wanted.catalog}", status=Status.OK, found=found)]
    missing = {schema for _, schema in observed.missing_schemas}
    checks += [_schema_check(wanted, schema, is_missing=schema in missing) for schema in wanted.schemas]
    checks += [
        Check(
            topic=Topic.CATALOGS,
            subject=f"table {refusal.table}",
            status=Status.MISSING,
            found=refusal.reason,
            way_out=refusal.way_out,
        )
        for refusal in refusals
    ]
    return tuple(checks), observed


def _schema_check(wanted: Wanted, schema: str, *, is_missing: bool) -> Check:
    subject = f"schema {wanted.catalog}.{schema}"
    if not is_missing:
        return Check(topic=Topic.CATALOGS, subject=subject, status=Status.OK, found="it is there")
    if schema in wanted.made:
        found = "it is not there; the next sync creates it"
        return Check(topic=Topic.CATALOGS, subject=subject, status=Status.OK, found=found)
    return Check(
        topic=Topic.CATALOGS,
        subject=subject,
        status=Status.MISSING,
        found="it does not exist, or is not visible to this identity",
        way_out=f"{sql_create_schema(wanted.catalog, schema)}. If it exists: GRANT {Right.USE_SCHEMA.privilege} on it.",
    )


def view_checks(runner: SqlRunner, catalog: str) -> Iterator[Check]:
    """Yield whether the views of a catalog have the columns that the reader asks for, by name.

    Raises:
        StatementError: the platform refused the question.
    """
    listed: dict[str, set[str]] = defaultdict(set)
    for row in runner.run(_THEMSELVES.query(catalog, ["information_schema"])):
        listed[str(row["table_name"]).lower()].add(str(row["column_name"]).lower())
    if not listed:
        yield _view_check(
            catalog, Status.UNKNOWN, "the views do not list themselves, so their columns are not known"
        )
        return
    lacking = [
        f"{view}.{column}" if view in listed else view
        for view, columns in _ASKED.items()
        for column in ((set(columns) - listed[view]) if view in listed else [""])
    ]
    if lacking:
        found = f"not there: {', '.join(sorted(lacking))}"
        yield _view_check(
            catalog, Status.MISSING, found, "Report it with this output: the reader asks for these columns."
        )
    else:
        found = f"{len(_ASKED)} views have the columns that the reader asks for"
        yield _view_check(catalog, Status.OK, found)


def _view_check(catalog: str, status: Status, found: str, way_out: str = "") -> Check:
    subject = f"{catalog}.information_schema"
    return Check(topic=Topic.VIEWS, subject=subject, status=status, found=found, way_out=way_out)

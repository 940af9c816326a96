"""Every kind of drift that plain Delta cannot have, made once in Unity Catalog: who did it, and what nothing tells."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from delta_engine.actions.drift_policy import DriftKind as Kind
from tests.fakes.unity_catalog.audit import AuditLog
from tests.projects.catalog_project import CatalogProject

TABLES = (
    "name: orders, columns: [{name: id, type: bigint, tags: {pii: 'no'}}, {name: name, type: string, "
    "mask: dev.f.hide}], row_filter: {function: dev.f.mine, columns: [id]}, tags: {domain: sales}, owner: team, "
    "grants: {analysts: [SELECT]}",
    "name: keyed, columns: [{name: id, type: bigint, nullable: false}], primary_key: {name: pk, columns: [id]}",
    "name: gone, columns: [{name: id, type: bigint}]",
    "name: moved, columns: [{name: id, type: bigint}], location: 's3://bucket/a'",
    "name: counted, columns: [{name: id, type: bigint, identity: true}]",
)
SCHEMAS = (
    "schemas:\n  - {catalog: dev, name: silver, comment: Cleaned, tags: {layer: '2'}, owner: team, "
    "grants: {analysts: [USE SCHEMA]}}\n  - {catalog: dev, name: others, comment: Others}\n"
)


class Drift(NamedTuple):
    """A change, the drift that it makes, and its operation; None if neither the history nor the audit log tells."""

    statements: tuple[str, ...]
    kind: Kind
    operation: str | None


def by(change: str, table: str = "orders") -> tuple[str, ...]:
    return (f"ALTER TABLE `dev`.`silver`.`{table}` {change}",)


def again(table: str, rest: str) -> tuple[str, ...]:
    name = f"`dev`.`silver`.`{table}`"
    return (f"DROP TABLE {name}", f"CREATE TABLE {name} (`id` BIGINT) USING DELTA {rest}")


SECURABLE, PERMISSIONS = "UpdateTagSecurableAssignments", "updatePermissions"
SILVER, ORDERS = "SCHEMA `dev`.`silver`", "TABLE `dev`.`silver`.`orders`"
DRIFT = (
    Drift(by("SET TAGS ('domain' = 'ads')"), Kind.TABLE_TAG, SECURABLE),
    Drift(by("ALTER COLUMN id SET TAGS ('pii' = 'yes')"), Kind.COLUMN_TAG, "UpdateTagSubentityAssignments"),
    Drift((f"REVOKE SELECT ON {ORDERS} FROM `analysts`",), Kind.GRANT, PERMISSIONS),
    Drift(by("OWNER TO `eve`"), Kind.OWNER, None),
    Drift(by("ALTER COLUMN name SET MASK dev.f.show"), Kind.COLUMN_MASK, None),
    Drift(by("SET ROW FILTER dev.f.all ON (id)"), Kind.ROW_FILTER, None),
    Drift(by("DROP CONSTRAINT pk", "keyed"), Kind.PRIMARY_KEY, None),
    Drift(("DROP TABLE `dev`.`silver`.`gone`",), Kind.TABLE_DELETED, "deleteTable"),
    Drift(again("moved", "LOCATION 's3://bucket/b'"), Kind.LOCATION, "CREATE TABLE"),
    Drift(again("counted", ""), Kind.COLUMN_GENERATION, "CREATE TABLE"),
    Drift((f"COMMENT ON {SILVER} IS 'x'",), Kind.SCHEMA_COMMENT, None),
    Drift((f"ALTER {SILVER} SET TAGS ('layer' = '3')",), Kind.SCHEMA_TAG, SECURABLE),
    Drift((f"REVOKE USE SCHEMA ON {SILVER} FROM `analysts`",), Kind.SCHEMA_GRANT, PERMISSIONS),
    Drift((f"ALTER {SILVER} OWNER TO `eve`",), Kind.SCHEMA_OWNER, None),
    Drift(("DROP SCHEMA `dev`.`others` CASCADE",), Kind.SCHEMA_DELETED, "deleteSchema"),
)
ADDED = (
    Drift((f"GRANT MODIFY ON {ORDERS} TO `eve`",), Kind.GRANT_ADDED, PERMISSIONS),
    Drift((f"GRANT MODIFY ON {SILVER} TO `eve`",), Kind.SCHEMA_GRANT_ADDED, PERMISSIONS),
)
UNRECORDED = {
    Kind.OWNER: "the audited event of an update comes with writes, too",
    Kind.COLUMN_MASK: "as for the owner",
    Kind.ROW_FILTER: "as for the owner",
    Kind.SCHEMA_COMMENT: "as for the owner",
    Kind.SCHEMA_OWNER: "as for the owner",
    Kind.PRIMARY_KEY: "keys of Unity Catalog are in no commit",
}


@pytest.mark.parametrize(("changes", "policy"), [(DRIFT, ""), (ADDED, "tags: full, grants: full")])
def test_the_author_of_every_change_is_named_if_anything_records_it(
    catalog_project: CatalogProject, changes: tuple[Drift, ...], policy: str
) -> None:
    catalog_project.catalog.audit_log = AuditLog()
    catalog_project.configure(policy)
    catalog_project.declare(*TABLES, schemas=SCHEMAS)
    catalog_project.sync()
    for drift in changes:
        catalog_project.by_hand(*drift.statements, user=drift.kind.value)
    report: dict[str, Any] = json.loads(catalog_project.run("drift --json").stdout)
    assert all("cannot undo" in note or "shows no history" in note for note in report["notes"])
    changes_by_kind = {
        finding["kind"]: finding["changed"]
        for part in ("drifted", "deleted", "schemas")
        for resource in report[part]
        for finding in resource["findings"]
    }
    for drift in changes:
        changed = changes_by_kind[drift.kind.value]
        if drift.operation is None:
            assert drift.kind in UNRECORDED
            assert changed is None
        else:
            assert (changed["operation"], changed["who"]) == (drift.operation, drift.kind.value)


def test_every_kind_is_made_here_or_on_delta() -> None:
    """tests/integration/test_drift_authors.py makes the others."""
    made = {drift.kind for drift in (*DRIFT, *ADDED)} - {Kind.PRIMARY_KEY, Kind.TABLE_DELETED}
    assert {kind.value for kind in {*Kind} - made} == {
        *("column_added", "column_dropped", "column_renamed", "column_type", "column_nullability"),
        *("column_default", "column_order", "column_comment", "table_comment", "table_feature", "property"),
        *("check", "clustering", "primary_key", "foreign_key", "partitioning", "table_deleted"),
        *("table_replaced", "table_unreadable", "unmanaged"),
        *("function_deleted", "function_body", "function_signature", "function_comment", "function_tag"),
        *("function_grant", "function_grant_added", "function_owner"),
        *("policy_deleted", "policy_changed", "policy_comment"),
        *(kind.value for kind in Kind if kind.value.startswith("view_")),
    }

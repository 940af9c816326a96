"""Documentations to render as sites: one with everything, one with a hundred related tables, and one with thousands."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from delta_engine.actions.drift_policy import DriftKind, Severity
from delta_engine.drift.drifted_resources import Attribution, Finding
from delta_engine.errors import SourceLocation
from delta_engine.models import (
    AbacPolicy,
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    Function,
    Identity,
    Parameter,
    PolicyFilter,
    PolicyMask,
    PolicyScope,
    PrimaryKey,
    RowFilter,
    Schema,
    Table,
    View,
    ViewColumn,
    resource_key,
)
from delta_engine.models.constraints import resolved
from delta_engine.ownership.recorded import RecordedDifference
from delta_engine.sql.text import sql_literal
from delta_engine.tools.site.documented import (
    Applied,
    Documentation,
    DocumentedStatus,
    SourceLinks,
)
from tests.builders.deployment import deployment_state

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
COMMIT = "git:4b825dc642cb6eb9a060e54bf8d69288fbee4904"
RUN = "0f3e5d7c9b1a48f2a6c4e8d0b2f4a6c8"
DEPLOYMENT = deployment_state().with_values(lineage=COMMIT, updated_at=NOON, synced_at=NOON)
SOURCE = SourceLinks("https://example.com/blob/main/{file}#L{line}")
SUBJECTS = (
    "customer",
    "product",
    "store",
    "supplier",
    "order",
    "shipment",
    "invoice",
    "employee",
    "campaign",
    "asset",
)
KINDS = ("", "_address", "_status", "_group", "_price", "_event", "_note", "_contact", "_line", "_history")


def everything(text: str = "as bought") -> Documentation:
    """Return a site with every kind of fact; the text stands everywhere where users may write one."""
    place = SourceLocation("conf/models/silver/orders.yml", 3)
    customers = Table(
        "dev",
        "silver",
        "customers",
        [
            Column("id", "bigint", is_nullable=False),
            Column("email", "string", mask=ColumnMask("dev.ops.mask")),
        ],
        comment="Who buys",
        primary_key=["id"],
        declared_at=SourceLocation("conf/models/silver/customers.yml", 2),
    )
    orders = Table(
        "dev",
        "silver",
        "orders",
        [
            Column("id", "bigint", is_nullable=False, identity=Identity(), comment="Order number"),
            Column("customer_id", "bigint", is_nullable=False, comment=text, tags={"pii": text}),
            Column("parent_id", "bigint", comment="The order that it replaces"),
            Column("day", "date", generated_as="CAST(placed AS DATE)"),
            Column("placed", "timestamp", default="current_timestamp()"),
            Column(
                "delivery",
                "struct<street: string COMMENT 'with the number', place: struct<postcode: string, city: string>>",
                comment="Where it goes",
            ),
            Column("lines", "array<struct<sku: string, amount: decimal(18,2)>>"),
            Column("attributes", "map<string, string>"),
        ],
        comment=text,
        table_properties={"delta.enableChangeDataFeed": "true", "team": text, "api.token": "s3cret"},
        primary_key=PrimaryKey(["id"], "pk_orders"),
        foreign_keys=[
            ForeignKey(["customer_id"], "customers"),
            ForeignKey(["parent_id"], "orders"),
            ForeignKey(["day"], "bronze.days", ["day"]),
        ],
        checks=[CheckConstraint("positive", "id > 0")],
        cluster_by=["day"],
        tags={"domain": text},
        row_filter=RowFilter("dev.ops.only_own", ["customer_id"]),
        owner=text,
        grants={"analysts": ["SELECT"]},
        declared_at=place,
    )
    lonely = Table("dev", "bronze", "raw", [Column("payload", "string")], declared_at=place)
    functions = (
        Function(
            "dev",
            "ops",
            "mask",
            "string",
            text,
            [Parameter("email", "string", comment=text), Parameter("mark", "string", text)],
            language="python",
            body_file="functions/mask.py",
            comment=text,
            tags={"domain": text},
            owner=text,
            grants={text: ["EXECUTE"]},
            declared_at=place,
        ),
        Function("dev", "ops", "mask_all", "string", "dev.ops.mask('', '*')", declared_at=place),
    )
    views = (
        View(
            "dev",
            "silver",
            "recent",
            f"SELECT id, customer_id, dev.ops.mask({sql_literal(text)}, '*') AS note FROM dev.silver.orders",
            [ViewColumn("customer_id", text, tags={"pii": text}), ViewColumn("note")],
            query_file="views/recent.sql",
            schema_mode="type evolution",
            comment=text,
            tags={"domain": text},
            owner=text,
            grants={text: ["SELECT"]},
            declared_at=place,
        ),
        View(
            "dev",
            "gold",
            "buyers",
            "SELECT * FROM dev.silver.recent JOIN dev.elsewhere.days",
            declared_at=place,
        ),
        View("dev", "gold", "unread", "TABLE dev.silver.recent", declared_at=place),
    )
    policies = (
        AbacPolicy(
            "mask_pii",
            PolicyScope("schema", "dev.silver"),
            PolicyMask("dev.ops.mask", "personal", ["'#'"]),
            [text],
            excepted=["hr"],
            match={"personal": "has_tag('pii')"},
            comment=text,
            declared_at=place,
        ),
        AbacPolicy(
            "own_rows",
            PolicyScope("catalog", "dev"),
            PolicyFilter("dev.elsewhere.only_own"),
            ["account users"],
            when="has_tag('layer') AND has_tag('no such tag')",
            declared_at=place,
        ),
    )
    tables = resolved([lonely, customers, orders])
    return Documentation(
        environment="dev",
        tables=tables,
        views=tuple(sorted(views, key=lambda view: view.key)),
        functions=functions,
        policies=policies,
        schemas={
            "dev.silver": Schema(
                "dev",
                "silver",
                text,
                tags={"layer": "silver"},
                owner="data",
                declared_at=SourceLocation("conf/models/schemas.yml", 7),
            )
        },
        deployment=DEPLOYMENT,
        applied={
            "table.dev.bronze.raw": Applied(status=DocumentedStatus.NOT_APPLIED),
            "function.dev.ops.mask": Applied(
                status=DocumentedStatus.HEALTHY, at=NOON, by=text, run=RUN, is_behind=True
            ),
            "view.dev.gold.buyers": Applied(status=DocumentedStatus.NOT_APPLIED),
            "policy.schema.dev.silver.mask_pii": Applied(status=DocumentedStatus.NOT_APPLIED),
            "table.dev.silver.customers": Applied(
                status=DocumentedStatus.HEALTHY, at=NOON, by="ana@example.com", run=RUN
            ),
            "table.dev.silver.orders": Applied(
                status=DocumentedStatus.DRIFTED,
                at=NOON,
                by=text,
                run=RUN,
                is_behind=True,
                drift=(
                    RecordedDifference(field="table comment", expected=text, actual="changed"),
                    Finding(
                        kind=DriftKind.COLUMN_ADDED,
                        field="column extra",
                        expected=None,
                        actual=text,
                        severity=Severity.LOW,
                        changed=Attribution(who="bob"),
                    ),
                ),
                problem=text,
            ),
        },
        links=SOURCE,
    )


def named(text: str) -> Documentation:
    """Return a site whose table, columns, view, function and policies have a text as their name."""
    table = Table(
        "dev",
        "silver",
        text,
        [
            Column(text, "bigint", False, mask=ColumnMask(f"dev.silver.{_quoted(text)}")),
            Column("parent", f"struct<{_quoted(text)}: string>"),
        ],
        primary_key=[text],
        foreign_keys=[ForeignKey([text], "dev.silver.others", [text], name=text)],
        declared_at=SourceLocation(f"conf/{text}.yml", 1),
    )
    function = Function("dev", "silver", text, "bigint", _quoted(text), [Parameter(text, "bigint")])
    policy = AbacPolicy(text, PolicyScope("schema", "dev.silver"), PolicyFilter("dev.silver.none"), [text])
    view = View("dev", "gold", text, "SELECT id FROM dev.silver.others", [ViewColumn(text, text)])
    return Documentation(
        environment=text,
        tables=(table,),
        views=(view,),
        functions=(function,),
        policies=(policy,),
        links=SOURCE,
    )


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def related(subjects: int = 10) -> Documentation:
    """Return a schema of tables that reference each other: a table for each subject, and nine around it."""
    names = [f"{subject}{kind}" for subject in SUBJECTS[:subjects] for kind in KINDS]
    tables = [_related_table(at, name, names) for at, name in enumerate(names)]
    return documented(tables)


def _related_table(at: int, name: str, names: list[str]) -> Table:
    subject, kind = divmod(at, len(KINDS))
    parents: list[int] = []
    if kind:
        parents.append(subject * len(KINDS))
    if kind in (2, 5, 8):
        parents.append((subject * 37 + kind * 11) % len(names) // len(KINDS) * len(KINDS))
    if kind == 0 and subject:
        parents.append((subject - 1) // 2 * len(KINDS))
    if kind == 9:
        parents.append(at - 1)
    wanted = [names[parent] for parent in dict.fromkeys(parents) if parent != at]
    return Table(
        "dev",
        "sales",
        name,
        [
            Column(f"{name}_id", "bigint", is_nullable=False),
            *(Column(f"{parent}_id", "bigint") for parent in wanted),
            Column("loaded_at", "timestamp"),
        ],
        comment=f"The {name.replace('_', ' ')} of the shop",
        primary_key=[f"{name}_id"],
        foreign_keys=[ForeignKey([f"{parent}_id"], parent) for parent in wanted],
        declared_at=SourceLocation("conf/models/sales.yml", 10 * at + 3),
    )


def many(tables: int = 3000, columns: int = 50, schemas: int = 30) -> Documentation:
    """Return a large site: commented columns, and a status for each table."""
    return documented([_large_table(at, columns, schemas) for at in range(tables)])


def _large_table(at: int, columns: int, schemas: int) -> Table:
    name = f"table_{at:04}"
    return Table(
        "dev",
        f"schema_{at % schemas:02}",
        name,
        list(_large_columns(columns)),
        comment=f"The rows of source {at}, one for each event, kept for two years",
        primary_key=["column_00"],
        foreign_keys=[ForeignKey(["column_01"], f"table_{at - schemas:04}")]
        if at >= schemas and at % 3
        else [],
        tags={"domain": f"domain {at % 7}"},
        declared_at=SourceLocation(f"conf/models/{name}.yml", 3),
    )


def _large_columns(count: int) -> Iterator[Column]:
    for at in range(count):
        yield Column(
            f"column_{at:02}", "bigint", at > 0, f"What source system {at} says of this event, as it came"
        )


def documented(tables: list[Table]) -> Documentation:
    """Return the site of tables; every tenth has drifted."""
    in_order = sorted(resolved(tables), key=lambda table: table.key)
    return Documentation(
        environment="dev",
        tables=tuple(in_order),
        deployment=DEPLOYMENT,
        applied={
            resource_key(table.qualified_name): Applied(
                status=DocumentedStatus.DRIFTED if at % 10 == 0 else DocumentedStatus.HEALTHY,
                at=NOON,
                by="ana",
                run=RUN,
            )
            for at, table in enumerate(in_order)
        },
        links=SOURCE,
    )

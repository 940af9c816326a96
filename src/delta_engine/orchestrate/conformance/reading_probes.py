"""Probes of reads: whether views and descriptions of a table agree, and how far views lag."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from delta_engine.backends.capabilities import Feature
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models import Column, ColumnMask, ForeignKey, QualifiedName, RowFilter, Table
from delta_engine.models.constraints import resolved
from delta_engine.orchestrate.conformance.scene import UNITY_CATALOG, Answer, Probe, Scene
from delta_engine.orchestrate.conformance.scratch_tables import (
    ID,
    ROW_FUNCTION,
    VALUE_FUNCTION,
    scratch_table,
)
from delta_engine.report.conformance_report import Holds
from delta_engine.state.states import state_of
from delta_engine.state.unity_catalog.described_details import DescribedDetailsReader
from delta_engine.state.unity_catalog.details import TableDetails
from delta_engine.state.unity_catalog.information_schema import (
    COLUMN_MASKS,
    COLUMN_TAGS,
    COLUMNS,
    KEY_COLUMN_USAGE,
    REFERENTIAL_CONSTRAINTS,
    ROW_FILTERS,
    TABLE_CONSTRAINTS,
    TABLE_PRIVILEGES,
    TABLE_TAGS,
    TABLES,
    View,
    by_table,
)
from delta_engine.state.unity_catalog.table_states import require_agreement
from delta_engine.telemetry.context import utc_now

if TYPE_CHECKING:
    from databricks.sdk.service.catalog import TableInfo

MOST_READS: Final = 10
"""How often each view is read until it shows a change."""

SECONDS_BETWEEN: Final = 6.0

_LAG_COMMENT: Final = "Changed"

_PRIVILEGES: Final = View(
    name=TABLE_PRIVILEGES.name,
    columns=(*TABLE_PRIVILEGES.columns, "inherited_from"),
    schema_column=TABLE_PRIVILEGES.schema_column,
)
"""The privileges on tables, those that were granted on the schema or catalog included."""


def _accounts(scene: Scene) -> Answer:
    """Compare what the views, the description and the SDK report of a managed and of an external table."""
    findings: list[str] = []
    agreements: list[bool] = []
    for kind, name in (("managed", "every_type"), ("external", "external")):
        table = scene.existing(name)
        if table is None:
            findings.append(f"{kind} table: there is none to read")
            continue
        for is_agreeing, line in _account(scene, table):
            agreements.append(is_agreeing)
            findings.append(f"{kind} table: {line}")
    holds = Holds.CANNOT_TELL if not agreements else Holds.YES if all(agreements) else Holds.NO
    return holds, findings


def _account(scene: Scene, name: QualifiedName) -> Iterator[tuple[bool, str]]:
    rows = _rows(scene, TABLES, name)
    described = DescribedDetailsReader(scene.backend.runner).answer(name)
    if not rows or not isinstance(described, TableDetails):
        yield False, f"information_schema has {len(rows)} rows, and the description is {described}"
        return
    (row,) = rows
    try:
        require_agreement(name, row, _rows(scene, COLUMNS, name), described.state)
        yield True, "information_schema and DESCRIBE … AS JSON agree on columns, types and location"
    except CatalogReadError as error:
        yield False, str(error)
    types = f"{row['table_type']} in information_schema, {described.table_type} in the description"
    yield row["table_type"] == described.table_type, f"its type is {types}"
    listed = _listed(scene, name)
    if listed is None:
        yield True, "databricks-sdk does not list it here"
        return
    listed_type = listed.table_type.value if listed.table_type else None
    yield listed_type == row["table_type"], f"its type is {listed_type} in databricks-sdk"
    is_same = (listed.storage_location or "").rstrip("/") == (described.state.location or "").rstrip("/")
    yield is_same, f"its location is {'the same' if is_same else 'another one'} in databricks-sdk"


def _listed(scene: Scene, name: QualifiedName) -> TableInfo | None:
    if scene.backend.listing is None:
        return None
    from databricks.sdk.errors.base import DatabricksError
    from requests.exceptions import RequestException

    try:
        listed = list(scene.backend.listing.list(name.catalog, name.schema))
    except (DatabricksError, RequestException, TimeoutError):
        return None
    return next((one for one in listed if (one.name or "").lower() == name.table.lower()), None)


def _descriptions(scene: Scene) -> Answer:
    """Describe tables as on runtimes that know DESCRIBE … AS JSON, and as on older ones."""
    runner = scene.backend.runner
    tables = [name for name in map(scene.existing, ("columns", "generated", "identity")) if name]
    findings, is_same = [], True
    for name in tables:
        newer = DescribedDetailsReader(runner).answer(name)
        older = DescribedDetailsReader(_WithoutJson(runner)).answer(name)
        lines = list(_differing(newer, older))
        is_same &= not lines
        findings += [f"{name.table}: {line}" for line in lines or ["both agree"]]
    child = scene.existing("child")
    if child is not None:
        described = DescribedDetailsReader(runner).answer(child)
        has_keys = isinstance(described, TableDetails) and described.has_keys
        findings.append(f"keys in DESCRIBE … AS JSON: {'described' if has_keys else 'not described'}")
    holds = Holds.CANNOT_TELL if not tables else Holds.YES if is_same else Holds.NO
    return holds, findings


def _differing(newer: object, older: object) -> Iterator[str]:
    if not isinstance(newer, TableDetails) or not isinstance(older, TableDetails):
        yield f"as JSON: {newer}; without: {older}"
        return
    for what, one, other in (
        ("columns", newer.state.columns, older.state.columns),
        ("comment", newer.state.table_comment, older.state.table_comment),
        ("partitioned_by", newer.state.partitioned_by, older.state.partitioned_by),
    ):
        if one != other:
            yield f"{what} as JSON: {one}; without: {other}"


@dataclass(frozen=True, slots=True)
class _WithoutJson:
    runner: SqlRunner

    def run(self, sql: str) -> Sequence[Row]:
        if sql.endswith(" AS JSON"):
            raise StatementError("left out by the probe", sql=sql, error_class="PARSE_SYNTAX_ERROR")
        return self.runner.run(sql)


def _lag(scene: Scene) -> Answer:
    """Change everything about a table that views show, and read each view until it shows the change."""
    before, after = _lag_models(scene)
    scene.create([before])
    scene.create([after], {before.key: state_of(before)})
    started = scene.log.seconds()
    waiting = dict(_expected(after))
    findings: list[str] = []
    is_at_once = True
    for read in range(1, MOST_READS + 1):
        for view, is_shown in list(waiting.items()):
            if any(map(is_shown, scene.backend.runner.run(view.query(*_schema(after.qualified_name))))):
                seconds = scene.log.seconds() - started
                findings.append(f"{view.name}: shown by read {read}, after {seconds:.1f} s")
                is_at_once &= read == 1
                del waiting[view]
        if not waiting or read == MOST_READS or scene.log.used_up(len(waiting)):
            break
        scene.control.stop.check()
        scene.control.pause(SECONDS_BETWEEN)
    waited = scene.log.seconds() - started
    findings += [f"{view.name}: not shown after {read} reads and {waited:.1f} s" for view in waiting]
    return Holds.YES if is_at_once and not waiting else Holds.NO, findings


def _lag_models(scene: Scene) -> tuple[Table, Table]:
    place = scene.place
    declared = partial(scratch_table, place, "lag", ID)
    before = declared(Column("a", "bigint"), Column("b", "string"))
    tags = {place.tag: "1"}
    after = declared(
        Column("a", "bigint", comment=_LAG_COMMENT, tags=tags),
        Column("b", "string", mask=ColumnMask(str(place.qualified(VALUE_FUNCTION)))),
        comment=_LAG_COMMENT,
        tags=tags,
        grants={place.user: ["SELECT"]},
        row_filter=RowFilter(str(place.qualified(ROW_FUNCTION)), ["id"]),
        primary_key=["id"],
        foreign_keys=[ForeignKey(["a"], str(before.qualified_name))],
    )
    (after,) = resolved([after])
    return before, after


def _expected(model: Table) -> Iterator[tuple[View, Callable[[Row], bool]]]:
    name = model.table_name.lower()
    (foreign_key,) = model.foreign_keys

    def is_about(row: Row) -> bool:
        return str(row["table_name"]).lower() == name

    def has_comment(row: Row) -> bool:
        return is_about(row) and row["comment"] == _LAG_COMMENT

    def is_reference(row: Row) -> bool:
        return str(row["constraint_name"]).lower() == str(foreign_key.name).lower()

    yield from ((view, has_comment) for view in (TABLES, COLUMNS))
    yield REFERENTIAL_CONSTRAINTS, is_reference
    others = (
        TABLE_CONSTRAINTS, KEY_COLUMN_USAGE, TABLE_TAGS, COLUMN_TAGS, ROW_FILTERS, COLUMN_MASKS, TABLE_PRIVILEGES,
    )  # fmt: skip
    yield from ((view, is_about) for view in others)


def _inherited(scene: Scene) -> Answer:
    name, user = scene.existing("grants"), scene.place.user
    if name is None:
        return Holds.CANNOT_TELL, ["there is no table with grants to read"]
    rows = _rows(scene, _PRIVILEGES, name)
    findings = [
        f"{row['privilege_type']} to {_grantee(row, user)}: inherited_from {row['inherited_from']!r}"
        for row in rows
    ]
    granted = [row for row in rows if _grantee(row, user) == user and row["privilege_type"] == "MODIFY"]
    is_direct = bool(granted) and all(row["inherited_from"] in (None, "NONE") for row in granted)
    return Holds.YES if is_direct else Holds.NO, findings or ["no privilege is shown"]


def _lineage(scene: Scene) -> Answer:
    reader, name = scene.backend.lineage, scene.place.qualified("lineage").key
    if reader is None:
        return Holds.CANNOT_TELL, ["the backend reads no lineage"]
    try:
        found = reader.read((name,), {name: ("id",)}, since=utc_now(), limit=1)
    except StatementError as error:
        lacks_column = (error.error_class or "").startswith("UNRESOLVED_COLUMN")
        return Holds.NO if lacks_column else Holds.CANNOT_TELL, [error.first_line]
    return Holds.YES, [f"{len(found.reads)} reads of a table that does not exist"]


def _effective_policies(scene: Scene) -> Answer:
    """Ask for the policies of a scratch table: the answer's titles show only where a policy reaches the schema."""
    if scene.backend.policies is None:
        return Holds.CANNOT_TELL, ["the backend reads no policies"]
    model = scratch_table(scene.place, "policies")
    scene.create([model])
    try:
        policies = scene.backend.policies.read(scene.backend.addressing.table(model.qualified_name))
    except StatementError as error:
        return Holds.NO, [error.first_line]
    return Holds.YES if policies else Holds.CANNOT_TELL, [
        f"policies that reach a scratch table: {len(policies)}"
    ]


def _grantee(row: Mapping[str, object], user: str) -> str:
    """Return the grantee of a privilege; the names of other principals stay out of the report."""
    return user if str(row["grantee"]).lower() == user.lower() else "<another principal>"


def _rows(scene: Scene, view: View, name: QualifiedName) -> Sequence[Row]:
    rows = scene.backend.runner.run(view.query(*_schema(name)))
    return by_table(rows).get((name.schema.lower(), name.table.lower()), ())


def _schema(name: QualifiedName) -> tuple[str, set[str]]:
    return name.catalog.lower(), {name.schema.lower()}


READING_PROBES: Final = (
    Probe(
        name="three accounts of a table",
        question="Do information_schema, DESCRIBE … AS JSON and databricks-sdk agree on location and types?",
        assumption="They agree, so that the reader may take each fact from the cheapest of them.",
        ask=_accounts,
        needs=UNITY_CATALOG,
    ),
    Probe(
        name="two descriptions of a table",
        question="Does DESCRIBE … AS JSON report the same as SHOW CREATE TABLE and SHOW TBLPROPERTIES?",
        assumption="It does, so that older runtimes are read like newer ones.",
        ask=_descriptions,
        needs=UNITY_CATALOG,
    ),
    Probe(
        name="lag of views",
        question="How long does each view take to show a change?",
        assumption="The views show a change at once.",
        ask=_lag,
        needs=(*UNITY_CATALOG, Feature.TAGS, Feature.ROW_FILTERS, Feature.COLUMN_MASKS, Feature.GRANTS),
    ),
    Probe(
        name="direct grants",
        question="What does inherited_from report of a privilege that was granted on the table itself?",
        assumption="It reports NONE, or nothing.",
        ask=_inherited,
        needs=(Feature.GRANTS,),
    ),
    Probe(
        name="lineage",
        question="Do the lineage tables of system.access have the documented columns?",
        assumption="They do, where the schema is enabled and readable.",
        ask=_lineage,
        needs=UNITY_CATALOG,
    ),
    Probe(
        name="effective policies",
        question="Does SHOW EFFECTIVE POLICIES answer under the documented titles?",
        assumption="It does, for a principal that owns the table.",
        ask=_effective_policies,
        needs=(*UNITY_CATALOG, Feature.ROW_FILTERS),
    ),
)

"""Probes of reading: whether the platform's several accounts of one table agree, and how late they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from delta_engine.backends.capabilities import Feature
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models import Column, ColumnMask, ForeignKey, QualifiedName, RowFilter, Table
from delta_engine.models.resolution import resolved
from delta_engine.orchestrate.conformance.groups import ID, table
from delta_engine.orchestrate.conformance.probe import Answer, Probe, Scene
from delta_engine.orchestrate.conformance.scratch_tables import ROW_FUNCTION, VALUE_FUNCTION
from delta_engine.report.conformance_report import Holds
from delta_engine.state.states import state_of
from delta_engine.state.unity_catalog.consistency import require_agreement
from delta_engine.state.unity_catalog.described_details import DescribedDetailsReader
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
from delta_engine.state.unity_catalog.table_details import TableDetails

if TYPE_CHECKING:
    from databricks.sdk.service.catalog import TableInfo

_UNITY_CATALOG: Final = (Feature.SCHEMA_METADATA,)

MOST_LOOKS: Final = 10
"""How often a view is asked for a change."""

SECONDS_BETWEEN: Final = 6.0

_LAG = "lag"
_LAG_COMMENT = "Changed"
_DIRECT_GRANTS = View(
    name=TABLE_PRIVILEGES.name,
    columns=(*TABLE_PRIVILEGES.columns, "inherited_from"),
    schema_column=TABLE_PRIVILEGES.schema_column,
)
"""Privileges on tables, also those that were granted above them."""


def _accounts(scene: Scene) -> Answer:
    """Compare what the views, the description and the SDK say of a managed and of an external table."""
    findings: list[str] = []
    has_contradiction = False
    for kind, name in (("managed", "every_type"), ("external", "external")):
        known = scene.existing(name)
        if known is None:
            findings.append(f"{kind} table: there is none to look at")
            continue
        for is_agreeing, line in _account(scene, known):
            has_contradiction |= not is_agreeing
            findings.append(f"{kind} table: {line}")
    is_asked = any(scene.existing(name) for name in ("every_type", "external"))
    holds = Holds.NO if has_contradiction else Holds.YES if is_asked else Holds.CANNOT_TELL
    return Answer(holds=holds, findings=findings)


def _account(scene: Scene, name: QualifiedName) -> Iterator[tuple[bool, str]]:
    """Yield what the accounts of one table say, and whether that agrees."""
    rows = _rows(scene, TABLES, name)
    described = DescribedDetailsReader(scene.backend.runner, scene.backend.addressing).answer(name)
    if not rows or not isinstance(described, TableDetails):
        yield False, f"information_schema has {len(rows)} rows, and the description is {described}"
        return
    (row,) = rows
    try:
        require_agreement(name, row, _rows(scene, COLUMNS, name), described)
        yield True, "information_schema and DESCRIBE … AS JSON agree on columns, types and location"
    except CatalogReadError as error:
        yield False, str(error)
    yield (
        row["table_type"] == described.table_type,
        (f"its type is {row['table_type']} in information_schema, {described.table_type} in the description"),
    )
    listed = _listed(scene, name)
    if listed is None:
        yield True, "databricks-sdk does not list it here"
        return
    listed_type = listed.table_type.value if listed.table_type else None
    yield listed_type == row["table_type"], f"its type is {listed_type} in databricks-sdk"
    is_same = (listed.storage_location or "").rstrip("/") == (described.location or "").rstrip("/")
    yield is_same, f"its location is {'the same' if is_same else 'another one'} in databricks-sdk"


def _listed(scene: Scene, name: QualifiedName) -> TableInfo | None:
    """Return a table as databricks-sdk lists it; None where the SDK cannot be asked."""
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
    """Read tables once as runtimes that know DESCRIBE … AS JSON are read, and once as older ones are."""
    runner, addressing = scene.backend.runner, scene.backend.addressing
    known = [name for name in map(scene.existing, ("columns", "generated", "identity")) if name]
    findings, is_same = [], bool(known)
    for name in known:
        newer = DescribedDetailsReader(runner, addressing).answer(name)
        older = DescribedDetailsReader(_WithoutJson(runner), addressing).answer(name)
        lines = list(_differing(newer, older))
        is_same &= not lines
        findings += [f"{name.table}: {line}" for line in lines or ["both agree"]]
    child = scene.existing("child")
    if child is not None:
        described = DescribedDetailsReader(runner, addressing).answer(child)
        has_keys = isinstance(described, TableDetails) and described.keys is not None
        findings.append(f"keys in DESCRIBE … AS JSON: {'described' if has_keys else 'not described'}")
    return Answer(
        holds=(Holds.YES if is_same else Holds.NO) if known else Holds.CANNOT_TELL, findings=findings
    )


def _differing(newer: object, older: object) -> Iterator[str]:
    if not isinstance(newer, TableDetails) or not isinstance(older, TableDetails):
        yield f"as JSON: {newer}; without: {older}"
        return
    for what in ("columns", "comment", "partitioned_by"):
        one, other = getattr(newer, what), getattr(older, what)
        if one != other:
            yield f"{what} as JSON: {one}; without: {other}"


@dataclass(frozen=True, slots=True)
class _WithoutJson:
    """A platform that does not know DESCRIBE … AS JSON."""

    runner: SqlRunner

    def run(self, sql: str) -> Sequence[Row]:
        """Run one statement, unless it asks for JSON."""
        if sql.endswith(" AS JSON"):
            raise StatementError("left out by the probe", sql=sql, error_class="PARSE_SYNTAX_ERROR")
        return self.runner.run(sql)


def _lag(scene: Scene) -> Answer:
    """Change everything about a table that views show, and ask each view until it shows the change."""
    before, after = _lag_models(scene)
    scene.walk.make([before])
    scene.walk.make([after], {before.key: state_of(before)})
    started = scene.log.seconds()
    waiting = dict(_expected(after))
    found: dict[str, str] = {}
    for look in range(1, MOST_LOOKS + 1):
        for view, is_shown in list(waiting.items()):
            if any(map(is_shown, scene.backend.runner.run(view.query(*_schema(after.qualified_name))))):
                found[view.name] = f"at look {look}, after {scene.log.seconds() - started:.1f} s"
                del waiting[view]
        if not waiting or look == MOST_LOOKS or scene.log.used_up(len(waiting)):
            break
        scene.control.stop.check()
        scene.control.pause(SECONDS_BETWEEN)
    findings = [f"{name}: shown {when}" for name, when in found.items()]
    waited = scene.log.seconds() - started
    findings += [f"{view.name}: not shown after {look} looks and {waited:.1f} s" for view in waiting]
    is_at_once = not waiting and all("at look 1," in when for when in found.values())
    return Answer(holds=Holds.YES if is_at_once else Holds.NO, findings=findings)


def _lag_models(scene: Scene) -> tuple[Table, Table]:
    """Return the models of one table before and after the change."""
    place = scene.place
    declared = partial(table, place, _LAG, ID)
    before = declared(Column("a", "bigint"), Column("b", "string"))
    tag = {f"conformance_{place.run_id}": "1"}
    after = declared(
        Column("a", "bigint", comment=_LAG_COMMENT, tags=tag),
        Column("b", "string", mask=ColumnMask(str(place.function(VALUE_FUNCTION)))),
        comment=_LAG_COMMENT,
        tags=tag,
        grants={place.user: ["SELECT"]},
        row_filter=RowFilter(str(place.function(ROW_FUNCTION)), ["id"]),
        primary_key=["id"],
        foreign_keys=[ForeignKey(["a"], str(before.qualified_name))],
    )
    (after,) = resolved([after])
    return before, after


def _expected(model: Table) -> Iterator[tuple[View, Callable[[Row], bool]]]:
    """Yield the views, and what in them tells that they show the change."""
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
    """Read where the privileges on a scratch table come from."""
    name = scene.existing("grants")
    if name is None:
        return Answer(holds=Holds.CANNOT_TELL, findings=["there is no table with grants to look at"])
    rows = _rows(scene, _DIRECT_GRANTS, name)
    findings = [
        f"{row['privilege_type']} to {_grantee(row, scene.place.user)}: inherited_from {row['inherited_from']!r}"
        for row in rows
    ]
    direct = [row for row in rows if _is_direct(row, scene.place.user)]
    is_known = bool(direct) and all(row["inherited_from"] in (None, "NONE") for row in direct)
    return Answer(holds=Holds.YES if is_known else Holds.NO, findings=findings or ["no privilege is shown"])


def _is_direct(row: Mapping[str, object], user: str) -> bool:
    """Whether a row is about the privilege that the run granted."""
    return _grantee(row, user) == user and row["privilege_type"] == "MODIFY"


def _grantee(row: Mapping[str, object], user: str) -> str:
    """Return who has a privilege; the names of other principals stay out of the report."""
    return user if str(row["grantee"]).lower() == user.lower() else "<another principal>"


def _rows(scene: Scene, view: View, name: QualifiedName) -> Sequence[Row]:
    """Return the rows of a view about one table."""
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
        needs=_UNITY_CATALOG,
    ),
    Probe(
        name="two descriptions of a table",
        question="Does DESCRIBE … AS JSON say the same as SHOW CREATE TABLE and SHOW TBLPROPERTIES?",
        assumption="It does, so that older runtimes are read like newer ones.",
        ask=_descriptions,
        needs=_UNITY_CATALOG,
    ),
    Probe(
        name="lag of views",
        question="How long does each view take to show a change?",
        assumption="The views show a change at once.",
        ask=_lag,
        needs=(*_UNITY_CATALOG, Feature.TAGS, Feature.ROW_FILTERS, Feature.COLUMN_MASKS, Feature.GRANTS),
    ),
    Probe(
        name="direct grants",
        question="What does inherited_from say of a privilege that was granted on the table itself?",
        assumption="It says NONE, or nothing.",
        ask=_inherited,
        needs=(Feature.GRANTS,),
    ),
)

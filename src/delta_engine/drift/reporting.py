"""Builds a drift report from the detected facts. Pure."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from delta_engine import aspects
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import ColumnOrder, Policy
from delta_engine.aspects.comparison import Comparison, Securable, SecurableState
from delta_engine.deployment.resources import is_half_done
from delta_engine.drift.absences import hidden_notes, may_be_hidden
from delta_engine.drift.comparison import listed_parts
from delta_engine.drift.drift_report import (
    DriftReport,
    IgnoredFinding,
    PendingChange,
    PendingResource,
    PolicyNote,
    Recommendation,
    ResourceDrift,
)
from delta_engine.drift.drifted_resources import (
    NOT_DELTA,
    ClassifiedDrift,
    Deviation,
    DriftedResource,
    DriftedSchema,
    DriftedTable,
    DriftFacts,
    drifted_schemas,
    drifted_tables,
    is_table,
)
from delta_engine.drift.handling import reverted_drift, with_ignored_drift
from delta_engine.models import QualifiedName, SchemaName
from delta_engine.models.record import Record, resource_key
from delta_engine.state.states import TableState
from delta_engine.telemetry.context import command
from delta_engine.telemetry.garbage import no_garbage_collection
from delta_engine.validation.rules import name_problem

_MOST_COMMANDS = 20
_NO_DELTA_TABLE = "Make it a readable Delta table, or leave it out of the models"


@no_garbage_collection()
def drift_report(facts: DriftFacts) -> DriftReport:
    """Return the report on the facts."""
    state = facts.state
    found = [one for one in facts.drifted if one.drift]
    tables = drifted_tables(found)
    existing = [one for one in tables if one.observed.exists]
    gone = [one for one in tables if _was_deleted(one, facts)]
    schemas = [one for one in drifted_schemas(found) if one.observed.exists or _was_deleted(one, facts)]
    unreadable, unmanaged = _not_ignored(facts.unreadable), _not_ignored(facts.unmanaged)
    drifted = {
        (resource_key(one.model_name), detail.deviation.field)
        for one in facts.drifted
        for detail in one.details
    }
    resources = state.resources if state else {}
    return DriftReport(
        environment=facts.environment,
        host=state.environment.host if state else "",
        checked_at=facts.checked_at,
        state_id=state.state_id if state else "",
        serial=state.serial if state else 0,
        lineage=state.lineage if state else "unknown",
        tables_checked=sum(
            key in facts.observed.tables for key, one in facts.records.items() if one.declared
        ),
        drifted=(*unreadable, *map(_drift_of, existing)),
        deleted=tuple(map(_drift_of, gone)),
        unmanaged=unmanaged,
        schemas=tuple(map(_drift_of, schemas)),
        ignored=tuple(_ignored(facts)),
        policy_notes=tuple(_policy_notes(facts)),
        pending=tuple(_pending_resources(facts)),
        left_alone=tuple(
            part
            for part in listed_parts(
                facts.readable_models, facts.observed, facts.records, facts.plan_policy.column_order
            )
            if (part.resource, part.key) not in drifted
        ),
        unfinished=tuple(key for key, one in sorted(resources.items()) if is_half_done(one)),
        recommendations=tuple(_recommendations(facts, existing, schemas, gone, unmanaged)),
        notes=(
            *facts.notes,
            *hidden_notes([*schemas, *gone]),
            *(
                f"{name} cannot be reverted or accepted. {drift.way_out.removesuffix('.') or _NO_DELTA_TABLE}"
                for name, drift in facts.unreadable
                if drift.ignored_by is None
            ),
            *(
                f"{command('drift --revert')} cannot undo all of the drift: {one}"
                for one in facts.reversal.refusals
            ),
        ),
    )


def _was_deleted(one: DriftedResource, facts: DriftFacts) -> bool:
    """Whether a resource was deleted, not retired. In a partial report, the schemas of its tables count as declared."""
    is_declared = one.model_name.key in facts.declared_keys or (facts.is_partial and not is_table(one))
    return not one.observed.exists and is_declared


def _drift_of(drifted: DriftedResource) -> ResourceDrift:
    findings = [detail.finding for detail in drifted.drift]
    findings.sort(key=lambda finding: -finding.severity.rank)
    return ResourceDrift(resource=drifted.resource, findings=tuple(findings))


def _not_ignored(found: Iterable[tuple[QualifiedName, ClassifiedDrift]]) -> tuple[ResourceDrift, ...]:
    return tuple(
        ResourceDrift(resource=resource_key(name), findings=(one.finding,))
        for name, one in found
        if one.ignored_by is None
    )


def _all(facts: DriftFacts) -> Iterator[tuple[QualifiedName | SchemaName, ClassifiedDrift]]:
    for one in facts.drifted:
        for detail in one.details if one.observed.exists or _was_deleted(one, facts) else ():
            yield one.name, detail
    yield from facts.unreadable
    yield from facts.unmanaged


def _ignored(facts: DriftFacts) -> Iterator[IgnoredFinding]:
    for name, detail in _all(facts):
        if detail.ignored_by is not None:
            expires = detail.ignored_by.expires
            yield IgnoredFinding(
                resource=resource_key(name),
                finding=detail.finding,
                reason=detail.ignored_by.reason,
                expires=expires.isoformat() if expires else None,
            )


def _policy_notes(facts: DriftFacts) -> Iterator[PolicyNote]:
    """Yield the entries without an effect; a partial report cannot tell which match nothing."""
    findings = [(name, detail.deviation) for name, detail in _all(facts)]
    for entry in facts.policy.ignores:
        if entry.is_expired(facts.checked_at):
            problem = f"expired on {entry.expires}"
        elif facts.is_partial or any(
            entry.matches(name, deviation.kind, deviation.field) for name, deviation in findings
        ):
            continue
        else:
            problem = "matches nothing"
        yield PolicyNote(
            resource=entry.resource,
            fields=entry.fields,
            reason=entry.reason,
            problem=problem,
            location=str(entry.location or ""),
        )


def _recommendations(
    facts: DriftFacts,
    existing: Sequence[DriftedTable],
    schemas: Sequence[DriftedSchema],
    gone: Sequence[DriftedTable],
    unmanaged: Sequence[ResourceDrift],
) -> Iterator[Recommendation]:
    program = f"delta-engine -e {shlex.quote(facts.environment)}"
    schemas = [schema for schema in schemas if not may_be_hidden(schema)]
    gone = [table for table in gone if not may_be_hidden(table)]
    if existing or schemas:
        yield from _reverts_of(facts, [*schemas, *existing, *gone], program)
        yield Recommendation(
            text="Take the drift into the models, and commit them", command=f"{program} drift --accept"
        )
    lost = {one.name.key for one in schemas if not one.observed.exists}
    gone = [table for table in gone if table.name.key.rpartition(".")[0] not in lost]  # -t leaves out schemas
    if gone:
        revertible = [table for table in gone if table.resource in facts.reversal.resources]
        if revertible:
            yield Recommendation(
                text=f"Create the deleted tables again, {_their_data(revertible, facts.reversal.files)}",
                command=f"{program} drift --revert {_targets(revertible[:_MOST_COMMANDS])}",
            )
        yield Recommendation(
            text="Or take their models away, and forget them",
            command=f"{program} drift --accept {_targets(_with_children(gone[:_MOST_COMMANDS], facts))}",
        )
    importable = [table for table in unmanaged if _is_importable(table)]
    for table in importable[:_MOST_COMMANDS]:
        yield _import(table.resource.removeprefix("table."), program, facts.model_patterns)


def _reverts_of(
    facts: DriftFacts, drifted: Sequence[DriftedResource], program: str
) -> Iterator[Recommendation]:
    """Yield the revert of everything that a revert can bring back, if there is any."""
    reversal, policy = facts.reversal, facts.plan_policy
    able = [one for one in drifted if one.resource in reversal.resources]
    if not any(_changes_anything(one, policy) for one in able):
        return
    targets = f" {_targets(able)}" if reversal.refusals else ""
    allowed = "".join(f" --allow {kind.value}" for kind in reversal.consents)
    kinds = {detail.deviation.kind for one in able for detail in one.drift}
    names = {
        DriftKind.COLUMN_ORDER: "the order of columns",
        DriftKind.TABLE_REPLACED: "the replacement of tables",
    }
    deleted = [one for one in able if is_table(one) and not one.observed.exists]
    kept = " and ".join(name for kind, name in names.items() if kind in kinds & _kinds_beyond_reverts(policy))
    yield Recommendation(
        text="Undo the drift in the catalog"
        + (f", except for {kept}" if kept else "")
        + (
            f", and create the deleted tables again, {_their_data(deleted, reversal.files)}"
            if deleted
            else ""
        ),
        command=f"{program} drift --revert{targets}{allowed}",
    )


def _changes_anything(drifted: DriftedResource, policy: Policy) -> bool:
    """Whether a revert changes a table or schema."""
    if not drifted.observed.exists:
        return not is_table(drifted)
    beyond = _kinds_beyond_reverts(policy)
    return any(detail.deviation.kind not in beyond for detail in drifted.drift)


def _kinds_beyond_reverts(policy: Policy) -> set[DriftKind]:
    """Return the drift that no revert undoes: a replaced table, and the order of columns unless it is enforced."""
    is_enforced = policy.column_order is ColumnOrder.ENFORCE
    return {DriftKind.TABLE_REPLACED} | (set() if is_enforced else {DriftKind.COLUMN_ORDER})


def _with_children(gone: Sequence[DriftedTable], facts: DriftFacts) -> list[DriftedTable]:
    """Return deleted tables with the drifted tables whose foreign keys went with them."""
    keys = {table.model_name.key for table in gone}
    children = {
        model.key
        for model in facts.models
        if any(key.references.lower() in keys for key in model.foreign_keys)
    }
    drifted = [
        table
        for table in drifted_tables(facts.drifted)
        if any(detail.finding.kind is DriftKind.FOREIGN_KEY for detail in table.drift)
    ]
    return [*gone, *(table for table in drifted if table.model_name.key in children - keys)]


def _their_data(deleted: Sequence[DriftedTable], files: Mapping[str, bool]) -> str:
    """Return what a revert of deleted tables does about their rows: the files of external tables stay."""
    counts = Counter(_data_of(table, files) for table in deleted)
    if len(counts) == 1:
        return next(iter(counts))
    return "; ".join(f"{count} {data}" for data, count in sorted(counts.items()))


def _data_of(table: DriftedTable, files: Mapping[str, bool]) -> str:
    if table.recorded.baseline.location is None:
        return "without their data"
    match files.get(table.name.key):
        case True:
            return "with the files at their locations"
        case False:
            return "without their data, because no Delta table lies at their locations"
        case None:
            return "with the files at their locations, if there are any: the locations cannot be read"


def _targets(drifted: Sequence[DriftedResource]) -> str:
    return " ".join(f"-t {shlex.quote(str(one.model_name))}" for one in drifted)


def _is_importable(table: ResourceDrift) -> bool:
    *_, own_name = table.resource.split(".", 3)
    return table.findings[0].actual != NOT_DELTA and not name_problem(own_name)


def _import(name: str, program: str, patterns: Sequence[str]) -> Recommendation:
    _, schema, own_name = name.split(".", 2)
    text, target = f"Declare {name}", _place_of_model(patterns, schema, own_name)
    if target is None:
        text, target = f"{text}, and list the file under models.yaml", f"conf/models/{schema}/{own_name}.yml"
    return Recommendation(
        text=text, command=f"{program} import {shlex.quote(name)} --to {shlex.quote(target)}"
    )


def _place_of_model(patterns: Sequence[str], schema: str, table: str) -> str | None:
    """Return a path for the model of a table that one of the globs matches; None without any."""
    for pattern in patterns:
        folder = re.split(r"[^/]*[*?\[]", pattern)[0]
        for path in (f"{folder}{schema}/{table}.yml", f"{folder}{schema}.{table}.yml"):
            if _is_match(path, pattern):
                return path
    return None


def _is_match(path: str, pattern: str) -> bool:
    parts = re.split(r"(\*\*/|\*|\?)", pattern)
    known = {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    return re.fullmatch("".join(known.get(part, re.escape(part)) for part in parts), path) is not None


def _pending_resources(facts: DriftFacts) -> Iterator[PendingResource]:
    """Yield the declared schemas, then the tables, that the next sync would change."""
    drifted = {one.model_name.key: one for one in facts.drifted}
    records: Mapping[str, Record[Securable]] = {**facts.records, **facts.schema_records}
    policy = facts.plan_policy
    schemas = {one.key: one for one in with_ignored_drift(facts.schemas, facts.drifted, policy)}
    tables = {one.key: one for one in with_ignored_drift(facts.readable_models, facts.drifted, policy)}
    wanted: dict[str, Securable] = {**schemas, **tables}
    for model, observed in _declared(facts):
        found = drifted.get(model.key)
        if observed.exists:
            changes = tuple(
                _pending(facts, model, wanted[model.key], observed, records.get(model.key), found)
            )
            is_pending = bool(changes)
        else:
            changes, is_pending = (), found is None
        if is_pending:
            yield PendingResource(resource=resource_key(model.qualified_name), changes=changes)


def _declared(facts: DriftFacts) -> Iterator[tuple[Securable, SecurableState]]:
    for schema in sorted(facts.schemas, key=lambda schema: schema.key):
        state = facts.observed.schema(schema.qualified_name)
        if state is not None:
            yield schema, state
    for model in facts.readable_models:
        yield model, facts.observed.table(model.qualified_name)


def _pending(
    facts: DriftFacts,
    model: Securable,
    wanted: Securable,
    observed: SecurableState,
    record: Record[Securable] | None,
    drifted: DriftedResource | None,
) -> Iterator[PendingChange]:
    if isinstance(observed, TableState) and observed.former_name is not None:
        former, name = str(observed.former_name), str(model.qualified_name)
        yield PendingChange(field="table name", observed=former, desired=name, is_rename=True)
    policy = facts.plan_policy
    found = reverted_drift(model, drifted, policy) if drifted else ()
    reverted = [detail.deviation for detail in found]
    names = set(_renamed_names(drifted)) if drifted else set()
    for difference in aspects.differences(Comparison.of(wanted, observed, record, policy)):
        change = difference.change
        is_rename = change.subject.lower().removeprefix("column ") in names  # half of one: a drop or an add
        if not is_rename and not _reverts(difference, reverted):
            yield PendingChange(
                field=change.subject,
                observed=change.observed,
                desired=change.desired,
                is_rename=change.is_rename,
            )


def _renamed_names(drifted: DriftedResource) -> Iterator[str]:
    """Yield both names of each renamed column, and both paths of each renamed field, in lower case."""
    yield from (".".join(path).lower() for pair in drifted.recorded.renames.paths.items() for path in pair)


def _reverts(difference: aspects.Difference, reverted: Sequence[Deviation]) -> bool:
    """Whether a change reverts drift. All moves of columns do, or none: drift is of the whole order."""
    if difference.kind is DriftKind.COLUMN_ORDER:
        return any(deviation.kind is DriftKind.COLUMN_ORDER for deviation in reverted)
    change = difference.change
    if difference.kind in (DriftKind.COLUMN_DROPPED, DriftKind.COLUMN_ADDED):  # its model may be another one
        return any((one.kind, one.field) == (difference.kind, change.subject) for one in reverted)
    return any((one.field, one.expected) == (change.subject, change.desired) for one in reverted)

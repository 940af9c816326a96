"""Recommends what to do about drift: for all of it, and as alternatives for each securable. Pure."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from delta_engine.actions.drift_policy import DriftKind, DriftPolicy
from delta_engine.actions.policy import ColumnOrder, NeededConsent, Policy
from delta_engine.config.conf_folder import CONF_DIR, CONSENTS_FILE, DRIFT_POLICY_FILE
from delta_engine.config.file_patterns import folder_of_pattern, matches_pattern
from delta_engine.drift.absences import lacking_rights, may_be_hidden
from delta_engine.drift.drift_report import NextSync, Recommendation, ResourceDrift
from delta_engine.drift.drifted_resources import (
    NOT_DELTA,
    ClassifiedDrift,
    ComparedResource,
    ComparedTable,
    Finding,
    drifted_tables,
    is_table,
)
from delta_engine.drift.handling import is_refused, targets
from delta_engine.drift.observation import DriftFacts
from delta_engine.models import QualifiedName, SecurableName, Table, ViewName, of_kind, resource_key
from delta_engine.telemetry.visible import in_plural
from delta_engine.validation.rules import name_problem

_MOST_COMMANDS = 20
_CONSENTS_PATH = f"{CONF_DIR}/{CONSENTS_FILE}"
_DRIFT_POLICY_PATH = f"{CONF_DIR}/{DRIFT_POLICY_FILE}"


def recommendations(
    facts: DriftFacts,
    existing: Sequence[ComparedResource],
    schemas: Sequence[ComparedResource],
    gone: Sequence[ComparedResource],
    unmanaged: Sequence[ResourceDrift],
    syncs: Mapping[str, NextSync],
) -> Iterator[Recommendation]:
    """Yield what to do about all the drift of a report, with as few commands as possible.

    Args:
        existing: what is not a schema, and exists.
        gone: what is not a schema, and was deleted.
        syncs: what the next sync does about the drift of declared securables, by resource key.
    """
    program = _program(facts)
    schemas = [schema for schema in schemas if not may_be_hidden(schema)]
    gone = [resource for resource in gone if not may_be_hidden(resource)]
    reverts: list[Recommendation] = []
    drifted: list[ComparedResource] = [*existing, *schemas, *gone]
    if existing or schemas:
        reverts = [*_reverts_of(facts, [*schemas, *existing, *gone])]
        yield from reverts
        present: list[ComparedResource] = [*existing, *schemas]
        if not all(map(_is_accepted, present)):
            yield Recommendation(
                text=f"{'Or write' if reverts else 'Write'} the drift into the models, and commit them",
                command=f"{program} drift --accept",
            )
    lost = {schema.name.key for schema in schemas if not schema.observed.exists}
    gone = [  # -t leaves out schemas
        resource for resource in gone if lost.isdisjoint(parent.key for parent in resource.name.parents)
    ]
    revertible = [resource for resource in gone if resource.key in facts.reversal.resources]
    if gone:
        if revertible:
            yield Recommendation(
                text=f"Create the {_deleted(revertible, facts)}",
                command=f"{program} drift --revert {_targets(revertible[:_MOST_COMMANDS])}",
            )
        if to_accept := [resource for resource in gone if not _is_accepted(resource)]:
            yield Recommendation(
                text="Or remove their models, and forget them",
                command=f"{program} drift --accept {_targets(_with_children(to_accept[:_MOST_COMMANDS], facts))}",
            )
    if drifted and all(map(_is_accepted, drifted)):
        end = _end_of_all(drifted, syncs, program)
        is_other = bool(reverts or revertible)
        yield replace(end, text=f"Or {end.text[0].lower()}{end.text[1:]}") if is_other else end
    imports = [step for table in unmanaged for step in table.alternatives if step.command]
    yield from imports[:_MOST_COMMANDS]


def alternatives(
    drifted: ComparedResource, facts: DriftFacts, sync: NextSync | None
) -> Iterator[Recommendation]:
    """Yield what can be done about the drift of one securable; one of them is enough.

    Args:
        sync: what the next sync does about the drift; None if no model declares the securable.
    """
    if may_be_hidden(drifted):
        rights = ", ".join(lacking_rights(drifted))
        text = f"Ask for {rights}, and repeat the report, because it may be hidden from you"
        yield Recommendation(text=text, command="")
    elif drifted.model_key in facts.declared or (drifted.name.is_container and facts.basis.is_partial):
        yield from _revert_of(drifted, facts)
        yield _end_of(drifted, facts, sync) if _is_accepted(drifted) else _acceptance_of(drifted, facts)
    yield from _ignore(drifted.name, [detail.finding.field for detail in drifted.drift], facts)


def alternatives_unreadable(
    name: SecurableName, drift: ClassifiedDrift, facts: DriftFacts
) -> Iterator[Recommendation]:
    """Yield what can be done about a table that cannot be read."""
    yield Recommendation(text=drift.way_out, command="")
    yield from _ignore(name, [drift.finding.field], facts)


def alternatives_unmanaged(
    name: SecurableName, drift: ClassifiedDrift, facts: DriftFacts
) -> Iterator[Recommendation]:
    """Yield what can be done about what no model declares."""
    is_delta = drift.finding.actual != NOT_DELTA
    if isinstance(name, QualifiedName | ViewName) and is_delta and not name_problem(name.parts[-1]):
        yield _import(name, facts)
    yield from _ignore(name, [drift.finding.field], facts)


def next_sync(drifted: ComparedResource, undone: Sequence[Finding], policy: DriftPolicy) -> NextSync:
    """Return what the next sync does about the drift of a declared securable.

    Args:
        undone: the drift that a sync reverts or overwrites. It brings no replaced table back.
    """
    if any(is_refused(finding, policy) for finding in undone):
        return NextSync.REFUSES
    reverted = [finding for finding in undone if finding.kind is not DriftKind.TABLE_REPLACED]
    if not reverted:
        return NextSync.KEEPS
    return NextSync.REVERTS if len(reverted) == len(drifted.drift) else NextSync.REVERTS_SOME


def _reverts_of(facts: DriftFacts, drifted: Sequence[ComparedResource]) -> Iterator[Recommendation]:
    """Yield the revert of everything that a revert can bring back, if there is any."""
    reversal, policy = facts.reversal, facts.plan_policy
    able = [resource for resource in drifted if resource.key in reversal.resources]
    if not any(_changes_anything(resource, policy) for resource in able):
        return
    targets = f" {_targets(able)}" if reversal.refusals else ""
    deleted = [
        resource for resource in able if not resource.name.is_container and not resource.observed.exists
    ]
    again = f", and create the {_deleted(deleted, facts)}" if deleted else ""
    text = f"Revert the drift in the catalog{_exceptions(able, policy)}{again}"
    yield _revert(text, targets, reversal.needed, facts)


def _exceptions(drifted: Sequence[ComparedResource], policy: Policy) -> str:
    """Return what a revert of drifted securables leaves out."""
    kinds = {detail.finding.kind for resource in drifted for detail in resource.drift}
    names = {
        DriftKind.COLUMN_ORDER: "the order of columns",
        DriftKind.TABLE_REPLACED: "the replacement of tables",
    }
    kept = [name for kind, name in names.items() if kind in kinds & _kinds_beyond_reverts(policy)]
    return f", except for {' and '.join(kept)}" if kept else ""


def _revert_of(drifted: ComparedResource, facts: DriftFacts) -> Iterator[Recommendation]:
    """Yield the revert of one securable, if there is any, with those that it reverts as well."""
    covered: list[ComparedResource] = [drifted]
    target, beside = f" {_targets(covered)}", ""
    if drifted.name.is_container:
        prefix = f"{drifted.model_name}."
        if not any(model.key.startswith(prefix.lower()) for model in of_kind(Table, facts.basis.models)):
            return
        covered += _tables_in(drifted, facts)
        target = f" -t {shlex.quote(f'{prefix}*')}"
        beside = ", with the drifted tables in it" if len(covered) > 1 else ""
    elif is_table(drifted):
        tables = _with_parents(drifted, facts)
        covered, target = [*tables], f" {_targets(tables)}"
        beside = ", with the tables that it references" if len(tables) > 1 else ""
        beside += ", and its schema" if _schema_of(drifted) in facts.reversal.resources else ""
    reversal, policy = facts.reversal, facts.plan_policy
    is_able = all(resource.key in reversal.resources for resource in covered)
    if not is_able or not (_changes_anything(drifted, policy) or not drifted.observed.exists):
        return
    text = f"Revert it to what was applied{_exceptions(covered, policy)}"
    if not drifted.name.is_container and not drifted.observed.exists:
        data = f", {_data_of(drifted, reversal.files)}" if is_table(drifted) else ""
        text = f"Create it again{data}"
    keys = dict.fromkeys(resource_key(resource.name) for resource in covered)
    needed = [change for key in keys for change in facts.needed_by_tables.get(key, ())]
    yield _revert(text + beside, target, needed, facts)


def _is_accepted(drifted: ComparedResource) -> bool:
    """Whether all drift of a securable is accepted."""
    return all(detail.finding.accepted is not None for detail in drifted.drift)


def _end_of_all(
    drifted: Sequence[ComparedResource], syncs: Mapping[str, NextSync], program: str
) -> Recommendation:
    """Return what ends accepted drift."""
    if all(syncs.get(resource.model_key) is NextSync.KEEPS for resource in drifted):
        return Recommendation(text="Sync, which ends the accepted drift", command=f"{program} sync")
    return Recommendation(text="Merge the changes of the models, and sync: the drift is accepted", command="")


def _end_of(drifted: ComparedResource, facts: DriftFacts, sync: NextSync | None) -> Recommendation:
    """Return what ends the accepted drift of one securable."""
    if sync is not NextSync.KEEPS:
        return Recommendation(
            text="Merge the change of its model, and sync: the drift is accepted", command=""
        )
    target = f" {_targets([drifted])}" if drifted.name.is_selectable else ""
    text = "Sync, which ends the accepted drift: its model has it"
    return Recommendation(text=text, command=f"{_program(facts)} sync{target}")


def _acceptance_of(drifted: ComparedResource, facts: DriftFacts) -> Recommendation:
    program = f"{_program(facts)} drift --accept"
    if not drifted.name.is_selectable:
        text = "Accept it into the models, with all other drift, and commit them"
        return Recommendation(text=text, command=program)
    tables = [drifted] if drifted.observed.exists else _with_children([drifted], facts)
    text = "Accept it into the model, and commit the model"
    if drifted.renamed_to is not None:
        text = f"Accept its new name, {drifted.renamed_to}, into the model, and commit the model"
    elif not drifted.observed.exists:
        text = "Accept that it is gone: this removes its model and forgets it"
    beside = ", with the tables whose keys referenced it" if len(tables) > 1 else ""
    return Recommendation(text=text + beside, command=f"{program} {_targets(tables)}")


def _ignore(name: SecurableName, fields: Sequence[str], facts: DriftFacts) -> Iterator[Recommendation]:
    if facts.entries is not None:
        entry = facts.entries.ignored_drift(name, list(dict.fromkeys(fields)))
        yield Recommendation(text="Ignore it until a date", command="", file=_DRIFT_POLICY_PATH, entry=entry)


def _revert(text: str, target: str, needed: Sequence[NeededConsent], facts: DriftFacts) -> Recommendation:
    """Return a revert with the consents that it needs, as options and as entries in the pull request."""
    allowed = "".join(f" --allow {kind}" for kind in dict.fromkeys(change.kind.value for change in needed))
    entries = facts.entries.consents(needed) if needed and facts.entries is not None else ""
    return Recommendation(
        text=text,
        command=f"{_program(facts)} drift --revert{target}{allowed}",
        consents=tuple(map(str, needed)),
        file=_CONSENTS_PATH if entries else "",
        entry=entries,
    )


def _tables_in(schema: ComparedResource, facts: DriftFacts) -> Iterator[ComparedTable]:
    """Yield the drifted tables of a schema that a revert of all its tables changes."""
    for table in drifted_tables(facts.drifted):
        is_inside = table.model_name.key.startswith(f"{schema.model_name.key}.")
        if is_inside and table.drift and table.model_key in facts.declared and not may_be_hidden(table):
            yield table


def _schema_of(table: ComparedTable) -> str:
    return f"schema.{table.model_name.key.rpartition('.')[0]}"


def _with_parents(table: ComparedTable, facts: DriftFacts) -> list[ComparedTable]:
    """Return a drifted table with the deleted tables that the foreign keys of its revert reference."""
    kinds = {detail.finding.kind for detail in table.drift}
    covered = {table.name.key: table}
    to_visit = [table] if kinds & {DriftKind.FOREIGN_KEY, DriftKind.TABLE_DELETED} else []
    while to_visit:
        for key in to_visit.pop().baseline.foreign_keys:
            parent = facts.missing_tables.get(key.references.lower())
            if parent is not None and parent.name.key not in covered:
                covered[parent.name.key] = parent
                to_visit.append(parent)
    return [*covered.values()]


def _program(facts: DriftFacts) -> str:
    return f"delta-engine -e {shlex.quote(facts.environment)}"


def _changes_anything(drifted: ComparedResource, policy: Policy) -> bool:
    """Whether a revert changes a securable."""
    if not drifted.observed.exists:
        return drifted.name.is_container
    beyond = _kinds_beyond_reverts(policy)
    return any(detail.finding.kind not in beyond for detail in drifted.drift)


def _kinds_beyond_reverts(policy: Policy) -> set[DriftKind]:
    """Return the drift that no revert undoes: a replaced table, and the order of columns unless it is enforced."""
    is_enforced = policy.column_order is ColumnOrder.ENFORCE
    return {DriftKind.TABLE_REPLACED} | (set() if is_enforced else {DriftKind.COLUMN_ORDER})


def _with_children(gone: Sequence[ComparedResource], facts: DriftFacts) -> list[ComparedResource]:
    """Return what was deleted with the drifted tables whose foreign keys went with the deleted tables."""
    resources = {resource.model_key: resource for resource in gone}
    for key in [*resources]:
        resources |= {child.model_key: child for child in facts.tables_without_keys.get(key, ())}
    return [*resources.values()]


def _deleted(gone: Sequence[ComparedResource], facts: DriftFacts) -> str:
    """Return what a revert creates again, and what it does about the rows of tables."""
    words, tables = in_plural(resource.name.kind for resource in gone), drifted_tables(gone)
    return f"deleted {words} again" + (f", {_their_data(tables, facts.reversal.files)}" if tables else "")


def _their_data(deleted: Sequence[ComparedTable], files: Mapping[str, bool]) -> str:
    """Return what a revert of deleted tables does about their rows: the files of external tables stay."""
    counts = Counter(_of_many(_data_of(table, files)) for table in deleted)
    if len(counts) == 1:
        return next(iter(counts))
    return "; ".join(f"{count} {data}" for data, count in sorted(counts.items()))


def _of_many(text: str) -> str:
    """Return a text about one table as it is said of several."""
    return (
        text.replace("its location", "their locations")
        .replace("the location", "the locations")
        .replace("its data", "their data")
    )


def _data_of(table: ComparedTable, files: Mapping[str, bool]) -> str:
    """Return what a revert of a deleted table does about its rows."""
    if table.baseline.location is None:
        return "without its data"
    match files.get(table.name.key):
        case True:
            return "with the files at its location"
        case False:
            return "without its data, because no Delta table lies at its location"
        case None:
            return "with the files at its location, if there are any: the location cannot be read"


def _targets(drifted: Sequence[ComparedResource]) -> str:
    return targets(resource.model_name for resource in drifted)


def _import(name: QualifiedName | ViewName, facts: DriftFacts) -> Recommendation:
    _, schema, last = str(name).split(".")
    text, target = f"Declare {name}", _place_of_model(facts.model_patterns, schema, last)
    if target is None:
        text = f"{text}, and list the file under models.yaml"
        target = f"conf/models/{schema}/{last}.yml"
    command = f"{_program(facts)} import {shlex.quote(str(name))} --to {shlex.quote(target)}"
    return Recommendation(text=text, command=command)


def _place_of_model(patterns: Sequence[str], schema: str, table: str) -> str | None:
    """Return a path for the model of a table that one of the globs matches; None without any."""
    for pattern in patterns:
        folder = folder_of_pattern(Path(), pattern)
        for path in (folder / schema / f"{table}.yml", folder / f"{schema}.{table}.yml"):
            if matches_pattern(path, pattern):
                return str(path)
    return None

"""The handling of drift: what a sync reverts, keeps or refuses, what a model accepts, what a revert restores. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeVar, cast

from delta_engine import aspects
from delta_engine.actions import Action, Align, TablePlan
from delta_engine.actions.drift_policy import DriftKind, DriftPolicy
from delta_engine.actions.policy import NO_POLICY, Policy
from delta_engine.aspects import Difference
from delta_engine.aspects.aspect import Change
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.foreign_keys import as_declared
from delta_engine.aspects.renames import Renames, named_renames
from delta_engine.drift.baselines import subject_of
from delta_engine.drift.comparison import beyond_drift, explained
from delta_engine.drift.drifted_resources import (
    ClassifiedDrift,
    Compared,
    ComparedResource,
    ComparedTable,
    DriftRefusal,
    Finding,
    UndoneDrift,
    changed_field,
    undone_field,
)
from delta_engine.drift.lateness import HIDING, shown_late
from delta_engine.drift.renames import (
    all_renames,
    by_model_names,
    has_path,
    with_accepted_names,
    with_former_names,
)
from delta_engine.models import (
    PolicyName,
    QualifiedName,
    Securable,
    SecurableName,
    Table,
    by_resource,
    resource_key,
)
from delta_engine.models.nested_types import Path
from delta_engine.state.states import SecurableState, TableState
from delta_engine.telemetry.context import command
from delta_engine.validation.validator import needed_consents

Model = TypeVar("Model", bound=Securable)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverwrittenDrift:
    """Drift that a plan overwrites. On a replaced table, that undoes nothing: the former table does not come back.

    Args:
        field: what the plan changes, under the new name of a column.
        is_of_replaced_table: whether another table has the name of the recorded one.
    """

    model: Securable
    detail: ClassifiedDrift
    field: str
    is_of_replaced_table: bool


def accepted(model: Model, observed: SecurableState, taken: Sequence[Difference]) -> Model:
    """Return a model with the observed side of the differences in `taken`, and its own side of all others."""
    if not isinstance(model, Table):
        return aspects.accept(model, observed, taken)
    renames = Renames(by_model_names(model, all_renames(taken)))
    table: Any = aspects.accept(renames.applied_to(model), observed, taken)
    if isinstance(observed, TableState) and any(diff.kind is DriftKind.COLUMN_ORDER for diff in taken):
        places = {column.key: place for place, column in enumerate(observed.columns)}
        ordered = sorted(table.columns, key=lambda column: places.get(column.key, len(places)))
        return cast(Model, replace(table, columns=tuple(ordered)))
    return cast(Model, table)


def reverted_drift(
    model: Securable, drifted: ComparedResource, policy: Policy = NO_POLICY
) -> tuple[ClassifiedDrift, ...]:
    """Return the drift that a sync brings back to what the model says, without moved columns that it leaves."""
    observed = drifted.observed
    if not observed.exists:
        return drifted.details
    kept = _with_ignored_renames(model, drifted)
    planned = tuple(aspects.differences(Comparison.of(kept, observed, drifted, policy)))
    return tuple(
        detail
        for detail in drifted.details
        if any(reverts(difference, detail.difference) for difference in planned)
        or _undoes_rename(model, detail.difference)
    )


def _with_ignored_renames(model: Securable, drifted: ComparedResource) -> Securable:
    if not isinstance(model, Table):
        return model
    renames = [
        detail.difference
        for detail in drifted.details
        if detail.ignored_by is not None and _undoes_rename(model, detail.difference)
    ]
    return accepted(model, drifted.observed, renames) if renames else model


def with_ignored_drift(
    models: Sequence[Model], drifted: Iterable[ComparedResource], policy: Policy = NO_POLICY
) -> tuple[Model, ...]:
    """Return the models with the observed side of ignored drift, without those whose deletion is ignored."""
    by_key = {resource.model_key: resource for resource in drifted}
    pairs = ((model, by_key.get(resource_key(model.qualified_name))) for model in models)
    return tuple(
        _with_ignored(model, resource, policy) if resource else model
        for model, resource in pairs
        if not (resource and _is_ignored_deletion(resource))
    )


def _is_ignored_deletion(drifted: ComparedResource) -> bool:
    return not (drifted.observed.exists or drifted.drift)


def overwritten_drift(
    plan: TablePlan, models: Sequence[Securable], drifted: Iterable[ComparedResource]
) -> Iterator[OverwrittenDrift]:
    """Yield the drift that a plan reverts or overwrites. An accepted replaced table stays as it is."""
    by_key = by_resource(models)
    aligned = {resource_key(align.name): align for align in plan.alignments}
    for resource in drifted:
        model = by_key.get(resource.model_key)
        if model is None:
            continue
        align = aligned.get(resource_key(resource.model_name))
        for detail, field in undone_details(resource, model, _changed_fields(align) if align else ()):
            yield OverwrittenDrift(
                model=model, detail=detail, field=field, is_of_replaced_table=is_replaced(resource)
            )


def undone_details(
    drifted: ComparedResource, model: Securable, changed: Iterable[tuple[str, str | None]]
) -> Iterator[tuple[ClassifiedDrift, str]]:
    """Yield the drift that a sync reverts or overwrites, each with the field that it changes for that.

    An accepted replaced table stays as it is, and so does what a sync sets again because it may be gone.

    Args:
        changed: the fields that the sync changes, with their new values.
    """
    new = dict(changed)
    fields = {field.lower(): field for field in new}
    for detail in drifted.drift:
        field = undone_field(detail.finding.field)
        names = (_as_renamed(field.lower(), model), field.lower())
        by_plan = next((fields[name] for name in names if name in fields), None)
        is_undone = by_plan is not None or not drifted.observed.exists
        if by_plan is not None and detail.finding.kind in HIDING:
            is_undone = new[by_plan] != detail.finding.actual
        if detail.finding.kind is DriftKind.TABLE_REPLACED:
            is_undone = detail.finding.accepted is None
        if is_undone:
            yield detail, by_plan or field


def _changed_fields(align: Align[Any]) -> Iterator[tuple[str, str | None]]:
    """Yield the fields that are different after an alignment, with their values.

    Parts that it drops and makes again are not different.
    """
    first: dict[str, Change] = {}
    last: dict[str, tuple[Action, Change]] = {}
    for action in align.actions:
        for change in aspects.explain([action]):
            first.setdefault(change.subject, change)
            last[change.subject] = action, change
    for subject, (action, change) in last.items():
        if change.desired != first[subject].observed:
            yield changed_field(action, change), change.desired


def _as_renamed(field: str, model: Securable) -> str:
    """Return a field of drift, in lower case, under the names that a model gives to columns and their fields."""
    columns = model.columns if isinstance(model, Table) else ()
    renames = sorted(named_renames(columns), key=_depth)
    for _, same_depth in groupby(renames, key=_depth):
        renamed = (
            f"column {'.'.join(new)}{field[len(prefix) :]}"
            for old, new in same_depth
            for prefix in [f"column {'.'.join(old)}"]
            if field == prefix or field.startswith((f"{prefix} ", f"{prefix}."))
        )
        field = next(renamed, field)
    return field


def _depth(rename: tuple[Path, Path]) -> int:
    return len(rename[1])


def undone_drift(overwritten: Iterable[OverwrittenDrift]) -> UndoneDrift:
    """Return the drift that a plan undoes, which leaves out that of replaced tables."""
    return {
        (resource_key(drift.model.qualified_name), drift.field): drift.detail.finding
        for drift in overwritten
        if not drift.is_of_replaced_table
    }


def refusals(overwritten: Iterable[OverwrittenDrift], policy: DriftPolicy) -> Iterator[DriftRefusal]:
    """Yield one refusal for each drift that a sync would overwrite, and that the policy refuses to overwrite."""
    for drift in overwritten:
        if is_refused(drift.detail.finding, policy):
            yield _refusal(drift)


def targets(names: Iterable[SecurableName]) -> str:
    """Return the options that select securables; a policy is selected by its scope and its name."""
    texts = (name.dotted.partition(".")[2] if isinstance(name, PolicyName) else str(name) for name in names)
    return " ".join(f"-t {shlex.quote(text)}" for text in texts)


def is_refused(finding: Finding, policy: DriftPolicy) -> bool:
    """Whether the policy refuses a sync that would overwrite this drift."""
    return policy.refuses(finding.severity, is_accepted=finding.accepted is not None)


def is_replaced(drifted: ComparedResource) -> bool:
    """Whether another table of the same name replaced the table, and the policy does not ignore that."""
    return any(detail.finding.kind is DriftKind.TABLE_REPLACED for detail in drifted.drift)


def accepting(model: Model, drifted: Compared[Model, Any]) -> Model:
    """Return a model with the drift of its securable, except what the policy ignores."""
    if not drifted.observed.exists:
        return model
    return accepted(model, drifted.observed, [detail.difference for detail in drifted.drift])


def edited(model: Table, table: ComparedTable) -> Table:
    """Return an accepting model for a model file: renames name the former names, new foreign keys the shortest ones."""
    after = with_accepted_names(accepting(model, table), accepted_renames(model, table))
    keys = (
        key if key in model.foreign_keys else as_declared(after.qualified_name, key)
        for key in after.foreign_keys
    )
    return replace(after, foreign_keys=tuple(keys))


def accepted_renames(model: Table, table: ComparedTable) -> dict[Path, Path]:
    """Return the new paths of columns and fields that an acceptance renames, by those that the model has now."""
    return by_model_names(model, all_renames(detail.difference for detail in table.drift))


def edits_to_replace(model: Securable, drifted: ComparedResource) -> Iterator[Change]:
    """Yield what a model declares in the place of drift and no sync has applied: accepting the drift replaces it."""
    if not drifted.observed.exists:
        return
    differences = (detail.difference for detail in drifted.drift if detail.difference.action is not None)
    applied = {subject_of(difference): difference.change.desired for difference in differences}
    for difference in aspects.differences(Comparison.of(model, drifted.observed)):
        if difference.change.desired != applied.get(subject_of(difference), difference.change.desired):
            yield difference.change


def restored(drifted: Compared[Model, Any], policy: Policy) -> Model:
    """Return the baseline with all differences that are not drift, or are ignored. Renamed columns are renamed back."""
    if not drifted.observed.exists:
        return drifted.baseline
    kept = [detail.difference for detail in drifted.details if detail.ignored_by is not None]
    kept += (*explained(drifted), *beyond_drift(drifted, policy), *shown_late(drifted, drifted.observed))
    model = accepted(drifted.baseline, drifted.observed, kept)
    if not isinstance(model, Table):
        return model
    return cast(Model, with_former_names(model, all_renames(detail.difference for detail in drifted.drift)))


def reverts(planned: Difference, drift: Difference) -> bool:
    """Whether a planned change brings back what drift changed.

    All moves of columns do, or none: drift is of the whole order. The model may declare a dropped column otherwise.
    """
    if DriftKind.COLUMN_ORDER in (planned.kind, drift.kind):
        return planned.kind is drift.kind
    change, before = planned.change, drift.change
    if planned.kind in (DriftKind.COLUMN_DROPPED, DriftKind.COLUMN_ADDED):
        return (planned.kind, change.subject) == (drift.kind, before.subject)
    return (change.subject, change.desired) == (before.subject, before.desired)


def _undoes_rename(model: Securable, drift: Difference) -> bool:
    """Whether a model has a renamed column or field under its former name, and not under its new one."""
    if drift.renamed is None or not isinstance(model, Table):
        return False
    columns, (old, new) = model.columns, drift.renamed
    is_former = has_path(columns, old) or (len(old) > 1 and has_path(columns, (new[0], *old[1:])))
    return is_former and not has_path(columns, new)


def _with_ignored(model: Model, drifted: ComparedResource, policy: Policy) -> Model:
    if not drifted.observed.exists or len(drifted.drift) == len(drifted.details):
        return model
    details = reverted_drift(model, drifted, policy)
    ignored = [detail.difference for detail in details if detail.ignored_by is not None]
    return accepted(model, drifted.observed, ignored) if ignored else model


def _refusal(drift: OverwrittenDrift) -> DriftRefusal:
    finding, model = drift.detail.finding, drift.model
    author = f", {finding.author}" if finding.author else ""
    event, effect = f"it was changed outside the engine{author}", "revert that"
    name, place = model.qualified_name, model.declared_at
    target = f" {targets([name])}" if name.is_selectable else ""
    way_out = (
        f"{command('drift')} shows the details; {command(f'drift --accept{target}')} writes the change into the "
        "models, "
        f"{command(f'drift --revert{target}')} reverts it if a plan can, "
        "and `policy.drift: revert` lets every sync revert such changes."
    )
    if drift.is_of_replaced_table:
        event, effect = f"it was replaced with another table outside the engine{author}", "change the new one"
        way_out = (
            f"{command('drift')} shows the details; {command(f'drift --accept{target}')} records the new table in the "
            "models, and `policy.drift: revert` lets every sync record such tables and change them to match "
            "their models."
        )
    if finding.kind is DriftKind.TABLE_REPLACED:
        effect = "record the new one in its place"
    if finding.accepted is not None:
        way_out = (
            f"Merge the change of the model, or revert the drift with {command(f'drift --revert{target}')}."
        )
    elif finding.may_be_hidden:
        way_out = f"{command('drift')} shows the details and the options."
    reason = f"{event}, and a sync would {effect}: {_both_sides(finding)}"
    if isinstance(name, QualifiedName):
        refusal = DriftRefusal(reason, table=str(name), location=place, way_out=way_out)
    else:
        refusal = DriftRefusal(f"{name.kind} {name}: {reason}", location=place, way_out=way_out)
    action = drift.detail.difference.action
    if finding.accepted is not None and action is not None:
        refusal.covers = needed_consents(TablePlan((Align(name, (action,)),)))
    return refusal


def _both_sides(finding: Finding) -> str:
    text = f"{finding.field} was {finding.expected or 'absent'} and is {finding.actual or _absent(finding)}"
    if finding.accepted is None:
        return text
    return f"{text}. It was accepted {finding.accepted}, but its model does not declare it"


def _absent(finding: Finding) -> str:
    absence = finding.absence
    return f"gone, or hidden from you ({absence.reason})" if absence and absence.may_be_hidden else "gone"

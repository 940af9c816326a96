"""The differences of two documents of the deployment state. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from delta_engine import aspects
from delta_engine.aspects.aspect import Change, Sign
from delta_engine.aspects.comparison import AnyComparison, Comparison
from delta_engine.deployment.document import DeploymentState
from delta_engine.models import Securable, Table, by_resource
from delta_engine.ownership.recorded import AnyRecord, Recorded

DEPLOYED_AT = "deployed at"
"""The subject of a change that has two moments, or `None`, as its sides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceChange:
    """One resource that differs. It has no changes if only one side has it."""

    key: str
    sign: Sign
    changes: tuple[Change, ...] = ()


def compare_states(
    earlier: DeploymentState, later: DeploymentState, models: Iterable[Table] = ()
) -> tuple[ResourceChange, ...]:
    """Return the changes from one document to another, sorted by key.

    Args:
        models: the declared tables, which know the former names of columns and fields. Records have present names.
    """
    return tuple(_state_changes(earlier, later, by_resource(models)))


def _state_changes(
    earlier: DeploymentState, later: DeploymentState, models: Mapping[str, Table]
) -> Iterator[ResourceChange]:
    former = _renamed_tables(earlier, later)
    for key in sorted({*earlier.resources, *later.resources} - {*former.values()}):
        before = earlier.resources.get(former.get(key, key))
        after = later.resources.get(key)
        if before is None:
            yield ResourceChange(key=key, sign=Sign.ADDED)
        elif after is None:
            yield ResourceChange(key=key, sign=Sign.REMOVED)
        elif before != after:
            yield ResourceChange(
                key=key, sign=Sign.CHANGED, changes=tuple(_within(before, after, models.get(key)))
            )


def _renamed_tables(earlier: DeploymentState, later: DeploymentState) -> dict[str, str]:
    """Return the former keys of tables that have another name, with the same Delta id, by new key."""
    gone = {
        record.delta_table_id: key for key, record in earlier.resources.items() if key not in later.resources
    }
    return {
        key: gone[record.delta_table_id]
        for key, record in later.resources.items()
        if key not in earlier.resources
        and record.delta_table_id is not None
        and record.delta_table_id in gone
    }


def _within(before: AnyRecord, after: AnyRecord, model: Table | None) -> Iterator[Change]:
    if str(before.name) != str(after.name):
        yield _change("name", str(before.name), str(after.name))
    if before.status is not after.status:
        yield _change("status", before.status.value, after.status.value)
    if before.declared is not None and after.declared is not None:
        yield from _redefined(before.declared, after.declared, model)
    if before.delta_version != after.delta_version:
        yield _change("delta version", str(before.delta_version), str(after.delta_version))
    if before.deployed_at != after.deployed_at:
        yield _change(DEPLOYED_AT, str(before.deployed_at), str(after.deployed_at))


def _redefined(before: Securable, after: Securable, model: Table | None) -> Iterator[Change]:
    if model is not None and isinstance(after, Table):
        after = _with_former_names(after, model)
    record: AnyRecord = Recorded.of(before)
    comparison: AnyComparison = Comparison.of(after, aspects.kind_of(before).stated(before), record)
    yield from (difference.change for difference in aspects.differences(comparison))


def _with_former_names(table: Table, model: Table) -> Table:
    """Return a recorded table whose columns and fields have the former names that a model declares."""
    declared = {column.key: column for column in model.columns}
    columns = (
        replace(column, renamed_from=same.renamed_from, renamed_fields=same.renamed_fields)
        if (same := declared.get(column.key)) is not None
        else column
        for column in table.columns
    )
    return replace(table, columns=tuple(columns))


def _change(subject: str, observed: str, desired: str) -> Change:
    return Change(subject=subject, observed=observed, desired=desired)

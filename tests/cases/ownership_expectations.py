"""What the ledger of a world expects of its next report, plan and sync."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import product

from delta_engine.actions.drift_policy import DriftHandling
from delta_engine.actions.policy import ColumnOrder
from delta_engine.models import Table
from tests.builders.worlds import World
from tests.cases.ownership_ledger import (
    Page,
    Parts,
    Seen,
    column_of,
    followed,
    holder_of,
    is_inside,
    kind_of,
    parts_of,
    under_new_name,
    without_columns,
)

LOW, MEDIUM, HIGH = range(3)


def view(world: World, name: str) -> tuple[Page, Seen | None]:
    """Return the page of a table, and the table, under the new names that the model gives to columns."""
    page, seen = world.pages[name], world.seen(name)
    renames = renames_of(world.models[name], seen)
    if seen is None or not renames:
        return page, seen
    for old, new in renames.items():
        page = page.with_rename(old, new)
    return page, seen.renamed(renames)


def after_sync(world: World, name: str) -> Parts:
    (page, seen), model = view(world, name), parts_of(world.models[name])
    if seen is None:
        return {**OF_NEW_TABLES, **model}
    base, left = page.renamed_base(), ignored(world, name) - {"table", "column order"}
    left = {part for part in left if kind_of(part) != "column" or holder_of(part) in {"", *model}}
    columns = {part for part in left if kind_of(part) == "column" and model.get(part) == base.get(part)}
    model = {part: value for part, value in model.items() if not is_inside(part, columns)}
    model |= {part: value for part, value in seen.parts.items() if is_inside(part, columns)}
    after = page.after_sync(model, seen, world.full)
    kept = {part for part in left if after.get(part) == base.get(part)}
    changed = {part: value for part, value in after.items() if part not in kept}
    kept_values = {part: without_columns(part, seen.parts.get(part, ""), changed) for part in kept}
    return changed | {part: value for part, value in kept_values.items() if value}


def ignored(world: World, name: str) -> set[str]:
    """Return the drift of a table that the policy ignores."""
    drift = known_drift(world, name) if world.ignored else {}
    return {part for part in drift if fnmatchcase(part, world.ignored)}


def known_drift(world: World, name: str) -> dict[str, str]:
    """Return the drift of a table. One that is gone and no longer declared was retired."""
    seen = world.seen(name)
    is_retired = seen is None and name not in world.declared
    return {} if is_retired else world.pages[name].drift(seen, world.full)


def is_left_deleted(world: World, name: str) -> bool:
    """Whether the policy ignores the deletion of a table."""
    return world.seen(name) is None and "table" in ignored(world, name)


def is_replaced(world: World, name: str) -> bool:
    """Whether another table has the name of the recorded one: a sync records it, and undoes nothing of it."""
    seen = world.seen(name)
    return seen is not None and "table" in {*world.pages[name].drift(seen, world.full)} - ignored(world, name)


def lacks_parent(world: World) -> bool:
    """Whether a model references a table whose deletion the policy ignores: its key cannot be added."""
    gone = {world.declared[name].key for name in world.declared if is_left_deleted(world, name)}
    keys = {key.references for model in world.declared.values() for key in model.foreign_keys}
    return bool(gone & {*map(str.lower, keys)})


def changed(world: World, name: str) -> set[str]:
    """Return what a sync changes in an existing table, without the parts of columns that it adds or drops."""
    seen, after = view(world, name)[1], after_sync(world, name)
    there = seen.parts if seen else {}
    parts = {part for part, _ in {*there.items()} ^ {*after.items()}}
    return {part for part in parts if holder_of(part) in {"", *({*there} & {*after})}}


def undone(world: World, name: str) -> dict[str, str]:
    """Return the drift that a sync undoes, each with what the plan changes: the new name of a column that is gone."""
    page, seen, model = world.pages[name], world.seen(name), parts_of(world.models[name])
    overwritten, differing, left = dict[str, str](), changed(world, name), ignored(world, name)
    renames = {
        old: new
        for old, new in declared_renames(world.models[name]).items()
        if seen is not None and f"column {new}" not in seen.parts
    }
    for part, actual in page.drift(seen, world.full).items():
        new = under_new_name(part, renames)
        if part in left:
            is_undone = False
        elif part == "table":
            is_undone = seen is None or page.accepted.get(part) != actual
        elif part == "column order":
            is_undone = moves_columns(world, name)
        elif kind_of(part) == "column":
            is_wanted = part in model or new != part
            is_undone = seen is not None and is_wanted == (part not in seen.parts)
            is_undone = is_undone and holder_of(part) in {"", *model}
        else:
            is_undone = new in differing
        if is_undone:
            overwritten[part] = new
    return overwritten


def kept_order(world: World, name: str, seen: Seen) -> tuple[str, ...]:
    """Return the order of columns that a plan reports where the table has another one."""
    is_enforced = world.policy.column_order is ColumnOrder.ENFORCE
    return seen.columns if is_enforced else column_names(world.models[name])


def moves_columns(world: World, name: str) -> bool:
    seen, model = view(world, name)[1], [*column_names(world.models[name])]
    left = [column for column in seen.columns if column in model] if seen else []
    end = [*left, *(column for column in model if column not in left)]
    return (
        world.policy.column_order is ColumnOrder.ENFORCE
        and end != model
        and "column order" not in ignored(world, name)
    )


def pending(world: World, name: str) -> set[str] | None:
    """Return what a sync changes and is no revert of drift; None for nothing, empty for a new table."""
    page, seen = world.pages[name], world.seen(name)
    if seen is None:
        return set() if page.declared is None else None
    after, drift, renames = after_sync(world, name), page.drift(seen, world.full), page.known_renames(seen)
    page, model = view(world, name)[0], parts_of(world.models[name])
    base = followed(page.base, page.known_renames(seen))  # a field may have the name of one that is gone
    reverted = {part for part in drift if kind_of(part) == "column" or after.get(part) == base.get(part)}
    declared = followed(page.declared or {}, page.renames)
    as_before = {
        part
        for part in drift
        if model.get(part) == base.get(part)
        or (kind_of(part) == "mask" and model.get(part) == declared.get(part))
    }
    reverted |= {part for part in as_before if is_lost(part, seen, after)}
    reverted |= {  # what goes with columns that the model drops, and is of others, is no change of its own
        part
        for part in seen.parts
        if kind_of(part) == "mask" and is_lost(part, seen, after) and not page.has(part)
    }
    halves = {f"column {column}" for pair in renames.items() for column in pair}
    names = {f"column {new}" for new in renames_of(world.models[name], seen).values()}
    if world.present_name(name) != world.models[name].table_name:
        names.add("table name")
    return (changed(world, name) - reverted - halves) | names or None


def is_lost(part: str, seen: Seen, after: Parts) -> bool:
    """Whether a mask, row filter or clustering goes with its columns."""
    value, has_columns = seen.parts.get(part, ""), kind_of(part) == "mask" or part == "clustering"
    return has_columns and part not in after and not without_columns(part, value, after)


def is_refused(world: World, name: str) -> bool:
    """Whether a sync refuses to undo the drift of a table."""
    page, seen, model = world.pages[name], world.seen(name), parts_of(world.models[name])
    drift = page.drift(seen, world.full)
    for old, new in page.known_renames(seen).items() if seen else ():
        if (
            f"column {old}" in {*drift} - ignored(world, name)
            and f"column {old}" in model
            and f"column {new}" not in model
        ):
            return True  # a plan can only drop the one and add the other
    if any(is_lost_rename(world.models[name], old, new) for old, new in possible_renames(world, name)):
        return True
    is_refusing = world.drift_policy.handling is DriftHandling.REFUSE
    least = world.drift_policy.refused_from.rank
    return is_refusing and any(
        severity_of(part, seen) >= least or page.accepted.get(part) == drift[part]
        for part in undone(world, name)
    )


def possible_renames(world: World, name: str) -> Iterator[tuple[str, str]]:
    """Yield the columns and fields of a table with a hidden history that others may have renamed."""
    page, seen = world.pages[name], world.seen(name)
    if seen is None or not page.is_hidden:
        return
    drift = {*page.drift(seen, world.full)} - ignored(world, name)
    columns = [part for part in drift if kind_of(part) == "column"]
    for gone, added in product(columns, columns):
        types = (page.base.get(f"{gone} type"), seen.parts.get(f"{added} type"))
        is_pair = gone not in seen.parts and added in seen.parts
        if is_pair and holder_of(gone) == holder_of(added) and types[0] == types[1]:
            yield column_of(gone), column_of(added)


def is_lost_rename(model: Table, old: str, new: str) -> bool:
    """Whether a sync could only drop the new column or field, and add the old one."""
    parts, renames = parts_of(model), declared_renames(model)
    if f"column {new}" in parts or renames.get(new) == old:
        return False
    return f"column {old}" in parts or ("." in old and old in renames)


def expected_drift(world: World, name: str) -> dict[str, bool]:
    """Return the drift of a table, each with whether it was accepted."""
    drift, accepted = known_drift(world, name), world.pages[name].accepted
    return {part: accepted.get(part) == drift[part] for part in {*drift} - ignored(world, name)}


OF_NEW_TABLES = {
    "owner": "ann@example.com",
    "property delta.enableDeletionVectors": "true",
    "property delta.feature.deletionVectors": "supported",
    "property delta.feature.appendOnly": "supported",
    "property delta.feature.invariants": "supported",
    "property delta.enableRowTracking": "true",
    "property delta.minReaderVersion": "3",
    "property delta.minWriterVersion": "7",
    "property delta.checkpointPolicy": "v2",
    "property delta.columnMapping.maxColumnId": "99",
    "property delta.feature.columnMapping": "supported",
    "property delta.feature.typeWidening": "supported",
}
"""What the platform gives to every new table."""


def severity_of(part: str, seen: Seen | None) -> int:
    """Return the default severity of drift, as docs/drift.md lists it."""
    if part.endswith("comment") or part == "column order":
        return LOW
    is_gone = seen is None or part not in seen.parts
    is_high = part == "table" or kind_of(part) in ("type", "mask")
    return HIGH if is_high or (is_gone and kind_of(part) in ("column", "grant")) else MEDIUM


def column_names(model: Table) -> tuple[str, ...]:
    return tuple(column.name for column in model.columns)


def declared_renames(model: Table) -> dict[str, str]:
    """Return the renames of columns and fields that a model names, new paths by former ones."""
    pairs = {former: column.name for column in model.columns for former in column.renamed_from}
    for column in model.columns:
        for path, names in column.renamed_fields.items():
            new = f"{column.name}.{path}"
            pairs |= {f"{new.rpartition('.')[0]}.{former}": new for former in names}
    return pairs


def renames_of(model: Table, seen: Seen | None) -> dict[str, str]:
    """Return the columns and fields that a sync renames, new paths by former ones."""
    there, pairs = seen.parts if seen else (), declared_renames(model)
    return {
        old: new for old, new in pairs.items() if f"column {old}" in there and f"column {new}" not in there
    }

"""What the ledger of a world expects of the schema in its next report, plan and sync."""

from __future__ import annotations

from fnmatch import fnmatchcase

from delta_engine.actions.drift_policy import DriftHandling
from tests.builders.worlds import World
from tests.cases.ownership_expectations import severity_of
from tests.cases.ownership_ledger import Parts, parts_of_schema


def drift(world: World) -> dict[str, str]:
    """Return the drift of the schema. An unfinished one is not compared."""
    page = world.schema_page
    return {} if page.attempts else page.drift(world.seen_schema(), world.full)


def ignored(world: World) -> set[str]:
    return {part for part in drift(world) if world.ignored and fnmatchcase(part, world.ignored)}


def expected_drift(world: World) -> dict[str, bool]:
    """Return the drift of the schema, each with whether it was accepted."""
    drifted = drift(world)
    return {
        part: world.schema_page.accepted.get(part) == drifted[part] for part in {*drifted} - ignored(world)
    }


def after_sync(world: World) -> Parts:
    seen = world.seen_schema()
    if world.schema is None:
        return seen.parts
    page, model = world.schema_page, parts_of_schema(world.schema)
    after = dict(page.after_sync(model, seen, world.full))
    for part in ignored(world):
        if after.get(part) == page.base.get(part):
            after[part] = seen.parts.get(part, "")
    return {part: value for part, value in after.items() if value}


def changed(world: World) -> set[str]:
    """Return what a sync changes."""
    return {part for part, _ in world.seen_schema().parts.items() ^ after_sync(world).items()}


def undone(world: World) -> set[str]:
    """Return the drift that a sync undoes."""
    return ({*drift(world)} & changed(world)) - ignored(world)


def pending(world: World) -> set[str]:
    """Return what a sync changes and is no revert of drift."""
    base, after = world.schema_page.base, after_sync(world)
    return changed(world) - {
        part for part in drift(world) if (after.get(part) or "") == (base.get(part) or "")
    }


def is_refused(world: World) -> bool:
    """Whether a sync refuses to undo the drift of the schema."""
    policy, seen, drifted = world.drift_policy, world.seen_schema(), expected_drift(world)
    return policy.handling is DriftHandling.REFUSE and any(
        severity_of(part, seen) >= policy.refused_from.rank or drifted[part] for part in undone(world)
    )

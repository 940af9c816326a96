"""Notes in the ledger of a world what runs did to its schema."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from delta_engine.drift.drifted_resources import ComparedResource, is_table
from delta_engine.drift.handling import accepting
from delta_engine.models import Schema
from tests.builders.worlds import World
from tests.cases import schema_expectations as expected
from tests.cases.ownership_ledger import Parts, Seen, parts_of_schema


def note_synced(
    world: World,
    before: Seen,
    wanted: Parts,
    *,
    has_failed: bool,
    is_touched: bool,
    was_refused: bool,
    has_ended: bool,
) -> None:
    """Note what a sync did.

    Args:
        has_failed: whether it did not reach the end of its statements for the schema.
        was_refused: whether the first of them was refused: what was applied before counts as attempted.
    """
    page, model, seen = world.schema_page, world.schema, world.seen_schema()
    if model is None:
        return
    parts = parts_of_schema(model)
    if is_touched and has_failed:
        page.attempts += (page.declared if was_refused and page.declared is not None else parts,)
        return
    if not is_touched and not has_ended:
        return
    assert seen.parts == wanted
    if is_touched or page.declared != parts or page.attempts or page.full != world.full:
        page.applied(parts, (), before, seen, world.full)
    page.birth = seen.birth
    page.note_agreement(seen, world.full)


def note_accepted(world: World, drifted: Iterable[ComparedResource], *, is_merged: bool) -> None:
    """Note what was accepted, and edit the model."""
    for schema in itertools.filterfalse(is_table, drifted):
        drift = expected.drift(world)
        world.schema_page.accepted = {part: drift[part] for part in {*drift} - expected.ignored(world)}
        if is_merged and world.schema is not None:
            after = accepting(world.schema, schema)
            assert isinstance(after, Schema)
            world.schema = after


def check_reverted(world: World, before: Seen, drift: set[str], kept: set[str]) -> None:
    """Check that a revert changed the drift of the schema and nothing else."""
    seen = world.seen_schema()
    if world.schema is None or not drift - kept:
        assert seen == before
        return
    differing = {part for part, _ in seen.parts.items() ^ before.parts.items()}
    assert differing == drift - kept
    world.schema_page.accepted = {}
    assert {*expected.drift(world)} <= kept

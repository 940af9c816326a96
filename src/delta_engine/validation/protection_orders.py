"""Refuses plans that no order of their statements makes safe: some reader would see what neither side shows.

What strengthens protection comes first in a plan, what weakens it last. Between them come changes whose direction is
unknown: another function of a filter or mask, another body, another policy, another value of a tag. Two of them on one
table may have no safe order. Nor has a tag that policies look at, because it takes effect after minutes, together with
what weakens protection; nor the drop of a column that has to follow what weakens protection.
`tests/properties/test_governed_orders.py` proves that the other plans are safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, TypeAlias

from delta_engine.actions import Action, Align, AlignTable, Create, Drop, TablePlan
from delta_engine.aspects.backfill_actions import DropFormerColumn
from delta_engine.aspects.column_masks import DropColumnMask, SetColumnMask
from delta_engine.aspects.columns import ColumnDrop, FieldDrop
from delta_engine.aspects.function_definition import ReplaceFunction
from delta_engine.aspects.governed_tables import Governed, GovernedPlan
from delta_engine.aspects.grants import GrantPrivileges, RevokePrivileges
from delta_engine.aspects.policy_definition import ReplacePolicy
from delta_engine.aspects.policy_reach import Reach
from delta_engine.aspects.protection_changes import (
    Direction,
    direction,
    needed_before_drops,
    node_of,
    reads,
    waits_of_swaps,
)
from delta_engine.aspects.row_filters import DropRowFilter, SetRowFilter
from delta_engine.aspects.tags import SetColumnTags, SetTableTags, UnsetColumnTags, UnsetTableTags
from delta_engine.errors import UnsafePlanError
from delta_engine.models import AbacPolicy
from delta_engine.sql.function_bodies import call_cycles
from delta_engine.validation.policy_rules import has_negation, meeting_problems, tags_of
from delta_engine.validation.rules import Problem, plan_refusal

Target: TypeAlias = str | None
"""The key of a column, or None for the rows of a table."""

Targets: TypeAlias = frozenset[Target]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change may do to what readers see of a table.

    Args:
        targets: what it may change: columns, and None for the rows.
        passing: what it may change besides, between a statement that strengthens it and one that weakens it.
        comes_last: whether it follows everything else that the plan does to the table.
    """

    what: str
    direction: Direction
    targets: Targets
    passing: Targets = frozenset()
    is_tag: bool = False
    comes_last: bool = False


def unsafe_orders(governed: GovernedPlan) -> Iterator[UnsafePlanError]:
    """Yield per table why no order of a plan is safe, and the functions that change places in a circle."""
    plan = governed.plan
    touched = {align.name.key for align in plan.alignments if any(map(_has_effect, align.actions))}
    is_governed = plan.is_governed
    if not (touched or is_governed):
        return iter(())
    changes = _Changes(plan, governed.before, governed.after)
    refusals = [
        changes.refusal(key, problem)
        for key in sorted(changes.before.tables.keys() & changes.after.tables.keys())
        if is_governed or not touched.isdisjoint((key, key.rpartition(".")[0]))
        for problem in islice(_Table(key, changes).problems(), 1)
    ]
    return iter(refusals or _circles(changes))


def _has_effect(action: Action) -> bool:
    return direction(action) is not None


@dataclass(frozen=True)
class _Changes:
    """A plan with what governs its tables before and afterwards."""

    plan: TablePlan
    before: Governed
    after: Governed

    @cached_property
    def tables(self) -> Mapping[str, AlignTable]:
        """The changed tables by key."""
        return {align.name.key: align for align in self.plan.align_tables}

    @cached_property
    def schemas(self) -> Mapping[str, Align[Any]]:
        """The changed schemas by key."""
        return {align.name.key: align for align in self.plan.align_schemas}

    def refusal(self, key: str, problem: Problem) -> UnsafePlanError:
        """Return the refusal of a table, which the plan may change only through functions and policies."""
        if (align := self.tables.get(key)) is not None:
            return plan_refusal(align, *problem)
        column = problem.column if isinstance(problem.column, str) else None
        return UnsafePlanError(problem.reason, table=key, column=column, way_out=problem.way_out)

    @cached_property
    def functions(self) -> tuple[ReplaceFunction, ...]:
        """The functions that get another body."""
        replaced = (each for align in self.plan.alignments for each in align.of_type(ReplaceFunction))
        return tuple(each for each in replaced if each.changes_body)

    @cached_property
    def policies(self) -> tuple[tuple[AbacPolicy, Direction], ...]:
        """The policies that are created, replaced or dropped."""
        policies = []
        for change in self.plan.changes:
            match change:
                case Create(AbacPolicy() as policy):
                    policies.append((policy, Direction.STRENGTHENS))
                case Drop() if change.name.key in self.before.policies and change.name.kind == "policy":
                    policies.append((self.before.policies[change.name.key], Direction.WEAKENS))
                case Align():
                    replaced = (each for each in change.of_type(ReplacePolicy) if each.changes_protection)
                    policies += [(each.desired, Direction.UNKNOWN) for each in replaced]
        return tuple(policies)


@dataclass(frozen=True)
class _Table:
    key: str
    changes: _Changes

    @cached_property
    def before(self) -> list[Reach]:
        return self.changes.before.reaches(self.key)

    @cached_property
    def after(self) -> list[Reach]:
        return self.changes.after.reaches(self.key)

    @cached_property
    def late(self) -> list[Reach]:
        """What reaches it after the plan while policies still see the former tags."""
        return self.changes.after.reaches(self.key, self.changes.before)

    @cached_property
    def everything(self) -> Targets:
        return frozenset((None, *(column.key for column in self.changes.before.tables[self.key].columns)))

    @cached_property
    def covering(self) -> tuple[AbacPolicy, ...]:
        policies = (*self.changes.before.policies.values(), *self.changes.after.policies.values())
        return tuple(policy for policy in policies if policy.scope.covers(self.key))

    def problems(self) -> Iterator[Problem]:
        """Yield why no order is safe."""
        effects = [*self._effects()]
        unknown = [effect for effect in effects if effect.direction is Direction.UNKNOWN]
        if len(unknown) > 1:
            if _meets(self.before):
                yield _unordered(unknown, "change it while two functions meet on it", None)
            yield from _of_targets(unknown)
        yield from self._of_drops(effects)
        if any(effect.is_tag for effect in effects):
            yield from self._of_tags(effects)
        if effects and self.covering:
            yield from meeting_problems(self.after)

    def _effects(self) -> Iterator[Effect]:
        align, schema = (
            self.changes.tables.get(self.key),
            self.changes.schemas.get(self.key.rpartition(".")[0]),
        )
        for action in align.actions if align else ():
            yield from self._of_action(action)
        for action in schema.actions if schema else ():
            if isinstance(action, SetTableTags | UnsetTableTags | GrantPrivileges):
                yield from self._of_action(action)
        for replaced in self.changes.functions:
            uses = [use for use in replaced.uses if use.table == self.key]
            kept = frozenset(use.column for use in uses if use.is_before and use.is_after)
            if uses:
                passing = frozenset(use.column for use in uses) - kept
                name = f"function {replaced.desired.qualified_name}"
                yield Effect(name, Direction.UNKNOWN, kept, passing)
        for policy, way in self.changes.policies:
            if policy.scope.covers(self.key):
                targets = frozenset(
                    reach.column
                    for reach in (*self.before, *self.after)
                    if reach.policy is not None and reach.policy.key == policy.key
                )
                is_dropped = way is Direction.WEAKENS
                yield Effect(f"policy {policy.qualified_name}", way, targets, comes_last=is_dropped)
        yield from self._effects_of_drops()

    @cached_property
    def dropped(self) -> Targets:
        align = self.changes.tables.get(self.key)
        return frozenset(drop.observed.key for drop in align.of_type(ColumnDrop)) if align else frozenset()

    def _effects_of_drops(self) -> Iterator[Effect]:
        """Yield what the drop of columns does to others, because policies reach the table through them."""
        if not (self.dropped and self.covering):
            return
        before = self.changes.before
        left = [column for column in before.tables[self.key].columns if column.key not in self.dropped]
        without = before.with_columns(self.key, left).reaches(self.key)
        others = self.everything - self.dropped
        targets = frozenset(
            target for target in others if _calls(self.before, target) != _calls(without, target)
        )
        if _meets(self.before) and not _meets(without):  # no query is refused any more
            targets = others
        if targets:
            names = ", ".join(sorted(map(str, self.dropped)))
            yield Effect(f"the drop of {names}", Direction.UNKNOWN, targets)
            if self._revokes_reading():
                yield Effect("the revoked right to read", Direction.UNKNOWN, targets)

    def _revokes_reading(self) -> bool:
        schema = self.changes.schemas.get(self.key.rpartition(".")[0])
        changed = (self.changes.tables.get(self.key), schema)
        return any(reads(revoke) for align in changed if align for revoke in align.of_type(RevokePrivileges))

    def _of_drops(self, effects: Iterable[Effect]) -> Iterator[Problem]:
        """Yield the drops of columns that cannot come before what shows more of their values."""
        align = self.changes.tables.get(self.key)
        needed = needed_before_drops(align) if align else ()
        if align is None or not needed:
            return
        hiding = {*self.dropped, *(drop.path[0].lower() for drop in align.of_type(FieldDrop))}
        hiding |= {drop.name.lower() for drop in align.of_type(DropFormerColumn)}
        column = min(map(str, hiding), default=None)
        if any(isinstance(action, SetRowFilter | DropRowFilter) for action in needed):
            reason = "a row filter that reads dropped columns would go first, and more rows would show them"
            yield Problem(
                reason, "Drop or replace the row filter first, and the column with a later sync.", column
            )
        refuses_all = _meets(self.before)  # so that each effect may let queries see all columns again
        for effect in effects:
            is_own = effect.is_tag and effect.targets <= self.dropped
            is_early = effect.direction is not Direction.STRENGTHENS and not (effect.comes_last or is_own)
            shows_more = refuses_all or not (hiding | {None}).isdisjoint(effect.targets | effect.passing)
            if is_early and shows_more:
                reason = f"{effect.what} would show more of the values that the plan drops"
                reason += ", and other changes run before the drop"
                yield Problem(reason, f"Sync the other changes first, and {effect.what} afterwards.", column)

    def _of_action(self, action: Action) -> Iterator[Effect]:
        way = direction(action) or Direction.STRENGTHENS
        match action:
            case SetColumnMask() | DropColumnMask():
                yield Effect(f"the mask of {action.name}", way, frozenset({action.name.lower()}))
            case SetRowFilter() | DropRowFilter():
                yield Effect("the row filter", way, frozenset({None}))
            case GrantPrivileges(principal):
                yield Effect(f"the grants to {principal}", way, self.everything, comes_last=True)
            case SetTableTags() | UnsetTableTags():
                yield from self._tag_effect(action, "tags", self.everything)
            case SetColumnTags(name) | UnsetColumnTags(name):
                yield from self._tag_effect(action, f"tags of {name}", frozenset({name.lower()}))

    def _tag_effect(self, action: Any, what: str, targets: Targets) -> Iterator[Effect]:
        """Yield the effect of tags that policies name."""
        named = {key for policy in self.covering for key in tags_of(policy)}
        is_set = isinstance(action, SetTableTags | SetColumnTags)
        changed = {tag.key: tag.observed for tag in action.entries if tag.key in named}
        if not changed:
            return
        is_other_value = is_set and any(value is not None for value in changed.values())
        way = Direction.STRENGTHENS if is_set else Direction.WEAKENS
        if is_other_value or any(map(has_negation, self.covering)):
            way = Direction.UNKNOWN
        yield Effect(what, way, targets, is_tag=True)

    def _only_loses_protection(self, target: Target) -> bool:
        """Whether policies that still see the former tags show no more of a target than the plan does afterwards.

        A mask that is gone afterwards may show other values than before by a changed function. Filters only hide rows.
        """
        after, late = _calls(self.after, target), _calls(self.late, target)
        uses = (use for replaced in self.changes.functions for use in replaced.uses)
        is_changed = (self.key, target) in {(use.table, use.column) for use in uses}
        is_former = late - after <= _calls(self.before, target) and not is_changed
        return after == late or (after < late and (target is None or is_former))

    def _of_tags(self, effects: Iterable[Effect]) -> Iterator[Problem]:
        """Yield the targets that tags protect late, with what may show them before."""
        for target in sorted({*self.everything}, key=lambda column: column or ""):
            if self._only_loses_protection(target):
                continue
            for other in effects:
                is_own_tag = other.is_tag and target in other.targets
                near = other.targets | other.passing
                is_near = None in (target, *near) or target in near
                is_other = not is_own_tag if _meets(self.before) else not other.is_tag and is_near
                if is_other and other.direction is not Direction.STRENGTHENS:
                    reason = (
                        f"policies see its tags after some minutes, but {other.what} would change immediately"
                    )
                    yield Problem(
                        reason, "Sync the tags first, and the other changes some minutes later.", target
                    )
                    break


def _of_targets(unknown: list[Effect]) -> Iterator[Problem]:
    columns = {target for effect in unknown for target in effect.targets | effect.passing}
    of_rows = [effect for effect in unknown if None in effect.targets | effect.passing]
    for column in sorted(columns - {None}, key=str):
        if len(both := [effect for effect in unknown if column in effect.targets]) > 1:
            yield _unordered(both, "change what readers see of it", column)
        of_column = [effect for effect in unknown if column in effect.targets | effect.passing]
        both = [*dict.fromkeys((*of_column, *of_rows))]
        if of_rows and len(both) > 1:
            yield _unordered(both, "change it and the rows that readers see", column)
    if len(both := [effect for effect in unknown if None in effect.targets]) > 1:
        yield _unordered(both, "change the rows that readers see", None)


def _unordered(effects: Iterable[Effect], does: str, column: Target) -> Problem:
    names = " and ".join(effect.what for effect in effects)
    reason = f"{names} {does}: between their statements, readers may see rows that both states hide"
    return Problem(reason, "Sync one of them first.", column)


def _meets(reached: Iterable[Reach]) -> bool:
    """Whether two different calls reach one target, at least for some principal."""
    calls: dict[Target, set[object]] = {}
    for reach in reached:
        calls.setdefault(reach.column, set()).add(reach.call)
    return any(len(distinct) > 1 for distinct in calls.values())


def _calls(reached: Iterable[Reach], target: Target) -> frozenset[tuple[object, str]]:
    return frozenset((reach.call, str(reach)) for reach in reached if reach.column == target)


def _circles(changes: _Changes) -> Iterator[UnsafePlanError]:
    """Yield the functions that change places: each waits for what leaves it, which waits for what it gets instead."""
    names = {node_of(name): str(name) for name in (each.desired.qualified_name for each in changes.functions)}
    policies = (policy.qualified_name for policy, way in changes.policies if way is Direction.UNKNOWN)
    unknown = names.keys() | map(node_of, policies)
    replaced = (align.name for align in changes.plan.alignments if align.name.kind in ("function", "policy"))
    others = {*map(node_of, replaced)} - unknown  # such as comments
    waits = waits_of_swaps(changes.plan)
    for circle in call_cycles(
        {node: needed - others for node, needed in waits.items() if node not in others}
    ):
        if functions := [names[node] for node in circle if node in names]:
            reason = f"functions {' and '.join(functions)} get new bodies and are exchanged in one plan"
            yield UnsafePlanError(
                f"{reason}, which is unsafe in every order", way_out="Sync the new bodies first."
            )

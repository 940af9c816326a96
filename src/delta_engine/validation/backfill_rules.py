"""The default rules for `using`: values of existing rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any, ClassVar, Final

from delta_engine.actions import Align, AlignTable, Hazard, TablePlan
from delta_engine.actions.policy import DestructiveKind, NeededConsent, Policy
from delta_engine.aspects.backfill_actions import BlockedFill, FillColumn, FillSwappedColumn
from delta_engine.aspects.partitioning import RewriteTable, VerifyRewrite, described
from delta_engine.aspects.storage import SetManaged
from delta_engine.errors import UnsafePlanError
from delta_engine.models import Table
from delta_engine.models.types import DataType
from delta_engine.sql.expressions import generation_problem, row_problem
from delta_engine.sql.text import shown_type
from delta_engine.telemetry.context import spoken
from delta_engine.telemetry.visible import counted, described_size
from delta_engine.validation.rules import (
    Problem,
    consent,
    of_each,
    of_each_action,
    of_each_alignment,
    plan_refusal,
    without_consent,
)


class UsingFits:
    """`using` computes a value from one row, for a column that writers fill, and repeats it unless marked."""

    about: ClassVar = ("using",)

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse invalid expressions, and columns that the platform fills."""
        for column in model.columns:
            if column.using is None:
                continue
            expression = column.using.expression
            problem = (generation_problem if column.using.deterministic else row_problem)(expression)
            if problem:
                way_out = (
                    "Compute the value from columns of the same row, such as \"coalesce(region, 'unknown')\"."
                )
                if row_problem(expression) is None:
                    way_out += f" If any value is acceptable, write {_allowing(expression)}."
                yield Problem(f"its using ({expression}) {problem}", way_out, column)
            if column.generated_as is not None or column.identity is not None:
                reason = "it has a using, but the platform computes its values"
                yield Problem(reason, "Remove one of them.", column)


def _allowing(expression: str) -> str:
    return f'using: {{expression: "{expression}", deterministic: false}}'


class FillRangesFit:
    """`fill_by` names a number, date or timestamp that no `using` changes, and ascending bounds of that type."""

    about: ClassVar = ("fill_by",)

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse other columns and bounds."""
        by = model.fill_by
        if by is None:
            return
        column = next((column for column in model.columns if column.key == by.column.lower()), None)
        if column is None:
            yield Problem(f"its fill_by names {by.column}, which is not a column", "Name a declared column.")
            return
        form = _BOUNDS.get(_kind(column.data_type))
        if form is None or column.using is not None:
            reason = "has a using" if column.using is not None else "is not a number, date or timestamp"
            yield Problem(f"its fill_by names it, and it {reason}", "Name another column.", column)
        elif not 0 < len(by.bounds) <= MOST_BOUNDS or not _ascend(by.bounds, *form):
            reason = f"the bounds of its fill_by are not 1 to {MOST_BOUNDS} ascending values of its type"
            yield Problem(
                reason, 'Write them in quotes, such as bounds: ["2025-01-01", "2026-01-01"].', column
            )


MOST_BOUNDS: Final = 50
"""The most bounds of `fill_by`: each range is a commit, and its files may be written again by the next one."""

_DIGITS: Final = {"tinyint": 2, "smallint": 4, "int": 9, "bigint": 18}
_DATE: Final = r"\d{4}-\d\d-\d\d"
_BOUNDS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    **{name: (rf"-?\d{{1,{digits}}}", int) for name, digits in _DIGITS.items()},
    "decimal": (r"-?\d{1,37}(\.\d+)?", Decimal),
    "date": (_DATE, date.fromisoformat),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), (rf"{_DATE}( \d\d:\d\d:\d\d)?", datetime.fromisoformat)),
}
"""How bounds are written, and what compares them, by the names of types."""


def _ascend(bounds: Sequence[str], form: str, read: Callable[[str], Any]) -> bool:
    if not all(re.fullmatch(form, bound, re.ASCII) for bound in bounds):
        return False
    try:
        values = [read(bound) for bound in bounds]
    except ValueError:  # there is no such day
        return False
    return all(value < other for value, other in pairwise(values))


def _kind(data_type: DataType) -> str:
    return shown_type(data_type).partition("(")[0]


class NoBlockedFills:
    """`using` computes values only if no key, mask, filter or other part of the table blocks it."""

    @of_each_action(BlockedFill)
    def check(self, blocked: BlockedFill) -> Iterator[Problem]:
        """Refuse fills with an obstacle."""
        yield Problem(blocked.reason, blocked.way_out, blocked.name)


class NoUnallowedRewrites:
    """Rewriting all rows for other partitions needs consent by the policy or the command."""

    @of_each_alignment
    def check(self, align: AlignTable, policy: Policy) -> Iterator[Problem]:
        """Refuse rewrites without consent, and those with an obstacle."""
        kind = DestructiveKind.REWRITE_TABLE
        for rewrite in align.of_type(RewriteTable):
            observed, desired = described(rewrite.observed), described(rewrite.desired)
            change = f"its partitioning would change from {observed} to {desired}"
            if rewrite.problem:
                yield Problem(f"{change}, and {rewrite.problem}", rewrite.way_out)
            elif not policy.allows(kind, align.table):
                reason = f"{change}, which rewrites all rows and changes the id of the table"
                needed = (NeededConsent(kind=kind, securable=align.table),)
                yield Problem(reason, f"Allow it: {consent(kind, align.table)}", needed=needed)
        for verification in align.of_type(VerifyRewrite):
            if verification.problem:
                reason = "an unfinished run has rewritten its rows, which are not verified yet"
                yield Problem(f"{reason}, and {verification.problem}", verification.way_out)


class NoUnallowedMoves:
    """Making an external table managed copies its files, which needs consent and a separate run."""

    @of_each_alignment
    def check(self, align: AlignTable, policy: Policy) -> Iterator[Problem]:
        """Refuse moves without consent, together with rewrites of rows, or with an obstacle."""
        kind = DestructiveKind.REWRITE_TABLE
        for move in align.of_type(SetManaged):
            change = f"it would become a managed table, and its files would leave {move.observed}"
            others = [
                action
                for action in align.actions
                if action is not move and Hazard.REWRITES_DATA in action.hazards
            ]
            if move.problem:
                yield Problem(f"{change}, and {move.problem}", move.way_out)
            elif others:
                reason = f"{change}, while the same plan writes its rows"
                yield Problem(reason, "Sync one of these changes before you declare the other.")
            elif not policy.allows(kind, align.table):
                way_out = f"Declare its location as it is, or allow it: {consent(kind, align.table)}"
                yield Problem(change, way_out, needed=(NeededConsent(kind=kind, securable=align.table),))


class WithinRewriteLimit:
    """A plan rewrites no more existing data than `policy.max_rewrite_bytes`."""

    about: ClassVar = (Align,)

    needs_costs: ClassVar[bool] = True

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse plans above the limit, and with a limit those whose size is not known."""
        limit = policy.max_rewrite_bytes
        if limit is None:
            return
        written = [align for align in plan.align_tables if align.writes_rows]
        for align in written:
            if align.cost is None or align.cost.size is None:
                reason = "its files would be rewritten, and their size is unknown"
                yield plan_refusal(align, reason, "Raise policy.max_rewrite_bytes, or remove it.")
        total = sum(align.cost.size or 0 for align in written if align.cost is not None)
        if total > limit:
            yield UnsafePlanError(
                f"{described_size(total)} would be rewritten in {counted(len(written), 'table')}, and "
                f"policy.max_rewrite_bytes is {described_size(limit)}",
                way_out=f"Change fewer tables at a time with {spoken('-t', 'select=[…]')}, or raise the limit.",
            )


class NoUnallowedFills:
    """Writing values into existing rows needs consent by the policy or the command."""

    @of_each_alignment
    def check(self, align: AlignTable, policy: Policy) -> Iterator[Problem]:
        """Refuse fills without consent."""
        kind = DestructiveKind.BACKFILL_COLUMN
        names = [fill.name for fill in align.of_type(FillColumn)]
        names += [fill.name for fill in align.of_type(FillSwappedColumn)]
        if needed := without_consent(kind, align.table, names, policy):
            names = [str(change.part) for change in needed]
            reason = f"columns ({', '.join(names)}) would get values in existing rows"
            yield Problem(reason, f"Allow it: {consent(kind, align.table)}", names[0], needed)

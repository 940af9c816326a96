"""The default rules for `using`: values of existing rows."""

from __future__ import annotations

from collections.abc import Iterator

from delta_engine.actions import AlignTable, Hazard, TablePlan
from delta_engine.actions.policy import DestructiveKind, Policy
from delta_engine.aspects.backfill_actions import BlockedFill, FillColumn, FillSwappedColumn
from delta_engine.aspects.partitioning import RewriteTable, described
from delta_engine.aspects.storage import SetManaged
from delta_engine.errors import UnsafePlanError
from delta_engine.models import Table
from delta_engine.sql.expressions import generation_problem, row_problem
from delta_engine.telemetry.visible import counted, described_size
from delta_engine.validation.rules import (
    Problem,
    consent,
    of_each_action,
    of_each_alignment,
    of_each_table,
    plan_refusal,
)


class UsingFits:
    """`using` computes a value from one row, for a column that writers fill; the same each time, unless it says so."""

    @of_each_table
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
                    way_out += f" If any value will do: {_allowing(expression)}."
                yield Problem(f"its using ({expression}) {problem}", way_out, column)
            if column.generated_as is not None or column.identity is not None:
                reason = "it has a using, and the platform computes its values"
                yield Problem(reason, "Leave one of them out.", column)


def _allowing(expression: str) -> str:
    return f'using: {{expression: "{expression}", deterministic: false}}'


class NoBlockedFills:
    """Values are computed only where nothing stands in the way."""

    @of_each_action(BlockedFill)
    def check(self, blocked: BlockedFill) -> Iterator[Problem]:
        """Refuse fills with an obstacle."""
        yield Problem(blocked.reason, blocked.way_out, blocked.name)


class NoUnallowedRewrites:
    """Writing all rows anew, as other partitions need it, takes consent by the policy or the command."""

    @of_each_alignment
    def check(self, align: AlignTable, policy: Policy) -> Iterator[Problem]:
        """Refuse rewrites without consent, and those that something stands in the way of."""
        kind = DestructiveKind.REWRITE_TABLE
        for rewrite in align.of_type(RewriteTable):
            observed, desired = described(rewrite.observed), described(rewrite.desired)
            change = f"its partitioning would change from {observed} to {desired}"
            if rewrite.problem:
                yield Problem(f"{change}, and {rewrite.problem}", rewrite.way_out)
            elif not policy.allows(kind, align.table):
                reason = f"{change}, which writes all rows anew and gives the table another id"
                yield Problem(reason, f"Allow it: {consent(kind, align.table)}")


class NoUnallowedMoves:
    """Copying the files of an external table, so that the catalog manages them, takes consent, and a run of its own."""

    @of_each_alignment
    def check(self, align: AlignTable, policy: Policy) -> Iterator[Problem]:
        """Refuse moves without consent, beside rewrites of rows, and those that something stands in the way of."""
        kind = DestructiveKind.REWRITE_TABLE
        for move in align.of_type(SetManaged):
            change = f"it would become a managed table, whose files are no longer in {move.observed}"
            others = [one for one in align.actions if one is not move and Hazard.REWRITES_DATA in one.hazards]
            if move.problem:
                yield Problem(f"{change}, and {move.problem}", move.way_out)
            elif others:
                reason = f"{change}, while the same plan writes its rows"
                yield Problem(reason, "Sync the one before you declare the other.")
            elif not policy.allows(kind, align.table):
                way_out = f"Declare its location as it is, or allow it: {consent(kind, align.table)}"
                yield Problem(change, way_out)


class WithinRewriteLimit:
    """A plan writes no more existing data anew than `policy.max_rewrite_bytes`."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse plans above the limit, and with a limit those whose size is not known."""
        limit = policy.max_rewrite_bytes
        if limit is None:
            return
        written = [align for align in plan.align_tables if align.writes_rows]
        for align in written:
            if align.cost is None or align.cost.size is None:
                reason = "its files would be written anew, and their size is not known"
                yield plan_refusal(align, reason, "Raise policy.max_rewrite_bytes, or remove it.")
        total = sum(align.cost.size or 0 for align in written if align.cost is not None)
        if total > limit:
            yield UnsafePlanError(
                f"{described_size(total)} would be written anew in {counted(len(written), 'table')}, and "
                f"policy.max_rewrite_bytes is {described_size(limit)}",
                way_out="Change fewer tables at a time with -t, or raise the limit.",
            )


class NoUnallowedFills:
    """Writing values into existing rows needs consent by the policy or the command."""

    @of_each_alignment
    def check(self, align: AlignTable, policy: Policy) -> Iterator[Problem]:
        """Refuse fills without consent."""
        kind = DestructiveKind.BACKFILL_COLUMN
        names = [fill.name for fill in align.of_type(FillColumn)]
        names += [fill.name for fill in align.of_type(FillSwappedColumn)]
        if names and not policy.allows(kind, align.table):
            listed = ", ".join(dict.fromkeys(names))
            reason = f"columns ({listed}) would get values in existing rows"
            yield Problem(reason, f"Allow it: {consent(kind, align.table)}", names[0])

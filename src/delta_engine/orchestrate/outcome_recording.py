"""Records what becomes of schemas and tables while a plan is applied, and tells of it."""

from __future__ import annotations

from collections.abc import Sequence

from delta_engine.actions import TablePlan
from delta_engine.aspects.table_names import RenameTable
from delta_engine.deployment.recorder import RunRecorder
from delta_engine.execute.outcomes import AnyOutcome, OutcomeKind, SchemaOutcome, TableOutcome
from delta_engine.models import Schema, Table
from delta_engine.orchestrate.run_reporting import RunReporting


class OutcomeRecording:
    """Takes in the outcomes of one apply. What was not begun is as it was, and leaves no record.

    Args:
        recorder: keeps them.
        reporting: tells of them.
        plan: what is applied.
        models: the declared tables.
        schemas: the declared schemas.
    """

    def __init__(
        self,
        recorder: RunRecorder,
        reporting: RunReporting,
        plan: TablePlan,
        models: Sequence[Table],
        schemas: Sequence[Schema],
    ) -> None:
        self._recorder = recorder
        self._reporting = reporting
        self._models = {model.qualified_name.key: model for model in models}
        self._schemas = {schema.key: schema for schema in schemas}
        self._renamed = {
            align.table.key: rename.observed
            for align in plan.align_tables
            for rename in align.of_type(RenameTable)
        }

    def table(self, outcome: TableOutcome) -> None:
        """Take in what became of a table."""
        if _is_untouched(outcome):
            return
        key = outcome.name.key
        if key in self._renamed and outcome.statements:  # it is the first statement
            self._recorder.records.rename(self._renamed[key], outcome.name)
        if outcome.kind is OutcomeKind.DROPPED:
            self._recorder.record_drop(outcome)
        else:
            self._recorder.record(outcome, self._models.get(key))
        self._reporting.table_done(outcome)

    def schema(self, outcome: SchemaOutcome) -> None:
        """Take in what became of a schema."""
        if _is_untouched(outcome):
            return
        self._recorder.record_schema(outcome, self._schemas.get(outcome.name.key))
        self._reporting.schema_done(outcome)


def _is_untouched(outcome: AnyOutcome) -> bool:
    return outcome.kind is OutcomeKind.STOPPED and not outcome.statements

"""Creates and changes schemas before any table: each by itself, so that one that fails stops none of the others.

What may take rights from whoever runs this comes after all tables, and waits for another run while one is not done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from delta_engine.actions import AlignSchema, CreateSchema, TablePlan
from delta_engine.addressing import Addressing
from delta_engine.aspects import schemas
from delta_engine.capabilities import Capabilities
from delta_engine.errors import StatementError
from delta_engine.execute.ddl import DeltaDDL, InterruptedStatementsError
from delta_engine.execute.plan_progress import OutcomeKind, kind_of_failure
from delta_engine.models import QualifiedName


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaOutcome:
    """What became of one schema of a plan.

    Args:
        catalog_name: its catalog.
        schema_name: its name.
        kind: created, changed or failed; stopped if the run was to end before the schema was done, or begun.
        statements: how many statements ran to the end.
        failure: the statement that failed and why; None unless the kind is failed or stopped.
    """

    catalog_name: str
    schema_name: str
    kind: OutcomeKind
    statements: int
    failure: InterruptedStatementsError | None = None

    def __str__(self) -> str:
        return f"{self.catalog_name}.{self.schema_name}"

    @property
    def key(self) -> str:
        """What identifies the schema, without regard to case."""
        return str(self).lower()


class SchemaExecutor:
    """Applies what a plan says about schemas.

    Args:
        ddl: runs the statements.
        addressing: how schemas are addressed.
        capabilities: what the platform can do.
    """

    def __init__(self, ddl: DeltaDDL, addressing: Addressing, capabilities: Capabilities) -> None:
        self._ddl = ddl
        self._addressing = addressing
        self._capabilities = capabilities

    def apply(
        self, plan: TablePlan, on_outcome: Callable[[SchemaOutcome], object] = lambda _outcome: None
    ) -> tuple[SchemaOutcome, ...]:
        """Create schemas, then change them, but for what comes after all tables.

        Args:
            plan: the plan.
            on_outcome: called as each schema is done.

        Returns:
            What became of each schema so far, sorted by name.
        """
        creates = {str(create).lower(): create for create in plan.create_schemas}
        aligns = {str(align).lower(): align for align in plan.align_schemas}
        outcomes = []
        for key in sorted({*creates, *aligns}):
            align = aligns.get(key)
            outcome = self._outcome(creates.get(key) or aligns[key], align and schemas.before_tables(align))
            outcomes.append(outcome)
            if not _is_given_away(outcome, align):
                on_outcome(outcome)
        return tuple(outcomes)

    def give_away(
        self,
        plan: TablePlan,
        outcomes: Sequence[SchemaOutcome],
        undone: QualifiedName | None,
        on_outcome: Callable[[SchemaOutcome], object] = lambda _outcome: None,
    ) -> tuple[SchemaOutcome, ...]:
        """Change what may take rights away, after all tables.

        Args:
            plan: the plan.
            outcomes: what `apply` returned.
            undone: a table that is not done, for which the rights are needed.
            on_outcome: called as each schema is done.

        Returns:
            What became of each schema, sorted by name.
        """
        aligns = {str(align).lower(): align for align in plan.align_schemas}
        final = []
        for outcome in outcomes:
            align = aligns.get(outcome.key)
            if align is not None and _is_given_away(outcome, align):
                final.append(self._given_away(outcome, align, undone))
                on_outcome(final[-1])
            else:
                final.append(outcome)
        return tuple(final)

    def _given_away(
        self, outcome: SchemaOutcome, align: AlignSchema, undone: QualifiedName | None
    ) -> SchemaOutcome:
        late = schemas.after_tables(align) or align
        try:
            if undone is not None:
                raise InterruptedStatementsError(_waiting_for(undone), 0)
            done = self._ddl.run(schemas.render(late, self._addressing, self._capabilities))
        except InterruptedStatementsError as error:
            done = outcome.statements + error.statements_done
            return replace(outcome, kind=kind_of_failure(error), statements=done, failure=error)
        return replace(outcome, statements=outcome.statements + done)

    def _outcome(self, schema: CreateSchema | AlignSchema, align: AlignSchema | None) -> SchemaOutcome:
        kind, failure = OutcomeKind.CHANGED, None
        done = 0
        try:
            if isinstance(schema, CreateSchema):
                kind = OutcomeKind.CREATED
                done += self._create(schema)
            if align is not None:
                done += self._ddl.run(schemas.render(align, self._addressing, self._capabilities))
        except InterruptedStatementsError as error:
            kind, done, failure = kind_of_failure(error), done + error.statements_done, error
        return SchemaOutcome(
            catalog_name=schema.catalog_name,
            schema_name=schema.schema_name,
            kind=kind,
            statements=done,
            failure=failure,
        )

    def _create(self, create: CreateSchema) -> int:
        return self._ddl.run(
            [self._addressing.create_schema(create.catalog_name, create.schema_name, create.comment)]
        )


def _is_given_away(outcome: SchemaOutcome, align: AlignSchema | None) -> bool:
    """Whether something is left to do after all tables."""
    return outcome.failure is None and bool(align and schemas.after_tables(align))


def _waiting_for(table: QualifiedName) -> StatementError:
    reason = (
        f"its owner changes and its privileges are revoked after all tables, and table {table} is not done"
    )
    return StatementError(reason, sql="", error_class=None)

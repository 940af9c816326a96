"""What is tried again, when, and after which look; with a clock that the tests turn."""

from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest

from delta_engine.actions import Align, AlignTable, Create, TablePlan
from delta_engine.aspects.column_comments import ColumnComment, SetColumnComments
from delta_engine.aspects.owner import ChangeOwner
from delta_engine.aspects.table_comment import SetSchemaComment, SetTableComment
from delta_engine.backends.error_conditions import Transience, transience
from delta_engine.backends.retries import PATIENCE_SECONDS, backoff_delay
from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.outcomes import (
    AnyOutcome,
    OutcomeKind,
    SchemaOutcome,
    TableOutcome,
    of_schemas,
    of_tables,
)
from delta_engine.execute.statement_runner import StaleTableError
from delta_engine.models import QualifiedName, Schema, SchemaName
from tests.builders.engines import runner_on
from tests.builders.models import ORDERS
from tests.fakes.planning import compiled
from tests.fakes.recording_sql_runner import RecordingSqlRunner

FIRST = "ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` COMMENT 'Key'"
SECOND = "COMMENT ON TABLE `dev`.`silver`.`orders` IS 'Orders'"
PLAN = compiled(
    TablePlan(
        (
            AlignTable(
                ORDERS, (SetTableComment("Orders", ""), SetColumnComments((ColumnComment("id", "Key", ""),)))
            ),
        )
    )
)


class Troubled(RecordingSqlRunner):
    """Refuses statements by given conditions, one after the other, and takes all that come then."""

    def __init__(self, *conditions: str, at: str = FIRST) -> None:
        super().__init__()
        self._conditions = list(conditions)
        self._at = at

    def run(self, sql: str) -> Sequence[Row]:
        super().run(sql)
        if sql == self._at and self._conditions:
            raise StatementError("not now", sql=sql, error_class=self._conditions.pop(0))
        return ()


class Waits:
    """A control whose waits are noted and cost nothing."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.notes: list[str] = []
        self.control = ApplyControl(wait=self.seconds.append, draw=lambda: 1.0, notify=self.notes.append)


def apply(
    runner: RecordingSqlRunner, waits: Waits, look: Callable[[QualifiedName], Sequence[str]] | None = None
) -> TableOutcome:
    engine = runner_on(runner)
    try:
        outcomes = engine.apply(PLAN, control=waits.control, reread=look)
    except ApplyFailedError as error:
        outcomes = error.outcomes
    (outcome,) = of_tables(outcomes)
    return outcome


def test_what_was_turned_away_unseen_is_sent_again_without_a_look() -> None:
    runner, waits = Troubled("RESOURCE_EXHAUSTED", "TOO_MANY_REQUESTS"), Waits()
    outcome = apply(runner, waits)
    assert runner.statements == [FIRST, FIRST, FIRST, SECOND]
    assert waits.seconds == [1, 2]
    assert outcome.failure is None
    assert [(run.sql, run.retries, run.is_done) for run in outcome.runs] == [
        (FIRST, 2, True),
        (SECOND, 0, True),
    ]
    assert waits.notes[0] == (
        "table dev.silver.orders: too many requests (RESOURCE_EXHAUSTED); trying again in 1 s"
    )


@pytest.mark.parametrize(
    ("condition", "reason"),
    [("RESOURCE_EXHAUSTED", Transience.THROTTLED), ("DELTA_METADATA_CHANGED", Transience.CONFLICT)],
)
def test_patience_ends(condition: str, reason: Transience) -> None:
    runner, waits = Troubled(*[condition] * 500), Waits()
    outcome = apply(runner, waits, look=lambda _table: [FIRST, SECOND])
    assert outcome.failure is not None
    assert outcome.failure.error_class == condition
    assert PATIENCE_SECONDS[reason] - 30 <= sum(waits.seconds) <= PATIENCE_SECONDS[reason]


def applied_slowly(condition: str, times: int, seconds: float) -> tuple[Troubled, float]:
    """Apply the plan where every statement takes its time; return the runner, and how long it took."""
    now = [0.0]

    class Slow(Troubled):
        def run(self, sql: str) -> Sequence[Row]:
            now[0] += seconds
            return super().run(sql)

    runner = Slow(*[condition] * times)
    control = ApplyControl(wait=lambda _seconds: None, draw=lambda: 1.0, seconds=lambda: now[0])
    with suppress(ApplyFailedError):
        runner_on(runner).apply(PLAN, control=control, reread=lambda _table: [FIRST, SECOND])
    return runner, now[0]


def test_patience_within_an_attempt_is_patience_too() -> None:
    """A SQL warehouse that turns requests away is asked for minutes before a statement counts as turned away."""
    runner, seconds = applied_slowly("TOO_MANY_REQUESTS", 500, 300)
    assert SECOND not in runner.statements
    assert seconds <= PATIENCE_SECONDS[Transience.THROTTLED] + 300


def test_what_a_statement_takes_before_it_conflicts_is_no_waiting() -> None:
    runner, _ = applied_slowly("DELTA_METADATA_CHANGED", 3, 1000)
    assert runner.statements == [FIRST] * 4 + [SECOND]


@pytest.mark.parametrize(
    ("condition", "at", "left", "statements"),
    [
        ("DELTA_METADATA_CHANGED", FIRST, [FIRST, SECOND], [FIRST, FIRST, SECOND]),
        ("TEMPORARILY_UNAVAILABLE", FIRST, [FIRST, SECOND], [FIRST, FIRST, SECOND]),
        ("TEMPORARILY_UNAVAILABLE", FIRST, [SECOND], [FIRST, SECOND]),
        ("DELTA_METADATA_CHANGED", SECOND, [SECOND], [FIRST, SECOND, SECOND]),
    ],
    ids=["conflict", "lost answer", "lost answer of a statement that is done", "in the middle of a table"],
)
def test_after_a_conflict_or_a_lost_answer_the_table_is_read_again(
    condition: str, at: str, left: list[str], statements: list[str]
) -> None:
    looks: list[QualifiedName] = []

    def look(table: QualifiedName) -> Sequence[str]:
        looks.append(table)
        return left

    runner = Troubled(condition, at=at)
    outcome = apply(runner, Waits(), look)
    assert (outcome.failure, outcome.statements) == (None, 2)
    assert runner.statements == statements
    assert looks == [ORDERS]


def test_a_plan_that_fits_the_table_no_more_fails_the_table() -> None:
    runner, waits = Troubled("DELTA_METADATA_CHANGED"), Waits()
    outcome = apply(runner, waits, look=lambda _table: ["ALTER TABLE something else", FIRST, SECOND])
    assert runner.statements == [FIRST]
    assert outcome.failure is not None
    assert outcome.failure.message == (
        "another principal changed the table during the run, and the plan no longer fits. Check it with "
        "`delta-engine -e ENV plan`, and run again. The platform's answer: not now"
    )
    assert outcome.failure.error_class == "DELTA_METADATA_CHANGED"
    assert len(waits.seconds) == 1  # although that condition is transient


def test_a_look_that_fails_is_tried_again_like_a_statement() -> None:
    answers: list[Sequence[str] | StatementError] = [
        StatementError("not now", sql="SELECT", error_class="RESOURCE_EXHAUSTED"),
        [FIRST, SECOND],
    ]

    def look(_table: QualifiedName) -> Sequence[str]:
        answer = answers.pop(0)
        if isinstance(answer, StatementError):
            raise answer
        return answer

    runner, waits = Troubled("DELTA_CONCURRENT_WRITE"), Waits()
    assert apply(runner, waits, look).failure is None
    assert runner.statements == [FIRST, FIRST, SECOND]


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (
            StaleTableError("it is a view by now", sql="", error_class=None),
            ("it is a view by now", FIRST, "DELTA_METADATA_CHANGED"),
        ),
        (ConnectionResetError("gone"), ("no answer: ConnectionResetError: gone", FIRST, None)),
    ],
)
def test_a_look_that_fails_for_good(error: Exception, failure: tuple[str, str, str | None]) -> None:
    def look(_table: QualifiedName) -> Sequence[str]:
        raise error

    reported = apply(Troubled("DELTA_METADATA_CHANGED"), Waits(), look).failure
    assert reported is not None
    assert failure == (reported.message, reported.sql, reported.error_class)


def test_nobody_who_could_look_makes_a_conflict_a_failure() -> None:
    runner, waits = Troubled("DELTA_METADATA_CHANGED"), Waits()
    assert apply(runner, waits).failure is not None
    assert (runner.statements, waits.seconds) == ([FIRST], [])


@pytest.mark.parametrize("condition", ["INTERNAL_ERROR", "DEADLINE_EXCEEDED", "FIELDS_ALREADY_EXISTS"])
def test_what_is_not_known_to_be_transient_is_a_failure(condition: str) -> None:
    runner, waits = Troubled(condition), Waits()
    outcome = apply(runner, waits, look=lambda _table: [FIRST, SECOND])
    assert runner.statements == [FIRST]
    assert [run.is_done for run in outcome.runs] == [False]


def test_waits_part_ways() -> None:
    delays = [
        tuple(backoff_delay(Transience.CONFLICT, n, 0, draw) for draw in (lambda: 0.0, lambda: 1.0))
        for n in (0, 3, 9)
    ]
    assert delays == [(0.5, 1), (4, 8), (15, 30)]


SCHEMAS = compiled(
    TablePlan(
        (
            Create(Schema("dev", "silver")),
            Align(SchemaName("dev", "silver"), (SetSchemaComment("new", ""), ChangeOwner("bob", "ann"))),
        )
    )
)
CREATE, COMMENT, OWNER = (
    "CREATE SCHEMA `dev`.`silver`",
    "COMMENT ON SCHEMA `dev`.`silver` IS 'new'",
    "ALTER SCHEMA `dev`.`silver` OWNER TO `bob`",
)


def applied_schema(runner: RecordingSqlRunner, waits: Waits) -> SchemaOutcome:
    told: list[AnyOutcome] = []
    engine = runner_on(runner)
    with suppress(ApplyFailedError):
        engine.apply(SCHEMAS, told.append, control=waits.control)
    (outcome,) = of_schemas(told)
    return outcome


@pytest.mark.parametrize("condition", ["RESOURCE_EXHAUSTED", "TEMPORARILY_UNAVAILABLE"])
@pytest.mark.parametrize("at", [CREATE, COMMENT, OWNER])
def test_a_statement_about_a_schema_is_sent_again_without_a_look(condition: str, at: str) -> None:
    runner, waits = Troubled(condition, at=at), Waits()
    outcome = applied_schema(runner, waits)
    assert (outcome.kind, outcome.statements) == (OutcomeKind.CREATED, 3)
    assert runner.statements == sorted([CREATE, COMMENT, OWNER, at], key=[CREATE, COMMENT, OWNER].index)
    assert [run.retries for run in outcome.runs if run.sql == at] == [1]
    assert waits.notes == [
        f"schema dev.silver: {transience_of(condition).value} ({condition}); trying again in 1 s"
    ]


def transience_of(condition: str) -> Transience:
    kind = transience(StatementError("", sql="", error_class=condition))
    assert kind is not None
    return kind


def test_a_schema_that_is_there_after_a_lost_answer_is_created() -> None:
    runner, waits = Troubled("TEMPORARILY_UNAVAILABLE", "SCHEMA_ALREADY_EXISTS", at=CREATE), Waits()
    outcome = applied_schema(runner, waits)
    assert (outcome.kind, outcome.statements) == (OutcomeKind.CREATED, 3)
    assert runner.statements == [CREATE, CREATE, COMMENT, OWNER]


def test_a_schema_that_somebody_else_made_is_a_failure() -> None:
    outcome = applied_schema(Troubled("SCHEMA_ALREADY_EXISTS", at=CREATE), Waits())
    assert (outcome.kind, outcome.statements) == (OutcomeKind.FAILED, 0)
    assert [run.is_done for run in outcome.runs] == [False]

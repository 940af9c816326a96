"""Fills are repeated until no row is left, and compared by the versions that they have written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from delta_engine.actions.policy import NO_POLICY
from delta_engine.backends.capabilities import DATABRICKS
from delta_engine.backends.sql_runner import Row
from delta_engine.compile.planner import TablePlanner
from delta_engine.errors import StatementError
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.fill_runner import MOST_ROUNDS
from delta_engine.models import Column, FillBy, Using
from delta_engine.state.states import CatalogState
from tests.builders.engines import runner_on
from tests.builders.models import ORDERS, catalog_of, observed, orders

AMOUNT = Column("amount", "int", using="cast(amount AS int)")
REGION = Column("region", "string", is_nullable=False, using="'unknown'")
TEXT, MISSING = Column("amount", "string"), Column("region", "string")


class Platform:
    """A platform whose fills find rows a few times; it notes what ran, with `?` for what is quoted.

    Args:
        rounds: how often a fill finds a row.
        commits: what the history has, newest first; fills add none.
        conflicts: how often a fill fails with a conflict first.
    """

    def __init__(
        self, rounds: int = 1, commits: Sequence[Mapping[str, object]] = (), conflicts: int = 0
    ) -> None:
        self.statements: list[str] = []
        self._rounds, self._conflicts = rounds, conflicts
        self._commits = commits
        self._questions = 0

    def run(self, sql: str) -> Sequence[Row]:
        if sql.startswith("DESCRIBE HISTORY"):
            self._questions += 1
            return self._commits if self._questions > 1 else self._commits[-1:]
        if sql.startswith(("UPDATE", "MERGE")) and self._conflicts:
            self._conflicts -= 1
            raise StatementError("no", sql=sql, error_class="DELTA_CONCURRENT_APPEND")
        self.statements.append(sql)
        if sql.startswith(("UPDATE", "MERGE")):
            self._rounds -= 1
            return [{"num_affected_rows": max(self._rounds + 1, 0)}]
        return [{"verified": None}]

    def began(self, words: str) -> list[str]:
        """Return the statements that begin with words."""
        return [sql for sql in self.statements if sql.startswith(words)]


def apply(platform: Platform, model: Column, there: Column, fill_by: FillBy | None = None) -> None:
    models = [orders(Column("id", "bigint"), model, fill_by=fill_by)]
    state = catalog_of(models, observed(Column("id", "bigint"), there, properties=MAPPED))
    runner = runner_on(platform, DATABRICKS)
    control = ApplyControl(wait=lambda _seconds: None)
    runner.apply(runner.compile(TablePlanner(NO_POLICY).plan(models, state)), control=control)


MAPPED = {"delta.columnMapping.mode": "name"}


def update(version: int, condition: str) -> Row:
    return {"version": version, "operation": "UPDATE", "operationParameters": {"predicate": condition}}


@pytest.mark.parametrize(("rounds", "fills"), [(0, 1), (1, 2), (3, 4), (99, MOST_ROUNDS)])
def test_a_fill_is_repeated_until_it_finds_no_row(rounds: int, fills: int) -> None:
    platform = Platform(rounds)
    apply(platform, REGION, MISSING)
    assert len(platform.began("UPDATE")) == fills


CONDITION = "(region#1 IS NULL)"


@pytest.mark.parametrize(
    ("latest", "fills"),
    [
        ({**update(6, CONDITION), "readVersion": 5}, 1),
        ({**update(7, CONDITION), "readVersion": 5}, 2),  # version 6 is of another writer
        ({**update(6, "(id#1 = 3)"), "readVersion": 5}, 2),  # another writer, after the fill
        ({"version": 6, "operation": "WRITE", "operationParameters": {}, "readVersion": 5}, 2),
        ({**update(6, CONDITION), "readVersion": None}, 2),
        (update(6, CONDITION), 2),
    ],
)
def test_a_fill_is_not_repeated_if_no_other_writer_committed_meanwhile(latest: Row, fills: int) -> None:
    platform = Platform(commits=[latest, update(5, "")])
    apply(platform, REGION, MISSING)
    assert len(platform.began("UPDATE")) == fills


@pytest.mark.parametrize(("rounds", "fills"), [(0, 1), (1, 2), (99, 2)])
def test_a_fill_with_other_values_each_time_is_repeated_once(rounds: int, fills: int) -> None:
    platform = Platform(rounds)
    apply(platform, replace(REGION, using=Using("uuid()", deterministic=False)), MISSING)
    assert len(platform.began("MERGE")) == fills
    assert not platform.began("UPDATE")


def test_only_a_merge_that_can_be_a_fill_is_compared() -> None:
    def merge(version: int, predicate: str, others: str = "[]") -> Row:
        parameters = {"predicate": predicate, "notMatchedPredicates": others}
        return {"version": version, "operation": "MERGE", "operationParameters": parameters}

    added = merge(7, "(region#1 IS NULL)", '[{"actionType":"insert"}]')
    others = [merge(9, "(region#1 = s.region#2)"), added, update(6, "(region#1 IS NULL)")]
    platform = Platform(commits=[*others[:1], merge(8, '["isnull(region#1)"]'), *others[1:], update(5, "")])
    apply(platform, replace(REGION, using=Using("uuid()", deterministic=False)), MISSING)
    compared = [sql.partition("VERSION AS OF ")[2][:1] for sql in platform.began("SELECT CASE WHEN one.n")]
    assert compared == ["7"]


def test_a_merge_of_a_range_is_compared() -> None:
    def merge(version: int, condition: str) -> Row:
        predicate = f'["({condition} AND (region#1 IS NULL))"]'
        return {
            **{"version": version, "operation": "MERGE"},
            "operationParameters": {"predicate": predicate, "notMatchedPredicates": "[]"},
        }

    commits = [merge(7, "(id#2L >= 20)"), merge(6, "(id#2L < 20)"), update(5, "")]
    platform = Platform(commits=commits)
    region = replace(REGION, using=Using("uuid()", deterministic=False))
    apply(platform, region, MISSING, FillBy("id", ["20"]))
    (compared,) = platform.began("SELECT CASE WHEN one.n")
    assert [part[:1] for part in compared.split("VERSION AS OF ")[1:]] == ["5", "7"]


@pytest.mark.parametrize(
    ("name", "logged"), [("a`b", "a``b"), ('a"b', 'a\\"b'), ("a\\b", "a\\\\b"), ("Größe x", "Größe x")]
)
def test_a_fill_of_a_column_with_an_awkward_name_is_compared(name: str, logged: str) -> None:
    platform = Platform(commits=[update(6, f'["(`{logged}` IS NULL)"]'), update(5, "")])
    apply(platform, replace(REGION, name=name), replace(MISSING, name=name))
    assert len(platform.began("SELECT CASE WHEN one.n")) == 1


def test_a_conversion_to_other_values_each_time_gives_no_row_a_second_one() -> None:
    platform = Platform(0)
    amount = Column("amount", "int", using=Using("amount + int(rand() * 9)", deterministic=False))
    apply(platform, amount, TEXT)
    first, second = platform.began("MERGE")
    assert "ON (`delta_engine_new_amount` IS NULL) WHEN" in first
    assert "ON (`amount` IS NULL) WHEN" in second
    (verified,) = (sql for sql in platform.began("SELECT CASE WHEN count_if") if "delta_engine_old" in sql)
    assert "rand" not in verified.split(" THEN ")[0]
    assert "`amount` IS NULL AND `delta_engine_old_amount` IS NOT NULL" in verified


def test_a_conflict_with_a_writer_repeats_the_fill() -> None:
    platform = Platform(conflicts=2)
    apply(platform, REGION, MISSING)
    assert len(platform.began("UPDATE")) == 2


def test_each_fill_of_the_run_is_compared_by_its_versions() -> None:
    others = {"version": 7, "operation": "UPDATE", "operationParameters": {"predicate": "id = 3"}}
    fills = [update(8, "(region#1 IS NULL)"), others, update(6, "(region#1 IS NULL)")]
    platform = Platform(commits=[*fills, update(5, "(region#1 IS NULL)")])
    apply(platform, REGION, MISSING)
    compared = [sql.partition("VERSION AS OF ")[2][:1] for sql in platform.began("SELECT CASE WHEN one.n")]
    assert compared == ["5", "7"]  # the versions before; 5 was there before the run


def test_fills_whose_commits_follow_each_other_are_compared_together() -> None:
    platform = Platform(commits=[update(version, "(region#1 IS NULL)") for version in (9, 7, 6, 5, 4)])
    apply(platform, REGION, MISSING)
    compared = [
        tuple(part[:1] for part in sql.split("VERSION AS OF ")[1:])
        for sql in platform.began("SELECT CASE WHEN one.n")
    ]
    assert compared == [("4", "7"), ("8", "9")]  # 4 was there before the run


def test_each_range_is_filled_by_a_statement_of_its_own_and_then_what_no_range_has() -> None:
    platform = Platform(2)
    apply(platform, REGION, MISSING, FillBy("id", ["10", "20"]))
    ranges = [sql.partition(" WHERE ")[2].partition(" AND (")[0] for sql in platform.began("UPDATE")]
    first, middle, last = (
        "`id` < CAST('10' AS bigint)",
        "CAST('20' AS bigint)",
        "`id` >= CAST('20' AS bigint)",
    )
    assert ranges[:3] == [first] * 3  # it found rows twice
    assert [condition.endswith(middle) for condition in ranges[3:5]] == [True, True]
    assert ranges[4] == last
    assert ranges[5].startswith("(`region` IS NULL")


@pytest.mark.parametrize("column", ["ID2", "region", "new"])
def test_ranges_of_a_column_that_the_plan_changes_are_ignored(column: str) -> None:
    platform = Platform()
    models = [
        orders(
            Column("id2", "bigint", renamed_from="id"),
            REGION,
            Column("new", "int"),
            fill_by=FillBy(column, ["1"]),
        )
    ]
    state = catalog_of(models, observed(Column("id", "bigint"), MISSING, properties=MAPPED))
    runner = runner_on(platform, DATABRICKS)
    runner.apply(runner.compile(TablePlanner(NO_POLICY).plan(models, state)))
    assert all("WHERE (`region` IS NULL" in sql for sql in platform.began("UPDATE"))


def test_the_fill_of_a_killed_run_is_compared_too() -> None:
    platform = Platform(commits=[update(6, "NOT (delta_engine_new_amount#1 <=> 3)")])
    apply(platform, AMOUNT, TEXT)
    (compared,) = platform.began("SELECT CASE WHEN one.n")
    assert "VERSION AS OF 5" in compared
    assert "VERSION AS OF 6" in compared


@pytest.mark.parametrize("operation", ["ADD COLUMNS", "RENAME COLUMN", "DROP COLUMNS", "RESTORE"])
def test_a_fill_before_other_columns_is_not_compared(operation: str) -> None:
    """An earlier conversion of the column: its versions lack later columns, and may be vacuumed."""
    condition = "NOT (delta_engine_new_amount#1 <=> 3)"
    changed = {"version": 7, "operation": operation, "operationParameters": {}}
    platform = Platform(commits=[update(9, condition), changed, update(6, condition), update(5, "")])
    apply(platform, AMOUNT, TEXT)
    (compared,) = platform.began("SELECT CASE WHEN one.n")
    assert [part[:1] for part in compared.split("VERSION AS OF ")[1:]] == ["8", "9"]


def test_a_failed_verification_stops_before_the_swap() -> None:
    class Suspicious(Platform):
        def run(self, sql: str) -> Sequence[Row]:
            if sql.startswith("SELECT CASE WHEN count_if"):
                raise StatementError("3 rows have no value", sql=sql, error_class="USER_RAISED_EXCEPTION")
            return super().run(sql)

    platform = Suspicious()
    with pytest.raises(ApplyFailedError, match="3 rows have no value"):
        apply(platform, AMOUNT, TEXT)
    assert [sql.split(" (")[0] for sql in platform.began("ALTER")] == [
        f"ALTER TABLE {'.'.join(f'`{part}`' for part in str(ORDERS).split('.'))} ADD COLUMNS"
    ]


def test_an_ambiguous_rename_is_looked_at_without_the_repeatable_statements() -> None:
    models = [orders(Column("id", "bigint"), AMOUNT)]
    before = observed(Column("id", "bigint"), TEXT, properties=MAPPED)
    after = observed(
        *(Column("id", "bigint"), Column("delta_engine_old_amount", "string")),
        Column("delta_engine_new_amount", "int"),
        properties=MAPPED,
    )

    class Forgetful(Platform):
        lost = 1

        def run(self, sql: str) -> Sequence[Row]:
            if "RENAME COLUMN `amount`" in sql and self.lost:
                self.lost -= 1
                self.statements.append(sql)
                raise StatementError("lost", sql=sql, error_class="DELTA_METADATA_CHANGED")
            return super().run(sql)

    platform, planner = Forgetful(), TablePlanner(NO_POLICY)
    runner = runner_on(platform, DATABRICKS)

    def needed(state: CatalogState) -> Sequence[str]:
        return runner.compile(planner.plan(models, state)).lasting_sql_of(ORDERS)

    runner.apply(
        runner.compile(planner.plan(models, catalog_of(models, before))),
        control=ApplyControl(wait=lambda _seconds: None),
        reread=lambda _table: needed(catalog_of(models, after)),
    )
    assert len([sql for sql in platform.statements if "RENAME COLUMN `amount`" in sql]) == 1
    assert platform.began("ALTER")[-1].endswith("DROP COLUMNS (`delta_engine_old_amount`)")


class Versioned(Platform):
    """A platform whose history grows: fills and renames commit, and so does a writer, once, before one statement.

    Args:
        before: how the statement begins.
        operation: of the writer's commit.
    """

    def __init__(self, before: str, operation: str, **parameters: str) -> None:
        super().__init__(rounds=99)
        self.history: list[Row] = []
        self._before: str | None = before
        self._writer = (operation, parameters)
        self.commit("CREATE TABLE")

    def commit(self, operation: str, parameters: Mapping[str, str] | None = None) -> None:
        version = len(self.history)
        row = {"version": version, "operation": operation, "operationParameters": parameters or {}}
        self.history.insert(0, {**row, "readVersion": version - 1})

    def run(self, sql: str) -> Sequence[Row]:
        if sql.startswith("DESCRIBE HISTORY"):
            return self.history
        if self._before is not None and self._before in sql:
            self._before = None
            self.commit(*self._writer)
        answer = super().run(sql)
        if sql.startswith("UPDATE"):
            self.commit("UPDATE", {"predicate": f'["({sql.partition(" WHERE ")[2].replace("`", "")})"]'})
        if "RENAME COLUMN" in sql:
            old, new = sql.partition("RENAME COLUMN ")[2].replace("`", "").split(" TO ")
            self.commit("RENAME COLUMN", {"oldColumnPath": old, "newColumnPath": new})
        return answer

    def of_conversion(self) -> list[str]:
        """Return what ran: U for the fill before the swap, R for a rename, C for the check of outdated values."""
        kinds = {
            "SET `delta_engine_new_amount`": "U",
            "RENAME": "R",
            "`delta_engine_new_amount` IS NOT NULL AND": "C",
        }
        return [kind for sql in self.statements for words, kind in kinds.items() if words in sql]


@pytest.mark.parametrize(
    ("operation", "parameters", "ran"),
    [
        ("UPDATE", {"predicate": "(id#1 = 3)"}, "UURR"),
        ("MERGE", {"predicate": "(id#1 = s.id#2)"}, "UURR"),
        ("WRITE", {"mode": "Overwrite"}, "UURR"),
        ("WRITE", {"mode": "Append"}, "URR"),  # the fill after the swap finds its rows
        ("STREAMING UPDATE", {"outputMode": "Append"}, "URR"),
        ("DELETE", {}, "URR"),
        ("OPTIMIZE", {}, "URR"),
        ("SET TBLPROPERTIES", {}, "URR"),
    ],
)
def test_rows_that_a_writer_changes_during_the_verification_are_filled_again(
    operation: str, parameters: Mapping[str, str], ran: str
) -> None:
    platform = Versioned("SELECT CASE WHEN one.n", operation, **parameters)
    apply(platform, AMOUNT, TEXT)
    assert "".join(platform.of_conversion()) == ran


@pytest.mark.parametrize(("operation", "ran"), [("MERGE", "URRC"), ("DELETE", "URR")])
def test_rows_that_a_writer_changes_right_before_the_swap_are_looked_at(operation: str, ran: str) -> None:
    platform = Versioned("RENAME COLUMN `amount`", operation)
    apply(platform, AMOUNT, TEXT)
    assert "".join(platform.of_conversion()) == ran
    for looked in (sql for sql in platform.statements if "` IS NOT NULL AND NOT (" in sql):
        assert looked.endswith("VERSION AS OF 3")  # the first rename; both columns have their reserved names
        assert (
            "NOT (`delta_engine_new_amount` <=> CAST((cast(`delta_engine_old_amount` AS int)) AS int))"
            in looked
        )


def test_outdated_values_keep_the_former_column() -> None:
    class Outdated(Versioned):
        def run(self, sql: str) -> Sequence[Row]:
            if "`delta_engine_new_amount` IS NOT NULL AND NOT (" in sql:
                raise StatementError("2 rows had another value", sql=sql, error_class="USER_RAISED_EXCEPTION")
            return super().run(sql)

    platform = Outdated("RENAME COLUMN `amount`", "MERGE")
    with pytest.raises(ApplyFailedError, match="2 rows had another value"):
        apply(platform, AMOUNT, TEXT)
    assert not any("DROP COLUMNS" in sql for sql in platform.statements)

"""Tables with random rows, the changes that move their data, writers beside them, and what their rows have to be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random
from threading import Lock, Thread
from typing import NoReturn

from delta_engine.backends.addressing import Addressing
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.errors import StatementError
from delta_engine.models import CheckConstraint, Column, FillBy, QualifiedName, Table
from delta_engine.sql.text import sql_literal
from tests.builders.worlds import Kill

AMOUNT = "cast(replace(amount, ',', '') as decimal(18,2))"
REGION = "coalesce(region, 'unknown')"
DAY = "to_date(created_ts)"
_SHORT = "amount IS NULL OR length(amount) < 100"
_START = datetime(2026, 1, 1)
CHANGES = ("ALTER ", "CREATE OR ", "UPDATE ", "MERGE ", "RESTORE ", "SELECT CASE")
"""How the statements begin that change a table or verify it."""
_FEATURES: tuple[dict[str, str], ...] = (
    {},
    {"delta.enableDeletionVectors": "true"},
    {"delta.enableRowTracking": "true"},
    {"delta.enableChangeDataFeed": "true"},
)
"""Properties of tables whose commits look different."""


@dataclass(frozen=True)
class Shape:
    """What a table is like, and which of its columns change."""

    name: str
    rows: int
    has_mapping: bool
    is_amount_required: bool
    converts: bool
    tightens: bool
    adds: bool
    adds_required: bool
    checks: bool
    is_repartitioned: bool
    properties: dict[str, str]

    @classmethod
    def random(cls, random: Random, name: str) -> Shape:
        """Return a table with at least one change."""
        converts, tightens, adds, is_repartitioned = random.choice(
            [
                (True, False, False, False),
                (True, True, False, False),
                (True, True, True, False),
                (False, True, True, False),
                (False, False, True, False),
                (False, False, False, True),
                (True, False, True, True),
            ]
        )
        return cls(
            name=name,
            rows=random.choice([0, 1, 7, 40]),
            has_mapping=random.random() < 0.5,
            is_amount_required=random.random() < 0.5,
            converts=converts,
            tightens=tightens,
            adds=adds,
            adds_required=random.random() < 0.5,
            checks=random.random() < 0.5,
            is_repartitioned=is_repartitioned,
            properties=random.choice(_FEATURES),
        )

    @property
    def before(self) -> Table:
        """The table before the change."""
        amount = Column("amount", "string", is_nullable=not self.is_amount_required, comment="in euros")
        columns = [Column("id", "bigint", is_nullable=False), amount, *self._others()]
        mapping = {"delta.columnMapping.mode": "name"} if self.has_mapping else {}
        return self._table(columns, mapping, checks=self._check(_SHORT))

    @property
    def after(self) -> Table:
        """The table after the change."""
        is_nullable = not self.is_amount_required
        amount = Column("amount", "string", is_nullable, "in euros")
        if self.converts:
            amount = Column("amount", "decimal(18,2)", is_nullable, "in euros", using=AMOUNT)
        region, created = self._others()
        if self.tightens:
            region = Column("region", "string", is_nullable=False, using=REGION)
        day = Column("order_day", "date", is_nullable=not self.adds_required, using=DAY)
        columns = [
            Column("id", "bigint", is_nullable=False),
            amount,
            *([day] if self.adds else []),  # the table has it last
            region,
            created,
        ]
        check = "amount IS NULL OR amount < 1000000" if self.converts else _SHORT
        by = FillBy("id", ["3", "20"]) if self.rows > 1 else None
        table = replace(self._table(columns, {}, checks=self._check(check)), fill_by=by)
        partitions = ("order_day",) if self.adds else ("region",)
        return replace(table, partitioned_by=partitions) if self.is_repartitioned else table

    def _others(self) -> tuple[Column, Column]:
        return Column("region", "string"), Column("created_ts", "timestamp_ntz", is_nullable=False)

    def _check(self, expression: str) -> tuple[CheckConstraint, ...]:
        return (CheckConstraint("sane", expression),) if self.checks else ()

    def _table(
        self, columns: Sequence[Column], properties: dict[str, str], checks: Sequence[CheckConstraint]
    ) -> Table:
        properties = {**self.properties, **properties}
        return Table("dev", "silver", self.name, columns, table_properties=properties, checks=checks)

    def expected(self, row: Written) -> tuple[object, ...]:
        """Return what a written row has to be after the change."""
        cents = row.cents if row.cents is not None else None
        amount: object = None if cents is None else f"{cents / 100:,.2f}"
        if self.converts:
            amount = None if cents is None else Decimal(cents) / 100
        region = "unknown" if self.tightens and row.region is None else row.region
        return (row.id, amount, *([row.created.date()] if self.adds else []), region, row.created)


@dataclass(frozen=True)
class Written:
    """A row as its writer means it."""

    id: int
    cents: int | None
    region: str | None
    created: datetime

    def values(self, columns: Sequence[str], *, is_converted: bool) -> str:
        """Return the row in SQL, for the columns that the table has now."""
        text = "NULL" if self.cents is None else sql_literal(f"{self.cents / 100:,.2f}")
        number = "NULL" if self.cents is None else f"CAST('{self.cents / 100:.2f}' AS decimal(18,2))"
        day: date = self.created.date()
        values = {
            "id": str(self.id),
            "amount": number if is_converted else text,
            "region": "NULL" if self.region is None else sql_literal(self.region),
            "created_ts": f"TIMESTAMP_NTZ'{self.created:%Y-%m-%d %H:%M:%S}'",
            "order_day": f"DATE'{day}'",
        }
        return f"({', '.join(values[name] for name in columns)})"


@dataclass
class Writer:
    """Writes rows into the tables, by the columns that readers know at that moment."""

    runner: SqlRunner
    addressing: Addressing
    random: Random
    shapes: dict[str, Shape]
    rows: dict[str, list[Written]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def row(self, shape: Shape) -> Written:
        """Return another row for a table."""
        random, rows = self.random, self.rows.setdefault(shape.name, [])
        has_amount = shape.is_amount_required or random.random() < 0.8
        return Written(
            id=len(rows),
            cents=random.randrange(10**7) if has_amount else None,
            region=random.choice([None, "north", "it's"]),
            created=_START + timedelta(minutes=random.randrange(10**6)),
        )

    def fill(self, shape: Shape) -> None:
        """Write the first rows of a table."""
        for _ in range(shape.rows):
            self.rows.setdefault(shape.name, []).append(self.row(shape))
        self.rows.setdefault(shape.name, [])
        if self.rows[shape.name]:
            self._insert(shape, self.rows[shape.name])

    def append(self, shape: Shape) -> bool:
        """Write one row, if the table takes it at this moment; return whether it did."""
        with self._lock:
            row = self.row(shape)
            try:
                self._insert(shape, [row])
            except StatementError:
                return False  # between the two renames there is no such column, or a constraint forbids it
            self.rows[shape.name].append(row)
            return True

    def found(self, shape: Shape) -> list[tuple[object, ...]]:
        """Return the rows of a table, in the order of their ids."""
        columns = [column.name for column in shape.after.columns]
        rows = self.runner.run(f"SELECT {', '.join(columns)} FROM {self._address(shape)} ORDER BY id")
        return [tuple(row[name] for name in columns) for row in rows]

    def _insert(self, shape: Shape, rows: Sequence[Written]) -> None:
        described = list(self._columns(shape))
        if "amount" not in dict(described):
            raise StatementError("no such column", sql="", error_class=None)
        columns = [
            name for name, _ in described if name in ("id", "amount", "region", "created_ts", "order_day")
        ]
        is_converted = ("amount", "decimal(18,2)") in described
        values = ", ".join(row.values(columns, is_converted=is_converted) for row in rows)
        self.runner.run(f"INSERT INTO {self._address(shape)} ({', '.join(columns)}) VALUES {values}")

    def _columns(self, shape: Shape) -> Iterator[tuple[str, str]]:
        for row in self.runner.run(f"DESCRIBE TABLE {self._address(shape)}"):
            yield str(row["col_name"]), str(row["data_type"])

    def _address(self, shape: Shape) -> str:
        return self.addressing.table(QualifiedName("dev", "silver", shape.name))


@dataclass
class Life:
    """Whether the process of a run lives. A killed one runs no statement and records nothing any more."""

    is_over: bool = False

    def end(self) -> NoReturn:
        """Kill the process."""
        self.is_over = True
        raise Kill

    def require(self) -> None:
        """End the thread of a killed process."""
        if self.is_over:
            raise Kill


@dataclass
class KilledRunner:
    """Runs statements, and kills the run right before one that changes a table, or right after it."""

    runner: SqlRunner
    kill_at: int
    is_after: bool
    life: Life = field(default_factory=Life)
    count: int = 0
    _lock: Lock = field(default_factory=Lock)

    def run(self, sql: str) -> Sequence[Row]:
        """Run one statement; see `SqlRunner.run`."""
        if not sql.startswith(CHANGES):
            return self.runner.run(sql)
        with self._lock:
            self.life.require()
            is_last, self.count = self.count == self.kill_at, self.count + 1
            if is_last and not self.is_after:
                self.life.end()
            rows = self.runner.run(sql)
            if is_last:
                self.life.end()
            return rows


@dataclass
class DisturbedRunner:
    """Runs statements while a writer of another session appends rows between and during them."""

    runner: SqlRunner
    writer: Writer
    random: Random
    _lock: Lock = field(default_factory=Lock)

    def run(self, sql: str) -> Sequence[Row]:
        """Run one statement; see `SqlRunner.run`."""
        if not sql.startswith(CHANGES):
            return self.runner.run(sql)
        with self._lock:
            moment, shape = self.random.random(), self.random.choice([*self.writer.shapes.values()])
        if moment < 0.15:
            self.writer.append(shape)
        if not 0.15 <= moment < 0.3:
            return self.runner.run(sql)
        beside = Thread(target=self.writer.append, args=[shape])
        beside.start()
        try:
            return self.runner.run(sql)
        finally:
            beside.join()

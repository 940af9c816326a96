"""What the rules for `using` refuse, with the whole message."""

from delta_engine.aspects.backfill_actions import BlockedFill, FillColumn, FillSwappedColumn
from delta_engine.aspects.partitioning import RewriteTable
from delta_engine.aspects.storage import SetManaged
from delta_engine.models import Column, FillBy, Identity, Using
from delta_engine.models.types import AtomicType
from delta_engine.validation import backfill_rules
from tests.unit.validation.rule_cases.subjects import ID, ModelCase, PlanCase, aligned, model, tightened

INT = AtomicType("int")
PLACE = "s3://bucket/orders"
NOTHING = aligned(*tightened("b"))

MODEL_CASES: list[ModelCase] = [
    (backfill_rules.UsingFits(), [model(ID, Column("b", "int", using=using))])
    for using in (
        "max(id)",
        "(SELECT 1)",
        "rand()",
        "current_date()",
        "explode(array(1))",
        "row_number() OVER (ORDER BY id)",
        "1; DROP TABLE x",
        "id +",
        "${x}",
    )
]
MODEL_CASES += [
    (backfill_rules.UsingFits(), [model(ID, Column("b", "int", using=Using(using, deterministic=False)))])
    for using in ("max(id)", "(SELECT rand())", "row_number() OVER (ORDER BY rand())")
]
MODEL_CASES += [
    (backfill_rules.UsingFits(), [model(Column("b", "bigint", identity=Identity(), using="1"))]),
    (backfill_rules.UsingFits(), [model(ID, Column("b", "bigint", generated_as="id", using="1"))]),
]

WEEK = ("2026-01-01", "2026-01-08")
MODEL_CASES += [
    (
        backfill_rules.FillRangesFit(),
        [model(ID, column, fill_by=FillBy(name, bounds))],
    )
    for name, column, bounds in (
        ("nope", Column("b", "date"), WEEK),
        ("b", Column("b", "string"), WEEK),
        ("b", Column("b", "date", using="current_date()"), WEEK),
        ("b", Column("b", "date"), ()),
        ("b", Column("b", "date"), WEEK[::-1]),
        ("b", Column("b", "date"), ("2026-02-31",)),
        ("b", Column("b", "timestamp"), ("2026-01-01T00:00:00",)),
        ("b", Column("b", "int"), ("1_000",)),
        ("b", Column("b", "int"), ("2147483648",)),
        ("b", Column("b", "decimal(9,2)"), ("NaN",)),
        ("b", Column("b", "bigint"), tuple(map(str, range(51)))),
    )
]

PLAN_CASES: list[PlanCase] = [
    (
        backfill_rules.NoBlockedFills(),
        aligned(BlockedFill("b", "its using reads x, which the table does not have", "Name another one.")),
        NOTHING,
    ),
    (
        backfill_rules.NoUnallowedFills(),
        aligned(FillColumn("b", INT, "1"), FillColumn("c", INT, "1", is_converted=True)),
        NOTHING,
    ),
    (backfill_rules.NoUnallowedFills(), aligned(FillSwappedColumn("b", INT, "1")), NOTHING),
    (backfill_rules.NoUnallowedRewrites(), aligned(RewriteTable(("a", "b"), ())), NOTHING),
    (
        backfill_rules.NoUnallowedRewrites(),
        aligned(RewriteTable((), ("a",), problem="it is append-only", way_out="Unset it first.")),
        NOTHING,
    ),
    (backfill_rules.NoUnallowedMoves(), aligned(SetManaged(PLACE)), NOTHING),
    (
        backfill_rules.NoUnallowedMoves(),
        aligned(SetManaged(PLACE, problem="it has a mask", way_out="Drop it first.")),
        NOTHING,
    ),
    (backfill_rules.NoUnallowedMoves(), aligned(SetManaged(PLACE), FillColumn("b", INT, "1")), NOTHING),
]

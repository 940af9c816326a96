"""The default rules for plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from delta_engine.actions import AlignTable, CreateTable, TablePlan
from delta_engine.actions.policy import DestructiveKind, Policy
from delta_engine.aspects import generated_columns, storage
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop, FieldAdd, FieldDrop
from delta_engine.aspects.delta_properties import COLUMN_MAPPING_MODE
from delta_engine.aspects.generated_columns import ChangeFixedColumn, ChangeGeneration
from delta_engine.aspects.nullability import ColumnNullabilityChange
from delta_engine.aspects.primary_key import PrimaryKeyAdd
from delta_engine.aspects.storage import ChangeLocation, ChangePartitioning
from delta_engine.aspects.table_features import ContradictFeature, EnableTableFeature
from delta_engine.errors import UnsafePlanError
from delta_engine.models.nested_types import Widening, has_not_null_field
from delta_engine.models.types import DataType, uses_type
from delta_engine.sql.tables import sql_undrop_table
from delta_engine.sql.text import sql_data_type
from delta_engine.validation.model_rules import unfit_key_columns
from delta_engine.validation.refusals import plan_refusal


class NoCreateOfPartlyManagedTables:
    """The engine does not create a table of which a model manages only some parts: its owner does."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse CREATE for models with `manages`."""
        for create in plan.create_tables:
            if create.desired.manages is not None:
                parts = ", ".join(sorted(part.value for part in create.desired.manages))
                yield plan_refusal(
                    create,
                    f"it does not exist (or is not visible to you), and the model manages its {parts} alone",
                    "Run again when its owner has created it, or leave manages out.",
                )


_FIXED = "which is fixed when a table is created"
_ANEW = "Declare it as it is, or create another table with it, copy the rows, and replace this one."


class CreatePrimaryKeyColumnsNotNull:
    """A new table with a primary key has all key columns, and they are NOT NULL."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse CREATE with a key over absent or nullable columns."""
        for create in plan.create_tables:
            missing, nullable = unfit_key_columns(create.desired)
            for columns, reason in ((missing, "do not exist"), (nullable, "are nullable")):
                if columns:
                    yield plan_refusal(
                        create, f"primary key columns ({', '.join(columns)}) {reason}", "", columns[0]
                    )


class NoAddNotNullColumns:
    """An existing table gets no new NOT NULL column: existing rows would have no value.

    Delta also refuses it for fields inside a new column (`DELTA_OPERATION_NOT_ALLOWED`).
    """

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse added columns that are NOT NULL or have NOT NULL fields."""
        for align in plan.align_tables:
            added = [add.desired for add in align.of_type(ColumnAdd)]
            required = [column.name for column in added if not column.is_nullable]
            if required:
                yield plan_refusal(
                    align,
                    f"new columns ({', '.join(required)}) would be NOT NULL on an existing table",
                    "Add them nullable, backfill, then tighten to NOT NULL.",
                    required[0],
                )
            nested = [column.name for column in added if has_not_null_field(column.data_type)]
            if nested:
                yield plan_refusal(
                    align,
                    f"new columns ({', '.join(nested)}) have NOT NULL fields inside, on an existing table",
                    "Leave NOT NULL out there.",
                    nested[0],
                )
            fields = [
                ".".join(add.path)
                for add in align.of_type(FieldAdd)
                if not add.desired.is_nullable or has_not_null_field(add.desired.data_type)
            ]
            if fields:
                yield plan_refusal(
                    align,
                    f"new fields ({', '.join(fields)}) would be NOT NULL, or have NOT NULL fields inside, "
                    "in existing rows",
                    "Leave NOT NULL out there.",
                    fields[0],
                )


class NoVoidColumns:
    """No table gets a column of type void: it holds no values.

    Delta creates such a table but cannot read it (measured on 4.3.1).
    """

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse new columns and fields that are or contain void."""
        for create in plan.create_tables:
            columns = ((column.name, column.data_type) for column in create.desired.columns)
            yield from _void(create, columns)
        for align in plan.align_tables:
            yield from _void(
                align, ((add.desired.name, add.desired.data_type) for add in align.of_type(ColumnAdd))
            )
            yield from _void(
                align, ((".".join(add.path), add.desired.data_type) for add in align.of_type(FieldAdd))
            )


class NoTightenedFields:
    """A field inside a column does not become NOT NULL: open-source Delta refuses it, and the engine never tries."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse NOT NULL on existing fields."""
        for align in plan.align_tables:
            for change in align.of_type(ColumnNullabilityChange):
                if change.path and not change.make_nullable:
                    yield plan_refusal(
                        align,
                        "it would become NOT NULL, which the engine does to no field inside a column",
                        "Declare the field without NOT NULL, or add a CHECK constraint that demands it.",
                        ".".join((change.name, *change.path)),
                    )


class OnlyWidenedTypes:
    """The type of an existing column changes only if Delta can widen it in place."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse type changes that would rewrite or lose data."""
        for align in plan.align_tables:
            for change in align.of_type(ColumnTypeChange):
                if change.widening is not Widening.IMPOSSIBLE:
                    continue
                observed, desired = sql_data_type(change.observed), sql_data_type(change.desired)
                yield plan_refusal(
                    align,
                    f"its type would change from {observed} to {desired}, which is no widening",
                    f"Declare it as {observed}, or add a column of the new type, backfill it, and "
                    "drop this one.",
                    ".".join((change.name, *change.path)),
                )


class OnlyAtCreation:
    """Generation, identity, partitioning and location are fixed when a table is created."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse changes of generation, identity, partitioning and location."""
        for align in plan.align_tables:
            for change in align.of_type(ChangeGeneration):
                observed = generated_columns.described(change.observed)
                desired = generated_columns.described(change.desired)
                yield plan_refusal(
                    align,
                    f"its values would come from {desired} instead of {observed}, {_FIXED}",
                    _ANEW,
                    change.name,
                )
            for moved in align.of_type(ChangeLocation):
                observed, desired = (
                    storage.described_location(moved.observed),
                    storage.described_location(moved.desired),
                )
                yield plan_refusal(
                    align, f"its location would change from {observed} to {desired}, {_FIXED}", _ANEW
                )
            for other in align.of_type(ChangePartitioning):
                observed = storage.described_partitioning(other.observed)
                desired = storage.described_partitioning(other.desired)
                yield plan_refusal(
                    align, f"its partitioning would change from {observed} to {desired}, {_FIXED}", _ANEW
                )


class NoChangeOfFixedColumns:
    """Identity columns, types of generated columns, and the columns that they read stay as they are."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse what the platform refuses: ALTER COLUMN, renames, drops and type changes."""
        for align in plan.align_tables:
            for change in align.of_type(ChangeFixedColumn):
                if change.used_by is None:
                    reason = "it is an identity column, and ALTER COLUMN changes none"
                elif change.used_by == change.name:
                    reason = "it is a generated column, and its type is that of what it is computed by"
                else:
                    reason = f"column {change.used_by} is computed from it, so it cannot be renamed, dropped or widened"
                yield plan_refusal(align, reason, _ANEW, change.name)


class NoColumnMappingModeChange:
    """Column mapping is enabled once, as `name`, and never changed: a change rewrites every data file."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse a change from `name` or `id`, and `id` on an existing table, which Delta refuses."""
        for align in plan.align_tables:
            for feature in align.of_type(EnableTableFeature):
                if feature.key != COLUMN_MAPPING_MODE:
                    continue
                if (feature.observed or "none").lower() == "none":
                    if feature.desired.lower() == "id":
                        yield plan_refusal(
                            align,
                            f"{COLUMN_MAPPING_MODE} would change to id, which only a new table can have",
                            f"Declare {COLUMN_MAPPING_MODE}: name.",
                        )
                else:
                    yield plan_refusal(
                        align,
                        f"{COLUMN_MAPPING_MODE} would change from {feature.observed} to "
                        f"{feature.desired}, which rewrites the table",
                        f"Declare {COLUMN_MAPPING_MODE}: {feature.observed}, or leave it out.",
                    )


class NoContradictedFeatures:
    """A model does not disable a feature that its own changes need: every later plan would enable it again."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse properties whose declared value differs from the needed one."""
        for align in plan.align_tables:
            for feature in align.of_type(ContradictFeature):
                yield plan_refusal(
                    align,
                    f"{feature.reason} needs {feature.key}: {feature.needed}, and the model (or a default of the "
                    f"environment) says {feature.declared}",
                    f"Declare {feature.key}: {feature.needed} or leave it out, or leave the columns alone.",
                )


class PrimaryKeyAddMustNotMakeColumnsNullable:
    """A plan does not make a column nullable and put a primary key over it."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse keys over columns that the same plan makes nullable."""
        for align, key in _added_keys(plan):
            loosened = {
                change.name.lower()
                for change in align.of_type(ColumnNullabilityChange)
                if change.make_nullable and not change.path
            }
            columns = [column for column in key.columns if column.lower() in loosened]
            if columns:
                yield plan_refusal(
                    align,
                    f"primary key columns ({', '.join(columns)}) would become nullable",
                    "Keep them NOT NULL.",
                    columns[0],
                )


class PrimaryKeyNewColumnsMustBeSetNotNull:
    """A new column under a new primary key is tightened in the same plan."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse keys over added columns that stay nullable."""
        for align, key in _added_keys(plan):
            added = {add.desired.key for add in align.of_type(ColumnAdd)}
            yield from _untightened(align, [c for c in key.columns if c.lower() in added], "new")


class PrimaryKeyExistingColumnsMustBeSetNotNull:
    """An existing column under a new primary key is NOT NULL already, or tightened in the same plan."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse keys over existing columns that stay nullable."""
        for align, key in _added_keys(plan):
            fine = {add.desired.key for add in align.of_type(ColumnAdd)}
            fine |= {column.lower() for column in key.already_not_null}
            columns = [column for column in key.columns if column.lower() not in fine]
            yield from _untightened(align, columns, "existing")


class NoUnallowedColumnDrops:
    """Dropping a column or a field loses its data: it needs consent by the policy or the command."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse drops without consent."""
        kind = DestructiveKind.DROP_COLUMN
        for align in plan.align_tables:
            names = [
                *(drop.observed.name for drop in align.of_type(ColumnDrop)),
                *(".".join(drop.path) for drop in align.of_type(FieldDrop)),
            ]
            if names and not policy.allows(kind, align.table):
                yield plan_refusal(
                    align,
                    f"columns ({', '.join(names)}) exist but are not in the model, and would be dropped "
                    "with their data",
                    f"Declare them, or allow it: --allow {kind.value}:{align.table} for one run, "
                    f"policy.allow: [{kind.value}] for the target.",
                    names[0],
                )


class NoUnallowedTableDrops:
    """Dropping a table loses its data: it needs consent by the policy or the command."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse drops without consent."""
        kind = DestructiveKind.DROP_TABLE
        for drop in plan.drop_tables:
            if not policy.allows(kind, drop.table):
                yield UnsafePlanError(
                    f"it is not declared any more, and would be dropped with its {drop.rows:,} "
                    f"row{'' if drop.rows == 1 else 's'}",
                    table=str(drop.table),
                    way_out=f"Declare it, keep it (policy.removed_tables: keep), or allow it: --allow "
                    f"{kind.value}:{drop.table} for one run, policy.allow: [{kind.value}] for the target. "
                    f"{sql_undrop_table(str(drop.table))} would bring it back, by default for seven days.",
                )


class NoUnallowedSchemas:
    """Schemas are created only with `policy.create_schemas`."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse missing schemas without consent."""
        if not policy.create_schemas:
            for schema in plan.create_schemas:
                yield UnsafePlanError(
                    f"schema {schema} does not exist or is not visible to you",
                    way_out="Create it, correct the models, or set policy.create_schemas: true.",
                )


def _void(
    action: CreateTable | AlignTable, columns: Iterable[tuple[str, DataType]]
) -> Iterator[UnsafePlanError]:
    names = [name for name, data_type in columns if uses_type(data_type, "void")]
    if names:
        yield plan_refusal(
            action,
            f"new columns ({', '.join(names)}) would be void, or have void inside, which holds no values",
            "Give them the type of the values that they will have.",
            names[0],
        )


def _added_keys(plan: TablePlan) -> Iterator[tuple[AlignTable, PrimaryKeyAdd]]:
    for align in plan.align_tables:
        for key in align.of_type(PrimaryKeyAdd):
            yield align, key


def _untightened(align: AlignTable, columns: Sequence[str], which: str) -> Iterator[UnsafePlanError]:
    tightened = {
        change.name.lower()
        for change in align.of_type(ColumnNullabilityChange)
        if not change.make_nullable and not change.path
    }
    names = [column for column in columns if column.lower() not in tightened]
    if names:
        yield plan_refusal(
            align,
            f"{which} primary key columns ({', '.join(names)}) would not be NOT NULL",
            "Tighten them in the same plan.",
            names[0],
        )

"""The default rules for plans."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from delta_engine import aspects
from delta_engine.actions import AlignTable, Create, Drop, TablePlan
from delta_engine.actions.policy import DestructiveKind, NeededConsent, Policy
from delta_engine.aspects import generated_columns, storage
from delta_engine.aspects.aspect import Change
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop, FieldAdd, FieldDrop
from delta_engine.aspects.delta_properties import CATALOG_MANAGED, COLUMN_MAPPING_MODE
from delta_engine.aspects.generated_columns import ChangeFixedColumn, ChangeGeneration
from delta_engine.aspects.nullability import ColumnNullabilityChange
from delta_engine.aspects.primary_key import PrimaryKeyAdd
from delta_engine.aspects.protection import protections
from delta_engine.aspects.storage import ChangeLocation
from delta_engine.aspects.table_features import ContradictFeature, EnableTableFeature
from delta_engine.aspects.table_names import rename_statement
from delta_engine.backends.capabilities import DATABRICKS, Capabilities, Feature
from delta_engine.errors import UnsafePlanError
from delta_engine.models import PolicyName, QualifiedName, Table, subject
from delta_engine.models.nested_types import Widening, has_not_null_field, lengths_inside
from delta_engine.models.types import AtomicType, CharacterType, DataType, DecimalType, uses_type
from delta_engine.sql.tables import sql_location, sql_register_table, sql_undrop_table
from delta_engine.sql.text import quote_ident, shown_type, sql_name
from delta_engine.state.states import has_tags
from delta_engine.telemetry.context import command
from delta_engine.telemetry.visible import appearance, code_points, counted
from delta_engine.validation.rules import (
    DEFAULTS_FILL_NO_ROWS,
    ConsentRefusal,
    Problem,
    consent,
    look_alike,
    of_each_action,
    of_each_alignment,
    plan_refusal,
    quoted_text,
    unfit_key_columns,
    without_consent,
)

_SCALARS = (AtomicType, DecimalType)
_FIXED = "which only the creation of a table can set"
_ANEW = "Declare it as it is, or create another table with it, copy the rows, and replace this table."


class NoCreateOfPartlyManagedTables:
    """The engine does not create a table of which a model manages only some parts: its owner does."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse CREATE for models with `manages`."""
        for create in plan.create_tables:
            if create.desired.manages is not None:
                parts = ", ".join(sorted(part.value for part in create.desired.manages))
                yield plan_refusal(
                    create,
                    f"it does not exist (or is not visible to you), and the model manages only its {parts}",
                    "Run again after its owner has created it, or remove manages.",
                )


class TakenFilesFit:
    """A new table takes the Delta table at its location only if the model declares what is there, without protection.

    DROP TABLE leaves the files of an external table. Masks, row filters and tags, which policies may depend on, can be
    set only afterwards, so that rows would be visible until then.
    """

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse the registration of files that differ from the model, or whose rows would be visible."""
        for create in plan.create_tables:
            if create.adoption is None:
                continue
            there = f"a Delta table lies at its location {create.desired.location}"
            if differences := [*map(_difference, aspects.explain(create.adoption.differing))]:
                hidden = len(differences) - _MOST_DIFFERENCES
                more = f"; and {counted(hidden, 'more difference')}" if hidden > 0 else ""
                yield plan_refusal(
                    create,
                    f"{there}, and it differs: {'; '.join(differences[:_MOST_DIFFERENCES])}{more}",
                    "Declare the table as it exists there, and change it with a later sync. Or move the files away.",
                )
            elif protection := _protection(create.desired) or _policy_on(create.table, plan):
                register = sql_register_table(sql_name(create.table), str(create.desired.location))
                yield plan_refusal(
                    create,
                    f"{there}, and the model has {protection}: the rows would be visible until it is set",
                    f"Register the table by hand while no reader has rights on its schema: "
                    f"{' '.join(register.split())}. Then sync, or, if a run has applied the table before, "
                    f"{command(f'drift --revert -t {shlex.quote(str(create.table))}')}.",
                )


_MOST_DIFFERENCES = 5


def _difference(change: Change) -> str:
    return f"{change.subject} is {change.observed or 'absent'}, the model has {change.desired or 'none'}"


def _policy_on(table: QualifiedName, plan: TablePlan) -> str:
    """Return the policy that the plan creates on a table itself, which exists only afterwards; empty for none."""
    created = (create for create in plan.of_kind(Create, PolicyName.kind))
    return next(("a policy on it" for create in created if create.desired.scope.key == table.key), "")


def _protection(model: Table) -> str:
    """Return what hides values of a table, and that only an existing table can get; empty for nothing."""
    return next(protections(model), "tags, which policies may depend on" if has_tags(model) else "")


class CreatePrimaryKeyColumnsNotNull:
    """A new table with a primary key has all key columns, and they are NOT NULL."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse CREATE with a key over absent or nullable columns."""
        for create in plan.create_tables:
            yield from (plan_refusal(create, *problem) for problem in unfit_key_columns(create.desired))


class NoAddNotNullColumns:
    """An existing table gets a new NOT NULL column only with `using`: existing rows would have no value.

    Delta also refuses it for fields inside a new column (`DELTA_OPERATION_NOT_ALLOWED`).
    """

    @of_each_alignment
    def check(self, align: AlignTable, _policy: Policy) -> Iterator[Problem]:
        """Refuse added columns that are NOT NULL or have NOT NULL fields."""
        added = [add.desired for add in align.of_type(ColumnAdd)]
        if required := [column for column in added if not column.is_nullable]:
            names = ", ".join(column.name for column in required)
            reason = f"new columns ({names}) would be NOT NULL on an existing table"
            default = next((column.default for column in required if column.default is not None), None)
            reason += f", and {DEFAULTS_FILL_NO_ROWS}" if default is not None else ""
            using = quoted_text("…" if default is None else default)
            yield Problem(reason, f"Define the value for existing rows: using: {using}.", required[0].name)
        if nested := [column.name for column in added if has_not_null_field(column.data_type)]:
            reason = f"new columns ({', '.join(nested)}) have NOT NULL fields inside, on an existing table"
            yield Problem(reason, "Remove NOT NULL there.", nested[0])
        fields = [
            ".".join(add.path)
            for add in align.of_type(FieldAdd)
            if not add.desired.is_nullable or has_not_null_field(add.desired.data_type)
        ]
        if fields:
            listed = ", ".join(fields)
            reason = (
                f"new fields ({listed}) would be NOT NULL, or have NOT NULL fields inside, in existing rows"
            )
            yield Problem(reason, "Remove NOT NULL there.", fields[0])


class NoVoidColumns:
    """No table gets a column of type void: it holds no values.

    Delta creates such a table but cannot read it (measured on 4.3.1).
    """

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse new columns and fields that are or contain void."""
        for create in plan.create_tables:
            columns = ((column.name, column.data_type) for column in create.desired.columns)
            yield from (plan_refusal(create, *problem) for problem in _void(columns))
        for align in plan.align_tables:
            columns = ((add.desired.name, add.desired.data_type) for add in align.of_type(ColumnAdd))
            fields = ((".".join(add.path), add.desired.data_type) for add in align.of_type(FieldAdd))
            yield from (plan_refusal(align, *problem) for problem in (*_void(columns), *_void(fields)))


class NoTightenedFields:
    """A field inside a column does not become NOT NULL: open-source Delta refuses it, and the engine never tries."""

    @of_each_action(ColumnNullabilityChange)
    def check(self, change: ColumnNullabilityChange) -> Iterator[Problem]:
        """Refuse NOT NULL on existing fields."""
        if change.path and not change.make_nullable:
            yield Problem(
                "it would become NOT NULL, which the engine does not support for fields inside columns",
                "Declare the field without NOT NULL, or add a CHECK constraint that demands it.",
                ".".join((change.name, *change.path)),
            )


class OnlyWidenedTypes:
    """A column's type changes only by `using`, or by a widening that Delta has, and Iceberg if it reads the table."""

    @of_each_action(ColumnTypeChange)
    def check(self, change: ColumnTypeChange) -> Iterator[Problem]:
        """Refuse type changes that would rewrite or lose data, and changes that a CHAR or VARCHAR inside blocks."""
        if change.widening is Widening.IMPOSSIBLE or change.refused_with:
            reason, way_out = _impossible(change)
            yield Problem(reason, way_out, ".".join((change.name, *change.path)))


def _impossible(change: ColumnTypeChange) -> tuple[str, str]:
    """Return why a type cannot be changed in place, and the way out; a CHAR or VARCHAR inside is named."""
    observed, desired = shown_type(change.observed), shown_type(change.desired)
    reason = f"its type would change from {observed} to {desired}"
    way_out = f"Declare it as {observed}, or add a column of the new type, fill it, and drop this column."
    if not change.path and isinstance(change.observed, _SCALARS) and isinstance(change.desired, _SCALARS):
        using = f"CAST({quote_ident(change.name)} AS {desired})"
        way_out = f'Declare it as {observed}, or define how to convert its values, such as using: "{using}".'
    if change.refused_with and change.widening is not Widening.IMPOSSIBLE:
        refusal = f"which Delta refuses with {change.refused_with}: Iceberg does not support this widening"
        return f"{reason}, {refusal}", way_out
    if change.path and isinstance(change.observed, CharacterType):
        return f"{reason}, and Spark cannot change char or varchar inside a column", way_out
    if type(change.observed) is type(change.desired):
        if kept := _lengths(change, change.observed):
            return f"{reason}, and Spark would lose the length of {', '.join(kept)}", way_out
        if added := _lengths(change, change.desired):
            return (
                f"{reason}, and Spark would lose the length of {', '.join(added)}",
                "Write string instead.",
            )
    return f"{reason}, which is not a widening", way_out


def _lengths(change: ColumnTypeChange, data_type: DataType) -> list[str]:
    """Return each CHAR and VARCHAR inside a type, such as `address.city varchar(40)`."""
    lengths = lengths_inside(data_type, (change.name,))
    return [f"{'.'.join(path)} {shown_type(length)}" for path, length in lengths]


@dataclass(frozen=True, slots=True)
class OnlyAtCreation:
    """Generation and identity are set at creation. So is the location, until an external table becomes managed."""

    capabilities: Capabilities = DATABRICKS

    @of_each_alignment
    def check(self, align: AlignTable, _policy: Policy) -> Iterator[Problem]:
        """Refuse changes of generation, identity and location."""
        for change in align.of_type(ChangeGeneration):
            observed = generated_columns.described(change.observed)
            desired = generated_columns.described(change.desired)
            reason = f"its values would come from {desired} instead of {observed}, {_FIXED}"
            yield Problem(reason, _ANEW, change.name)
        for moved in align.of_type(ChangeLocation):
            observed, desired = (
                storage.described_location(moved.observed),
                storage.described_location(moved.desired),
            )
            what = f"its location would change from {observed} to {desired}"
            reason = f"{what}, which would lose rows written in the meantime"
            yield Problem(reason, _moved_by_hand(align.table, moved.desired, self.capabilities))


def _moved_by_hand(table: QualifiedName, location: str | None, capabilities: Capabilities) -> str:
    """Return how to move a table's files: a copy of another name takes its place, while nothing writes."""
    if capabilities.refusal(Feature.TABLE_RENAMES, table.catalog):
        return "Declare the current location, or declare another table there and copy the rows."
    copied, former = (replace(table, table=f"{table.table}_{end}") for end in ("copied", "former"))
    place = f" {sql_location(location)}" if location is not None else ""
    copy, lost = f"USING delta{place} AS SELECT * FROM {sql_name(table)}", "Keys, checks and NOT NULL"
    if capabilities.clones_tables:
        copy, lost = f"DEEP CLONE {sql_name(table)}{place}", "Masks, filters, tags and rights"
    steps = (
        f"CREATE TABLE {sql_name(copied)} {copy}",
        rename_statement(table, former, capabilities),
        rename_statement(copied, table, capabilities),
    )
    return (
        f"Declare the current location, or stop the writers and move the table by hand: {'; '.join(steps)}. "
        f"Then sync. {lost} are not "
        "copied, so block readers until then."
    )


class NoChangeOfFixedColumns:
    """Identity columns, types of generated columns, and the columns that they read stay as they are."""

    @of_each_action(ChangeFixedColumn)
    def check(self, change: ChangeFixedColumn) -> Iterator[Problem]:
        """Refuse what the platform refuses: ALTER COLUMN, renames, drops and type changes."""
        if change.used_by is None:
            reason = "it is an identity column, and ALTER COLUMN changes none"
        elif change.used_by == change.name:
            reason = "it is a generated column, and its expression determines its type"
        else:
            reason = (
                f"column {change.used_by} is computed from it, so it cannot be renamed, dropped or widened"
            )
        yield Problem(reason, _ANEW, change.name)


class NoColumnMappingModeChange:
    """Column mapping is enabled once, as `name`, and never changed: a change rewrites every data file."""

    @of_each_action(EnableTableFeature)
    def check(self, feature: EnableTableFeature) -> Iterator[Problem]:
        """Refuse a change from `name` or `id`, and `id` on an existing table, which Delta refuses."""
        if feature.key != COLUMN_MAPPING_MODE:
            return
        would_change = f"{COLUMN_MAPPING_MODE} would change"
        if (feature.observed or "none").lower() != "none":
            yield Problem(
                f"{would_change} from {feature.observed} to {feature.desired}, which rewrites the table",
                f"Declare {COLUMN_MAPPING_MODE}: {feature.observed}, or remove it.",
            )
        elif feature.desired.lower() == "id":
            reason = f"{would_change} to id, which only a new table can have"
            yield Problem(reason, f"Declare {COLUMN_MAPPING_MODE}: name.")


class NoCatalogManagedUpgrade:
    """An existing table does not become catalog-managed by a plan: the catalog takes over its commits."""

    @of_each_action(EnableTableFeature)
    def check(self, feature: EnableTableFeature) -> Iterator[Problem]:
        """Refuse the table feature on a table that lacks it. A new table can have it."""
        if feature.key == CATALOG_MANAGED:
            yield Problem(
                f"{CATALOG_MANAGED} would make an existing table catalog-managed",
                "Set it by hand with ALTER TABLE … SET TBLPROPERTIES, or remove it from the model.",
            )


class NoContradictedFeatures:
    """A model does not disable a feature that its own changes need: every later plan would enable it again."""

    @of_each_action(ContradictFeature)
    def check(self, feature: ContradictFeature) -> Iterator[Problem]:
        """Refuse properties whose declared value differs from the needed one."""
        yield Problem(
            f"{feature.reason} needs {feature.key}: {feature.needed}, but the model (or a default of the environment) "
            f"sets {feature.declared}",
            f"Declare {feature.key}: {feature.needed} or remove it.",
        )


class PrimaryKeyAddMustNotMakeColumnsNullable:
    """A plan does not make a column nullable and put a primary key over it."""

    @of_each_alignment
    def check(self, align: AlignTable, _policy: Policy) -> Iterator[Problem]:
        """Refuse keys over columns that the same plan makes nullable."""
        loosened = _nullability_changes(align, make_nullable=True)
        for key in align.of_type(PrimaryKeyAdd):
            if columns := [column for column in key.columns if column.lower() in loosened]:
                reason = f"primary key columns ({', '.join(columns)}) would become nullable"
                yield Problem(reason, "Keep them NOT NULL.", columns[0])


class PrimaryKeyNewColumnsMustBeSetNotNull:
    """A new column under a new primary key is tightened in the same plan."""

    @of_each_alignment
    def check(self, align: AlignTable, _policy: Policy) -> Iterator[Problem]:
        """Refuse keys over added columns that stay nullable."""
        added = {add.desired.key for add in align.of_type(ColumnAdd)}
        for key in align.of_type(PrimaryKeyAdd):
            yield from _untightened(align, [c for c in key.columns if c.lower() in added], "new")


class PrimaryKeyExistingColumnsMustBeSetNotNull:
    """An existing column under a new primary key is NOT NULL already, or tightened in the same plan."""

    @of_each_alignment
    def check(self, align: AlignTable, _policy: Policy) -> Iterator[Problem]:
        """Refuse keys over existing columns that stay nullable."""
        added = {add.desired.key for add in align.of_type(ColumnAdd)}
        for key in align.of_type(PrimaryKeyAdd):
            fine = added | {column.lower() for column in key.already_not_null}
            yield from _untightened(align, [c for c in key.columns if c.lower() not in fine], "existing")


class NoUnallowedColumnDrops:
    """Dropping a column or a field loses its data: it needs consent by the policy or the command.

    No consent covers the drop of one that the same plan adds under a name that looks the same.
    """

    @of_each_alignment
    def check(self, align: AlignTable, policy: Policy) -> Iterator[Problem]:
        """Refuse drops without consent, and drops of columns that a model declares in another normal form."""
        kind = DestructiveKind.DROP_COLUMN
        declared_names = [add.desired.name for add in align.of_type(ColumnAdd)]
        declared_names += [".".join(add.path) for add in align.of_type(FieldAdd)]
        dropped_names = [drop.observed.name for drop in align.of_type(ColumnDrop)]
        dropped_names += [".".join(drop.path) for drop in align.of_type(FieldDrop)]
        added = {appearance(name): name for name in declared_names}
        names: list[str] = []
        for name in dropped_names:
            if declared := added.get(appearance(name)):
                there = code_points(name)
                yield Problem(
                    f"its name in the model {look_alike(declared, name)}: the column would be dropped with its data",
                    f"Declare the table's name, {there}, or rename the column with renamed_from (a field with "
                    "renamed_fields).",
                    name,
                )
            else:
                names.append(name)
        if needed := without_consent(kind, align.table, names, policy):
            names = [str(change.part) for change in needed]
            listed = ", ".join(names)
            reason = f"columns ({listed}) are not in the model and would be dropped with their data"
            way_out = f"Declare them, or allow it: {consent(kind, align.table)}"
            yield Problem(reason, way_out, names[0], needed)


class NoUnallowedDrops:
    """Dropping a table loses its data, dropping a policy its protection: drops need consent by policy or command."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse drops of tables, functions and policies without consent."""
        for drop in (change for change in plan.changes if isinstance(change, Drop)):
            kind = DestructiveKind(f"drop_{drop.name.kind}")
            if not policy.allows(kind, drop.name):
                way_out = f"{drop.way_to_keep}, or allow it: {consent(kind, drop.name)}"
                if drop.can_be_undropped:
                    undrop = sql_undrop_table(sql_name(drop.name))
                    way_out += f" {undrop} would bring it back, by default for seven days."
                lost = {
                    "table": f" with its {counted(drop.rows, 'row')}",
                    "policy": ", and its principals would see what it hides",
                }
                yield ConsentRefusal(
                    f"{drop.reason}, and would be dropped{lost.get(drop.name.kind, '')}",
                    **subject(drop.name),
                    needed=(NeededConsent(kind=kind, securable=drop.name),),
                    way_out=way_out,
                )


class NoUnallowedSchemas:
    """Schemas are created only with `policy.create_schemas`."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse missing schemas without consent."""
        for schema in () if policy.create_schemas else plan.create_schemas:
            yield UnsafePlanError(
                "it does not exist or is not visible to you",
                **subject(schema.name),
                location=schema.declared_at,
                way_out="Create it, correct the models, or set policy.create_schemas: true.",
            )


def _void(columns: Iterable[tuple[str, DataType]]) -> Iterator[Problem]:
    if names := [name for name, data_type in columns if uses_type(data_type, "void")]:
        reason = f"new columns ({', '.join(names)}) would be void, or have void inside, a type without values"
        yield Problem(reason, "Declare the type of their future values.", names[0])


def _untightened(align: AlignTable, columns: Sequence[str], which: str) -> Iterator[Problem]:
    tightened = _nullability_changes(align, make_nullable=False)
    if names := [column for column in columns if column.lower() not in tightened]:
        reason = f"{which} primary key columns ({', '.join(names)}) would not be NOT NULL"
        yield Problem(reason, "Declare them NOT NULL in the same plan.", names[0])


def _nullability_changes(align: AlignTable, *, make_nullable: bool) -> set[str]:
    changes = (change for change in align.of_type(ColumnNullabilityChange) if not change.path)
    return {change.name.lower() for change in changes if change.make_nullable is make_nullable}

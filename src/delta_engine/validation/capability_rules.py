"""Rules about the platform: they refuse what it cannot do, in models before any read, and in plans."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from delta_engine.actions import Align, AlignTable, Create, Drop, TablePlan
from delta_engine.actions.policy import Policy
from delta_engine.aspects import KINDS, kind_of, tags
from delta_engine.aspects.backfill_actions import AbandonConversion, SwapColumn
from delta_engine.aspects.column_renames import ColumnRename
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.conversions import ConversionStage
from delta_engine.aspects.facet import Facet
from delta_engine.aspects.partitioning import RewriteTable
from delta_engine.aspects.policy_reach import function_key
from delta_engine.aspects.storage import SetManaged, UnsetManaged
from delta_engine.aspects.table_comment import SetTableComment
from delta_engine.aspects.table_names import RenameTable
from delta_engine.backends.capabilities import NEEDED_TO_CREATE, Capabilities, Feature
from delta_engine.errors import InvalidModelError, UnsafePlanError
from delta_engine.models import (
    AbacPolicy,
    Column,
    ColumnMask,
    Function,
    FunctionLanguage,
    FunctionName,
    PolicyName,
    RowFilter,
    Schema,
    Securable,
    Table,
    View,
)
from delta_engine.models.types import AtomicType
from delta_engine.validation.rules import Problem, SomeModel, model_refusal, name_problem, plan_refusal


@dataclass(frozen=True, slots=True)
class SupportedFeatures:
    """A model declares only what the environment's backend can do (docs/backends.md)."""

    capabilities: Capabilities

    def check(self, models: Sequence[Securable]) -> Iterator[InvalidModelError]:
        """Refuse features that the platform refuses, with its reason, values of properties, and too long names."""
        for model in models:
            for reason, way_out, column, _ in self._problems(model):
                yield model_refusal(model, reason, way_out, column)

    def _problems(self, model: Securable) -> Iterator[Problem]:
        if isinstance(model, Table):
            yield from _too_long_names(model, self.capabilities)
        for feature, column in declared_features(model):
            if feature not in NEEDED_TO_CREATE:
                yield from _undeclarable(feature, self.capabilities, column)
            if feature in KIND_FEATURES.values() and feature in self.capabilities.refused:
                return
        if isinstance(model, Table):
            yield from self._refused_properties(model)
        if isinstance(model, Function) and self.capabilities.session_catalog is not None:
            yield from _beyond_session_functions(model, self.capabilities.session_catalog)

    def _refused_properties(self, model: Table) -> Iterator[Problem]:
        for key, value in model.effective_table_properties.items():
            if key.lower() in self.capabilities.refused_properties:
                yield Problem(
                    f"property {key!r} is unknown to the backend {self.capabilities.name}",
                    "Remove it, or declare it in defaults.table_properties of other environments.",
                )
            if value.lower() in self.capabilities.refused_values.get(key.lower(), ()):
                yield Problem(
                    f"property {key!r} is {value!r}, which the backend {self.capabilities.name} does not accept",
                    "Remove it, or take the value from a variable of the environment.",
                )


def _beyond_session_functions(function: Function, catalog: str) -> Iterator[Problem]:
    """Yield why Spark creates no such function (measured, Spark 4.1.1)."""
    way_out = "Exclude functions from this environment: `backend.leave_out: [functions]`."
    if function.catalog_name.lower() != catalog:
        yield Problem(
            f"Spark creates functions only in its session catalog, {catalog}", f"Declare it there. {way_out}"
        )
    if function.language is not FunctionLanguage.SQL:
        yield Problem("Spark creates only functions in SQL", way_out)


def _too_long_names(model: Table, capabilities: Capabilities) -> Iterator[Problem]:
    """Yield the parts of a table's name that are folders with too long names; `ValidTableNames` counts characters."""
    most = capabilities.most_name_bytes
    for part, name in zip(("catalog", "schema", "table"), model.qualified_name.parts, strict=True):
        size = len(name.encode("utf-8", "surrogatepass"))
        if most is not None and size > most and not name_problem(name):
            yield Problem(
                f"{part} name {name!r} has {size} bytes in UTF-8. Names of folders, which the platform makes of "
                f"it, have at most {most}",
                "Shorten it.",
            )


def _undeclarable(
    feature: Feature, capabilities: Capabilities, column: Column | str | None = None
) -> Iterator[Problem]:
    """Yield the problem of a declared feature, with the platform's reason, if the platform refuses it."""
    if (reason := capabilities.refused.get(feature)) is not None:
        yield Problem(
            f"{feature.value} cannot be declared for the backend {capabilities.name}: {reason}",
            "Remove it from the model, or exclude it from this environment: backend.leave_out: "
            f"[{feature_name(feature)}].",
            column,
        )


@dataclass(frozen=True, slots=True)
class SupportedChanges:
    """A plan changes only what the environment's backend can change (docs/backends.md)."""

    capabilities: Capabilities

    def check(self, plan: TablePlan, _policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse changes that the platform refuses; a model may declare a feature if the plan does not change it."""
        for action, change, column in _dependent_changes(plan):
            if (reason := self.capabilities.refusal(change.feature, action.name.catalog)) is not None:
                problem = f"{change.what}, which the backend {self.capabilities.name} cannot do: {reason}"
                yield plan_refusal(action, problem, change.way_out, column)


@dataclass(frozen=True, slots=True)
class _RefusableChange:
    """A change that a platform may refuse, and what to do then."""

    feature: Feature
    what: str
    way_out: str


_MADE_BY_OTHERS = (
    "Create the table with Delta's DeltaTable builder (`generatedAlwaysAs`) and run again, or exclude it from this "
    "environment: backend.leave_out: "
)
_CREATED: Mapping[Feature, _RefusableChange] = {
    feature: _RefusableChange(
        feature,
        f"it would be created with {feature.value}",
        f"{_MADE_BY_OTHERS}[{feature.name.lower()}].",
    )
    for feature in NEEDED_TO_CREATE
}
_RENAMED_COLUMN = _RefusableChange(
    Feature.COLUMN_RENAMES, "it would be renamed", "Keep the old name in the model."
)
_CONVERTED_COLUMN = _RefusableChange(
    Feature.COLUMN_RENAMES,
    "its conversion to another type would rename columns",
    "Keep the type of the existing column in the model. To store other values, declare a column of another name with "
    "`using`.",
)
_VOID_COLUMN = _RefusableChange(
    Feature.VOID_WIDENING,
    "its type void would change",
    "Remove the column from the model in one sync, and declare it with its type in the next. A void column holds no "
    "values.",
)
_RENAMED_TABLE = _RefusableChange(
    Feature.TABLE_RENAMES, "it would be renamed", "Keep the old name in the model."
)
_REPARTITIONED = _RefusableChange(
    Feature.REPARTITIONING,
    "it would get other partitions",
    "Keep the partitions of the existing table in the model. Or create another table with the partitions, and copy the "
    "rows.",
)
_MANAGED = _RefusableChange(
    Feature.MANAGED_CONVERSION, "it would become a managed table", "Declare its location as it is."
)
_CHANGED_STREAMING_TABLE = _RefusableChange(
    Feature.STREAMING_TABLES,
    "tags or column comments of a streaming table would change",
    "Use `backend: {type: databricks-warehouse}` in this environment, or leave tags and column comments to the "
    "pipeline that makes the table.",
)

_REMOVED = _RefusableChange(
    Feature.TABLE_REMOVAL,
    "it would be dropped",
    "Keep it: `policy.removed_tables: keep`, or `undo --skip-refused`.",
)

_NEWER = "Run it on a newer runtime, or with `backend: {type: databricks-warehouse}` in this environment."
_POLICY = _RefusableChange(Feature.POLICIES, "it would be created, changed or dropped", _NEWER)
_FUNCTION_TAGS = _RefusableChange(Feature.FUNCTION_TAGS, "its tags would change", _NEWER)

_Dependent: TypeAlias = tuple[Create[Any] | Align[Any] | Drop[Any], _RefusableChange, Column | str | None]


def _dependent_changes(plan: TablePlan) -> Iterator[_Dependent]:
    """Yield the changes of a plan that a platform may refuse and that a model may declare anyhow, with the column."""
    for create in plan.create_tables:
        for feature, column in declared_features(create.desired):
            if feature in _CREATED:
                yield create, _CREATED[feature], column
    for align in plan.align_tables:
        for change, path in _dependent_actions(align):
            yield align, change, path
    for drop in plan.drop_tables:
        yield drop, _REMOVED, None
    for changed in plan.changes:
        match changed:
            case Create(desired=AbacPolicy()) | Align(name=PolicyName()) | Drop(name=PolicyName()):
                yield changed, _POLICY, None
            case Create(desired=Function() as function) if function.tags:
                yield changed, _FUNCTION_TAGS, None
            case Align(name=FunctionName()) if any(
                type(each) in tags.ASPECT.actions for each in changed.actions
            ):
                yield changed, _FUNCTION_TAGS, None


def _dependent_actions(align: AlignTable) -> Iterator[tuple[_RefusableChange, str | None]]:
    for action in align.actions:
        match action:
            case ColumnRename():
                yield _RENAMED_COLUMN, ".".join((*action.inside, action.desired))
            case ColumnTypeChange(observed=AtomicType("void")):
                yield _VOID_COLUMN, ".".join((action.name, *action.path))
            case SwapColumn():
                yield _CONVERTED_COLUMN, action.desired.name
            case AbandonConversion(observed, ConversionStage.SWAPPING):
                yield _CONVERTED_COLUMN, observed.name
            case RenameTable():
                yield _RENAMED_TABLE, None
            case RewriteTable():
                yield _REPARTITIONED, None
            case SetManaged() | UnsetManaged():
                yield _MANAGED, None
    # Every runtime has COMMENT ON TABLE, also for streaming tables.
    if align.is_streaming and len(align.of_type(SetTableComment)) < len(align.actions):
        yield _CHANGED_STREAMING_TABLE, None


def feature_name(feature: Feature) -> str:
    """Return the name of a feature in a configuration: `row_filters`."""
    return feature.name.lower()


KIND_FEATURES: Final[Mapping[type, Feature]] = {
    Schema: Feature.SCHEMA_METADATA,
    Function: Feature.FUNCTIONS,
    AbacPolicy: Feature.POLICIES,
    View: Feature.VIEWS,
}
"""The features that are all models of a kind."""


def models_without(models: Iterable[Securable], features: Collection[Feature]) -> tuple[Securable, ...]:
    """Return models without some features. Without functions, also without the filters and masks that need them."""
    models = tuple(models)
    kept = [model for model in models if KIND_FEATURES.get(type(model)) not in features]
    gone = {model.key for model in models if isinstance(model, Function)} - {model.key for model in kept}
    return tuple(_without_functions(without_features(model, features), gone) for model in kept)


def _without_functions(model: Securable, gone: Set[str]) -> Securable:
    if not isinstance(model, Table) or not gone:
        return model

    def is_gone(use: RowFilter | ColumnMask | None) -> bool:
        return use is not None and function_key(use.function, model.qualified_name) in gone

    columns = (replace(column, mask=None) if is_gone(column.mask) else column for column in model.columns)
    row_filter = None if is_gone(model.row_filter) else model.row_filter
    return replace(model, columns=tuple(columns), row_filter=row_filter)


def without_features(model: SomeModel, features: Collection[Feature]) -> SomeModel:
    """Return a model without some of the features of its facets."""
    kind = kind_of(model)
    facets = ((_feature_of(facet, model), facet) for facet in kind.facets)
    absent: dict[str, Any] = {
        facet.attribute: facet.absent for feature, facet in facets if feature in features
    }
    column = {facet.attribute: facet.absent for facet in kind.column_facets if facet.feature in features}
    if column:
        absent["columns"] = tuple(replace(documented, **column) for documented in model.columns)
    return replace(model, **absent) if absent else model


_COLUMN_FACETS: Final[Mapping[type, Sequence[Facet[Any, Any, Any]]]] = {
    kind.model: [facet for facet in kind.column_facets if facet.feature is not None] for kind in KINDS
}


def declared_features(model: Securable) -> Iterator[tuple[Feature, Column | str | None]]:
    """Yield the platform-dependent features of a model, that of its kind first, each with its column."""
    if type(model) in KIND_FEATURES:
        yield KIND_FEATURES[type(model)], None
    for facet in kind_of(model).facets:
        feature = _feature_of(facet, model)
        if feature is not None and facet.is_declared(model):
            yield feature, None
    column_facets = _COLUMN_FACETS[type(model)]
    declared = [facet for facet in column_facets if facet.is_declared_by_any(model.columns)]
    for column in model.columns if declared else ():
        for column_facet in declared:
            if column_facet.feature is not None and column_facet.is_declared(column):
                yield column_facet.feature, column if isinstance(column, Column) else column.name


def _feature_of(facet: Facet[Any, Any, Any], model: Securable) -> Feature | None:
    """Return the feature of a facet; tags of functions are newer than those of other securables."""
    is_of_function = isinstance(model, Function) and facet.feature is Feature.TAGS
    return Feature.FUNCTION_TAGS if is_of_function else facet.feature

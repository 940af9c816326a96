"""Loads a project: its settings, its models and its rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from delta_engine.actions.policy import Allowance, Policy, Removed, matches_any
from delta_engine.aspects import KINDS, kind_of
from delta_engine.backends.capabilities import (
    DATABRICKS,
    DATABRICKS_SPARK,
    OPEN_SOURCE,
    OPEN_SOURCE_CATALOG,
    Capabilities,
    Feature,
)
from delta_engine.config.asset_bundle import refuse_other_volume
from delta_engine.config.loading import Declared, load_declared, load_reference
from delta_engine.config.settings import BackendType, Settings, load_settings
from delta_engine.errors import (
    ConfigError,
    InvalidCommandError,
    raise_all,
    unknown,
)
from delta_engine.models import Securable, SecurableName, Table, former_names, of_kind
from delta_engine.models.constraints import resolved
from delta_engine.telemetry.context import spoken
from delta_engine.telemetry.garbage import no_garbage_collection
from delta_engine.validation.capability_rules import (
    SupportedChanges,
    SupportedFeatures,
    feature_name,
    models_without,
)
from delta_engine.validation.owned_names import OwnedParents, OwnedTables
from delta_engine.validation.policy_rules import DeclaredScopes
from delta_engine.validation.validator import PlanValidator, RuleSet, add_user_rule

if TYPE_CHECKING:
    from delta_engine.plan_files.document import ChangedTables

_CAPABILITIES: Final[Mapping[BackendType, Capabilities]] = {
    BackendType.DATABRICKS: DATABRICKS_SPARK,
    BackendType.WAREHOUSE: DATABRICKS,
    BackendType.EMBEDDED: OPEN_SOURCE,
    BackendType.CATALOG: OPEN_SOURCE_CATALOG,
}
"""What each platform can do, as far as that is certain before it is opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The settings and models of one environment, checked; nothing is read from the platform yet.

    Args:
        models: the selected models, tables first, and the schemas; if only some are selected, those of their tables.
        rules: the engine's own and the project's.
        is_partial: whether models were left out.
        removed: the keys of the tables that a selection includes although no model declares them any more.
        declared_names: the keys of all declared tables, selected or not, and of their former names.
        contents: the checksums of the files that declare the models, as they were read.
        bodies: those of bodies and queries.
    """

    settings: Settings
    models: tuple[Securable, ...]
    rules: RuleSet
    is_partial: bool = False
    removed: frozenset[str] = frozenset()
    declared_names: frozenset[str] = frozenset()
    contents: Mapping[Path, str] = field(default_factory=dict)
    bodies: frozenset[Path] = frozenset()

    @property
    def tables(self) -> tuple[Table, ...]:
        """The selected tables."""
        return tuple(of_kind(Table, self.models))

    @property
    def selectable(self) -> tuple[Securable, ...]:
        """The selected models, without schemas."""
        return tuple(model for model in self.models if model.qualified_name.is_selectable)

    @property
    def synced(self) -> tuple[Securable, ...]:
        """The models that a sync aligns: without schemas if only some models are selected."""
        return self.selectable if self.is_partial else self.models

    @property
    def validator(self) -> PlanValidator:
        """The validator of models and plans."""
        return PlanValidator(self.settings.policy, model_rules=self.rules.models, plan_rules=self.rules.plans)


def load_project(
    conf_dir: Path,
    environment: str,
    *,
    tables: Sequence[str] = (),
    allow: Sequence[str] = (),
    changed: ChangedTables | None = None,
) -> Project:
    """Load and check settings and models. Needs no Spark and no network.

    Args:
        tables: globs that select models; all by default.
        allow: destructive kinds to allow in this run, as `policy.allow` has them.
        changed: the tables that `--changed-since` chose, of those that the globs select.

    Raises:
        ConfigError, InvalidModelError, RefusalGroup: one or several things are refused.
    """
    settings = load_settings(conf_dir, environment)
    return project_of(settings, tables=tables, allow=allow, changed=changed)


def project_of(
    settings: Settings,
    *,
    tables: Sequence[str] = (),
    allow: Sequence[str] = (),
    changed: ChangedTables | None = None,
) -> Project:
    """Load and check models, and check settings; arguments and errors as for `load_project`."""
    refuse_other_volume(settings)
    declare = load_declared if changed else partial(load_declared, globs=tables)
    project = make_project(settings, declare, tables=tables, allow=allow)
    return narrowed(project, changed) if changed else project


def narrowed(project: Project, changed: ChangedTables) -> Project:
    """Return a project with the tables that `--changed-since` chose alone."""
    keys = {name.lower() for name in changed.tables}
    chosen = {table.qualified_name for table in project.tables if table.key in keys}
    return replace(
        project,
        models=_chosen(project.models, chosen),
        is_partial=True,
        removed=frozenset(name.lower() for name in changed.removed) - project.declared_names,
    )


@no_garbage_collection()
def make_project(
    settings: Settings,
    declare: Callable[[Settings], Declared],
    *,
    tables: Sequence[str] = (),
    allow: Sequence[str] = (),
) -> Project:
    """Check settings and models; arguments and errors as for `load_project`.

    Args:
        declare: returns the models of the settings.
    """
    settings = replace(settings, policy=_widened(settings.policy, allow))
    _refuse_table_removal(settings)
    declared = declared_models(settings, declare)
    declared_tables = resolved(declared.tables)
    others = [model for model in declared.models if not isinstance(model, Table)]
    others.sort(key=lambda model: KINDS.index(kind_of(model)))
    names = (name for table in declared_tables for name in (table.qualified_name, *former_names(table)))
    project = Project(
        settings=settings,
        models=(*declared_tables, *others),
        rules=load_rules(settings),
        is_partial=not declared.is_whole,
        declared_names=frozenset(name.key for name in names),
        contents=declared.contents,
        bodies=declared.bodies,
    )
    raise_all(project.validator.model_violations(project.models, is_whole=declared.is_whole))
    return selected(project, tables)


def selected(project: Project, globs: Sequence[str]) -> Project:
    """Return a project with the models that globs select.

    Raises:
        InvalidCommandError: a glob selects none of them.
    """
    if not globs:
        return project
    _refuse_unknown(globs, project.selectable)
    chosen = {
        model.qualified_name for model in project.selectable if matches_any(model.qualified_name, globs)
    }
    if not project.is_partial and len(chosen) == len(project.selectable):
        return project
    return replace(project, models=_chosen(project.models, chosen), is_partial=True)


def _chosen(models: Sequence[Securable], chosen: Collection[SecurableName]) -> tuple[Securable, ...]:
    """Return the chosen models, and the schemas of the chosen tables."""
    tables = (model.qualified_name for model in of_kind(Table, models))
    schemas = {parent.key for name in tables if name in chosen for parent in name.parents}
    names = ((model, model.qualified_name) for model in models)
    return tuple(
        model for model, name in names if (name in chosen if name.is_selectable else name.key in schemas)
    )


def declared_models(settings: Settings, declare: Callable[[Settings], Declared] = load_declared) -> Declared:
    """Return the models as written, without the features that the environment leaves out.

    Raises:
        ConfigError, RefusalGroup: one or several files are refused.
    """
    left_out = _left_out(settings)
    declared = declare(settings)
    return replace(declared, models=models_without(declared.models, left_out))


def load_rules(settings: Settings) -> RuleSet:
    """Return the engine's rules and the project's own.

    Raises:
        ConfigError: a rule cannot be loaded, or is not a rule.
    """
    rules, capabilities = PlanValidator.default_rules(), _CAPABILITIES[settings.backend]
    of_settings = (
        OwnedTables(settings.owns),
        OwnedParents(settings.owns),
        DeclaredScopes(settings.policy.policies_on),
    )
    rules = RuleSet(
        models=(*rules.models, SupportedFeatures(capabilities), *of_settings),
        plans=(*rules.plans, SupportedChanges(capabilities)),
    )
    for position, reference in enumerate(settings.policy.rules):
        location = settings.locate(("policy", "rules", position))
        rules = load_reference(
            reference,
            partial(add_user_rule, rules, reference=reference, named_at=location),
            what="rule",
            project_dir=settings.project_dir,
            named_at=location,
        )
    return rules


def _left_out(settings: Settings) -> tuple[Feature, ...]:
    """Return the features that the environment does without: of those that its type of backend may lack.

    Raises:
        ConfigError: the feature does not exist.
    """
    lacking = () if settings.backend.is_databricks else OPEN_SOURCE.refused
    by_name = {feature_name(feature): feature for feature in lacking}
    for position, name in enumerate(settings.leave_out):
        if name not in by_name:
            _, way_out = unknown("feature", name, by_name)
            location = settings.locate(("backend", "leave_out", position))
            raise ConfigError(
                f"backend.leave_out: this backend lacks no feature {name!r}",
                location=location,
                way_out=way_out if lacking else "It has every feature. Remove `leave_out`.",
            )
    return tuple(by_name[name] for name in settings.leave_out)


def _refuse_table_removal(settings: Settings) -> None:
    reason = _CAPABILITIES[settings.backend].refused.get(Feature.TABLE_REMOVAL)
    if settings.policy.removed_tables is Removed.DROP and reason is not None:
        raise ConfigError(
            f"policy.removed_tables: drop is not for this backend: {reason}",
            location=settings.locate(("policy", "removed_tables")),
            way_out="Leave it out, or write keep.",
        )


def _widened(policy: Policy, allow: Sequence[str]) -> Policy:
    try:
        return replace(policy, allow=(*policy.allow, *map(Allowance.parse, allow)))
    except ValueError as error:
        raise InvalidCommandError(f"{spoken('--allow', 'allow')}: {error}") from None


def _refuse_unknown(globs: Sequence[str], models: Sequence[Securable]) -> None:
    for glob in globs:
        if not any(matches_any(model.qualified_name, [glob]) for model in models):
            words = dict.fromkeys(model.qualified_name.kind for model in models)
            names = [str(model.qualified_name) for model in models]
            reason, way_out = unknown(" or ".join(words) or "table", glob, names)
            raise InvalidCommandError(reason, way_out=way_out)

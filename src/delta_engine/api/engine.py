"""`Engine`: plans, applies, reports drift, imports and undoes, from Python code and notebooks.

Each method opens what the command of the same name opens, and calls the use case that it calls.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast

from delta_engine.api.values import Drift, ModelFiles, Models, Plan
from delta_engine.api.views import ApiView
from delta_engine.backends.spark_sessions import is_databricks
from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.config.conf_folder import find_conf_dir
from delta_engine.config.loading import given_models, load_declared
from delta_engine.config.settings import Settings, given_settings, load_settings
from delta_engine.deployment.document import records_of
from delta_engine.errors import ConfigError, InvalidCommandError, raise_all, unknown
from delta_engine.models import AbacPolicy, Function, Schema, Securable, Table, View
from delta_engine.orchestrate import orchestrator
from delta_engine.orchestrate.deployments import open_deployment
from delta_engine.orchestrate.drift_reports import drift_page, report_drift
from delta_engine.orchestrate.import_folder import (
    ModelFolder,
    Per,
    import_to_folder,
    write_editor_files,
)
from delta_engine.orchestrate.importing import import_tables, scope_of
from delta_engine.orchestrate.opening import open_backend, open_environment
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.orchestrate.project import Project, make_project
from delta_engine.orchestrate.reviewed_plans import make_plan_file
from delta_engine.orchestrate.runs import Environment
from delta_engine.orchestrate.undoing import plan_undo, undo_note, undo_of
from delta_engine.ownership.recorded_models import declared_by
from delta_engine.plan_files.document import Options
from delta_engine.report.run_report import RunReport
from delta_engine.telemetry.context import in_context
from delta_engine.telemetry.visible import plural

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_engine.orchestrate.backend import Backend

Notify = Callable[[str], None]
"""Gets notes for the user, such as that another run holds the lock."""

_Model = TypeVar("_Model", Table, Schema, Function, AbacPolicy, View)

_CREATES_SCHEMAS: Final = {"create_schemas": True}


def print_note(note: str) -> None:
    """Print a note on stderr."""
    print(f"note: {note}", file=sys.stderr)


class Engine:
    """One environment, opened from Python: `Engine.local`, `Engine.from_conf` or `Engine.on` makes it.

    It opens its backend when a method needs it first, and keeps it. Each method works on the environment as it is
    then: no method remembers what another one read.
    """

    __slots__ = ("_backend", "_conf_dir", "_notify", "_open_backend", "_settings")

    def __init__(
        self,
        settings: Settings,
        open_backend: Callable[[], Backend],
        *,
        conf_dir: Path | None = None,
        notify: Notify = print_note,
    ) -> None:
        """Use `Engine.local`, `Engine.from_conf` or `Engine.on` instead.

        Args:
            conf_dir: the configuration folder of the project; None if Python code gives the models.
        """
        self._settings = settings
        self._open_backend = open_backend
        self._backend: Backend | None = None
        self._conf_dir = conf_dir
        self._notify = notify

    @classmethod
    def local(
        cls,
        folder: str | Path = ".",
        *,
        environment: str = "local",
        notify: Notify = print_note,
        **configuration: object,
    ) -> Engine:
        """Return an engine whose tables are folders in `.delta-engine/warehouse`: no workspace, no metastore.

        The deployment state is a file beside them. Schemas are created as tables need them.

        Args:
            folder: the folder that holds `.delta-engine`.
            configuration: further keys of `conf/<environment>.yml`, such as `policy={"allow": ["drop_column"]}`.

        Raises:
            ConfigError, RefusalGroup: the configuration has unknown keys or unsuitable values.
        """
        policy = configuration.get("policy", {})
        if isinstance(policy, Mapping):
            configuration["policy"] = {**_CREATES_SCHEMAS, **policy}
        configuration.setdefault("backend", {"type": "oss"})
        settings = given_settings(environment, configuration, Path(folder), given_to="Engine.local")
        return cls(settings, partial(open_backend, settings, notify=notify), notify=notify)

    @classmethod
    def from_conf(
        cls,
        environment: str,
        *,
        conf_dir: str | Path | None = None,
        spark: SparkSession | None = None,
        notify: Notify = print_note,
    ) -> Engine:
        """Return an engine for a project: the configuration, the models and the state that the command line opens.

        Args:
            conf_dir: the configuration folder; by default the one of the project that holds the current folder.
            spark: the session to use; by default the one of the notebook, or what the configuration names.

        Raises:
            ConfigError, RefusalGroup: there is no such configuration, or it is refused.
        """
        folder = find_conf_dir(Path.cwd()) if conf_dir is None else Path(conf_dir)
        settings = load_settings(folder, environment)
        opener = partial(open_backend, settings, spark, notify=notify)
        return cls(settings, opener, conf_dir=folder.absolute(), notify=notify)

    @classmethod
    def on(
        cls,
        spark: SparkSession,
        *,
        environment: str,
        folder: str | Path = ".",
        notify: Notify = print_note,
        **configuration: object,
    ) -> Engine:
        """Return an engine on a Spark session: of a notebook, of serverless compute, of Databricks Connect, or local.

        On Databricks the tables are those of Unity Catalog, and the configuration needs a `state_backend`. On any other
        session they are folders in `.delta-engine/warehouse`, unless `backend={"type": "oss", "names": "catalog"}`.

        Args:
            environment: the name under which the deployment state is kept.
            folder: where relative paths of the configuration start.
            configuration: further keys of `conf/<environment>.yml`, such as
                `state_backend={"type": "databricks", "databricks": {"schema": "dev.delta_engine"}}`.

        Raises:
            ConfigError, RefusalGroup: the configuration has unknown keys or unsuitable values.
        """
        if "backend" not in configuration:
            configuration["backend"] = {
                "type": "databricks" if is_databricks(SparkSqlRunner(spark)) else "oss"
            }
        settings = given_settings(environment, configuration, Path(folder), given_to="Engine.on")
        return cls(settings, partial(open_backend, settings, spark, notify=notify), notify=notify)

    @property
    def environment(self) -> str:
        """The environment's name."""
        return self._settings.environment

    def __repr__(self) -> str:
        return f"<Engine {self.environment}: {self._settings.backend.value}>"

    def plan(
        self,
        tables: Table | Sequence[Table] | None = None,
        *,
        schemas: Sequence[Schema] = (),
        functions: Sequence[Function] = (),
        policies: Sequence[AbacPolicy] = (),
        views: Sequence[View] = (),
        select: Sequence[str] = (),
        allow: Sequence[str] = (),
        preflight: bool = True,
    ) -> Plan:
        """Return what would be done, and why it would be refused. Takes no lock and changes nothing.

        Args:
            tables: the declared tables, or a single one; by default the project's models. An engine of a project plans
                given tables alone, and leaves its other models out.
            schemas: the declared schemas; a project declares its own, and its other models.
            functions: the declared functions.
            policies: the declared policies.
            views: the declared views.
            select: globs that select tables, functions, policies and views, such as `silver.*`.
            allow: destructive kinds to allow, such as `drop_column:silver.orders`.
            preflight: whether to count the rows that added checks refuse.

        Raises:
            InvalidModelError, ConfigError, RefusalGroup: models or the configuration are refused.
            CatalogReadError: a table cannot be read.
        """
        options = Options(tables=tuple(select), allow=tuple(allow), counts_checks=preflight)
        given = self._given(tables, _others(schemas, functions, policies, views))
        with self._speaking():
            project, environment = self._opened(given, options)
            planned = plan_unlocked(
                environment, project.synced, is_partial=project.is_partial, allow_cached=False
            )
            file = None if planned.refusals else make_plan_file(project, environment, planned, options)
        return Plan(
            planned=planned,
            given=given,
            options=options,
            file=file,
            environment=self.environment,
            models=len(project.selectable),
            project_dir=project.settings.project_dir,
        )

    def apply(self, plan: Plan) -> RunReport:
        """Apply a plan: exactly its statements, or nothing. Takes the lock, plans again and compares.

        Raises:
            UnsafePlanError, DriftRefusal: the plan has such a refusal, or several, all in `refusals` of the error.
            RefusalGroup: the plan has refusals of different kinds.
            StalePlanError: what the plan was made from has changed since; nothing was changed.
            LockHeld: another run holds the lock.
            ApplyFailedError: tables failed, with their outcomes; the others are done.
        """
        raise_all(plan.refusals)
        if plan.environment != self.environment or plan.file is None:
            raise InvalidCommandError(
                f"the plan is for the environment {plan.environment!r}, not for {self.environment!r}",
                way_out="Apply it with the engine that made it.",
            )
        with self._speaking():
            project, environment = self._opened(plan.given, plan.options)
            view = ApiView(tell=self._notify)
            return orchestrator.apply_file(environment, project, plan.file, None, view)

    def sync(
        self,
        tables: Table | Sequence[Table] | None = None,
        *,
        schemas: Sequence[Schema] = (),
        functions: Sequence[Function] = (),
        policies: Sequence[AbacPolicy] = (),
        views: Sequence[View] = (),
        select: Sequence[str] = (),
        allow: Sequence[str] = (),
    ) -> RunReport:
        """Plan and apply in one run, without a review in between; arguments as for `plan`, errors as for `apply`."""
        options = Options(tables=tuple(select), allow=tuple(allow))
        given = self._given(tables, _others(schemas, functions, policies, views))
        with self._speaking():
            project, environment = self._opened(given, options)
            view = ApiView(tell=self._notify)
            return orchestrator.sync(environment, project.synced, view, is_partial=project.is_partial)

    def drift(
        self,
        tables: Table | Sequence[Table] | None = None,
        *,
        schemas: Sequence[Schema] = (),
        functions: Sequence[Function] = (),
        policies: Sequence[AbacPolicy] = (),
        views: Sequence[View] = (),
        select: Sequence[str] = (),
    ) -> Drift:
        """Report what was changed outside the engine, by whom and when. Takes no lock and changes nothing.

        Args:
            tables: the declared tables; by default the project's models, or what was applied last.
            schemas: the declared schemas.
            functions: the declared functions.
            policies: the declared policies.
            views: the declared views.
            select: globs that select tables, functions, policies and views.
        """
        with self._speaking():
            options = Options(tables=tuple(select))
            if tables is None and self._conf_dir is None:
                given: tuple[Securable, ...] | None = self._recorded()
            else:
                given = self._given(tables, _others(schemas, functions, policies, views))
            project, environment = self._opened(given, options)
            report = report_drift(environment, project.synced, is_partial=project.is_partial)
            return Drift(report=report, html=drift_page(environment, report))

    def import_tables(self, target: str, *, exclude: Sequence[str] = ()) -> Models:
        """Return models of a catalog, `catalog.schema` or `catalog.schema.table`. Planning them gives an empty plan.

        Args:
            exclude: globs of what to leave out, schemas and what is in them, such as `gold` or `gold.tmp_*`.

        Raises:
            ConfigError: nothing of that name exists.
            RefusalGroup, RefusedError: no table can be imported; otherwise `refusals` has those that cannot.
        """
        with self._speaking():
            scope = scope_of(self._settings, exclude)
            imported = import_tables(self._opened_backend(), target, scope)
        if not imported.selectable:
            raise_all(imported.refusals)
        return Models.of(imported, self._settings.variables)

    def import_to_folder(
        self, target: str, folder: str | Path, *, per: str = "table", exclude: Sequence[str] = ()
    ) -> ModelFiles:
        """Write model files of what a target names into a folder, and return what was written.

        Tables that the project or a file of the folder declares are skipped, and files are never overwritten: after an
        interruption, the same call continues.

        Args:
            target: as for `import_tables`.
            per: what a file holds, `table` or `schema`.
            exclude: as for `import_tables`.

        Raises:
            ConfigError: nothing of that name exists, or another import writes to the folder.
            RefusalGroup, RefusedError: the project's models are refused, or no table can be imported.
        """
        kinds = {kind.value: kind for kind in Per}
        if per not in kinds:
            reason, way_out = unknown("kind of file", per, kinds)
            raise InvalidCommandError(reason, way_out=way_out)
        settings = self._current_settings()
        place = ModelFolder(path=Path(folder), per=kinds[per], settings=settings, conf_dir=self._conf_dir)
        with self._speaking():
            scope = scope_of(settings, exclude)
            report = import_to_folder(self._opened_backend(), target, scope, place, self._notify)
            if report.is_empty:
                raise_all(report.refusals)
            if report.files and self._conf_dir is not None:
                write_editor_files(self._conf_dir, self._notify)
        return ModelFiles.of(report, place.path)

    def undo(
        self,
        run: str | None = None,
        *,
        select: Sequence[str] = (),
        allow: Sequence[str] = (),
        skip_refused: bool = False,
    ) -> Plan:
        """Return the plan that brings back what was declared before a run; `apply` applies it.

        Args:
            run: the run's id, or how it starts; by default the last one that changed something.
            select: globs of the tables to undo.
            allow: destructive kinds to allow, as for `plan`.
            skip_refused: whether to leave out the tables that cannot be undone, instead of refusing.

        Raises:
            StateMismatchError: there is no such run, or what was before it is not kept any more.
        """
        options = Options(tables=tuple(select), allow=tuple(allow), undoes=run, skips_refused=skip_refused)
        given: tuple[Securable, ...] | None = () if self._conf_dir is None else None
        of_all = Options(allow=options.allow)
        with self._speaking():
            project, environment = self._opened(given, of_all)
            state = environment.deployment.peek_replayed()
            planned = plan_undo(environment, state, options)
            options = options.with_values(undoes=undo_of(planned).run)
            file = None if planned.refusals else make_plan_file(project, environment, planned, options)
        return Plan(
            planned=planned,
            given=given,
            options=of_all,
            file=file,
            environment=self.environment,
            models=len(project.selectable),
            note=undo_note(planned),
            project_dir=project.settings.project_dir,
        )

    def _speaking(self) -> AbstractContextManager[None]:
        """Return the context in which messages name arguments of calls, not options of commands."""
        return in_context(environment=self.environment, interface="python")

    def _given(
        self, tables: Table | Sequence[Table] | None, others: Sequence[Securable]
    ) -> tuple[Securable, ...] | None:
        """Return the models that Python code gave; None for those of the project."""
        if tables is None and self._conf_dir is None:
            raise InvalidCommandError(
                "no tables are given, and this engine has no project with models",
                way_out="Pass a list of Table, or open a project with Engine.from_conf.",
            )
        if others and self._conf_dir is not None:
            kinds = dict.fromkeys(plural(model.qualified_name.kind) for model in others)
            raise ConfigError(
                f"{' and '.join(kinds)} are given, but the project declares its own",
                way_out="Declare them in the project's models, or use Engine.on.",
            )
        return None if tables is None else (*_each(tables, Table, "tables"), *others)

    def _opened(self, given: tuple[Securable, ...] | None, options: Options) -> tuple[Project, Environment]:
        """Load the project's models or take the given ones, and open the environment for them."""
        settings = self._current_settings()
        read = partial(load_declared, globs=options.tables)
        declare = read if given is None else partial(given_models, given)
        project = make_project(settings, declare, tables=options.tables, allow=options.allow)
        if given is not None and self._conf_dir is not None:
            project = replace(project, is_partial=True)
        backend = self._opened_backend()
        environment = open_environment(
            project,
            backend,
            open_deployment(settings, backend),
            counts_checks=options.counts_checks,
            notify=self._notify,
        )
        return project, environment

    def _current_settings(self) -> Settings:
        """Return the settings of the project as its files are now."""
        return self._settings if self._conf_dir is None else load_settings(self._conf_dir, self.environment)

    def _opened_backend(self) -> Backend:
        if self._backend is None:
            self._backend = self._open_backend()
        return self._backend

    def _recorded(self) -> tuple[Securable, ...]:
        """Return the models that were applied last."""
        state = open_deployment(self._settings, self._opened_backend()).peek_replayed()
        return tuple(declared_by(records_of(state)).values())


def _others(
    schemas: Sequence[Schema],
    functions: Sequence[Function],
    policies: Sequence[AbacPolicy],
    views: Sequence[View],
) -> tuple[Securable, ...]:
    return (
        *_each(schemas, Schema, "schemas"),
        *_each(functions, Function, "functions"),
        *_each(policies, AbacPolicy, "policies"),
        *_each(views, View, "views"),
    )


def _each(models: _Model | Sequence[_Model], kind: type[_Model], what: str) -> tuple[_Model, ...]:
    """Return models as a tuple; raise `TypeError` for anything else."""
    if isinstance(models, kind):
        return (models,)
    each: tuple[object, ...] = (models,) if isinstance(models, str) else tuple(cast(Sequence[_Model], models))
    for model in each:
        if not isinstance(model, kind):
            raise TypeError(f"{what} takes a list of {kind.__name__}, but it contains {type(model).__name__}")
    return cast(tuple[_Model, ...], each)

"""Settings: the validated content of `conf/<environment>.yml`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from delta_engine.actions.drift_policy import NO_DRIFT_POLICY, DriftPolicy, IgnoreEntry, Severity
from delta_engine.actions.policy import Policy
from delta_engine.aspects.facet import SCALAR_SCHEMA
from delta_engine.aspects.known_properties import properties_schema
from delta_engine.config.conf_folder import environments
from delta_engine.config.consents import load_consents
from delta_engine.config.extended import read_extended
from delta_engine.config.policies import PolicyDocument, load_ignored_drift, plan_policy
from delta_engine.config.state_backend import (
    LocalBackend,
    StateBackend,
    StateBackendDocument,
    state_backend,
)
from delta_engine.config.variables import substitute, substitute_but_secrets
from delta_engine.config.yaml_documents import Document, DocumentPath, parse_document
from delta_engine.errors import ConfigError, InvalidCommandError, SourceLocation, unknown
from delta_engine.models import QualifiedName, read_only

_OF_CATALOGS = "spark.sql.catalog."
"""Spark settings with this prefix may hold secrets: set after the start, they appear on no command line."""


_ENVIRONMENT_NAME = re.compile(r"\w[\w.-]*", re.ASCII)
"""Files are named after an environment, so its name holds no separator of paths."""

_SCALARS = msgspec.Meta(extra_json_schema={"additionalProperties": dict(SCALAR_SCHEMA)})
_PROPERTIES = msgspec.Meta(extra_json_schema=properties_schema())
_BASE = msgspec.Meta(min_length=1, extra_json_schema={"not": {"pattern": r"\$\{"}})


class _Backend(msgspec.Struct, kw_only=True, tag_field="type"):
    """What runs SQL.

    Args:
        leave_out: features of models that this environment leaves out because its backend lacks them.
    """

    leave_out: list[str] = msgspec.field(default_factory=list)


class _Oss(_Backend, tag="oss"):
    """Plain Spark with Delta, started by the engine.

    Args:
        names: how `catalog.schema.table` is found: as a folder of the warehouse, or as Spark's catalogs resolve it.
        warehouse: the folder of the tables with `names: path`; relative paths start at the project.
        spark: Spark settings in addition to the engine's own.
        leave_out: features of models that this environment leaves out because its backend lacks them.
    """

    names: Literal["path", "catalog"] = "path"
    warehouse: str = ".delta-engine/warehouse"
    spark: Annotated[dict[str, Any], _SCALARS] = msgspec.field(default_factory=dict)


class _Databricks(_Backend, tag="databricks"):
    """Unity Catalog through Spark: clusters and serverless compute.

    Args:
        leave_out: features of models that this environment leaves out because its backend lacks them.
    """


class SqlWarehouse(_Backend, kw_only=True, tag="databricks-warehouse"):
    """A Databricks SQL warehouse.

    Args:
        warehouse_id: the warehouse's id, as its page shows it.
        profile: the login in `~/.databrickscfg`; by default that of databricks-sdk.
        statement_timeout_seconds: how many seconds a statement may run before the engine cancels it; by default the
            warehouse's limit.
        leave_out: features of models that this environment leaves out because its backend lacks them.
    """

    warehouse_id: Annotated[str, msgspec.Meta(min_length=1)]
    profile: str | None = None
    statement_timeout_seconds: Annotated[int, msgspec.Meta(ge=1)] | None = None


class _Models(msgspec.Struct):
    """Where the models are.

    Args:
        python: `module:attribute` each: a sequence of models, or a function of the variables that returns one.
        yaml: file patterns, relative to the project; `**` matches any number of folders.
    """

    python: list[str] = msgspec.field(default_factory=list)
    yaml: list[str] = msgspec.field(default_factory=list)


class _Drift(msgspec.Struct):
    """The drift report.

    Args:
        fail_on: the severity from which the job's drift task fails.
        history_table: the table, `catalog.schema.table`, that records each report; the engine creates it.
    """

    fail_on: Literal["high", "medium", "low", "never"] = "high"
    history_table: str | None = None


class _Apply(msgspec.Struct):
    """How a run applies its plan.

    Args:
        parallelism: the number of tables that are read or changed at once.
        history_table: the table, `catalog.schema.table`, that records the report of each run; the engine creates it.
    """

    parallelism: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4
    history_table: str | None = None


class _Defaults(msgspec.Struct):
    """Defaults of all models.

    Args:
        table_properties: properties of every table; those of a model take precedence.
    """

    table_properties: Annotated[dict[str, Any], _PROPERTIES] = msgspec.field(default_factory=dict)


class Configuration(msgspec.Struct):
    """The configuration of one environment, `conf/<environment>.yml`.

    Args:
        environment: the environment's name, which is the name of the file.
        backend: what runs SQL.
        models: where the models are.
        variables: values of `${name}` in models and in this file.
        policy: which changes a run may make.
        drift: the drift report.
        apply: how a run applies its plan.
        defaults: defaults of all models.
        state_backend: the location of the deployment state and its lock; by default `local` for `oss`, else required.
        owns: globs of the tables that are this project's, as `-t` has them; without it, all. Only those may be
            declared, and only those count as unmanaged.
        extends: the base of this file, relative to the file; its values hold where this file has none. Takes no
            variables.
    """

    environment: str
    backend: _Oss | _Databricks | SqlWarehouse
    models: _Models
    variables: Annotated[dict[str, Any], _SCALARS] = msgspec.field(default_factory=dict)
    policy: PolicyDocument = msgspec.field(default_factory=PolicyDocument)
    drift: _Drift = msgspec.field(default_factory=_Drift)
    apply: _Apply = msgspec.field(default_factory=_Apply)
    defaults: _Defaults = msgspec.field(default_factory=_Defaults)
    state_backend: StateBackendDocument | None = None
    owns: Annotated[list[str], msgspec.Meta(min_length=1)] = msgspec.field(default_factory=lambda: ["*"])
    extends: Annotated[str, _BASE] | None = None


class BackendType(Enum):
    """The supported platforms, with the two ways of naming tables on plain Spark."""

    DATABRICKS = "databricks"
    WAREHOUSE = "databricks-warehouse"
    EMBEDDED = "oss, tables by path"
    CATALOG = "oss, names as Spark resolves them"

    @property
    def is_databricks(self) -> bool:
        """Whether the tables are in Unity Catalog."""
        return self in (BackendType.DATABRICKS, BackendType.WAREHOUSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The configuration of one environment.

    Args:
        project_dir: the parent of the configuration folder, and the base of relative paths.
        warehouse: the absolute root folder of tables by path.
        leave_out: features that this environment removes from the models.
        python_models: `module:attribute` references.
        yaml_models: globs, relative to the project folder.
        owns: globs of the project's tables.
        default_table_properties: properties of models that do not declare them.
        fail_drift_on: the severity from which the job's drift task fails; None for never.
        conf_dir: the folder of the configuration; None for one that Python code gives.
        locate: returns the file and line of a value of the configuration, by its path.
    """

    environment: str
    project_dir: Path
    backend: BackendType
    warehouse: Path
    spark: Mapping[str, str]
    sql_warehouse: SqlWarehouse | None = None
    leave_out: tuple[str, ...] = ()
    variables: Mapping[str, str]
    python_models: tuple[str, ...]
    yaml_models: tuple[str, ...]
    owns: tuple[str, ...] = ("*",)
    default_table_properties: Mapping[str, str]
    policy: Policy
    drift_policy: DriftPolicy = NO_DRIFT_POLICY
    fail_drift_on: Severity | None = Severity.HIGH
    drift_history: QualifiedName | None = None
    run_history: QualifiedName | None = None
    parallelism: int
    state_backend: StateBackend
    conf_dir: Path | None = field(default=None, compare=False, repr=False)
    locate: Callable[[DocumentPath], SourceLocation] = field(compare=False, repr=False)


def load_settings(conf_dir: Path, environment: str) -> Settings:
    """Read and validate `<conf_dir>/<environment>.yml` and its bases."""
    document, config = _filled_configuration(read_configuration(conf_dir, environment))
    if config.environment != environment:
        raise document.error(
            ("environment",),
            f"the file is for {environment!r}, but sets environment: {config.environment!r}",
            "Use the same name in both places.",
        )
    variables = document.texts(("variables",), config.variables)
    names = environments(conf_dir)
    ignored = load_ignored_drift(conf_dir, environment, variables, names)
    consents = load_consents(conf_dir, environment, variables, names)
    settings = _settings(document, config, conf_dir.absolute().parent, ignored)
    return replace(settings, conf_dir=conf_dir, policy=replace(settings.policy, consents=consents))


def given_settings(
    environment: str, configuration: Mapping[str, object], project_dir: Path, *, given_to: str
) -> Settings:
    """Validate a configuration that Python code gives, with the keys of `conf/<environment>.yml`.

    Args:
        configuration: without `environment`, `models` and `extends`.
        given_to: what the code calls, for messages.
    """
    if not _ENVIRONMENT_NAME.fullmatch(environment):
        raise ConfigError(
            f"{given_to}: {environment!r} is not a valid name of an environment",
            way_out="Use letters, digits, dots, hyphens and underscores only.",
        )
    for key in sorted(configuration.keys() & {"models", "extends"}):
        raise ConfigError(
            f"{given_to} does not accept {key}, because plan() takes the models",
            way_out="Remove the key, or open a project with Engine.from_conf.",
        )
    content = {"environment": environment, "models": {}, **configuration}
    text = json.dumps(
        content, default=os.fspath, ensure_ascii=False
    )  # JSON is YAML, which the checks of configurations read
    document = parse_document(text, given_to).without_lines()
    document, config = _filled_configuration(document)
    return _settings(document, config, project_dir.absolute())


def _filled_configuration(document: Document) -> tuple[Document, Configuration]:
    """Return a configuration with its variables filled in."""
    config = document.convert((), document.value, Configuration)
    document = filled_in(document, document.texts(("variables",), config.variables))
    return document, document.convert((), document.value, Configuration)


def read_configuration(conf_dir: Path, environment: str) -> Document:
    """Read `<conf_dir>/<environment>.yml` and its bases as one document, without filling in variables."""
    path = conf_dir / f"{environment}.yml"
    if environment not in environments(conf_dir):
        reason, way_out = unknown("environment", environment, environments(conf_dir))
        if not environments(conf_dir):
            way_out = no_configuration_way_out(conf_dir)
        raise InvalidCommandError(f"{reason}: {path} does not exist", way_out=way_out)
    return read_extended(path, Configuration)


def filled_in(document: Document, variables: Mapping[str, str]) -> Document:
    """Return a configuration with variables filled into all its texts, but not into the variables themselves."""

    def fill(path: DocumentPath, text: str) -> str:
        if path[:1] == ("variables",):
            return text
        fill_in = substitute_but_secrets if takes_secrets(path) else substitute
        return fill_in(text, variables, document.location(path))

    return document.with_texts(fill)


def takes_secrets(path: DocumentPath) -> bool:
    """Whether a value of a configuration may contain `${env:NAME}`."""
    return path[:2] == ("backend", "spark") and str(path[-1]).startswith(_OF_CATALOGS)


def no_configuration_way_out(conf_dir: Path) -> str:
    """Return the way out for a folder without configuration."""
    return (
        f"{conf_dir} contains no configuration. Run the command in the project's folder, or name the folder with "
        "--conf-dir. `delta-engine init` creates a project."
    )


def _settings(
    document: Document, config: Configuration, project_dir: Path, ignored: Sequence[IgnoreEntry] = ()
) -> Settings:
    oss = config.backend if isinstance(config.backend, _Oss) else _Oss()
    return Settings(
        environment=config.environment,
        project_dir=project_dir,
        backend=_backend_type(config.backend),
        warehouse=project_dir / oss.warehouse,
        spark=read_only(document.texts(("backend", "spark"), oss.spark)),
        sql_warehouse=config.backend if isinstance(config.backend, SqlWarehouse) else None,
        leave_out=tuple(config.backend.leave_out),
        variables=read_only(document.texts(("variables",), config.variables)),
        python_models=tuple(config.models.python),
        yaml_models=tuple(config.models.yaml),
        owns=tuple(config.owns),
        default_table_properties=read_only(
            document.texts(("defaults", "table_properties"), config.defaults.table_properties)
        ),
        policy=plan_policy(document, config.policy),
        drift_policy=DriftPolicy(
            handling=config.policy.drift,
            refused_from=config.policy.drift_from,
            severities=tuple(config.policy.drift_severities),
            ignores=tuple(ignored),
        ),
        fail_drift_on=None if config.drift.fail_on == "never" else Severity(config.drift.fail_on),
        drift_history=_history_table(document, "drift", config.drift.history_table),
        run_history=_history_table(document, "apply", config.apply.history_table),
        parallelism=config.apply.parallelism,
        state_backend=_state_backend(document, config, project_dir),
        locate=document.location,
    )


def _backend_type(backend: _Oss | _Databricks | SqlWarehouse) -> BackendType:
    match backend:
        case _Databricks():
            return BackendType.DATABRICKS
        case SqlWarehouse():
            return BackendType.WAREHOUSE
        case _Oss(names="catalog"):
            return BackendType.CATALOG
    return BackendType.EMBEDDED


def _history_table(document: Document, key: str, text: str | None) -> QualifiedName | None:
    if text is None:
        return None
    parts = text.split(".")
    if len(parts) != 3 or not all(parts):
        way_out = "Write catalog.schema.table, without quotes."
        raise document.error(
            (key, "history_table"), "history_table must be the full name of a table", way_out
        )
    return QualifiedName(*parts)


def _state_backend(document: Document, config: Configuration, project_dir: Path) -> StateBackend:
    if config.state_backend is None and not isinstance(config.backend, _Oss):
        raise document.error(
            (),
            f"backend {config.backend.__struct_config__.tag} needs a state_backend, because "
            "the local files of a job disappear when it ends",
            'Add: state_backend: {type: databricks, databricks: {schema: "${catalog}.delta_engine"}}.',
        )
    return state_backend(document, config.state_backend or LocalBackend(), project_dir)

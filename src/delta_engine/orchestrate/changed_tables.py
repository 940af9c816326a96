"""Tells which tables of a project are declared otherwise than at a commit of git.

The files of the commit are read into a temporary folder, and resolved models are compared: model files, the
configuration with its bases, and variables count. Python code of the commit is never run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from delta_engine.actions.policy import matches_any
from delta_engine.config.body_files import text_file
from delta_engine.config.extended import configuration_files
from delta_engine.config.loading import Declared, load_present
from delta_engine.config.settings import Settings, load_settings
from delta_engine.errors import RefusedError
from delta_engine.models import QualifiedName, Securable, Table, by_resource, resource_key
from delta_engine.models.constraints import resolved
from delta_engine.orchestrate.git_history import ComparedRepository, compared_with, real_path
from delta_engine.orchestrate.project import Project, declared_models, narrowed, selected
from delta_engine.plan_files.document import ChangedTables
from delta_engine.telemetry.visible import counted, plural

_MODEL_FILES: Final = (".yml", ".yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedProject:
    """A project with the tables that changed since a commit.

    Args:
        changed: their names; None if all tables count as changed.
        note: what was compared, and why all tables count.
    """

    project: Project
    changed: ChangedTables | None
    note: str

    @property
    def is_unchanged(self) -> bool:
        """Whether no table changed."""
        return self.changed is not None and not (self.changed.tables or self.changed.removed)


def since_commit(project: Project, since: str, globs: Sequence[str] = ()) -> ChangedProject:
    """Narrow a whole project to the tables whose declaration changed since a commit, and those no longer declared.

    Args:
        since: a commit, a branch or a tag. Its changes since the common ancestor with HEAD do not count.
        globs: select among these tables; all by default.

    Raises:
        ConfigError: the project is not in a git repository, or the commit does not exist.
        InvalidCommandError: a glob selects no declared table.
    """
    narrower = selected(project, globs)
    compared = compared_with(since, project.settings.project_dir)
    former = _former_project(project, compared)
    reason = former if isinstance(former, str) else _reason_for_all(project, *former, compared)
    if isinstance(former, str) or reason:
        note = f"all tables are planned, not only those that changed since {since}: {reason}"
        return ChangedProject(project=narrower, changed=None, note=note)
    tables = former[1].tables
    chosen = {table.key for table in narrower.tables}
    changed = ChangedTables(
        since=since,
        tables=tuple(str(model.qualified_name) for model in _changed(project, tables) if model.key in chosen),
        removed=tuple(
            str(name) for name in _removed(project, tables) if not globs or matches_any(name, globs)
        ),
    )
    count = f"{len(changed.tables)} of {counted(len(narrower.tables), 'table')}"
    removed = f", and {counted(len(changed.removed), 'table')} no longer declared" if changed.removed else ""
    note = f"changed since {since}: {count}{removed}"
    return ChangedProject(project=narrowed(narrower, changed), changed=changed, note=note)


def _former_project(project: Project, compared: ComparedRepository) -> tuple[Settings, Declared] | str:
    """Return the configuration of the common ancestor and its YAML models, or why it cannot be read."""
    settings = project.settings
    read = _configurations(settings, compared.root) | _text_files(project, compared.root)
    with TemporaryDirectory(prefix="delta-engine-") as folder:
        root = real_path(Path(folder))
        try:
            compared.write_to(root, partial(_is_read, extra=read))
            former = _settings_at(settings, compared, root)
            if not all(pattern.endswith(_MODEL_FILES) for pattern in former.yaml_models):
                return "a pattern of models.yaml names files that do not end in .yml or .yaml"
            declared = declared_models(replace(former, python_models=()), _present)
        except (RefusedError, OSError) as error:
            text = str(error).replace(f"{root}{os.sep}", "")
            return f"the project of that commit cannot be read: {text}"
    return former, declared


def _is_read(path: str, extra: frozenset[str]) -> bool:
    return path.endswith(_MODEL_FILES) or path in extra


def _configurations(settings: Settings, root: Path) -> frozenset[str]:
    """Return the paths in the repository of a configuration and its bases, whatever their endings."""
    assert settings.conf_dir is not None  # a command loaded it
    files = configuration_files(settings.conf_dir, settings.environment)
    return frozenset(path.relative_to(root).as_posix() for path in files if path.is_relative_to(root))


def _text_files(project: Project, root: Path) -> frozenset[str]:
    """Return the paths in the repository of the files of bodies and queries, as they are now."""
    files = (text_file(model, project.settings.project_dir) for model in project.selectable)
    paths = map(real_path, filter(None, files))
    return frozenset(path.relative_to(root).as_posix() for path in paths if path.is_relative_to(root))


def _settings_at(settings: Settings, compared: ComparedRepository, root: Path) -> Settings:
    """Return the configuration of a commit, with patterns of paths in the written files."""
    assert settings.conf_dir is not None  # a command loaded it
    project_dir = root / real_path(settings.project_dir).relative_to(compared.root)
    former = load_settings(project_dir / settings.conf_dir.absolute().name, settings.environment)
    patterns = (_pattern_at(pattern, compared.root, root) for pattern in former.yaml_models)
    return replace(former, yaml_models=tuple(patterns))


def _pattern_at(pattern: str, repository: Path, root: Path) -> str:
    path = Path(pattern)
    if path.is_absolute() and path.is_relative_to(repository):
        return str(root / path.relative_to(repository))
    return pattern


def _present(settings: Settings) -> Declared:
    return Declared(models=load_present(settings, ()), is_whole=True)


def _reason_for_all(
    project: Project, former: Settings, declared: Declared, compared: ComparedRepository
) -> str:
    """Return why all tables count as changed; empty if the models tell."""
    settings = project.settings
    now, before = _of_plans(settings), _of_plans(former)
    if changed := [name for name, value in now.items() if value != before[name]]:
        return f"{' and '.join(changed)} changed"
    others, before_others = map(_without_tables, (project.models, declared.models))
    python = {key: model for key, model in others.items() if key not in _in_yaml(project)}
    if kinds := _changed_kinds(others, {**before_others, **python}):
        return f"declared {' and '.join(map(plural, kinds))} changed"
    if settings.python_models != former.python_models:
        return "models.python changed"
    if settings.python_models and _variables(settings) != _variables(former):
        return "variables or defaults changed, which Python models may read"
    if settings.python_models and (changed := sorted(_changed_modules(settings, compared))):
        return f"Python code changed, and that of the commit is not run: {changed[0]}"
    return ""


def _of_plans(settings: Settings) -> dict[str, object]:
    """Return what decides about plans besides models, by name. Consents only allow what models change."""
    ignores = tuple(replace(entry, location=None) for entry in settings.drift_policy.ignores)
    return {
        "the backend": settings.backend,
        "owns": settings.owns,
        "the policy": replace(settings.policy, allow=(), consents=()),
        "policy.drift": replace(settings.drift_policy, ignores=()),
        "drift-policy.yml": ignores,
    }


def _variables(settings: Settings) -> tuple[object, ...]:
    return settings.variables, settings.default_table_properties, settings.leave_out


def _changed_modules(settings: Settings, compared: ComparedRepository) -> Iterator[str]:
    """Yield the changed files that Python models were loaded from, and removed modules in the project."""
    loaded = {getattr(module, "__file__", None) for module in [*sys.modules.values()]}
    files = {real_path(Path(file)) for file in loaded if file}
    inside = real_path(settings.project_dir)
    for path in compared.changed:
        is_removed = path.suffix == ".py" and path.is_relative_to(inside) and not path.exists()
        if is_removed or path in files:
            yield str(path.relative_to(compared.root))


def _changed(project: Project, former: Sequence[Table]) -> Iterator[Table]:
    python = _python_tables(project)
    before = {model.key: model for model in resolved((*former, *python))}
    return (table for table in project.tables if before.get(table.key) != table)


def _removed(project: Project, former: Sequence[Table]) -> Iterator[QualifiedName]:
    return (model.qualified_name for model in former if model.key not in project.declared_names)


def _python_tables(project: Project) -> tuple[Table, ...]:
    """Return the tables that Python code declares, which has not changed."""
    in_yaml = _in_yaml(project)
    return tuple(table for table in project.tables if resource_key(table.qualified_name) not in in_yaml)


def _in_yaml(project: Project) -> frozenset[str]:
    """Return the keys of the resources that YAML files declare."""
    settings = project.settings
    if not settings.python_models:
        return frozenset(by_resource(project.models))
    return frozenset(by_resource(load_present(replace(settings, python_models=()), ())))


def _changed_kinds(models: Mapping[str, Securable], former: Mapping[str, Securable]) -> list[str]:
    changed = {key for key in models.keys() | former.keys() if models.get(key) != former.get(key)}
    return sorted({key.partition(".")[0] for key in changed})


def _without_tables(models: Iterable[Securable]) -> dict[str, Securable]:
    return by_resource(model for model in models if not isinstance(model, Table))

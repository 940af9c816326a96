"""Writes the models of sources to new files: all of them, or none if a file is there already."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from delta_engine.actions.policy import matches_any
from delta_engine.aspects import SCHEMA_FACETS
from delta_engine.config.editor_files import schema_line
from delta_engine.config.model_writer import python_models, query_text, yaml_models
from delta_engine.config.settings import Settings
from delta_engine.config.whole_files import StagedFiles
from delta_engine.config.yaml_documents import MAX_BYTES
from delta_engine.errors import InvalidCommandError, RefusedError
from delta_engine.models import (
    AbacPolicy,
    Schema,
    Securable,
    Table,
    View,
    by_resource,
    resource_key,
    subject,
)
from delta_engine.orchestrate.import_folder import ModelFolder, Per, query_file_of
from delta_engine.orchestrate.importing import as_written
from delta_engine.tools.importers.declared import Source
from delta_engine.tools.importers.variables import Variables, written
from delta_engine.validation.owned_names import OwnedTables
from delta_engine.validation.validator import PlanValidator


@dataclass(frozen=True, slots=True, kw_only=True)
class Importable:
    """The models of a source that a project can take.

    Args:
        models: with the values of this environment, by the keys of their resources, each with what files say.
        declared: the number of models that the project declares already.
    """

    models: Mapping[str, tuple[Securable, Securable]]
    refusals: tuple[RefusedError, ...]
    notes: Sequence[str] = ()
    declared: int = 0

    @property
    def selectable(self) -> int:
        """The number of models without schemas."""
        return sum(model.qualified_name.is_selectable for model, _ in self.models.values())


def importable(
    source: Source,
    variables: Variables,
    settings: Settings,
    present: Iterable[Securable],
    exclude: Sequence[str] = (),
) -> Importable:
    """Return the models that a project lacks and that its rules take, and why others are left out.

    Args:
        present: the models of the project.
    """
    declared = by_resource(present)
    valued = [(variables.valued(model), variables.kept(model)) for model in source.models]
    chosen = [pair for pair in valued if _says_something(pair[0]) and not _is_excluded(pair[0], exclude)]
    new = [pair for pair in chosen if resource_key(pair[0].qualified_name) not in declared]
    models = [model for model, _ in new]
    violations = (
        *PlanValidator().model_violations([*declared.values(), *models]),
        *OwnedTables(settings.owns).check(models),
    )
    names = {str(subject(model.qualified_name)) for model in models}
    own = [refusal for refusal in violations if _about(refusal) in names]
    refused = {_about(refusal) for refusal in own}
    taken = {
        resource_key(model.qualified_name): (model, kept)
        for model, kept in new
        if str(subject(model.qualified_name)) not in refused
    }
    return Importable(
        models=_shortened(taken, declared),
        refusals=(*source.refusals, *own),
        notes=source.notes,
        declared=sum(
            model.qualified_name.is_selectable
            for model, _ in chosen
            if resource_key(model.qualified_name) in declared
        ),
    )


def _about(refusal: RefusedError) -> str:
    return str({"table": refusal.table, "securable": refusal.securable})


def _says_something(model: Securable) -> bool:
    """Whether a model is more than the name of a schema, which `import` of a catalog leaves out too."""
    return not isinstance(model, Schema) or any(facet.is_declared(model) for facet in SCHEMA_FACETS)


def _is_excluded(model: Securable, globs: Sequence[str]) -> bool:
    names = (model.qualified_name, *model.qualified_name.parents)
    return any(matches_any(name, [glob]) for name in names for glob in globs)


def _shortened(
    taken: Mapping[str, tuple[Securable, Securable]], declared: Mapping[str, Securable]
) -> dict[str, tuple[Securable, Securable]]:
    """Return models whose foreign keys and views repeat nothing that the tables say which they name."""
    pairs = [*((model, model) for model in declared.values()), *taken.values()]
    relations = {kept.key: kept for _, kept in pairs if isinstance(kept, Table | View)}
    return {key: (model, as_written(kept, relations)) for key, (model, kept) in taken.items()}


def text_of(importable: Importable, settings: Settings, *, is_python: bool) -> str:
    """Return one file with all models, and with the queries of views in it."""
    return _text([kept for _, kept in importable.models.values()], settings, is_python=is_python)


def _text(models: Sequence[Securable], settings: Settings, *, is_python: bool = False) -> str:
    write = python_models if is_python else yaml_models
    return written(write(models, settings.variables))


def write_models(
    importable: Importable, settings: Settings, conf_dir: Path, to: Path, per: Per | None, *, is_python: bool
) -> list[Path]:
    """Write models to new files, and return the files of models.

    Raises:
        InvalidCommandError: one of the files is there already, or would be too large.
        OSError: one of them cannot be written. In either case, none is.
    """
    texts: dict[Path, str] = {}
    files = _files(importable, settings, conf_dir, to, per)
    for path, pairs in files.items():
        kept = [_with_file(model, own, path, settings, texts) for model, own in pairs]
        first = "" if is_python else f"{schema_line(path, conf_dir)}\n"
        texts[path] = f"{first}{_text(kept, settings, is_python=is_python)}"
    for path, text in texts.items():
        if os.path.lexists(path):
            raise InvalidCommandError(
                f"{path} exists, and importing never overwrites files",
                way_out="Name another place with --to, or move the file away.",
            )
        if len(text) > MAX_BYTES:
            raise InvalidCommandError(
                f"{path} would be larger than a model file may be", way_out="Import it with --per table."
            )
    with StagedFiles() as staged:
        for path, text in texts.items():
            staged.add(path, text.encode(), replaces=False)
        staged.publish()
    return [*files]


def _files(
    importable: Importable, settings: Settings, conf_dir: Path, to: Path, per: Per | None
) -> dict[Path, list[tuple[Securable, Securable]]]:
    """Return the models of each file."""
    folder = ModelFolder(path=to, per=per or Per.SCHEMA, settings=settings, conf_dir=conf_dir)
    files: dict[Path, list[tuple[Securable, Securable]]] = {}
    for model, kept in importable.models.values():
        files.setdefault(to if per is None else _path(folder, model), []).append((model, kept))
    return files


def _path(folder: ModelFolder, model: Securable) -> Path:
    if isinstance(model, Table):
        return folder.file_of(model.qualified_name)
    assert not isinstance(model, AbacPolicy)  # no source has policies
    return folder.file_of_schema(model.schema_name)


def _with_file(
    model: Securable, kept: Securable, path: Path, settings: Settings, texts: dict[Path, str]
) -> Securable:
    """Return a view with its query in a file next to the models', whose text is noted; any other model as it is."""
    if not isinstance(model, View) or not isinstance(kept, View):
        return kept
    name = query_file_of(model)
    texts[path.parent / name] = written(query_text(kept, settings.variables))
    return replace(kept, query_file=name)

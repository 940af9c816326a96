"""Writes the models of sources to new files: all of them, or none if a file is there already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from delta_engine.actions.policy import matches_any
from delta_engine.aspects import SCHEMA_FACETS
from delta_engine.config.model_writer import python_models, yaml_models
from delta_engine.config.settings import Settings
from delta_engine.errors import RefusedError
from delta_engine.models import (
    Schema,
    Securable,
    Table,
    View,
    by_resource,
    labelled,
    resource_key,
)
from delta_engine.orchestrate.import_folder import ModelFolder, Per, create_files, file_texts, query_file_of
from delta_engine.orchestrate.importing import as_written
from delta_engine.tools.importers.catalog import Catalog
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
    source: Catalog,
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
    names = {labelled(model.qualified_name) for model in models}
    own = [refusal for refusal in violations if (refusal.table or refusal.securable) in names]
    refused = {refusal.table or refusal.securable for refusal in own}
    taken = {
        resource_key(model.qualified_name): (model, kept)
        for model, kept in new
        if labelled(model.qualified_name) not in refused
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
    write = python_models if is_python else yaml_models
    return written(write([kept for _, kept in importable.models.values()], settings.variables))


def write_models(
    importable: Importable, settings: Settings, conf_dir: Path, to: Path, per: Per | None, *, is_python: bool
) -> list[Path]:
    """Write models to new files, all of them or none, and return the files of models. Errors as for `create_files`."""
    models = [model for model, _ in importable.models.values()]
    folder = ModelFolder(path=to, per=per or Per.SCHEMA, settings=settings, conf_dir=conf_dir)
    files = {to: models} if per is None else folder.files_of(models)
    texts: dict[Path, str] = {}
    for path, models_of_file in files.items():
        kept = [_kept(model, importable) for model in models_of_file]
        write = python_models if is_python else yaml_models
        texts |= file_texts(kept, path, settings.variables, conf_dir, write=write, finish=written)
    create_files(texts)
    return [*files]


def _kept(model: Securable, importable: Importable) -> Securable:
    """Return what files say of a model; the file of a query has the name that its view has in this environment."""
    _, kept = importable.models[resource_key(model.qualified_name)]
    if isinstance(model, View) and isinstance(kept, View):
        return replace(kept, query_file=query_file_of(model))
    return kept

"""Imports into a folder, with a file per table or per schema.

Every file is written whole or not at all, as soon as its models are known. Tables that the project or a file of the
folder declares already are skipped: so a killed import continues where it stopped, and files are never overwritten.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Final

from delta_engine.config.conf_folder import environments
from delta_engine.config.editor_files import editor_files, schema_line
from delta_engine.config.loading import Declared, load_present
from delta_engine.config.model_writer import query_text, yaml_models
from delta_engine.config.settings import Settings
from delta_engine.config.whole_files import (
    StagedFiles,
    create_atomically,
    remove_unfinished_files,
    sync_folder,
)
from delta_engine.config.yaml_documents import MAX_BYTES
from delta_engine.deployment.local_files import only_writer
from delta_engine.errors import InvalidCommandError, RefusedError
from delta_engine.models import (
    AbacPolicy,
    QualifiedName,
    Securable,
    Table,
    View,
    by_resource,
    of_kind,
    resource_key,
)
from delta_engine.models.constraints import referenced_tables
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.importing import (
    Imported,
    Scope,
    Targets,
    as_written,
    find_targets,
    read_models,
)
from delta_engine.sql.view_queries import read_relations
from delta_engine.telemetry.visible import counted

_BATCH: Final = 1_000
"""The most tables of several schemas that one snapshot reads; a killed import reads these again."""

_LONGEST_STEM: Final = 150
"""Bytes of a file's name: file systems allow 255."""

_MOST_NAMED: Final = 3


class Per(Enum):
    """What a file holds."""

    TABLE = "table"
    SCHEMA = "schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFolder:
    """Where an import writes.

    Args:
        conf_dir: the configuration folder, whose JSON schemas the files name; None without a project.
    """

    path: Path
    per: Per
    settings: Settings
    conf_dir: Path | None

    def file_of(self, name: QualifiedName) -> Path:
        """Return the file of a table."""
        if self.per is Per.SCHEMA:
            return self.file_of_schema(name.schema)
        return self.path / _stem(name.schema) / f"{_stem(name.table)}.yml"

    def file_of_schema(self, schema: str) -> Path:
        """Return the file of a schema: of its tables, or next to the folder of their files."""
        return self.path / f"{_stem(schema)}.yml"

    def files_of(self, models: Sequence[Securable]) -> Mapping[Path, Sequence[Securable]]:
        """Return models by their files, in the order of the files."""
        tables, others = of_kind(Table, models), [model for model in models if not isinstance(model, Table)]
        by_path: dict[Path, list[Securable]] = defaultdict(list)
        for model in (*tables, *others) if self.per is Per.SCHEMA else (*others, *tables):
            if isinstance(model, Table):
                by_path[self.file_of(model.qualified_name)].append(model)
            else:
                by_path[self.file_of_schema(_schema_of(model))].append(model)
        return by_path


@dataclass(slots=True, kw_only=True)
class FolderReport:
    """What an import wrote: models of tables and of others; `declared` counts resources that were declared already."""

    files: list[Path] = field(default_factory=list)
    tables: int = 0
    others: int = 0
    declared: int = 0
    refusals: list[RefusedError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether no table was written, and none had been before."""
        return not (self.models or self.declared)

    @property
    def models(self) -> int:
        """The number of written models."""
        return self.tables + self.others


def import_to_folder(
    backend: Backend,
    target: str,
    scope: Scope,
    folder: ModelFolder,
    progress: Callable[[str], None] = lambda _text: None,
) -> FolderReport:
    """Write the models of what a target names, and return what was done.

    Args:
        progress: gets a line for each step.

    Raises:
        ConfigError: the target names nothing, or another import writes to the folder.
        RefusalGroup, RefusedError: the project's models cannot be loaded.
    """
    targets = find_targets(backend, target, scope)
    files = {folder.file_of(name) for name in targets.names}
    files |= {folder.file_of_schema(schema) for schema in _schemas(targets)}
    present = load_present(folder.settings, [path.absolute() for path in files if path.is_file()])
    written = Declared(models=present, is_whole=False)
    declared = {table.key: table for table in written.tables}
    present_keys = by_resource(present)
    names = [name for name in targets.names if name.key not in declared]
    others = [other for other in targets.models if resource_key(other.qualified_name) not in present_keys]
    report = FolderReport(
        declared=len(targets.names) + len(targets.models) - len(names) - len(others),
        refusals=[*targets.refusals],
        notes=[*targets.notes],
    )
    folder.path.mkdir(parents=True, exist_ok=True)
    with only_writer(folder.path):
        names = [*_free(names, folder, report)]
        writer = _Writer(folder, report, present_keys)
        writer.awaited = {name.key for name in names}
        done = 0
        for batch in _batches(names):
            progress(f"reading {done + 1:,} to {done + len(batch):,} of {counted(len(names), 'table')} …")
            schemas = {name.schema for name in batch}
            own = tuple(other for other in others if _schema_of(other) in schemas)
            others = [other for other in others if other not in own]
            part = replace(targets, names=batch, models=own, refusals=(), notes=())
            writer.add(batch, read_models(backend, part, scope.owns))
            done += len(batch)
            progress(f"written: {counted(report.tables, 'table')} of {len(names):,} in {folder.path}")
        if others:
            rest = replace(targets, names=(), models=tuple(others), refusals=(), notes=())
            writer.add((), read_models(backend, rest, scope.owns))
        writer.finish()
    return report


def write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet, with its folder: whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    create_atomically(path, text.encode())
    sync_folder(path.parent)


def file_texts(
    models: Iterable[Securable],
    path: Path,
    variables: Mapping[str, str],
    conf_dir: Path | None,
    *,
    write: Callable[[Sequence[Securable], Mapping[str, str]], str] = yaml_models,
    finish: Callable[[str], str] = str,
) -> dict[Path, str]:
    """Return the texts of the query files that are not there yet, and of a model file, which names them.

    Args:
        conf_dir: as for a `ModelFolder`.
        finish: changes each text.

    Raises:
        InvalidCommandError: the file of a query exists with another content, two views would have it, or the model
            file would be too large.
    """
    named = [
        replace(model, query_file=model.query_file or query_file_of(model))
        if isinstance(model, View)
        else model
        for model in models
    ]
    queries: dict[Path, View] = {}
    texts: dict[Path, str] = {}
    for view in of_kind(View, named):
        file, text = path.parent / str(view.query_file), finish(query_text(view, variables))
        if texts.setdefault(file, text) != text:
            raise InvalidCommandError(
                f"{file} would have the query of {queries[file].qualified_name}, and that of {view.qualified_name}",
                way_out="Import their catalogs one at a time, into folders of their own.",
            )
        queries[file] = view
    new = {file: text for file, text in texts.items() if not _is_written(file, text, queries[file])}
    is_yaml = write is yaml_models
    first = f"{schema_line(path, conf_dir)}\n" if conf_dir and is_yaml else ""
    text = f"{first}{finish(write(named, variables))}"
    if is_yaml and len(text.encode()) > MAX_BYTES:
        raise InvalidCommandError(
            f"{path} would be larger than {MAX_BYTES >> 20} MiB, the limit of a model file in YAML",
            way_out="Import it in parts: add --per table, name one schema or table, or leave some out with --exclude.",
        )
    return {**new, path: text}


def create_files(texts: Mapping[Path, str]) -> None:
    """Write new files: all of them, or none.

    Raises:
        InvalidCommandError: one of them is there already.
        OSError: one of them cannot be written.
    """
    for path in filter(os.path.lexists, texts):
        raise InvalidCommandError(
            f"{path} exists, and importing never overwrites files",
            way_out="Name another place with --to, or move the file away.",
        )
    with StagedFiles() as staged:
        for path, text in texts.items():
            staged.add(path, text.encode(), replaces=False)
        staged.publish()


def query_file_of(view: View) -> str:
    """Return the file of a view's query, from the folder of its model file."""
    return f"views/{_stem(view.schema_name)}.{_stem(view.view_name)}.sql"


def _is_written(file: Path, query: str, view: View) -> bool:
    """Whether the file of a query is there with its text."""
    if not os.path.lexists(file):
        return False
    if not file.is_file() or file.read_bytes() != query.encode():
        raise InvalidCommandError(
            f"{file} exists, with another query than {view.qualified_name}",
            way_out="Importing never overwrites files: move it away.",
        )
    return True


def write_editor_files(conf_dir: Path, notify: Callable[[str], None]) -> None:
    """Write what a project lacks of the files for editors; files that are there stay as they are."""
    project_dir = conf_dir.absolute().parent
    for name, text in editor_files(conf_dir.name, environments(conf_dir)).items():
        if not (project_dir / name).exists():
            write_new(project_dir / name, text)
            notify(f"{name} written: editors check YAML with it")


class _Writer:
    """Writes each file once the tables are known that its foreign keys reference, and that its views read.

    Args:
        present: the models that are declared, by the keys of their resources.

    Attributes:
        awaited: the keys of the tables that were not read yet.
    """

    def __init__(self, folder: ModelFolder, report: FolderReport, present: Mapping[str, Securable]) -> None:
        self._folder = folder
        self._report = report
        self._present = present
        self._relations: dict[str, Table | View] = {}
        self._note(present.values())
        self._waiting: dict[Path, Sequence[Securable]] = {}
        self._folders: set[Path] = set()
        self._unsynced: set[Path] = set()
        self.awaited: set[str] = set()

    def add(self, names: Iterable[QualifiedName], imported: Imported) -> None:
        """Take the models that were read for these names, and write what is complete."""
        self._report.refusals += imported.refusals
        self._report.notes += imported.notes
        self.awaited -= {name.key for name in names}
        self._note(imported.models)
        undeclared = [
            model for model in imported.models if resource_key(model.qualified_name) not in self._present
        ]
        self._waiting |= self._folder.files_of(undeclared)
        ready = [path for path, models in self._waiting.items() if self._is_ready(models)]
        for path in ready:
            self._write(path, self._waiting.pop(path))
        while self._unsynced:
            sync_folder(self._unsynced.pop())

    def _note(self, models: Iterable[Securable]) -> None:
        self._relations |= {model.key: model for model in models if isinstance(model, Table | View)}

    def finish(self) -> None:
        """Verify that no model is left unwritten."""
        assert not self._waiting, self._waiting

    def _is_ready(self, models: Sequence[Securable]) -> bool:
        parents = {name.key for table in of_kind(Table, models) for name in referenced_tables(table)}
        views = of_kind(View, models)
        read = {name.key for view in views for name in read_relations(view.query) or ()}
        return self.awaited.isdisjoint(parents | read)

    def _write(self, path: Path, models: Sequence[Securable]) -> None:
        written = [as_written(model, self._relations) for model in models]
        try:
            texts = file_texts(written, path, self._folder.settings.variables, self._folder.conf_dir)
        except InvalidCommandError as refusal:
            self._report.refusals.append(refusal)
            return
        try:
            for file, text in texts.items():
                self._enter(file.parent)
                create_atomically(file, text.encode())
        except FileExistsError:
            self._report.refusals.append(_occupied(path, [str(model.qualified_name) for model in models]))
            return
        self._report.files.append(path)
        tables = len(of_kind(Table, models))
        self._report.tables += tables
        self._report.others += sum(model.qualified_name.is_selectable for model in models) - tables

    def _enter(self, folder: Path) -> None:
        self._unsynced.add(folder)
        if folder not in self._folders:
            folder.mkdir(parents=True, exist_ok=True)
            remove_unfinished_files(folder)
            self._folders.add(folder)


def _schema_of(model: Securable) -> str:
    return model.scope.parts[1] if isinstance(model, AbacPolicy) else model.schema_name


def _schemas(targets: Targets) -> set[str]:
    return {name.schema for name in targets.names} | {*map(_schema_of, targets.models)}


def _free(
    names: Iterable[QualifiedName], folder: ModelFolder, report: FolderReport
) -> Iterator[QualifiedName]:
    """Yield the tables whose file is not there; report each file that is, and does not declare its tables."""
    for path, group in groupby(names, key=folder.file_of):
        if os.path.lexists(path):
            report.refusals.append(_occupied(path, [str(name) for name in group]))
        else:
            yield from group


def _occupied(path: Path, names: Sequence[str]) -> InvalidCommandError:
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return InvalidCommandError(
        f"{path} exists, and does not declare {', '.join(names[:_MOST_NAMED])}{more}",
        way_out="Importing never overwrites models: move the file away, or declare them in it.",
    )


def _batches(names: Sequence[QualifiedName]) -> Iterator[tuple[QualifiedName, ...]]:
    """Yield tables together, a schema never divided."""
    batch: list[QualifiedName] = []
    for _, group in groupby(names, key=lambda name: name.schema):
        schema = [*group]
        if batch and len(batch) + len(schema) > _BATCH:
            yield tuple(batch)
            batch = []
        batch += schema
    if batch:
        yield tuple(batch)


def _stem(name: str) -> str:
    """Return a name as that of a file: unusual characters are spelled `%2E`, and long names end with a hash."""
    safe = re.sub(r"[^\w-]", lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), name)
    data = safe.encode()
    if len(data) <= _LONGEST_STEM:
        return safe
    return f"{data[:_LONGEST_STEM].decode(errors='ignore')}-{sha256(name.encode()).hexdigest()[:12]}"

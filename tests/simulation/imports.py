"""The `import` command in stories: it writes what the catalog shows into a folder, a file per table or per schema.

A killed import leaves whole files, and the next one of the same actor continues in its folder.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import DATABRICKS
from delta_engine.cli.terminal import ExitCode
from delta_engine.config.loading import load_present
from delta_engine.config.settings import Settings
from delta_engine.config.whole_files import move_without_replacing
from delta_engine.errors import DeltaEngineError, RefusedError, raise_all
from delta_engine.models import Securable, Table, ViewName, of_kind
from delta_engine.models.open_struct import checksum_of
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.import_folder import ModelFolder, Per, import_to_folder
from delta_engine.orchestrate.importing import scope_of
from delta_engine.state.catalog_reader import Listing
from delta_engine.state.states import CatalogState, TableState
from delta_engine.state.table_queries import TableQueries
from tests.cases.ownership_ledger import parts_of
from tests.simulation.ports import READ_ERRORS, SimulatedCatalog
from tests.simulation.processes import PortErrors, Process
from tests.simulation.scenarios import FUNCTION

if TYPE_CHECKING:
    from tests.simulation.world import World

_SCHEMA: Final = "dev.silver"
_EVERY_FOURTH: Final = 4
_LEFT_BY_KILL: Final = ".delta-engine-killed.tmp"


class Imports:
    """The folders of a story's imports: an actor begins a new one after an import that ended well."""

    def __init__(self, root: Path, seed: int) -> None:
        self._root = root
        self._per = Per.TABLE if seed % _EVERY_FOURTH else Per.SCHEMA
        self._finished: Counter[str] = Counter()
        self._open: dict[Path, Process] = {}

    def run(self, process: Process, settings: Settings) -> tuple[ExitCode, str]:
        """Import the tables of a team, as the command does."""
        settings = replace(settings, yaml_models=(), python_models=(), owns=_owned_by(process))
        path = self._root / f"{process.actor} {self._finished[process.actor]}"
        process.imported = folder = ImportedFolder(path, settings)
        self._open[path] = process
        target = ModelFolder(path=path, per=self._per, settings=settings, conf_dir=self._root / "conf")
        try:
            report = import_to_folder(_backend(process, folder), _SCHEMA, scope_of(settings, ()), target)
        except OSError:
            return ExitCode.FAILED, "failed, OSError"
        finally:
            del self._open[path]
        if report.is_empty:
            raise_all(report.refusals)
        process.tell(f"has written {report.models} models, and found {report.declared}")
        if report.refusals:
            return ExitCode.PARTIAL, "in part"
        self._finished[process.actor] += 1
        return ExitCode.DONE, "done"

    def move(self, temporary: Path, path: Path) -> None:
        """Give a file its name, which may meet a fault. A kill leaves the temporary file."""
        process = next(process for folder, process in self._open.items() if path.is_relative_to(folder))
        data = temporary.read_bytes()
        try:
            process.call(
                f"writes {path.name} ({checksum_of(data)[-8:]})",
                lambda: move_without_replacing(temporary, path),
                _FILE_ERRORS,
            )
        finally:
            if process.is_killed:
                path.with_name(_LEFT_BY_KILL).write_bytes(data[:10])


class ImportedFolder:
    """What an import has written, and what the catalog showed to it.

    Attributes:
        shown: the tables that it saw, by key.
    """

    def __init__(self, path: Path, settings: Settings) -> None:
        self.shown: dict[str, TableState] = {}
        self._path = path
        self._settings = settings
        self._before = _contents(path)

    def fault(self, code: ExitCode | None) -> str | None:
        """Return what is wrong with the folder after the import, None if nothing is."""
        text = next(self._faults(code), None)
        return text and text.replace(f"{self._path}{os.sep}", "")

    def _faults(self, code: ExitCode | None) -> Iterator[str]:
        now = _contents(self._path)
        new = [path for path in now if path not in self._before]
        yield from (f"changes {path.name}" for path, data in self._before.items() if now.get(path) != data)
        for path in new if code is not None else ():
            left = [*path.parent.glob(".delta-engine-*")]
            yield from (f"leaves {file.name} next to {path.name}" for file in left)
        try:
            models = of_kind(Table, load_present(self._settings, new))
        except DeltaEngineError as error:
            yield f"writes what cannot be loaded: {error}"
            return
        yield from (fault for model in models for fault in self._faults_of(model))
        missing = self.shown.keys() - {model.key for model in models}
        if code is ExitCode.DONE and missing:
            yield f"leaves out {min(missing)}"

    def _faults_of(self, model: Table) -> Iterator[str]:
        """Yield how a model differs from its table; it leaves out what platforms set, owners and grants."""
        if model.key not in self.shown:
            yield f"writes {model.key}, which the catalog did not show"
            return
        parts, shown = _imported_parts(model), _imported_parts(self.shown[model.key])
        for part in sorted(parts.keys() | shown.keys()):
            if parts.get(part) != shown.get(part):
                yield f"writes {part} of {model.key} as {parts.get(part)!r}, and it was {shown.get(part)!r}"


class _Lister(SimulatedCatalog):
    """Also lists what schemas hold, and notes the tables that it shows."""

    def __init__(self, process: Process, folder: ImportedFolder) -> None:
        super().__init__(process)
        self._world: World = process.world
        self._folder = folder

    def snapshot(self, models: Sequence[Securable]) -> CatalogState:
        state = super().snapshot(models)
        self._folder.shown |= {key: table for key, table in state.tables.items() if table.exists}
        return state

    def relations_in(self, catalog: str, schemas: Collection[str] | None = None) -> Listing:
        def effect() -> Listing:
            world = self._world
            lags = [lag.seconds for lag in world.lags if lag.view == "tables"]
            tables = world.past.at(world.stage.now - max(lags)) if lags else world.catalog.tables
            names = sorted((stored.name for stored in tables.values()), key=lambda name: name.key)
            return Listing(tables=tuple(names), schemas=tuple(sorted(schemas or ())))

        return self._process.call("lists the tables", effect, READ_ERRORS)

    def governed_in(
        self, catalog: str, schemas: Collection[str], views: Sequence[ViewName] = ()
    ) -> tuple[CatalogState, tuple[RefusedError, ...]]:
        def effect() -> tuple[CatalogState, tuple[RefusedError, ...]]:
            return CatalogState(tables={}, functions=dict(self._world.catalog.functions)), ()

        return self._process.call("lists the functions", effect, READ_ERRORS)


def _backend(process: Process, folder: ImportedFolder) -> Backend:
    catalog, addressing = _Lister(process, folder), CatalogAddressing()
    queries = TableQueries(catalog, addressing, parallelism=1)
    return Backend(
        runner=catalog,
        reader=catalog,
        lister=catalog,
        addressing=addressing,
        capabilities=DATABRICKS,
        versions=queries,
        history=queries,
        row_counter=queries,
    )


def _owned_by(process: Process) -> tuple[str, ...]:
    """Return the globs of a team's tables, which may be renamed, and of its function."""
    return (
        *(f"{name}*" for name in process.team.facets),
        *([f"{FUNCTION}*"] if process.team.function else []),
    )


def _contents(folder: Path) -> Mapping[Path, bytes]:
    """Return the files of a folder, in order; those that a kill left have other names."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("[!.]*.yml"))}


def _imported_parts(table: Table | TableState) -> dict[str, str]:
    """Return the parts that an import writes; a foreign key may leave out the columns of a primary key."""
    return {
        part: value.partition(" → ")[0] if part.startswith("foreign key ") else value
        for part, value in parts_of(table).items()
        if not part.startswith(("property delta.", "owner", "grant "))
    }


def _no_space() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


_FILE_ERRORS: Final = PortErrors(
    refused=_no_space, throttled=_no_space, unavailable=_no_space, lost=_no_space, conflict=_no_space
)

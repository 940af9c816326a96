"""Loads the models that a configuration names: YAML files and Python attributes.

For a command about some tables, a file is parsed only if it may declare one of them, or one that their keys reference.
"""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from delta_engine.actions.policy import matches_any
from delta_engine.aspects import KINDS
from delta_engine.config.body_files import file_text, read_body, refuse_two_texts
from delta_engine.config.declared_names import with_variables
from delta_engine.config.file_patterns import matching_files
from delta_engine.config.model_files import models_in
from delta_engine.config.model_text import LISTS
from delta_engine.config.variables import fill_in
from delta_engine.config.yaml_documents import parse_document, read_text
from delta_engine.errors import ConfigError, RefusedError, SourceLocation, raise_all
from delta_engine.models import Securable, Table
from delta_engine.models.constraints import referenced_tables
from delta_engine.models.open_struct import checksum_of
from delta_engine.telemetry.garbage import no_garbage_collection

if TYPE_CHECKING:
    from delta_engine.config.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Declared:
    """Loaded models, in the order of the configuration.

    Args:
        is_whole: whether no file was left out.
        contents: the checksums of the YAML files, and of the files of bodies and queries, as they were read.
        bodies: the files of bodies and queries.
    """

    models: tuple[Securable, ...]
    is_whole: bool
    contents: Mapping[Path, str] = field(default_factory=dict)
    bodies: frozenset[Path] = frozenset()

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The tables."""
        return tuple(model for model in self.models if isinstance(model, Table))


@no_garbage_collection()
def load_declared(settings: Settings, globs: Sequence[str] = ()) -> Declared:
    """Return the models, variables filled in; several refusals form a RefusalGroup.

    Args:
        globs: the tables that the caller needs; all by default. Of the others, some may be missing.
    """
    refusals: list[RefusedError] = []
    contents: dict[Path, str] = {}

    def loaded(read_models: Iterator[Securable | RefusedError]) -> list[Securable]:
        models = list(_collected(read_models, refusals))
        return list(_collected(_filled_in(models, settings, contents), refusals))

    python = [model for name in settings.python_models for model in loaded(_python_models(name, settings))]
    files = model_files(settings)
    by_file = _needed(
        files, python, globs, settings, lambda path: loaded(_yaml_models(path, settings, contents))
    )
    raise_all(refusals)
    models = (*python, *(model for path in files for model in by_file.get(path, ())))
    declared = Declared(
        models=models,
        is_whole=len(by_file) == len({*files}),
        contents=contents,
        bodies=frozenset(contents.keys() - by_file.keys()),
    )
    selectable = [model for model in declared.models if model.qualified_name.is_selectable]
    if not declared.is_whole and not all(any(map(_matches(pattern), selectable)) for pattern in globs):
        return load_declared(settings)  # the refusal of an unknown name suggests similar ones
    if not selectable:
        shown = _shown(files[0], settings.project_dir) if files else ""
        raise ConfigError(
            "the model files declare no tables" if files else "the configuration names no models",
            location=settings.locate(("models",)),
            way_out=f"Declare a table in {shown}."
            if files
            else "List model files under models.yaml or models.python.",
        )
    return declared


def load_present(settings: Settings, files: Iterable[Path]) -> tuple[Securable, ...]:
    """Return the models of a configuration and of further YAML files; unlike `load_declared`, also none at all.

    Several refusals form a RefusalGroup.
    """
    patterns = (matching_files(settings.project_dir, pattern) for pattern in settings.yaml_models)
    paths = sorted({*files, *(path for matching in patterns for path in matching)})
    sources = [
        *(_python_models(name, settings) for name in settings.python_models),
        *(_yaml_models(path, settings, {}) for path in paths),
    ]
    return _models_of(sources, settings)


def given_models(models: Sequence[Securable], settings: Settings) -> Declared:
    """Return models that Python code gives, with variables and defaults filled in, as `load_declared` does."""
    return Declared(models=_models_of([models], settings), is_whole=True)


def read_contents(settings: Settings, bodies: Iterable[Path]) -> Mapping[Path, str]:
    """Return the checksums of a configuration's YAML files and of bodies' files, unparsed.

    Raises:
        ConfigError, OSError: one is missing or unreadable.
    """
    texts = {path: read_text(path, str(path)) for path in model_files(settings)}
    texts |= {path: read_body(path) for path in bodies}
    return {path: checksum_of(text.encode()) for path, text in texts.items()}


def model_files(settings: Settings) -> list[Path]:
    """Return the YAML files that a configuration names; ConfigError if a pattern matches none."""
    return [path for pattern in settings.yaml_models for path in _files(pattern, settings)]


def models_of_text(text: str, file: str, settings: Settings) -> tuple[Securable, ...]:
    """Return the models of a YAML text, variables filled in; several refusals form a RefusalGroup."""
    return _models_of([models_in(parse_document(text, file))], settings)


_OTHER_LISTS: Final = [key for key, kind in LISTS.items() if kind.model is not Table]
_WORDS = re.compile(r"[0-9a-z_-]+").findall
_CHOICES = re.compile(r"\[[^\]]*\]")


def _matches(pattern: str) -> Callable[[Securable], bool]:
    return lambda model: matches_any(model.qualified_name, [pattern])


def _needed(
    files: Sequence[Path],
    python: Iterable[Securable],
    globs: Sequence[str],
    settings: Settings,
    load: Callable[[Path], list[Securable]],
) -> dict[Path, list[Securable]]:
    """Load the files that may declare tables that match, or tables that loaded ones reference; all without globs."""
    if not globs:
        return {path: load(path) for path in files}
    texts = {path: _searchable(path, settings.variables) for path in files}
    by_file: dict[Path, list[Securable]] = {}
    tables = [model for model in python if isinstance(model, Table)]
    needed = [*globs, *_missing_references(tables)]
    while chosen := [path for path in texts if path not in by_file and _may_declare(texts[path], needed)]:
        by_file |= {path: load(path) for path in chosen}
        tables += [model for path in chosen for model in by_file[path] if isinstance(model, Table)]
        needed = _missing_references(tables)
    return by_file


def _missing_references(tables: Iterable[Table]) -> list[str]:
    declared = {table.key for table in tables}
    return sorted({name.key for table in tables for name in referenced_tables(table)} - declared)


def _searchable(path: Path, variables: Mapping[str, str]) -> str | None:
    """Return the text of a file in lower case, with variables; None if names may have escapes or other variables."""
    try:
        text = read_text(path, str(path))
    except ConfigError:
        return None  # parsing it says why
    if "${" in text:
        text = with_variables(text, variables)
    return None if "\\" in text or "${" in text else text.lower()


def _may_declare(text: str | None, names: Iterable[str]) -> bool:
    """Whether a file may declare a table with one of the names, which may be globs, or models of other kinds."""
    if text is None or any(f"{key}:" in text for key in _OTHER_LISTS):
        return True
    return any(all(word in text for word in _WORDS(_CHOICES.sub(" ", name.lower()))) for name in names)


def _models_of(
    sources: Iterable[Iterable[Securable | RefusedError]], settings: Settings
) -> tuple[Securable, ...]:
    """Return the models of all sources, variables filled in; several refusals form a RefusalGroup."""
    refusals: list[RefusedError] = []
    models = [model for source in sources for model in _collected(source, refusals)]
    filled = tuple(_collected(_filled_in(models, settings, {}), refusals))
    raise_all(refusals)
    return filled


def _collected(
    models: Iterable[Securable | RefusedError], refusals: list[RefusedError]
) -> Iterator[Securable]:
    """Yield the models; append refusals, yielded or raised, to the list."""
    try:
        for model_or_refusal in models:
            if isinstance(model_or_refusal, RefusedError):
                refusals.append(model_or_refusal)
            else:
                yield model_or_refusal
    except RefusedError as refusal:
        refusals += refusal.refusals


def _filled_in(
    models: Sequence[Securable], settings: Settings, contents: dict[Path, str]
) -> Iterator[Securable | RefusedError]:
    defaults = settings.default_table_properties
    for declared in models:
        try:
            model = fill_in(declared, settings.variables)
            if defaults and isinstance(model, Table):
                model = replace(model, default_table_properties=defaults)
            yield _with_text(model, declared, settings, contents)
        except RefusedError as refusal:
            yield refusal


def _with_text(
    model: Securable, declared: Securable, settings: Settings, contents: dict[Path, str]
) -> Securable:
    """Return a model with the text of its file, whose names may hold variables too."""
    read = file_text(model, settings.project_dir)
    if read is None:
        return model
    contents[read.path] = checksum_of(read.text.encode())
    changed: Any = {read.key: read.text}
    whole = fill_in(replace(declared, **changed), settings.variables)
    refuse_two_texts(model, whole)
    return whole


def _files(pattern: str, settings: Settings) -> list[Path]:
    location = settings.locate(("models", "yaml", settings.yaml_models.index(pattern)))
    try:
        files = matching_files(settings.project_dir, pattern)
    except OSError as error:
        raise ConfigError(
            f"{error.filename} cannot be read: {error.strerror}",
            location=location,
            way_out=f"Give this user the right to read it, or change the pattern {pattern!r}.",
        ) from None
    if not files:
        raise ConfigError(
            f"no model file matches {pattern!r}",
            location=location,
            way_out=f"The pattern is relative to {settings.project_dir}.",
        )
    return files


def _yaml_models(
    path: Path, settings: Settings, contents: dict[Path, str]
) -> Iterator[Securable | RefusedError]:
    file = _shown(path, settings.project_dir)
    text = read_text(path, file)
    contents[path] = checksum_of(text.encode())
    yield from models_in(parse_document(text, file))


_MODELS: Final = {kind.model: kind.model.__name__ for kind in KINDS}


def _python_models(reference: str, settings: Settings) -> Iterator[Securable | RefusedError]:
    location = settings.locate(("models", "python", settings.python_models.index(reference)))
    models = load_reference(
        reference,
        lambda declared: declared(settings.variables) if callable(declared) else declared,
        what="models",
        project_dir=settings.project_dir,
        named_at=location,
    )
    declared: Iterable[Any] = models if isinstance(models, Iterable) else [models]
    for model in declared:
        if type(model) not in _MODELS:
            raise ConfigError(
                f"{reference!r} returns a value of type {type(model).__name__}",
                location=location,
                way_out=f"Return models: {', '.join(_MODELS.values())}.",
            )
        yield _with_shown_places(model, settings.project_dir)


def _with_shown_places(model: Securable, project_dir: Path) -> Securable:
    """Return a model of Python whose places have the names of files in their project."""
    names: dict[str, str] = {}

    def shown(place: SourceLocation | None) -> SourceLocation | None:
        if place is None:
            return None
        if place.file not in names:
            names[place.file] = _shown(Path(place.file), project_dir)
        return SourceLocation(names[place.file], place.line)

    model = replace(model, declared_at=shown(model.declared_at))
    if not isinstance(model, Table):
        return model
    columns = tuple(replace(column, declared_at=shown(column.declared_at)) for column in model.columns)
    return replace(model, columns=columns)


def _shown(path: Path, project_dir: Path) -> str:
    return str(path.relative_to(project_dir)) if path.is_relative_to(project_dir) else str(path)


Result = TypeVar("Result")

_ENGINE = str(Path(__file__).parents[1])


def load_reference(
    reference: str, use: Callable[[object], Result], *, what: str, project_dir: Path, named_at: SourceLocation
) -> Result:
    """Import an object with the project folder importable, and return the result of `use`, which may run user code.

    `what` is the kind of object in messages. A failed import or use raises ConfigError. Refusals pass through.
    """
    module_name, _, attribute = reference.partition(":")
    if not module_name or not attribute:
        raise ConfigError(
            f"{reference!r} does not name an object",
            location=named_at,
            way_out="Write module:attribute, such as models.orders:tables.",
        )
    project = str(project_dir)
    if project not in sys.path:
        sys.path.insert(0, project)
    try:
        with redirect_stdout(sys.stderr):  # results alone go to stdout
            return use(getattr(importlib.import_module(module_name), attribute))
    except RefusedError:
        raise
    except Exception as error:
        raise ConfigError(
            f"loading the {what} {reference!r} failed: {type(error).__name__}: {error}",
            location=_origin(error) or named_at,
        ) from error


def forget_modules(project_dir: Path) -> None:
    """Forget the modules of a project's own code: other projects may have modules of the same names."""
    for name, module in [*sys.modules.items()]:
        top, file = name.partition(".")[0], getattr(module, "__file__", None)
        if file and Path(file).is_relative_to(project_dir):
            first = Path(file).relative_to(project_dir).parts[0]
            if first in (top, f"{top}.py"):
                del sys.modules[name]
    sys.path[:] = [path for path in sys.path if path != str(project_dir)]
    importlib.invalidate_caches()


def _origin(error: Exception) -> SourceLocation | None:
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_ENGINE) and "importlib" not in frame.filename
    ]
    return SourceLocation(frames[-1].filename, frames[-1].lineno) if frames else None

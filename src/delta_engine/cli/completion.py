"""What a shell completes: environments, tables, recorded resources, versions, runs and topics.

A shell waits for each completion, so functions import what they need, and read local files only. They write nothing,
and offer nothing where a project is broken or absent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from delta_engine.cli.terminal import Context
    from delta_engine.config.state_backend import StateBackend
    from delta_engine.deployment.recorded_names import RecordedNames

_PLAIN: Final = re.compile(r"[\w.-]+")
"""A name that no shell takes apart. Others are not offered: each shell quotes in another way."""

_Source = Callable[[typer.Context], Iterable[str]]
_Completer = Callable[[typer.Context, str], list[str]]


def choices_of(metavar: str) -> Callable[[str], list[str]] | None:
    """Return the completion of an option that shows its values, such as `yaml|python`; None for others."""
    values = metavar.split("|")
    if len(values) == 1 or not metavar.islower():
        return None

    def complete(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return complete


def _completer(source: _Source, *, shortens: bool = False) -> _Completer:
    """Return a completion that offers nothing where its source fails.

    Args:
        shortens: whether a name may lack its catalog, or its schema too.
    """

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        import msgspec

        from delta_engine.errors import DeltaEngineError

        try:
            names = sorted({value for value in source(ctx) if _PLAIN.fullmatch(value)})
        except (DeltaEngineError, OSError, ValueError, msgspec.MsgspecError, typer.BadParameter):
            return []
        completions = [name for name in names if name.startswith(incomplete)]
        while shortens and names and not completions:
            names = sorted({name.partition(".")[2] for name in names} - {""})
            completions = [name for name in names if name.startswith(incomplete)]
        return completions

    return complete


def _environments(ctx: typer.Context) -> Iterator[str]:
    from delta_engine.config.conf_folder import environments

    for conf_dir in _context(ctx).conf_dirs():
        yield from environments(conf_dir)


def _tables(ctx: typer.Context) -> Iterator[str]:
    from delta_engine.config.declared_names import declared_names

    for conf_dir, environment in _places(ctx):
        yield from declared_names(conf_dir, environment)


def _resources(ctx: typer.Context) -> Iterator[str]:
    """Yield the names of recorded tables and the keys of recorded schemas; without a document, the declared tables."""
    documents = list(_documents(ctx))
    for document in documents:
        yield from document.names()
    if not documents:
        yield from _tables(ctx)


def _runs(ctx: typer.Context) -> Iterator[str]:
    for document in _documents(ctx):
        yield from document.runs()


def _versions(ctx: typer.Context) -> Iterator[str]:
    from delta_engine.deployment.stores.local import LocalStateStore

    for state, environment in _states(ctx):
        if isinstance(state.place, Path):
            for version in LocalStateStore(state.place, environment).versions.list():
                yield version.version_id


def _topics(_ctx: typer.Context) -> Iterator[str]:
    from delta_engine.cli.troubleshooting import sections

    yield from sections()


complete_environment: Final = _completer(_environments)
complete_table: Final = _completer(_tables, shortens=True)
complete_resource: Final = _completer(_resources)
complete_run: Final = _completer(_runs)
complete_version: Final = _completer(_versions)
complete_topic: Final = _completer(_topics)


def _documents(ctx: typer.Context) -> Iterator[RecordedNames]:
    """Yield the deployment states that local files hold: documents, or copies of remote ones."""
    from delta_engine.deployment.recorded_names import recorded_names
    from delta_engine.deployment.stores.local import LocalStateStore, copy_of_remote

    for state, environment in _states(ctx):
        if isinstance(state.place, Path):
            stored = LocalStateStore(state.place, environment).read()
            data = stored.data if stored else None
        else:
            data = copy_of_remote(state.cache.path, environment) if state.cache else None
        if data is not None:
            yield recorded_names(data)


def _states(ctx: typer.Context) -> Iterator[tuple[StateBackend, str]]:
    from delta_engine.config.declared_names import declared_state_backend

    for conf_dir, environment in _places(ctx):
        yield declared_state_backend(conf_dir, environment), environment


def _places(ctx: typer.Context) -> Iterator[tuple[Path, str]]:
    """Yield the configuration folders with the named environment, or with the only one."""
    from delta_engine.config.conf_folder import environments

    context = _context(ctx)
    for conf_dir in context.conf_dirs():
        named = context.environment or context.default_environment
        candidates = [named] if named else environments(conf_dir)
        if len(candidates) == 1:
            yield conf_dir, candidates[0]


def _context(ctx: typer.Context) -> Context:
    """Return the options that name a project, before the command and behind it."""
    from delta_engine.cli.project_options import root_context, with_options

    root = ctx.find_root()
    context = root_context(root, **{name: root.params.get(name) for name in ("env", "conf_dir", "project")})
    if ctx.obj is None:
        return context
    given = (("env", ctx.obj.environment), ("conf_dir", ctx.obj.conf_dir))
    return with_options(
        context, project=ctx.obj.projects, **{name: (value,) for name, value in given if value is not None}
    )

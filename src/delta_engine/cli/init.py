"""`delta-engine init`: writes the project skeleton that comes with the package."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import typer

from delta_engine.errors import ConfigError

_PACKAGE = Path(__file__).resolve().parents[1]
_SHARED = ("bundle", "notebooks", "resources")
_RENAMED = {"project.gitignore": ".gitignore"}


def init_project(directory: Path) -> None:
    """Write the skeleton into a folder, and say what to do next.

    Raises:
        ConfigError: a file is there already, or the folder cannot be written; nothing is written then.
    """
    parts = dict(_parts())
    existing = [str(directory / name) for name in parts if (directory / name).exists()]
    if existing:
        raise ConfigError(
            f"these files exist already: {', '.join(existing)}",
            way_out="Choose an empty folder: delta-engine init DIR.",
        )
    try:
        for name, source in parts.items():
            target = directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            typer.echo(f"created {target}")
    except OSError as error:
        raise ConfigError(f"the project cannot be written: {error}") from None
    go_there = "" if directory == Path() else f"cd {shlex.quote(str(directory))} && "
    typer.echo(f"next: {go_there}delta-engine -e local plan")


def _parts() -> Iterator[tuple[str, Path]]:
    """Yield the files of the skeleton by their place in the project.

    In a wheel the bundle lies inside the skeleton; in a checkout it is the project's own.
    """
    roots = [_PACKAGE / "skeleton"]
    if not (roots[0] / _SHARED[0]).is_dir():
        roots += [_PACKAGE.parents[1] / name for name in _SHARED]
    for root in roots:
        base = root if root.name == "skeleton" else root.parent
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                name = path.relative_to(base).as_posix()
                yield _RENAMED.get(name, name), path

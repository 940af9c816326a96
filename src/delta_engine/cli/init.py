"""`delta-engine init`: copies the project skeleton that comes with the package."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

import typer

from delta_engine.errors import ConfigError


def init_project(directory: Path) -> None:
    """Write the skeleton into a folder, and say what to do next.

    Raises:
        ConfigError: a file is there already; nothing is written then.
    """
    with as_file(files("delta_engine") / "skeleton") as skeleton:
        sources = sorted(path for path in skeleton.rglob("*") if _is_part(path))
        targets = [(path, directory / path.relative_to(skeleton)) for path in sources]
        existing = [str(target) for _, target in targets if target.exists()]
        if existing:
            raise ConfigError(
                f"these files exist already: {', '.join(existing)}",
                way_out="Choose an empty folder: delta-engine init DIR.",
            )
        for source, target in targets:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            typer.echo(f"created {target}")
    go_there = "" if directory == Path() else f"cd {directory} && "
    typer.echo(f"next: {go_there}delta-engine -e local plan")


def _is_part(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts

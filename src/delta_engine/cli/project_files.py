"""Files that commands write into a project: the skeleton of `init`, and what editors need to check YAML."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import typer

from delta_engine.cli.terminal import print_note
from delta_engine.config.conf_folder import CONF_DIR
from delta_engine.config.editor_files import editor_files
from delta_engine.config.settings import environments
from delta_engine.errors import ConfigError

_PACKAGE = Path(__file__).resolve().parents[1]
_SHARED = ("bundle", "notebooks", "resources")
_RENAMED = {"project.gitignore": ".gitignore"}


def init_project(directory: Path) -> None:
    """Write the skeleton into a folder, and say what to do next.

    Raises:
        ConfigError: a file is there already, or the folder cannot be written; nothing is written then.
    """
    parts = {name: source.read_bytes() for name, source in _parts()}
    environments = [Path(name).stem for name in parts if Path(name).match("conf/*.yml")]
    parts |= {name: text.encode() for name, text in editor_files(CONF_DIR, environments).items()}
    existing = [str(directory / name) for name in parts if (directory / name).exists()]
    if existing:
        raise ConfigError(
            f"these files exist already: {', '.join(existing)}",
            way_out="Choose an empty folder: delta-engine init DIR.",
        )
    try:
        for name, content in parts.items():
            target = directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
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


def write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet, with its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8", newline="\n") as file:
        file.write(text)


def write_editor_files(conf_dir: Path) -> None:
    """Write what a project lacks of the files for editors; files that are there stay as they are."""
    project_dir = conf_dir.absolute().parent
    for name, text in editor_files(conf_dir.name, environments(conf_dir)).items():
        if not (project_dir / name).exists():
            write_new(project_dir / name, text)
            print_note(f"{name} written: editors check YAML with it")

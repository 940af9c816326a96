"""The file of `--sarif`: why a command is refused, for code hosts that show it at the lines of the models."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from delta_engine.cli.many_projects import Work, out_file
from delta_engine.cli.terminal import Context, Ended
from delta_engine.errors import InvalidCommandError, RefusedError

if TYPE_CHECKING:
    from delta_engine.tools.pull_requests.sarif import Result

_START: Final = 200
"""The bytes at the start of a file that name the schema of SARIF."""


def writing_refusals(work: Work, path: Path | None) -> Work:
    """Return a command that writes its refusals too, none if it succeeds. One that fails otherwise writes no file.

    Several projects write one file together, unless its name has the project.

    Args:
        path: of the file, which may be an earlier one of this kind; None writes nothing.
    """
    if path is None:
        return work
    written: dict[Path, list[Result]] = {}

    def run(context: Context) -> Ended:
        file = Path(os.path.realpath(out_file(path, context) or path))  # a link stays one
        if file not in written:
            _refuse_other_file(file)
        try:
            ended = work(context)
        except RefusedError as refused:
            add(file, refused.refusals, context)
            raise
        add(file, (), context)
        return ended

    def add(file: Path, refusals: Sequence[RefusedError], context: Context) -> None:
        from delta_engine.tools.pull_requests.sarif import refused_results

        results = written.setdefault(file, [])
        results += refused_results(refusals, _conf_file(context))
        _write(file, results)

    return run


def _write(file: Path, results: Sequence[Result]) -> None:
    from delta_engine.cli.troubleshooting import sections
    from delta_engine.config.whole_files import write_atomically
    from delta_engine.tools.pull_requests.sarif import sarif

    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, sarif(results, sections()).encode())


def _conf_file(context: Context) -> Path:
    """Return the configuration of the environment, or of another one if the command names none that exists."""
    from delta_engine.config.conf_folder import environments

    (conf_dir,) = context.conf_dirs()
    named = context.environment or context.default_environment
    names = environments(conf_dir)
    return conf_dir / f"{named if named in names else next(iter(names), named)}.yml"


def _refuse_other_file(path: Path) -> None:
    """Refuse what is there, unless it is a SARIF file or empty; a device or a pipe would be replaced."""
    if path.is_file():
        with path.open("rb") as file:
            start = file.read(_START)
        if not start or b"sarif" in start:
            return
    if path.exists():
        way_out = "Name another file with --sarif, or remove this file."
        raise InvalidCommandError(f"{path} exists and is not a SARIF file", way_out=way_out)

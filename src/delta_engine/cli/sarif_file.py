"""The file of `--sarif`: why a command is refused, for code hosts that show it at the lines of the models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from delta_engine.cli.many_projects import Work, out_file
from delta_engine.cli.terminal import Context, Ended
from delta_engine.errors import RefusedError


def writing_refusals(work: Work, path: Path | None) -> Work:
    """Return a command that writes its refusals too, none if it succeeds. One that fails otherwise writes no file.

    Args:
        path: of the file; None writes nothing.
    """
    if path is None:
        return work

    def run(context: Context) -> Ended:
        try:
            ended = work(context)
        except RefusedError as refused:
            _write(refused.refusals, path, context)
            raise
        _write((), path, context)
        return ended

    return run


def _write(refusals: Sequence[RefusedError], path: Path, context: Context) -> None:
    from delta_engine.cli.troubleshooting import sections
    from delta_engine.config.whole_files import write_atomically
    from delta_engine.tools.pull_requests.sarif import refused_results, sarif

    name = f"{context.environment or context.default_environment}.yml"
    conf_file = (context.conf_dir or Path("conf")) / name
    text = sarif(refused_results(refusals), conf_file=conf_file, rules=sections())
    write_atomically(out_file(path, context) or path, text.encode())

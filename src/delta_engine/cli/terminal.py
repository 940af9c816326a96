"""What all commands share: the options of all, progress, notes, questions, errors and exit codes."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

import typer

from delta_engine.errors import (
    DeltaEngineError,
    InvalidCommandError,
    RefusalGroup,
    RefusedError,
)
from delta_engine.telemetry.context import learn
from delta_engine.telemetry.logs import log, logs_json_lines
from delta_engine.telemetry.visible import visible, wrapped

if TYPE_CHECKING:
    from rich.console import Console

    from delta_engine.config.project_folders import ProjectFolder
    from delta_engine.orchestrate.projects import SharedBackends


_LONGEST_LINE = 80
"""The width of messages on a wider terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The options of all commands.

    Args:
        environment: as an option names it, or None.
        default_environment: as `DELTA_ENGINE_ENV` names it, or None.
        conf_dir: the configuration folder as an option names it, or None.
        projects: patterns of the folders of projects.
        project: the one of several projects that a command runs in.
        backends: what the several projects share.
    """

    environment: str | None = None
    default_environment: str | None = None
    conf_dir: Path | None = None
    projects: tuple[str, ...] = ()
    project: str | None = None
    backends: SharedBackends | None = None

    def place(self) -> tuple[Path, str]:
        """Return the configuration folder and the environment, and print the project if it is another folder.

        Raises:
            ConfigError: no environment was named.
        """
        environment = self.require_environment()
        conf_dir = self._project_folder() if self.projects else self._find_conf_dir()
        if self.conf_dir is None and conf_dir.is_absolute():
            print_note(f"the project is {conf_dir.parent}")
        return conf_dir, environment

    def require_environment(self) -> str:
        """Return the environment; messages of this command name it from now on.

        Raises:
            ConfigError: none was named.
        """
        environment = self.environment or self.default_environment
        if environment:
            learn(environment=environment)
            return environment
        from delta_engine.config.conf_folder import environments
        from delta_engine.config.settings import no_configuration_way_out

        conf_dir = self._find_conf_dir()
        names = environments(conf_dir)
        way_out = (
            f"Name an environment with -e ({', '.join(names)}), or set DELTA_ENGINE_ENV."
            if names
            else no_configuration_way_out(conf_dir)
        )
        raise InvalidCommandError("no environment was named", way_out=way_out)

    def folders(self, *, any_environment: bool = False) -> list[ProjectFolder]:
        """Return the projects that `-p` names, by default all below this folder.

        Args:
            any_environment: whether they may lack a configuration of the environment.

        Raises:
            ConfigError: no environment was named, or a pattern matches no project.
        """
        from delta_engine.config.project_folders import EVERYWHERE, find_projects

        environment = None if any_environment else self.require_environment()
        return find_projects(self.projects or EVERYWHERE, environment)

    def conf_dirs(self) -> list[Path]:
        """Return the configuration folders of the projects that `-p` names, by default of the one that this is in.

        Raises:
            ConfigError: a pattern matches no project.
        """
        if not self.projects:
            return [self._find_conf_dir()]
        is_named = self.environment or self.default_environment
        return [folder.conf_dir for folder in self.folders(any_environment=not is_named)]

    def _project_folder(self) -> Path:
        folders = self.folders()
        if len(folders) > 1:
            raise InvalidCommandError(
                f"this command needs exactly one project, but {len(folders)} match: {', '.join(map(str, folders))}",
                way_out="Name one project with -p.",
            )
        learn(project=str(folders[0]))
        return folders[0].conf_dir

    def _find_conf_dir(self) -> Path:
        from delta_engine.config.conf_folder import find_conf_dir

        return find_conf_dir(Path.cwd()) if self.conf_dir is None else self.conf_dir


def stderr_console(*, width: int | None = None) -> Console:
    """Return a console for stderr. A closed stderr ends no run."""
    from rich.console import Console  # most commands print nothing with it, and importing it takes a while

    return Console(file=cast("TextIO", _Stderr()), highlight=False, width=width)


class _Stderr:
    """stderr, as rich uses it. Output to a closed pipe (`2>&1 | head`) or a full disk is lost."""

    def write(self, text: str) -> None:
        with suppress(OSError):
            sys.stderr.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            sys.stderr.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(sys.stderr, name)


@contextmanager
def status(message: str) -> Iterator[None]:
    """Show a message on a terminal while something starts or is read, so that an interrupt changes nothing."""
    console = stderr_console()
    try:
        if not console.is_terminal or logs_json_lines():
            yield
            return
        with console.status(message), printing_above(console):
            yield
    except KeyboardInterrupt:
        raise stopped("nothing was changed") from None


@contextmanager
def stepwise(message: str) -> Iterator[Callable[[str], None]]:
    """Yield what shows the step of a long command: the last one on a terminal, otherwise a line on stderr for each."""
    console = stderr_console()
    if not console.is_terminal or logs_json_lines():
        yield _print_step
        return
    from rich.text import Text

    with printing_above(console), console.status(message) as shown:
        yield lambda text: shown.update(Text(visible(text)))


def _print_step(text: str) -> None:
    if logs_json_lines():
        log(logging.INFO, "step", text=text)
    else:
        say(text, err=True)


_live: list[Console] = []


@contextmanager
def printing_above(console: Console) -> Iterator[None]:
    """Print messages through the console of a live display, which would otherwise leave its last line behind."""
    _live.append(console)
    try:
        yield
    finally:
        _live.remove(console)


def say(text: str, *, err: bool = False) -> None:
    """Print a line, with invisible characters spelled out."""
    typer.echo(visible(text), err=err)


def print_note(note: str) -> None:
    """Print a note on stderr."""
    _print_line("note", note, "bold yellow", logging.WARNING)


def asks(*, yes: bool) -> bool:
    """Whether `confirm` asks: on a terminal, wherever stdout goes, unless `--yes` was given."""
    return not yes and sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str, *, yes: bool) -> None:
    """Ask before anything is changed.

    Raises:
        RefusedError: there is no terminal, and `--yes` was not given.
        typer.Abort: the answer was no, or none (Ctrl-C, Ctrl-D).
    """
    if yes:
        return
    if not asks(yes=yes):
        raise RefusedError(
            f"{question} Without a terminal, the command cannot ask. Nothing was changed",
            way_out="Run the command with --yes to agree in advance.",
        )
    if not _agreed(question):
        say("nothing was changed", err=True)
        raise typer.Abort


def _agreed(question: str) -> bool:
    try:
        with redirect_stdout(sys.stderr):  # input() writes to it
            return typer.confirm(visible(question), err=True)
    except typer.Abort:
        say("", err=True)  # the cursor stands behind the question still
        return False


def stopped(text: str) -> typer.Abort:
    """Print what an interrupted command leaves behind, and return the error that ends it."""
    _print_error("stopped", text)
    return typer.Abort()


USAGE_ERROR: Any = typer.BadParameter.__base__
"""What wrong options raise. Typer carries its own copy of click and exports only this subclass."""


class ExitCode(IntEnum):
    """How a command ended, for scripts."""

    DONE = 0
    FAILED = 1
    PENDING = 2
    REFUSED = 3
    LOCKED = 4
    PARTIAL = 5
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended in a project: its line in the summary of several projects, and its exit code."""

    summary: str
    code: ExitCode = ExitCode.DONE


@contextmanager
def exits() -> Iterator[None]:
    """Report what a command raises, and exit with a code of `ExitCode`."""
    from delta_engine.backends.cancellation import terminated_as_interrupted

    code = ExitCode.DONE
    try:
        with terminated_as_interrupted():
            yield
    except USAGE_ERROR as error:
        _show_usage_error(error)  # not click's own exit code 2, which means pending changes here
        code = ExitCode.REFUSED
    except (typer.Abort, KeyboardInterrupt):
        code = ExitCode.INTERRUPTED
    except DeltaEngineError as error:
        code = report_error(error)
        _print_more(error)
    except BrokenPipeError:  # the reader of a pipe, such as head, has exited
        code = ExitCode.FAILED
    except OSError as error:
        code = report_io_error(error)
    finally:
        _flush_stdout()
    sys.exit(int(code))


def report_error(error: DeltaEngineError) -> ExitCode:
    """Print an error, one message for each cause of refusals, and return its exit code."""
    word, code = ending_of(error)
    for message in _messages(error):
        _print_error(word, message)
    return code


def ending_of(error: DeltaEngineError) -> tuple[str, ExitCode]:
    """Return the word for how an error ends a command, and its exit code."""
    from delta_engine.deployment.errors import LockHeld
    from delta_engine.execute.action_runner import ApplyFailedError, ApplyStoppedError

    match error:
        case RefusedError():
            return "refused", ExitCode.REFUSED
        case ApplyStoppedError():
            return "stopped", ExitCode.INTERRUPTED
        case ApplyFailedError():
            return "failed", ExitCode.PARTIAL if error.is_applied_in_part else ExitCode.FAILED
        case LockHeld():
            return "locked", ExitCode.LOCKED
    return "failed", ExitCode.FAILED


MORE: Final = "delta-engine explain {}"
"""Where the user reads more about an error, by its topic: offline, and with nothing but the wheel."""


def _print_more(error: DeltaEngineError) -> None:
    """Print where to read more about an error; nothing if its message says it all, as those of general topics do."""
    from delta_engine.execute.action_runner import ApplyStoppedError

    if isinstance(error, ApplyStoppedError) and error.is_complete:
        return
    topics = (
        {refusal.topic for refusal in error.refusals} if isinstance(error, RefusalGroup) else {error.topic}
    )
    topic = topics.pop() if len(topics) == 1 else RefusedError.topic
    if topic not in (RefusedError.topic, DeltaEngineError.topic) and not logs_json_lines():
        _print_line("more", MORE.format(topic), "dim", logging.INFO)


def _messages(error: DeltaEngineError) -> Sequence[str]:
    """Return one text for each cause of refusals; logs in JSON have a record for each refusal."""
    from delta_engine.report.refusals import refusal_messages

    if not isinstance(error, RefusalGroup):
        return [str(error)]
    refusals = error.refusals if logs_json_lines() else refusal_messages(error.refusals)
    return [str(refusal) for refusal in refusals]


def report_io_error(error: OSError) -> ExitCode:
    """Print which file cannot be used and why, or that nothing can be printed, and return the exit code."""
    what = f"{error.filename} cannot be used" if error.filename else "input or output failed"
    _print_error("failed", f"{what}: {error.strerror or error}")
    return ExitCode.FAILED


def _print_error(word: str, message: str) -> None:
    _print_line(word, message, "bold red", logging.ERROR)


def _print_line(word: str, text: str, style: str, level: int) -> None:
    if logs_json_lines():
        log(level, word, text=text)
    else:
        start, shown = f"{word}: ", visible(text)
        from rich.text import Text

        console = _live[-1] if _live else stderr_console()
        if console.is_terminal:  # elsewhere, a message is one line, for logs and searches
            shown = wrapped(shown, min(console.width, _LONGEST_LINE), first=len(start))
        console.print(Text.assemble((start, style), shown), soft_wrap=True)


def _show_usage_error(error: Any) -> None:
    """Print what is wrong with the options; one of them is accepted only before the command."""
    error.show()
    if getattr(error, "option_name", None) == "--log-json":
        typer.echo("Write --log-json before the command: delta-engine --log-json … COMMAND", err=True)


def _flush_stdout() -> None:
    """Flush stdout; drop what cannot be printed, so that the interpreter does not fail at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

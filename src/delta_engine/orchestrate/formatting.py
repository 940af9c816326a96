"""Formats model files: finds them, brings their keys into order, and replaces them. Needs no environment."""

from __future__ import annotations

import difflib
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from delta_engine.config.conf_folder import environments
from delta_engine.config.file_patterns import matching_files
from delta_engine.config.loading import model_files
from delta_engine.config.model_format import formatted
from delta_engine.config.settings import load_settings, no_configuration_way_out
from delta_engine.config.whole_files import replace_files
from delta_engine.config.yaml_documents import decoded, read_untouched
from delta_engine.errors import ConfigError, SourceLocation

STDIN: Final = "<stdin>"
"""The name of the standard input in messages."""

_PATTERNS: Final = ("**/*.yml", "**/*.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormattedText:
    """A model file's text before and after."""

    name: str
    before: str
    after: str

    @property
    def is_changed(self) -> bool:
        """Whether the text was not formatted."""
        return self.before != self.after

    def diff(self) -> Iterator[str]:
        """Yield the lines of the unified diff that `git apply` and `patch -p1` take."""
        before, after = (list(io.StringIO(text, newline="\n")) for text in (self.before, self.after))
        for line in difflib.unified_diff(before, after, f"a/{self.name}", f"b/{self.name}"):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def files_of_projects(conf_dirs: Iterable[Path], environment: str | None) -> list[Path]:
    """Return the YAML model files of an environment, or of all, in some projects.

    Raises:
        ConfigError, RefusalGroup: a configuration is invalid, or there is none.
    """
    files: dict[Path, None] = {}
    for conf_dir in conf_dirs:
        names = [environment] if environment else environments(conf_dir)
        if not names:
            raise ConfigError("there are no model files", way_out=no_configuration_way_out(conf_dir))
        for name in names:
            files.update(dict.fromkeys(map(_shown, model_files(load_settings(conf_dir, name)))))
    return [*files]


def named_files(paths: Sequence[Path]) -> list[Path]:
    """Return the files that paths name: themselves, and the YAML files in folders.

    Raises:
        ConfigError: a folder cannot be read.
    """
    try:
        return [file for path in paths for file in (_files_in(path) if path.is_dir() else [path])]
    except OSError as error:
        raise ConfigError(f"{error.filename} cannot be read: {error.strerror}") from None


def format_text(data: bytes) -> FormattedText:
    """Return a formatted text; the errors are those of `formatted`."""
    text = decoded(data, STDIN)
    return FormattedText(name=STDIN, before=text, after=formatted(text, STDIN))


def format_file(path: Path, *, writes: bool) -> FormattedText:
    """Return the formatted text of a file, and replace the file if `writes` is true and the text changed.

    Raises:
        ConfigError, RefusalGroup: the file cannot be read or written, or cannot be formatted safely; it stays as it is.
    """
    name = str(path)
    before = read_untouched(path, name)
    text = FormattedText(name=name, before=before, after=formatted(before, name))
    if writes and text.is_changed:
        try:
            replace_files({path: text.after.encode()})
        except OSError as error:
            reason = f"it cannot be written: {error.strerror or error}"
            raise ConfigError(reason, location=SourceLocation(name)) from error
    return text


def _files_in(folder: Path) -> list[Path]:
    return sorted(path for pattern in _PATTERNS for path in matching_files(folder, pattern))


def _shown(path: Path) -> Path:
    """Return a path relative to the current folder, if it is inside."""
    here = Path(os.path.relpath(path))
    return path if here.parts[:1] == ("..",) else here

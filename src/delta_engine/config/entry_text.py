"""Writes entries of `conf/consents.yml` and `conf/drift-policy.yml` as text, and consents into their files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from datetime import date
from pathlib import Path
from typing import Final

from delta_engine.actions.policy import NeededConsent
from delta_engine.config.conf_folder import CONSENTS_FILE, CONSENTS_FOLDER
from delta_engine.config.consents import OF_KEYS, REASON_TO_WRITE, consent_files
from delta_engine.config.model_writer import catalog_text
from delta_engine.config.variables import escaped
from delta_engine.config.yaml_documents import read_untouched
from delta_engine.config.yaml_layout import (
    Node,
    Splice,
    UnusualLayoutError,
    arranged,
    line_end,
    read_source,
    spliced,
    with_unix_lines,
)
from delta_engine.config.yaml_text import block, list_item, one_line, pair
from delta_engine.errors import ConfigError, SourceLocation
from delta_engine.models import SecurableName
from delta_engine.models.policies import PolicyName


@dataclass(frozen=True, slots=True)
class EntryWriter:
    """Writes entries for one environment.

    Args:
        expires: the last day of the entries.
        variables: of the environment; a catalog with the value of a variable is written as that variable.
    """

    expires: date
    _: KW_ONLY
    environment: str
    variables: Mapping[str, str]
    reason: str = REASON_TO_WRITE

    def consents(self, needed: Sequence[NeededConsent]) -> str:
        """Return a file with an entry for each change, ready to be pasted into `conf/consents.yml`."""
        return f"consents:{block(list_item(_in_block(self._entry(change))) for change in needed)}\n"

    def ignored_drift(self, name: SecurableName, fields: Sequence[str]) -> str:
        """Return a file with an entry for the drift of a securable, for `conf/drift-policy.yml`.

        Args:
            fields: the changed fields, as a report names them.
        """
        entry = {
            "resource": f"{name.kind}.{self._name(name)}",
            "fields": [*fields],
            **self._ending(),
        }
        return f"ignore_drift:{block([list_item(_in_block(entry))])}\n"

    def edited_files(self, conf_dir: Path, needed: Sequence[NeededConsent]) -> dict[Path, str]:
        """Return the new texts of the files that get entries.

        That is `conf/consents.yml`, or a file for each table if there is only the folder `conf/consents`.

        Raises:
            ConfigError: a file cannot be read, or has a layout that the engine does not edit.
        """
        by_file: dict[Path, list[NeededConsent]] = {}
        for change in needed:
            by_file.setdefault(_file_for(conf_dir, change.securable), []).append(change)
        return {path: self._edited(path, changes) for path, changes in sorted(by_file.items())}

    def _entry(self, needed: NeededConsent) -> dict[str, object]:
        key = "key" if needed.kind in OF_KEYS else "column"
        return {
            "kind": needed.kind.value,
            needed.securable.kind: self._name(needed.securable),
            **({key: needed.part} if needed.part is not None else {}),
            **self._ending(),
        }

    def _name(self, name: SecurableName) -> str:
        if isinstance(name, PolicyName):
            catalog, *names = (*name.scope.name.split("."), name.policy)
            return f"{name.scope.kind.value}.{self._dotted(catalog, names)}"
        return self._dotted(name.catalog, str(name).split(".")[1:])

    def _dotted(self, catalog: str, names: Sequence[str]) -> str:
        return ".".join((catalog_text(catalog, self.variables), *map(escaped, names)))

    def _ending(self) -> dict[str, object]:
        """Return the keys that end every entry."""
        return {
            _ENVIRONMENTS: [self.environment],
            "reason": self.reason,
            "expires": self.expires,
        }

    def _edited(self, path: Path, changes: Sequence[NeededConsent]) -> str:
        text = read_untouched(path, str(path)) if path.exists() else ""
        try:
            return with_unix_lines(text, lambda lines: self._with_entries(lines, str(path), changes))
        except UnusualLayoutError as error:
            raise ConfigError(
                f"entries cannot be added to this file: {error}",
                location=SourceLocation(str(path)),
                way_out="Paste the entries that the plan shows.",
            ) from None

    def _with_entries(self, text: str, file: str, changes: Sequence[NeededConsent]) -> str:
        if not text.strip():
            return self.consents(changes)
        text = text if text.endswith("\n") else f"{text}\n"
        pair_of_list = read_source(text, file).pair("consents") if _has_content(text) else None
        if pair_of_list is None:
            return text + self.consents(changes)
        key, entries = pair_of_list
        if entries.kind != "sequence" and entries.value:
            raise UnusualLayoutError("what it lists is not a list")
        if not entries.items:
            return text[: key.start] + self.consents(changes) + text[line_end(text, entries.end) :]
        return spliced(text, self._splices(text, entries, changes))

    def _splices(self, text: str, entries: Node, changes: Sequence[NeededConsent]) -> Iterator[Splice]:
        """Yield what adds entries to a list; one that names a change for other environments gets this one too."""
        new: list[str] = []
        extended: list[Splice] = []
        for change in changes:
            environments = self._environments_of(entries, change)
            if environments is None:
                entry = self._entry(change)
                new.append(one_line(entry) if entries.is_flow else list_item(_in_block(entry)))
            else:
                name = one_line(self.environment, in_flow=environments.is_flow)
                new_name = name if environments.is_flow else list_item(name)
                extended += arranged(text, environments, [*range(len(environments.items)), new_name])
        yield from arranged(text, entries, [*range(len(entries.items)), *new], extended)

    def _environments_of(self, entries: Node, change: NeededConsent) -> Node | None:
        """Return the environments of an entry for a change; None for no such entry."""
        entry = self._entry(change)
        identity = {name: entry.get(name) for name in _IDENTITY}
        for entry_node in entries.items:
            pairs = {name: entry_node.pair(name) for name in (*_IDENTITY, _ENVIRONMENTS)}
            environments = pairs.pop(_ENVIRONMENTS)
            is_same = {name: pair and pair[1].value for name, pair in pairs.items()} == identity
            if is_same and environments is not None and environments[1].items:
                return environments[1]
        return None


def with_reasons(conf_dir: Path, reason: str) -> dict[Path, str]:
    """Return the new texts of the files of consents that have entries without a reason.

    Raises:
        ConfigError: a file cannot be read.
    """
    texts = {path: read_untouched(path, str(path)) for path in consent_files(conf_dir)}
    return {
        path: new for path, text in texts.items() if (new := _with_reason(text, str(path), reason)) != text
    }


def _with_reason(text: str, file: str, reason: str) -> str:
    """Return a file's text with the reason; a layout that the engine does not edit stays as it is."""
    if not text.endswith("\n") or not _has_content(text):
        return text
    with suppress(UnusualLayoutError):
        return with_unix_lines(text, lambda lines: spliced(lines, _reasons(lines, file, reason)))
    return text


def _reasons(text: str, file: str, reason: str) -> Iterator[Splice]:
    pair_of_list = read_source(text, file).pair("consents")
    for entry in pair_of_list[1].items if pair_of_list else ():
        written = entry.pair("reason")
        if written is not None and written[1].value == REASON_TO_WRITE:
            yield Splice(written[1].start, written[1].end, one_line(reason, in_flow=entry.is_flow))


_ENVIRONMENTS: Final = "environments"
_IDENTITY: Final = ("kind", "table", "function", "policy", "column", "key")
"""The keys that tell which change an entry allows."""


def _file_for(conf_dir: Path, name: SecurableName) -> Path:
    folder = conf_dir / CONSENTS_FOLDER
    if folder.is_dir() and not (conf_dir / CONSENTS_FILE).exists():
        return folder / f"{name.key.partition('.')[2]}.yml"
    return conf_dir / CONSENTS_FILE


def _has_content(text: str) -> bool:
    return any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines())


def _in_block(entry: Mapping[str, object]) -> str:
    return "\n".join(pair(key, value) for key, value in entry.items())

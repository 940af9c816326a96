"""Edits YAML model files in place.

The engine makes and loads every edit in memory before it writes the first file. It refuses edits that it cannot make
safely, with instructions for a manual edit.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from delta_engine.aspects.policy_definition import SCOPE_FACET
from delta_engine.config.body_files import body_of, text_file, text_key
from delta_engine.config.edit_instructions import edit_instructions
from delta_engine.config.loading import models_of_text
from delta_engine.config.model_text import fields_of, written_values
from delta_engine.config.variables import escaped, fill_in, spelled, spellings_in
from delta_engine.config.whole_files import replace_files
from delta_engine.config.yaml_documents import read_untouched
from delta_engine.config.yaml_edits import EntryEditor
from delta_engine.config.yaml_layout import (
    Node,
    Splice,
    UnusualLayoutError,
    after_colon,
    arranged,
    comments,
    read_source,
    spliced,
    with_unix_lines,
)
from delta_engine.errors import ConfigError, RefusalGroup, RefusedError, raise_all
from delta_engine.models import AbacPolicy, ForeignKey, QualifiedName, Securable, Table, subject
from delta_engine.models.constraints import referenced_table
from delta_engine.telemetry.visible import plural

if TYPE_CHECKING:
    from delta_engine.config.settings import Settings

Place: TypeAlias = tuple[str, int]
"""The position of a model in its file: the key of the list and the index from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEdit:
    """A change of a declared securable; `after` is None for removal, `renames` maps old to new column names."""

    before: Securable
    after: Securable | None
    renames: Mapping[str, str] = field(default_factory=dict)


def is_editable(edit: ModelEdit) -> bool:
    """Whether the engine can edit a loaded model: in a YAML file, or only the file of its body or query."""
    location = edit.before.declared_at
    is_yaml = location is not None and Path(location.file).suffix.lower() in (".yml", ".yaml")
    return is_yaml or _without_text(edit).after == edit.before


def edit_models(edits: Sequence[ModelEdit], settings: Settings) -> tuple[Path, ...]:
    """Edit all model files, or none if one edit is refused; return the changed files, sorted.

    Each model has at most one edit, with `before` as `load_declared` returned it. Refusals and changed files
    raise ConfigError or RefusalGroup. No file is written then, unless the message reports a failed write.
    """
    by_file: dict[str, list[ModelEdit]] = defaultdict(list)
    refusals: list[RefusedError] = []
    for edit in edits:
        refusal, rest = _refused_edit(edit), _without_text(edit)
        if refusal is not None:
            refusals.append(refusal)
        elif rest.after != edit.before and edit.before.declared_at is not None:
            by_file[edit.before.declared_at.file].append(rest)
    contents = dict(_edited_texts(edits, settings, refusals))
    for file, its_edits in sorted(by_file.items()):
        path = settings.project_dir / file
        try:
            text = read_untouched(path, file)
            contents[path] = _edited(text, file, its_edits, settings).encode()
        except RefusedError as refused:
            refusals += refused.refusals
        else:
            if contents[path] == text.encode():
                del contents[path]
    raise_all(refusals)
    try:
        replace_files(contents)
    except OSError as error:
        files = ", ".join(str(path) for path in contents)
        raise ConfigError(
            f"writing model files failed: {error.strerror or error}",
            way_out=f"Each of these files has either its old content or all of its edits: {files}.",
        ) from error
    return tuple(contents)


def _refused_edit(edit: ModelEdit) -> ConfigError | None:
    before, after = edit.before, edit.after
    if not is_editable(edit):
        return _refusal(edit, "only models in YAML files can be edited")
    if after is not None and after.qualified_name != before.qualified_name and not _is_renamed(before, after):
        return _refusal(edit, f"a {before.qualified_name.kind}'s name cannot be edited")
    if (
        isinstance(after, Table)
        and isinstance(before, Table)
        and after.default_table_properties != before.default_table_properties
    ):
        return _refusal(
            edit,
            "a default property is part of the environment's configuration, not of the model",
            "Change defaults.table_properties there, or declare the property in this model.",
        )
    return None


def _without_text(edit: ModelEdit) -> ModelEdit:
    """Return an edit without the change of a body or a query that has a file of its own."""
    before, after = edit.before, edit.after
    key = text_key(before)
    if key is None or after is None:
        return edit
    file = getattr(before, f"{key}_file")
    if file is None or getattr(after, f"{key}_file") != file:
        return edit
    unchanged: Any = {key: getattr(before, key)}
    return replace(edit, after=replace(after, **unchanged))


def _edited_texts(
    edits: Sequence[ModelEdit], settings: Settings, refusals: list[RefusedError]
) -> Iterator[tuple[Path, bytes]]:
    """Yield the files of changed bodies and queries with their new contents; append refusals to the list."""
    for edit in edits:
        before, after = edit.before, edit.after
        key, path = text_key(before), text_file(before, settings.project_dir)
        if key is None or path is None or after is None or _without_text(edit) == edit:
            continue
        try:
            text = read_untouched(path, str(getattr(before, f"{key}_file")))
            written: Any = {key: body_of(text)}
            declared = replace(spelled(before, escaped(before.catalog_name)), **written)
            is_same = fill_in(declared, settings.variables) == before
        except RefusedError as refused:
            refusals += refused.refusals
            continue
        if not is_same:
            refusals.append(_changed_since(before))
        spellings = spellings_in(text, settings.variables)
        catalog = spellings.get(after.catalog_name, escaped(after.catalog_name))
        body = str(getattr(spelled(after, catalog, spellings), key))
        body += "\n" if text.endswith("\n") and not body.endswith("\n") else ""
        yield path, (body.replace("\n", "\r\n") if "\r\n" in text else body).encode()


def _is_renamed(before: Securable, after: Securable) -> bool:
    """Whether the edited model renames the table within its schema."""
    if not (isinstance(before, Table) and isinstance(after, Table)):
        return False
    in_place = replace(after.qualified_name, table=before.table_name)
    return in_place == before.qualified_name and before.table_name in after.renamed_from


def _edited(text: str, file: str, edits: Sequence[ModelEdit], settings: Settings) -> str:
    """Return the edited text after checking that it loads as the desired models."""
    try:
        return with_unix_lines(text, lambda lines: _edited_lines(lines, file, edits, settings))
    except UnusualLayoutError as error:
        raise _unsafe(edits, str(error)) from error


def _edited_lines(lines: str, file: str, edits: Sequence[ModelEdit], settings: Settings) -> str:
    loaded = models_of_text(lines, file, settings)
    places: dict[Place, ModelEdit] = {}
    for edit in edits:
        place, model = _declared(edit.before, loaded)
        if place in places:
            raise _refusal(edit, "the model gets two edits at once")
        places[place] = as_written(edit, model)
    try:
        new_lines = edit_text(lines, file, places, settings.variables)
        outcome = models_of_text(new_lines, file, settings)
    except RefusedError as error:
        raise _unsafe(edits, f"the edited file would be refused: {error.refusals[0].reason}") from error
    expected = [places[place].after if place in places else model for place, model in _placed(loaded)]
    if [_comparable(model) for model in outcome] != [_comparable(model) for model in expected if model]:
        raise _unsafe(edits, "the edited file would not give the expected models")
    return new_lines


def edit_text(text: str, file: str, edits: Mapping[Place, ModelEdit], variables: Mapping[str, str]) -> str:
    """Return a model file's text with edits; all other entries stay byte for byte.

    Raises UnusualLayoutError if the layout does not allow the edit, or the edit would lose a comment.
    """
    source = text if text.endswith("\n") else f"{text}\n"
    root = read_source(source, file)
    splices: list[Splice] = []
    for key in sorted({key for key, _ in edits}):
        pair = root.pair(key)
        if pair is None or pair[1].kind != "sequence":
            raise UnusualLayoutError(f"the list of {key} is shared by an alias")
        models = pair[1]
        places = range(len(models.items))
        changed = {place: edit for place in places if (edit := edits.get((key, place)))}
        inner = [
            splice
            for place, edit in changed.items()
            if edit.after is not None
            for splice in _splices(source, models.items[place], edit, edit.after, variables)
        ]
        kept = [place for place in places if place not in changed or changed[place].after is not None]
        if not kept and not models.is_flow:
            position = after_colon(source, pair[0])
            splices.append(Splice(position, position, " []"))
        splices += arranged(source, models, kept, inner)
    result = spliced(source, splices)
    if Counter(comments(source, root)) != Counter(comments(result, read_source(result, file))):
        raise UnusualLayoutError("a comment would be lost")
    return result if text.endswith("\n") else result.removesuffix("\n")


def _splices(
    text: str, node: Node, edit: ModelEdit, after: Securable, variables: Mapping[str, str]
) -> Iterator[Splice]:
    if after == edit.before:
        return iter(())
    name = node.pair("name")
    if (
        after.qualified_name != edit.before.qualified_name
        and name
        and "${" in text[name[1].start : name[1].end]
    ):
        raise UnusualLayoutError("its name has a variable")
    spelling = _spelled_catalog(node, after)
    others = spellings_in(text[node.start : node.end], variables) if text_key(after) else {}
    before_values, after_values = (
        written_values(fields_of(model), spelled(model, spelling, others)) for model in (edit.before, after)
    )
    return EntryEditor(text, edit.renames).splices(node, before_values, after_values)


def _spelled_catalog(node: Node, model: Securable) -> str:
    """Return a model's catalog as its file spells it: in its own key, or in the name of what a policy is on."""
    key = SCOPE_FACET.key if isinstance(model, AbacPolicy) else "catalog"
    pair = node.pair(key)
    value = pair[1].pairs[0][1] if pair and pair[1].pairs else pair and pair[1]
    if not value or value.kind != "scalar":
        return escaped(model.catalog_name)
    if not isinstance(model, AbacPolicy):
        return value.value
    parts = _PARTS(value.value)
    return parts[0] if len(parts) == len(model.scope.parts) else escaped(model.catalog_name)


_PARTS: Final = re.compile(r"(?:\$\{[^}]*\}|[^.])+").findall


def _comparable(model: Securable) -> Securable:
    """Return a model without insignificant differences: check order and columns that the platform chooses."""
    if not isinstance(model, Table):
        return model
    return replace(
        model,
        checks=tuple(sorted(model.checks, key=lambda check: check.name)),
        cluster_by=() if model.clusters_automatically else model.cluster_by,
    )


def _placed(loaded: Sequence[Securable]) -> Iterator[tuple[Place, Securable]]:
    counts: Counter[str] = Counter()
    for model in loaded:
        key = plural(model.qualified_name.kind)
        yield (key, counts[key]), model
        counts[key] += 1


def _declared(before: Securable, loaded: Sequence[Securable]) -> tuple[Place, Securable]:
    """Return the place of a loaded model in its file, and the model as the file has it."""
    for place, model in _placed(loaded):
        if model.declared_at == before.declared_at and _is_same(model, before):
            return place, model
    raise _changed_since(before)


def _changed_since(model: Securable) -> ConfigError:
    reason = "the file changed after the models were loaded"
    return _about(model, reason, "Run the command again.")


def _is_same(declared: Securable, loaded: Securable) -> bool:
    """Whether a loaded model is the declared one; loading completes foreign keys (`models.constraints.resolved`)."""
    if not (isinstance(declared, Table) and isinstance(loaded, Table)):
        return declared == loaded
    keys = zip(declared.foreign_keys, loaded.foreign_keys, strict=False)
    return replace(declared, foreign_keys=loaded.foreign_keys) == loaded and (
        len(declared.foreign_keys) == len(loaded.foreign_keys)
        and all(_completes(key, written, loaded.qualified_name) for written, key in keys)
    )


def _completes(key: ForeignKey, written: ForeignKey, table: QualifiedName) -> bool:
    referenced = referenced_table(table, written)
    return key in (
        written,
        replace(
            written,
            references=key.references if referenced == referenced_table(table, key) else written.references,
            referenced_columns=written.referenced_columns or key.referenced_columns,
            name=written.name or key.name,
        ),
    )


def as_written(edit: ModelEdit, declared: Securable) -> ModelEdit:
    """Return an edit of the model as its file has it: foreign keys that stay keep the file's spelling."""
    before, after = edit.before, edit.after
    if not (isinstance(declared, Table) and isinstance(before, Table) and isinstance(after, Table)):
        return replace(edit, before=declared)
    written = dict(zip(before.foreign_keys, declared.foreign_keys, strict=True))
    keys = tuple(written.get(key, key) for key in after.foreign_keys)
    return replace(edit, before=declared, after=replace(after, foreign_keys=keys))


def _unsafe(edits: Sequence[ModelEdit], reason: str) -> RefusedError:
    refusals = [_refusal(edit, f"the file cannot be edited safely: {reason}") for edit in edits]
    return refusals[0] if len(refusals) == 1 else RefusalGroup(refusals)


def _refusal(edit: ModelEdit, reason: str, way_out: str = "") -> ConfigError:
    by_hand = edit_instructions(edit.before, edit.after, edit.renames)
    return _about(edit.before, reason, f"{way_out or 'Change it by hand:'}\n{by_hand}")


def _about(model: Securable, reason: str, way_out: str) -> ConfigError:
    return ConfigError(reason, **subject(model.qualified_name), location=model.declared_at, way_out=way_out)

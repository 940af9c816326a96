"""Changes YAML model files in place, and only where the outcome is exactly what was wanted.

Every edit is made in memory and loaded again before the first file is written. What cannot be edited
without risk is refused, with words for doing it by hand.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from delta_engine.config.described_edits import described_edit
from delta_engine.config.file_replacement import replace_files
from delta_engine.config.model_edit_texts import ModelEdit, Place, edit_text, list_key
from delta_engine.config.model_files import models_of_text
from delta_engine.config.settings import Settings
from delta_engine.config.yaml_source import UnusualLayoutError
from delta_engine.errors import ConfigError, RefusalGroup, RefusedError, SourceLocation, raise_all
from delta_engine.models import Schema, Table


def is_editable(model: Table | Schema) -> bool:
    """Whether a loaded model stands in a YAML file, which can be edited; Python cannot."""
    location = model.declared_at
    return location is not None and Path(location.file).suffix.lower() in (".yml", ".yaml")


def edit_models(edits: Sequence[ModelEdit], settings: Settings) -> tuple[Path, ...]:
    """Make edits in the model files; nothing else in them changes, comments and layout included.

    Args:
        edits: at most one per table or schema; `before` is as `load_declared` gave it.
        settings: the environment with which the models were loaded.

    Returns:
        The files that were written, sorted; a file without a difference is not.

    Raises:
        ConfigError: an edit cannot be made, or its file is not as it was loaded. Nothing was written,
            unless the message says that writing failed.
        RefusalGroup: several cannot; all are collected.
    """
    by_file: dict[str, list[ModelEdit]] = defaultdict(list)
    refusals: list[RefusedError] = []
    for edit in edits:
        found = list(_unmakeable(edit))
        refusals += found
        if edit.before.declared_at is not None and not found:
            by_file[edit.before.declared_at.file].append(edit)
    contents: dict[Path, bytes] = {}
    for file, its_edits in sorted(by_file.items()):
        path = settings.project_dir / file
        try:
            text = _text(path, file)
            new_text = _edited(text, file, its_edits, settings)
        except RefusedError as refusal:
            refusals.append(refusal)
        except RefusalGroup as group:
            refusals += group.refusals
        else:
            if new_text != text:
                contents[path] = new_text.encode("utf-8")
    raise_all(refusals)
    _write(contents)
    return tuple(contents)


def _unmakeable(edit: ModelEdit) -> Iterator[ConfigError]:
    before, after = edit.before, edit.after
    if not is_editable(before):
        yield _refusal(edit, "only models in YAML files can be edited")
    elif after is not None and after.qualified_name != before.qualified_name:
        yield _refusal(edit, f"a {list_key(before).removesuffix('s')}'s name cannot be edited")
    elif (
        isinstance(after, Table)
        and isinstance(before, Table)
        and after.default_table_properties != before.default_table_properties
    ):
        yield _refusal(
            edit,
            "a default property stands in the environment's configuration, not in the model",
            "Change defaults.table_properties there, or give this model a value of its own.",
        )


def _edited(text: str, file: str, edits: Sequence[ModelEdit], settings: Settings) -> str:
    """Return a file's text with edits made, and found to say what they want."""
    loaded = models_of_text(_with_line_feeds(text), file, settings)
    places: dict[Place, ModelEdit] = {}
    for edit in edits:
        place = _place(edit, loaded)
        if place in places:
            raise _refusal(edit, "it is edited twice at once")
        places[place] = edit
    try:
        new_text = edit_text(text, places)
        outcome = models_of_text(_with_line_feeds(new_text), file, settings)
    except (UnusualLayoutError, RefusedError, RefusalGroup) as error:
        raise _unsafe(edits, _reason(error)) from error
    expected = [places[place].after if place in places else model for place, model in _placed(loaded)]
    if [_comparable(model) for model in outcome] != [_comparable(model) for model in expected if model]:
        raise _unsafe(edits, "the outcome would not be what is wanted, or other tables would change")
    return new_text


def _comparable(model: Table | Schema) -> Table | Schema:
    """Return a model without what means nothing: the order of checks, and columns that the platform chooses."""
    if isinstance(model, Schema):
        return model
    return replace(
        model,
        checks=tuple(sorted(model.checks, key=lambda check: check.name)),
        cluster_by=() if model.clusters_automatically else model.cluster_by,
    )


def _placed(loaded: Sequence[Table | Schema]) -> Iterator[tuple[Place, Table | Schema]]:
    """Yield the models of a file with their places."""
    counts: Counter[str] = Counter()
    for model in loaded:
        key = list_key(model)
        yield (key, counts[key]), model
        counts[key] += 1


def _place(edit: ModelEdit, loaded: Sequence[Table | Schema]) -> Place:
    """Return a model's place in its file.

    Raises:
        ConfigError: what stands there is not the model that was loaded.
    """
    before = edit.before
    for place, model in _placed(loaded):
        if model.declared_at == before.declared_at and model == before:
            return place
    raise _about(
        before,
        "the model is not there as it was loaded: the file has changed since",
        "Run the command again.",
    )


def _text(path: Path, file: str) -> str:
    """Return a file's text with its own line breaks."""
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"it cannot be read: {error}", location=SourceLocation(file)) from None


def _with_line_feeds(text: str) -> str:
    """Return a text with line breaks as the loader, which opens files as text, sees them."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _write(contents: Mapping[Path, bytes]) -> None:
    try:
        replace_files(contents)
    except OSError as error:
        files = ", ".join(str(path) for path in contents)
        raise ConfigError(
            f"writing model files failed: {error.strerror or error}",
            way_out=f"Each of these files is either as it was or edited whole: {files}.",
        ) from error


def _unsafe(edits: Sequence[ModelEdit], reason: str) -> RefusedError | RefusalGroup:
    refusals = [_refusal(edit, f"the file cannot be edited safely: {reason}") for edit in edits]
    return refusals[0] if len(refusals) == 1 else RefusalGroup(refusals)


def _reason(error: UnusualLayoutError | RefusedError | RefusalGroup) -> str:
    match error:
        case RefusedError():
            return f"it would be refused: {error.reason}"
        case RefusalGroup():
            return f"it would be refused: {error.refusals[0].reason}"
    return str(error)


def _refusal(edit: ModelEdit, reason: str, way_out: str = "") -> ConfigError:
    by_hand = described_edit(edit.before, edit.after, edit.renames)
    return _about(edit.before, reason, f"{way_out or 'Change it by hand:'}\n{by_hand}")


def _about(model: Table | Schema, reason: str, way_out: str) -> ConfigError:
    if isinstance(model, Schema):
        reason = f"schema {model.qualified_name}: {reason}"
        return ConfigError(reason, location=model.declared_at, way_out=way_out)
    return ConfigError(reason, table=str(model.qualified_name), location=model.declared_at, way_out=way_out)

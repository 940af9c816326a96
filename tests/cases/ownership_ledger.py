"""A ledger of who made what: the oracle of drift, ownership and pending changes. It shares no code with the engine.

A table is a mapping of its parts, by the names that reports use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from delta_engine.models import Column, Schema, Table
from delta_engine.models.types import StructField, StructType
from delta_engine.state.states import SchemaState, TableState

Parts: TypeAlias = Mapping[str, str]
"""The values of a table's parts. A part that does not exist is missing."""

Kinds: TypeAlias = frozenset[str]

LISTED = ("value", "constraint", "mask")
"""The kinds of parts of others that are recorded when the engine takes a table over."""

OF_PLATFORM = ("property delta.", "property clusterByAuto")


@dataclass(frozen=True)
class Seen:
    """A table of the catalog; `birth` distinguishes it from another of that name."""

    parts: Parts
    columns: tuple[str, ...]
    birth: str

    def renamed(self, renames: Mapping[str, str]) -> Seen:
        """Return the table with new names of columns, by the old ones."""
        columns = tuple(renames.get(column, column) for column in self.columns)
        return replace(self, parts=followed(self.parts, renames), columns=columns)


def parts_of(table: Table | TableState) -> dict[str, str]:
    """Return the parts of a model or of a table. The catalog puts parentheses around expressions.

    The feature of clustering is no part: it comes with clustering, and stays when that goes.
    """
    key, rows = table.primary_key, table.row_filter
    comment = table.comment if isinstance(table, Table) else table.table_comment
    parts = {
        "table comment": comment,
        "clustering": ",".join(table.cluster_by),
        "primary key": f"{key.name} {','.join(key.columns)}" if key else "",
        "row filter": f"{rows.function} ({','.join(rows.columns)})" if rows else "",
        "owner": table.owner or "",
        **{f"check {check.name}": check.expression.strip("( )") for check in table.checks},
        **{
            f"property {name}": value
            for name, value in table.table_properties.items()
            if name != "delta.feature.clustering"
        },
        **{f"tag {name}": value for name, value in table.tags.items()},
        **{f"grant {right} to {who}": "granted" for who, rights in table.grants.items() for right in rights},
    }
    for foreign in table.foreign_keys:
        parent = f"{foreign.references.rpartition('.')[2]}({','.join(foreign.referenced_columns)})"
        parts[f"foreign key {foreign.name}"] = f"{','.join(foreign.columns)} → {parent}"
    for column in table.columns:
        name = f"column {column.name}"
        parts |= _parts_of_field(name, column)
        parts[f"{name} default"] = (column.default or "").strip("( )")
        if column.mask:
            parts[f"{name} mask"] = f"{column.mask.function} ({','.join(column.mask.using_columns)})"
        parts |= {f"{name} tag {tag}": value for tag, value in column.tags.items()}
    return {part: value for part, value in parts.items() if value}


def _parts_of_field(name: str, column: Column | StructField) -> dict[str, str]:
    """Return the parts of a column or field, and of the fields inside."""
    fields = column.data_type.fields if isinstance(column.data_type, StructType) else ()
    parts = {
        name: "exists",
        f"{name} type": "struct" if fields else str(column.data_type),
        f"{name} comment": column.comment,
        f"{name} nullability": "" if column.is_nullable else "NOT NULL",
    }
    for field_inside in fields:
        parts |= _parts_of_field(f"{name}.{field_inside.name}", field_inside)
    return parts


def parts_of_schema(schema: Schema | SchemaState) -> dict[str, str]:
    """Return the parts of the model or of the state of a schema."""
    parts = {
        "schema comment": schema.comment or "",
        "owner": schema.owner or "",
        **{f"tag {name}": value for name, value in schema.tags.items()},
        **{f"grant {right} to {who}": "granted" for who, rights in schema.grants.items() for right in rights},
    }
    clears = {"schema comment": ""} if isinstance(schema, Schema) and schema.comment == "" else {}
    return clears | {part: value for part, value in parts.items() if value}


def kind_of(part: str) -> str:
    """Return the kind of a part, which decides whose it is if no model declares it."""
    words = part.split()
    if words[0] == "column":
        of_column = {"comment": "value", "default": "value"}
        return of_column.get(words[2], words[2]) if len(words) > 2 else "column"
    kinds = {
        "check": "constraint",
        "primary": "constraint",
        "foreign": "constraint",
        "table": "value",
        "clustering": "value",
        "row": "mask",
        "schema": "owner",  # as an owner: if no model declares it, any value is right
    }
    return kinds.get(words[0], words[0])


def column_of(part: str) -> str:
    """Return the column or the path of the field that has a part; empty for parts of the table."""
    return part.split()[1] if part.startswith("column ") and part != "column order" else ""


def holder_of(part: str) -> str:
    """Return the column or field that has a part or a field; empty for what the table has."""
    column = column_of(part)
    holder = column if part != f"column {column}" else column.rpartition(".")[0]
    return f"column {holder}" if holder else ""


def is_inside(part: str, columns: Collection[str]) -> bool:
    """Whether a part is one of these columns and fields, or of what is inside them."""
    return part in columns or (bool(part) and is_inside(holder_of(part), columns))


def under_new_name(part: str, renames: Mapping[str, str]) -> str:
    old = column_of(part)
    return part.replace(f"column {old}", f"column {renames[old]}", 1) if old in renames else part


def followed(parts: Parts, renames: Mapping[str, str]) -> dict[str, str]:
    """Return parts under the new names of columns."""
    if not renames:
        return dict(parts)
    renamed_parts = {}
    for part, value in parts.items():
        names = (
            [renames.get(column, column) for column in value.split(",")] if part == "clustering" else [value]
        )
        renamed_parts[under_new_name(part, renames)] = ",".join(names)
    return renamed_parts


@dataclass
class Page:
    """What is known of one table.

    Args:
        declared: the parts that the engine applied last; None if no run finished.
        before: what others had made when the engine took the table over, and no model has declared since.
        attempts: the parts that later runs attempted.
        attempted_renames: the renames of columns that these runs attempted.
        order: of the columns after the last apply.
        birth: of the table that was applied; None if unknown.
        full: the kinds of parts that the engine owned whole at the last apply.
        names: of applied columns and fields now, by the applied ones; empty for one that is gone.
        accepted: the drift that waits for its model, with the value that was accepted.
        is_hidden: whether the history of the table is hidden: a rename by others looks like a drop and an addition.
    """

    declared: Parts | None = None
    before: Parts = field(default_factory=dict)
    attempts: tuple[Parts, ...] = ()
    attempted_renames: frozenset[tuple[str, str]] = frozenset()
    order: tuple[str, ...] = ()
    birth: str | None = None
    full: Kinds = frozenset()
    names: Mapping[str, str] = field(default_factory=dict)
    accepted: Mapping[str, str] = field(default_factory=dict)
    model: Table | None = None
    is_hidden: bool = False

    @property
    def renames(self) -> dict[str, str]:
        """The columns and fields that were renamed since the last apply, new names by old ones."""
        return {} if self.is_hidden else {old: now for old, now in self.names.items() if now not in ("", old)}

    def with_rename(self, old: str, new: str) -> Page:
        """Return the page with a rename that the model declares, which no history has to show."""
        names = {first: now if now == first else "" for first, now in self.names.items()}
        page = replace(self, names=names, is_hidden=False) if self.is_hidden else replace(self)
        page.note_rename(old, new)
        return page

    @property
    def base(self) -> Parts:
        """The table as the last apply left it, by the names of columns then."""
        return {**self.before, **(self.declared or {})}

    def renamed_base(self) -> Parts:
        """Return the table as the last apply left it, under the present names of columns."""
        return followed(self.base, self.renames)

    def under(self, renames: Mapping[str, str]) -> Page:
        """Return the page with all parts under new names of columns."""
        attempts = tuple(followed(attempt, renames) for attempt in self.attempts)
        declared = None if self.declared is None else followed(self.declared, renames)
        return replace(self, before=followed(self.before, renames), declared=declared, attempts=attempts)

    def note_rename(self, old: str, new: str) -> None:
        """Note that a column or field was renamed, unless it was added in place of an applied one."""
        first = next((former for former, now in self.names.items() if now == old), old)
        if self.names.get(first, first) == old:
            self.names = {**self.names, first: new}

    def note_gone(self, seen: Seen | None) -> None:
        """Note which applied columns and fields are gone."""
        names = {
            column_of(part): column_of(part) for part in self.declared or () if kind_of(part) == "column"
        }
        present = {column_of(part) for part in seen.parts} if seen else set()
        names |= self.names
        self.names = {old: now if now in present else "" for old, now in names.items()}

    def known_renames(self, seen: Seen) -> dict[str, str]:
        """Return the renames of applied columns that still hold."""
        renames, declared_parts = self.renames, self.declared or {}
        return {
            old: new
            for old, new in renames.items()
            if f"column {new}" in seen.parts
            and f"column {old}" in declared_parts
            and (new in renames or f"column {new}" not in declared_parts)
        }

    def taken(self, model: Parts) -> dict[str, str]:
        """Return the renames that a model has taken."""
        return {old: new for old, new in self.renames.items() if f"column {old}" not in model}

    def drift(self, seen: Seen | None, full: Kinds) -> dict[str, str]:
        """Return the parts that were changed outside the engine, with what they are now."""
        if self.declared is None or seen is None:
            return {} if self.declared is None else {"table": ""}
        renames = self.known_renames(seen)
        drifted = {"table": seen.birth} if self.birth not in (None, seen.birth) else {}
        for old, new in renames.items():
            if (old, new) not in self.attempted_renames or self.accepted.get(f"column {old}") == new:
                drifted[f"column {old}"] = new
        page = self.under(renames)
        base = page.base
        for part in {*base, *seen.parts}:
            if (base.get(part) or "") != (seen.parts.get(part) or "") and page._is_drift(
                part, base, seen, full
            ):
                drifted[part] = described(part, seen.parts)
        order = [renames.get(column, column) for column in self.order]
        actual = [column for column in seen.columns if column in order]
        is_moved = actual != [column for column in order if column in seen.columns]
        if is_moved and (not self.attempts or self._leave_columns()):
            drifted["column order"] = ",".join(actual)
        return drifted

    def _leave_columns(self) -> bool:
        """Whether all attempts have the columns that were applied, which are in the order of the model."""
        applied = _columns_of(self.declared or {})
        in_order = [*_names_of(self.declared or {})]
        return in_order == [*self.order] and all(_columns_of(attempt) == applied for attempt in self.attempts)

    def _may_have_moved(self) -> bool:
        """Whether an attempt has columns in another order than the recorded one."""
        for attempt in self.attempts:
            columns = [*_names_of(attempt)]
            kept = [column for column in self.order if column in columns]
            if kept != [column for column in columns if column in kept]:
                return True
        return False

    def after_sync(self, model: Parts, seen: Seen, full: Kinds) -> dict[str, str]:
        """Return what a sync leads to; the columns of the table have the names of the model."""
        page = self.under(self.taken(model))
        kept = {
            part: without_columns(part, value, model)
            for part, value in seen.parts.items()
            if part not in model and page._is_kept(part, model, full)
        }
        return {**{part: value for part, value in kept.items() if value}, **model}

    def unmanaged(self, model: Parts, order: tuple[str, ...], seen: Seen, full: Kinds) -> set[str]:
        """Return the parts that a plan lists as unmanaged: tags and grants follow policies of their own."""
        present = [column for column in seen.columns if column in order]
        moved = {"column order"} if present != [column for column in order if column in present] else set()
        kept = {*(self.after_sync(model, seen, full).items() & seen.parts.items())}
        return moved | {
            part
            for part, _ in kept
            if part not in model
            and kind_of(part) in (*LISTED, "property")
            and not part.startswith(OF_PLATFORM)
        }

    def applied(
        self, model: Parts, order: tuple[str, ...], before: Seen | None, seen: Seen, full: Kinds
    ) -> None:
        """Note that a run brought a table to its model; `before` is the table as the run found it."""
        renames, parts_after = self.taken(model), self.after_sync(model, before, full) if before else {}
        base_parts = followed(self.before, renames)
        if self.declared is None:
            base_parts = {part: parts_after[part] for part in parts_after if kind_of(part) in LISTED}
        else:
            columns = {"", *map(column_of, followed(self.declared, renames))}
            base_parts |= {
                part: parts_after[part]
                for part in parts_after
                if kind_of(part) in LISTED and column_of(part) not in columns
            }
        taken_over = {under_new_name(part, renames) for attempt in self.attempts for part in attempt}
        kept = {
            part: without_columns(part, value, model)
            for part, value in base_parts.items()
            if part not in model and (part not in taken_over or part in parts_after)
        }
        columns = {"", *map(column_of, model)}
        self.order = tuple(renames.get(column, column) for column in self.order)
        self.note_order(before if self.declared is not None else None, seen, order)
        self.before = {part: value for part, value in kept.items() if value and column_of(part) in columns}
        self.declared, self.attempts, self.attempted_renames = model, (), frozenset()
        self.full, self.names = full, {}

    def note_order(self, before: Seen | None, seen: Seen, order: tuple[str, ...]) -> None:
        """Note the order of columns after a run: moves by others stay drift, and new columns are last.

        The moves of an unfinished run, or what others moved beside them, are none.
        """
        if before is None or seen.columns == order or self._may_have_moved():
            self.order = seen.columns
        else:
            kept = [column for column in self.order if column in seen.columns and column in before.columns]
            self.order = (*kept, *(column for column in seen.columns if column not in kept))

    def note_agreement(self, seen: Seen | None, full: Kinds) -> None:
        """Note that a run looked: drift that was undone, or that the models have taken, is accepted no more."""
        drift = self.drift(seen, full)
        if not self.attempts:
            self.accepted = {part: value for part, value in self.accepted.items() if drift.get(part) == value}

    def _is_drift(self, part: str, base: Parts, seen: Seen, full: Kinds) -> bool:
        there, kind, holder = seen.parts.get(part), kind_of(part), holder_of(part)
        if holder and not (holder in base and holder in seen.parts):
            return False
        if part not in (self.declared or {}):
            if kind in ("property", "owner") or (kind in ("tag", "grant") and kind not in full & self.full):
                return False
            if there is None:
                return False  # others may remove what they made
        explained = [
            {**self.before, **_with_dropped_columns(attempt, base)}.get(part) == there
            for attempt in self.attempts
        ]
        is_side_effect = kind == "nullability" or (kind == "constraint" and there is None)
        is_explained = any(explained) or bool(self.attempts and is_side_effect)
        return not is_explained or self.accepted.get(part) == described(part, seen.parts)

    def _is_kept(self, part: str, model: Parts, full: Kinds) -> bool:
        column, kind = f"column {column_of(part)}", kind_of(part)
        if kind in ("column", "nullability", "type") or (column_of(part) and column not in model):
            return False
        if kind == "owner":
            return True
        if self.has(part):
            return False
        if kind != "value" or self.declared is None:
            return kind not in full
        return part in self.before or bool(column_of(part) and column not in self.declared)

    def has(self, part: str) -> bool:
        """Whether a model that a run applied or attempted declared a part."""
        return part in (self.declared or {}) or any(part in attempt for attempt in self.attempts)


def _names_of(parts: Parts) -> Iterator[str]:
    """Yield the columns in their order."""
    yield from (column_of(part) for part in parts if kind_of(part) == "column" and not holder_of(part))


def _columns_of(parts: Parts) -> list[tuple[str, str]]:
    """Return the parts of all columns, in their order."""
    return [(part, value) for part, value in parts.items() if column_of(part)]


def _with_dropped_columns(attempt: Parts, base: Parts) -> Parts:
    """Return an attempt with the parts of what it drops: where the table still has it, no run changed it."""
    dropped = {part for part in base if kind_of(part) == "column" and part not in attempt}
    return {part: value for part, value in base.items() if is_inside(holder_of(part), dropped)} | {**attempt}


def described(part: str, parts: Parts) -> str:
    """Return what a part is; of a column or field, what reports say of it."""
    if kind_of(part) != "column" or part not in parts:
        return parts.get(part, "")
    told_parts = {key for key in parts if key.endswith(("type", "nullability", "comment"))}
    return ", ".join(f"{key} {parts[key]}" for key in sorted(told_parts) if is_inside(key, (part,)))


def without_columns(part: str, value: str, model: Parts) -> str:
    """Return the value of a part without the columns that a model drops. Masks and filters do not live without them."""
    if part == "clustering":
        return ",".join(column for column in value.split(",") if f"column {column}" in model)
    read = value.partition("(")[2].strip(")").split(",") if kind_of(part) == "mask" else ()
    return value if all(f"column {column}" in model for column in read if column) else ""

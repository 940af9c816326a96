"""Projects in temporary folders whose models are written and loaded again, and hostile models for them."""

import itertools
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from hypothesis import reject
from hypothesis import strategies as st

from delta_engine.config.loading import load_declared
from delta_engine.config.settings import Settings, load_settings
from delta_engine.errors import InvalidModelError
from delta_engine.models import (
    AbacPolicy,
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    Function,
    FunctionLanguage,
    Identity,
    Parameter,
    Part,
    PolicyFilter,
    PolicyMask,
    PolicyScope,
    PrimaryKey,
    RowFilter,
    Schema,
    SchemaMode,
    Securable,
    Table,
    View,
    ViewColumn,
    of_kind,
)
from delta_engine.models.policies import ScopeKind
from tests.builders.strategies import kept_types, privileges, texts

Drawn = TypeVar("Drawn")

Declared: TypeAlias = tuple[tuple[Table, ...], tuple[Schema, ...]]

VARIABLES = {"catalog": "dev", "a": "dev", "schema": "silver"}
"""What written models are spelled with: two of them have one value."""

_CONFIG = """\
environment: dev
backend: {type: oss}
models: {yaml: ["models/*.yml"]}
"""

_module_numbers = itertools.count()

HOSTILE = [
    *("true", "null", "~", "1.10", "0o7", "2024-01-01", "12:30", "yes", "<<", "=", "", " a", "a ", " "),
    *("a: b", "a #b", "# a", "- a", "-", "? a", "?", ":", ":a", "-a", "a:", "{a}", "[a", "a]", "a, b"),
    *("*a", "&a", "!a", "%a", "@a", "`a", "|", ">", "'", '"', "it's", 'a"b', "'\"", "\\", "\\n", "..."),
    *("---", "${x}", "$${x}", "${", "$$${", "${catalog}", "🎉", "👩\u200d💻", "ä", "\t", "a\tb", "\n"),
    *("a\nb", "a\n\n b\n", "\r", "\r\n", "\x01", "\x7f", "\x85", "\xa0", "\u2028", "\u2029", "\ufeff"),
    *("\u202e", "\ufffe", '"""', "'''", "\\'", "word " * 80, "x" * 300),
]
"""Texts that YAML, Python or variables would read as something else."""

hostile_texts = st.sampled_from(HOSTILE) | texts | st.lists(st.sampled_from(HOSTILE), max_size=4).map("".join)

hostile_names = hostile_texts.filter(bool)

properties = st.dictionaries(hostile_texts, hostile_texts, max_size=4)


maybe = st.none() | hostile_texts

former_names: st.SearchStrategy[Any] = maybe | st.lists(hostile_texts, max_size=3)

mappings = st.dictionaries(hostile_texts, hostile_texts, max_size=2)

identities = st.builds(Identity, st.integers(-3, 3), st.integers(1, 3), st.booleans())

masks = st.builds(ColumnMask, hostile_texts, st.lists(hostile_texts, max_size=2))

filters = st.builds(RowFilter, hostile_texts, st.lists(hostile_texts, max_size=2))

foreign_keys = st.builds(
    ForeignKey,
    st.lists(hostile_names, min_size=1, max_size=2),
    hostile_texts,
    st.lists(hostile_names, max_size=2),
    maybe,
    st.booleans(),
)


def seldom(strategy: st.SearchStrategy[Drawn], nothing: Drawn) -> st.SearchStrategy[Drawn]:
    """Return a strategy that gives nothing three times out of four."""
    return st.integers(0, 3).flatmap(lambda number: st.just(nothing) if number else strategy)


@st.composite
def columns(draw: st.DrawFn) -> Column:
    return Column(
        draw(hostile_names),
        draw(kept_types),
        draw(st.booleans()),
        draw(hostile_texts),
        default=draw(seldom(maybe, None)),
        generated_as=draw(seldom(maybe, None)),
        identity=draw(seldom(st.none() | identities, None)),
        tags=draw(seldom(mappings, {})),
        mask=draw(seldom(st.none() | masks, None)),
        renamed_from=draw(seldom(former_names, None)),
        renamed_fields=draw(seldom(st.dictionaries(hostile_texts, former_names, max_size=2), {})),
        using=draw(seldom(maybe, None)),
    )


column_lists = st.lists(columns(), min_size=1, max_size=5, unique_by=lambda column: column.key)


@st.composite
def tables(draw: st.DrawFn, name: st.SearchStrategy[str] = hostile_names) -> Table:
    """Draw a table with hostile texts everywhere."""
    return draw(table_contents(draw(hostile_names), draw(hostile_names), draw(name)))


@st.composite
def table_contents(draw: st.DrawFn, catalog: str, schema: str, name: str) -> Table:
    """Draw everything but a table's name."""
    columns = draw(column_lists)
    names = st.permutations([column.name for column in columns])
    key = PrimaryKey(
        draw(names)[: draw(st.integers(1, 3))], draw(st.none() | hostile_texts), draw(st.booleans())
    )
    is_automatic = draw(seldom(st.just(True), False))
    try:
        return Table(
            catalog,
            schema,
            name,
            columns,
            draw(hostile_texts),
            draw(properties),
            draw(st.sampled_from([None, key])),
            foreign_keys=draw(seldom(st.lists(foreign_keys, max_size=3), [])),
            checks=draw(seldom(mappings.map(as_checks), ())),
            cluster_by="AUTO" if is_automatic else draw(names)[: draw(st.integers(0, 3))],
            partitioned_by=draw(seldom(names, [])),
            tags=draw(seldom(mappings, {})),
            row_filter=draw(seldom(st.none() | filters, None)),
            owner=draw(seldom(maybe, None)),
            grants=draw(seldom(st.dictionaries(hostile_texts, privileges, max_size=2), {})),
            location=draw(seldom(maybe, None)),
            renamed_from=draw(seldom(former_names, None)),
            manages=draw(seldom(st.sets(st.sampled_from(Part)), None)),
        )
    except InvalidModelError:  # drawn names may repeat each other
        reject()


@st.composite
def schemas(draw: st.DrawFn, name: st.SearchStrategy[str] = hostile_names) -> Schema:
    """Draw a schema with hostile texts everywhere; the arguments are those of `tables`."""
    return draw(schema_contents(draw(hostile_names), draw(name)))


@st.composite
def schema_contents(draw: st.DrawFn, catalog: str, name: str) -> Schema:
    return Schema(
        catalog,
        name,
        draw(maybe),
        tags=draw(mappings),
        owner=draw(maybe),
        grants=draw(st.dictionaries(hostile_texts, privileges, max_size=2)),
    )


@st.composite
def functions(draw: st.DrawFn, names: st.SearchStrategy[str] = hostile_names) -> Function:
    """Draw a function with hostile texts everywhere; its names come from `names`."""
    return Function(
        draw(names),
        draw(names),
        draw(names),
        draw(kept_types),
        draw(hostile_names | st.lists(hostile_texts, min_size=1, max_size=3).map("\n".join).filter(bool)),
        draw(st.lists(parameters, max_size=3, unique_by=lambda parameter: parameter.key)),
        language=draw(st.sampled_from(FunctionLanguage)),
        is_deterministic=draw(st.sampled_from([None, True, False])),
        comment=draw(hostile_texts),
        tags=draw(mappings),
        owner=draw(maybe),
        grants=draw(st.dictionaries(hostile_texts, privileges, max_size=2)),
    )


names_in_queries = st.lists(hostile_names, min_size=1, max_size=4).map(".".join)

queries = st.lists(hostile_names | names_in_queries, min_size=1, max_size=4).map(" ".join)

view_columns = st.builds(ViewColumn, hostile_texts, hostile_texts, tags=mappings)


@st.composite
def views(draw: st.DrawFn) -> View:
    """Draw a view with hostile texts everywhere."""
    return View(
        draw(hostile_names),
        draw(hostile_names),
        draw(hostile_names),
        draw(queries),
        draw(st.lists(view_columns, max_size=3, unique_by=lambda column: column.key)),
        schema_mode=draw(st.sampled_from([None, *SchemaMode])),
        comment=draw(hostile_texts),
        tags=draw(mappings),
        owner=draw(maybe),
        grants=draw(st.dictionaries(hostile_texts, privileges, max_size=2)),
        renamed_from=draw(former_names),
    )


parameters = st.builds(Parameter, hostile_texts, kept_types, maybe, hostile_texts)


scope_names = hostile_names.filter(lambda name: "." not in name)

scopes = st.integers(1, 3).flatmap(
    lambda count: st.lists(scope_names, min_size=count, max_size=count).map(
        lambda names: PolicyScope([*ScopeKind][len(names) - 1], ".".join(names))
    )
)


@st.composite
def policies(draw: st.DrawFn) -> AbacPolicy:
    """Draw a policy with hostile texts everywhere."""
    function, using = draw(hostile_texts), draw(st.lists(hostile_texts, max_size=2))
    protections: list[PolicyMask | PolicyFilter] = [
        PolicyMask(function, draw(hostile_texts), using),
        PolicyFilter(function, using),
    ]
    return AbacPolicy(
        draw(hostile_names),
        draw(scopes),
        draw(st.sampled_from(protections)),
        draw(st.lists(hostile_texts, max_size=2)),
        excepted=draw(st.lists(hostile_texts, max_size=2)),
        match=draw(mappings),
        when=draw(maybe),
        comment=draw(hostile_texts),
    )


def as_checks(expressions: Mapping[str, str]) -> tuple[CheckConstraint, ...]:
    return tuple(CheckConstraint(name, text) for name, text in expressions.items())


@contextmanager
def temporary_settings(variables: Mapping[str, str] | None = None) -> Iterator[Settings]:
    """Give the settings of an empty project in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        yield settings_of(Path(folder), variables)


def settings_of(folder: Path, variables: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of a project that is made in a folder, for models in `models/*.yml`."""
    (folder / "conf").mkdir()
    (folder / "models").mkdir()
    (folder / "conf" / "dev.yml").write_text(_CONFIG, "utf-8")
    return replace(load_settings(folder / "conf", "dev"), variables=dict(variables or {}))


def load_models(settings: Settings) -> tuple[Table, ...]:
    return load_declared(settings).tables


def load_yaml(text: str, settings: Settings) -> tuple[Table, ...]:
    """Return what a model file with this text declares, by way of the file."""
    (settings.project_dir / "models" / "m.yml").write_bytes(text.encode("utf-8"))
    return load_models(settings)


def declared_in_yaml(text: str, settings: Settings) -> Declared:
    """Return the tables and schemas that a model file with this text declares, by way of the file."""
    (settings.project_dir / "models" / "m.yml").write_bytes(text.encode("utf-8"))
    return _tables_and_schemas(settings)


def load_python(text: str, settings: Settings) -> tuple[Table, ...]:
    """Return the tables that a module with this text declares; see `declared_in_python`."""
    return declared_in_python(text, settings)[0]


def all_declared_in_yaml(text: str, settings: Settings) -> tuple[Securable, ...]:
    """Return what a model file with this text declares, by way of the file."""
    (settings.project_dir / "models" / "m.yml").write_bytes(text.encode("utf-8"))
    return load_declared(settings).models


def _tables_and_schemas(settings: Settings) -> Declared:
    declared = load_declared(settings)
    return declared.tables, tuple(of_kind(Schema, declared.models))


def declared_in_python(text: str, settings: Settings) -> Declared:
    """Return the tables and schemas that `all_declared_in_python` returns."""
    models = all_declared_in_python(text, settings)
    tables = tuple(model for model in models if isinstance(model, Table))
    return tables, tuple(model for model in models if isinstance(model, Schema))


def all_declared_in_python(text: str, settings: Settings) -> tuple[Securable, ...]:
    """Return what the function `tables` of a module with this text declares, by way of the file."""
    module = f"models_written_{next(_module_numbers)}"
    (settings.project_dir / f"{module}.py").write_bytes(text.encode("utf-8"))
    try:
        return load_declared(replace(settings, yaml_models=(), python_models=(f"{module}:tables",))).models
    finally:
        sys.modules.pop(module, None)
        sys.path[:] = [path for path in sys.path if path != str(settings.project_dir)]

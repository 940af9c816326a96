"""Edits of YAML model files: exact text in, exact text out, and nothing written where that is not sure."""

import os
import re
import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from delta_engine.config.edit_instructions import edit_instructions
from delta_engine.config.model_edits import ModelEdit, edit_models, is_editable
from delta_engine.config.model_writer import yaml_models
from delta_engine.config.settings import Settings
from delta_engine.errors import ConfigError, RefusalGroup, SourceLocation
from delta_engine.models import CheckConstraint, Column, ColumnMask, ForeignKey, PrimaryKey, RowFilter, Table
from tests.cases.golden_texts import assert_golden
from tests.projects.models import HOSTILE, load_models, settings_of

Layout = Callable[[str], str]

EDITS = Path(__file__).parent / "model_edits"
INSTRUCTIONS = Path(__file__).parent / "edit_instructions"
FILES = {path.stem: path.read_text("utf-8") for path in EDITS.iterdir()}
FLOW, BLOCK, ONE_LINE = FILES["flow"], FILES["block"], FILES["one_line"]
CASES: list[dict[str, Any]] = YAML(typ="safe", pure=True).load(FILES["cases"])
REFUSED: list[dict[str, Any]] = YAML(typ="safe", pure=True).load(FILES["refused"])

LAYOUTS: dict[str, Layout] = {
    "LF": str,
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "no line break at the end": lambda text: text.removesuffix("\n"),
    "with a mark and a start": lambda text: f"\ufeff---\n{text}",
}


def substituted(text: str, replacements: Sequence[tuple[str, str]]) -> str:
    for old, new in replacements:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def loaded(text: str, settings: Settings) -> tuple[Table, ...]:
    (settings.project_dir / "models" / "m.yml").write_bytes(text.encode("utf-8"))
    return load_models(settings)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_of(tmp_path, {"catalog": "dev", "x": "X"})


REMOVED = next(case for case in CASES if case["name"] == "one of two tables goes")


@pytest.mark.parametrize(
    ("case", "layout"),
    [
        *((case, "LF") for case in CASES),
        *((case, layout) for case in (REMOVED, *CASES[::8]) for layout in LAYOUTS if layout != "LF"),
    ],
    ids=lambda value: value if isinstance(value, str) else value["name"],
)
def test_only_what_changed_is_touched(case: dict[str, Any], layout: str, settings: Settings) -> None:
    lay_out, text = LAYOUTS[layout], case.get("text") or FILES[case["file"]]
    wanted = substituted(text, case.get("replaced", ()))
    after = None if case.get("removed") else loaded(lay_out(wanted), settings)[0]
    before, *others = loaded(lay_out(text), settings)
    edit = ModelEdit(
        before=before,
        after=after and replace(after, declared_at=before.declared_at),
        renames=case.get("renames", {}),
    )
    written = edit_models([edit], settings)
    path = settings.project_dir / "models" / "m.yml"
    assert path.read_bytes().decode("utf-8") == lay_out(wanted)
    assert written == ((path,) if "replaced" in case else ())
    if edit.after is not None:
        assert load_models(settings) == (edit.after, *others)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["name"])
def test_what_cannot_be_edited_safely_is_refused_with_an_instruction(
    case: dict[str, Any], settings: Settings
) -> None:
    text = substituted(FILES[case["file"]], case.get("given", ()))
    position = case.get("position", 0)
    wanted = loaded(substituted(text, case.get("replaced", ())), settings)[position]
    before = loaded(text, settings)[position]
    after = None if case.get("removed") else replace(wanted, declared_at=before.declared_at)
    with pytest.raises(ConfigError) as caught:
        edit_models([ModelEdit(before=before, after=after)], settings)
    assert str(caught.value) == (
        f"{before.declared_at}: table {before.qualified_name}: the file cannot be edited safely: "
        f"{case['refused']}. Change it by hand:\n{edit_instructions(before, after)}"
    )
    assert (settings.project_dir / "models" / "m.yml").read_bytes().decode() == text


@pytest.mark.parametrize(
    "file", [FLOW, re.sub(" *# (first|how much)", "", BLOCK), ONE_LINE], ids=["flow", "block", "one"]
)
def test_awkward_texts_arrive_as_they_are(file: str, settings: Settings) -> None:
    (before,) = loaded(file, settings)
    names = list({text.lower(): text for text in HOSTILE if text}.values())
    after = replace(
        before,
        columns=tuple(Column(name, "int", comment=f"{name} ", tags={name: name}) for name in names),
        comment="".join(names),
        table_properties={**before.table_properties, **{text: text for text in HOSTILE}},
        primary_key=PrimaryKey(names, "a: b"),
        foreign_keys=tuple(ForeignKey([name], f"s.t{place}", name=name) for place, name in enumerate(names)),
        cluster_by=tuple(names),
    )
    edit_models([ModelEdit(before=before, after=after, renames={before.columns[0].name: names[0]})], settings)
    assert load_models(settings) == (after,)


def test_long_types_are_written_with_a_line_per_field_and_edited(settings: Settings) -> None:
    street = "street: string NOT NULL COMMENT 'of ${home}: # `it\\'s`'"
    long = f"struct<{street}, `the zip`: string, geo: array<struct<lat: double, lon: double>>>"
    model = Table("dev", "silver", "long", [Column("address", long, comment="c"), Column("id", "int")])
    text = yaml_models([model], {})
    assert "        type: |-\n          struct<\n            street: string NOT NULL" in text
    (before,) = loaded(text, settings)
    assert before == model
    for after in (
        replace(before, columns=(before.columns[0], Column("id", "bigint"))),
        replace(before, columns=(Column("address", "struct<street: string>"), before.columns[1])),
        replace(before, columns=before.columns[1:]),
    ):
        (before,) = loaded(text, settings)
        edit_models([ModelEdit(before=before, after=after)], settings)
        assert load_models(settings) == (after,)


def test_tables_of_one_file_are_edited_together(settings: Settings) -> None:
    whole = re.sub(" +#.*", "", FLOW)
    entry = whole.split("tables:\n")[1]
    text = whole + "".join(entry.replace("'orders'", name) for name in ("b", "c", "d"))
    first, second, third, last = loaded(text, settings)
    edits = [
        ModelEdit(before=last, after=replace(last, comment="last")),
        ModelEdit(before=first, after=None),
        ModelEdit(before=third, after=replace(third, columns=third.columns[1:], primary_key=None)),
    ]
    edit_models(edits, settings)
    assert load_models(settings) == (second, edits[2].after, edits[0].after)


def test_files_are_edited_together_or_not_at_all(settings: Settings) -> None:
    models = settings.project_dir / "models"
    block = re.sub(" +#.*", "", BLOCK)
    (models / "n.yml").write_text(block.replace("orders", "lines"), "utf-8")
    orders, lines = loaded(FLOW, settings)
    good = ModelEdit(before=orders, after=replace(orders, comment="x"))
    (models / "n.yml").write_text(block.replace("orders", "other"), "utf-8")
    with pytest.raises(ConfigError, match="the file changed after the models were loaded"):
        edit_models([good, ModelEdit(before=lines, after=None)], settings)
    assert (models / "m.yml").read_text("utf-8") == FLOW
    (models / "n.yml").write_text(block.replace("orders", "lines"), "utf-8")
    assert edit_models([ModelEdit(before=lines, after=None), good], settings) == (
        models / "m.yml",
        models / "n.yml",
    )


@pytest.mark.parametrize(
    "newer",
    [
        "# one line more\n" + FLOW,
        FLOW.replace("bigint", "int"),
        FLOW.replace("'orders'", "'lines'"),
        "tables: []\n",
    ],
)
def test_a_file_that_has_changed_since_is_left_alone(newer: str, settings: Settings) -> None:
    (before,) = loaded(FLOW, settings)
    path = settings.project_dir / "models" / "m.yml"
    path.write_text(newer, "utf-8")
    with pytest.raises(
        ConfigError, match=r"the file changed after the models were loaded\. Run the command again"
    ):
        edit_models([ModelEdit(before=before, after=replace(before, comment="x"))], settings)
    assert path.read_text("utf-8") == newer


def test_a_file_that_cannot_be_loaded_any_more_is_left_alone(settings: Settings) -> None:
    (before,) = loaded(FLOW, settings)
    path = settings.project_dir / "models" / "m.yml"
    for newer in (b"tables: [", b"\xff", FLOW.replace("name: 'orders'", "").encode()):
        path.write_bytes(newer)
        with pytest.raises(ConfigError):
            edit_models([ModelEdit(before=before, after=None)], settings)
        assert path.read_bytes() == newer
    path.unlink()
    with pytest.raises(ConfigError, match=r"models/m\.yml: the file cannot be read:"):
        edit_models([ModelEdit(before=before, after=None)], settings)


def test_the_order_of_checks_means_nothing(settings: Settings) -> None:
    (before,) = loaded(FILES["whole"], settings)
    first, second = before.checks
    after = replace(before, checks=(second, replace(first, expression="id > 1")))
    edit_models([ModelEdit(before=before, after=after)], settings)
    text = (settings.project_dir / "models" / "m.yml").read_text("utf-8")
    assert text == FILES["whole"].replace("a: id > 0", "a: id > 1")


START = "tables:\n- catalog: dev\n  schema: s\n  name: t\n"

UNUSUAL = [
    "{tables: [{? catalog : dev, schema: s, name: t, columns: [{name: a, type: int}]}]}\n",
    START.replace("catalog:", "? catalog\n  :") + "  columns:\n  - name: a\n    type: int\n",
    START.replace("- ", "- !!map\n  ") + "  columns: !!seq\n  - !!map {name: a, type: int}\n",
    '"tables": [{"catalog": "dev","schema":"s","name":"t","columns":[{"name":"a","type":"int"}]}]',
    f"%YAML 1.1\n---\n{START}  columns: [{{name: a, type: int}}]\n...\n",
    START.replace("- ", "-\n\n  # c\n  ") + "  columns:\n  - \n    name: a\n    type: int\n",
    START + "  comment: |+\n    a\n\n\n  columns: [{name: a, type: int}]\n",
    START + "  columns: [{name: a, type: int}]\n  comment: |\n    a",
    START + "  columns: [{name: a, type: int}]\n  properties: &p {x: y}\n",
    START.replace("- ", "- comment: x  # c\n  # d\n  ") + "  columns:\n  -   name: a\n      type: int\n",
    "tables:\r- {catalog: dev, schema: s, name: t, columns: [{name: a, type: int}]}\r",
    (START + "  columns:\n  - name: a\n    type: int\n").replace("\n", "\r\n", 3),
]


@pytest.mark.parametrize("text", UNUSUAL)
def test_unusual_layouts_are_edited_exactly_or_refused(text: str, settings: Settings) -> None:
    (before,) = loaded(text, settings)
    new = Column("b", "int", False, "c")
    goals = [
        replace(before, comment="no"),
        replace(before, comment=""),
        replace(before, columns=(new, *before.columns)),
        replace(before, columns=(*before.columns[:1], new, *before.columns[1:])),
        replace(before, columns=()),
        replace(before, table_properties={"a": "b"}),
        replace(before, primary_key=PrimaryKey(["a"], "x")),
        None,
    ]
    for after in goals:
        loaded(text, settings)
        try:
            edit_models([ModelEdit(before=before, after=after)], settings)
        except ConfigError as refusal:
            refused = refusal.reason.startswith("the file cannot be edited safely")
            assert refused
            assert (settings.project_dir / "models" / "m.yml").read_bytes().decode() == text
        else:
            if after is not None:
                assert load_models(settings) == (after,)


def test_what_cannot_be_edited_is_refused_all_at_once(settings: Settings) -> None:
    (orders,) = loaded(FLOW, settings)
    python = replace(orders, declared_at=SourceLocation("retail/models.py", 12))
    edits = [
        ModelEdit(before=python, after=replace(python, comment="x")),
        ModelEdit(before=orders, after=replace(orders, table_name="lines")),
        ModelEdit(before=orders, after=replace(orders, default_table_properties={"a": "b"})),
    ]
    with pytest.raises(RefusalGroup) as caught:
        edit_models(edits, settings)
    assert [refusal.reason for refusal in caught.value.refusals] == [
        "only models in YAML files can be edited",
        "a table's name cannot be edited",
        "a default property is part of the environment's configuration, not of the model",
    ]
    twice = ModelEdit(before=orders, after=replace(orders, comment="x"))
    with pytest.raises(ConfigError, match="the model gets two edits at once"):
        edit_models([twice, twice], settings)
    assert [is_editable(ModelEdit(before=model, after=None)) for model in (orders, python)] == [True, False]


def test_writing_keeps_links_and_modes_and_leaves_nothing_behind(settings: Settings) -> None:
    models = settings.project_dir / "models"
    target = settings.project_dir / "shared.yml"
    target.write_text(FLOW, "utf-8")
    target.chmod(0o640)
    (models / "m.yml").symlink_to(target)
    (before,) = load_models(settings)
    edit_models([ModelEdit(before=before, after=replace(before, comment="x"))], settings)
    assert (models / "m.yml").is_symlink()
    assert target.read_text("utf-8") == FLOW.replace('"Orders table"', '"x"')
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(path.name for path in settings.project_dir.iterdir()) == ["conf", "models", "shared.yml"]


def test_where_no_file_can_be_added_nothing_changes(settings: Settings) -> None:
    models = settings.project_dir / "models"
    (models / "x.yml").write_text(FLOW.replace("'orders'", "lines"), "utf-8")
    (models / f".delta-engine-{os.getpid()}-1.tmp").mkdir()  # in the place of the second temporary file
    orders, lines = loaded(FLOW, settings)
    edits = [ModelEdit(before=model, after=replace(model, comment="x")) for model in (orders, lines)]
    with pytest.raises(ConfigError, match="writing model files failed: Is a directory"):
        edit_models(edits, settings)
    assert load_models(settings) == (orders, lines)
    assert len(list(models.iterdir())) == 3


def test_edits_are_described_for_people(request: pytest.FixtureRequest) -> None:
    before = Table(
        "dev",
        "silver",
        "orders",
        [Column("id", "int", comment="a"), Column("amount", "int"), Column("c", "int"), Column("d", "int")],
        "one",
        {"a": "1", "b": "2"},
        ["id"],
        declared_at=SourceLocation("retail/models.py", 12),
    )
    after = Table(
        "dev",
        "silver",
        "orders",
        [
            Column("d", "int"),
            Column("id", "bigint", False, "b"),
            Column("total", "int"),
            Column("x", "int", comment="it's"),
        ],
        "",
        {"b": "3", "c": "4"},
        PrimaryKey(["id", "d"], "pk", rely=True),
        cluster_by=["x"],
    )
    texts = [edit_instructions(before, after, {"amount": "total"}), edit_instructions(before, None)]
    assert_golden("\n\n".join(texts) + "\n", INSTRUCTIONS / "edits.txt", request)


def test_edits_of_every_field_are_described(request: pytest.FixtureRequest) -> None:
    before = Table(
        "dev",
        "silver",
        "orders",
        [Column("id", "int", tags={"a": "1"}, mask=ColumnMask("gov.f"))],
        foreign_keys=[ForeignKey(["id"], "a"), ForeignKey(["id"], "b")],
        checks=[CheckConstraint("positive", "id > 0")],
        cluster_by=["id"],
        owner="me",
    )
    after = Table(
        "dev",
        "silver",
        "orders",
        [Column("id", "int", default="7", tags={"a": "2"}, mask=ColumnMask("gov.g", ["id"]))],
        foreign_keys=[ForeignKey(["id"], "b"), ForeignKey(["id"], "c", name="n")],
        checks=[CheckConstraint("positive", "id > 1")],
        cluster_by="AUTO",
        row_filter=RowFilter("gov.r", ["id"]),
        grants={"analysts": ["SELECT"]},
    )
    text = edit_instructions(before, after).partition("\n")[2]
    assert_golden(f"{text}\n", INSTRUCTIONS / "edits_of_every_field.txt", request)

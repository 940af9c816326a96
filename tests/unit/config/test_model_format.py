"""Formatting of model files: exact text in, exact text out, the same meaning, and a refusal where that is not sure."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from delta_engine.config.model_files import models_in
from delta_engine.config.model_format import formatted
from delta_engine.config.yaml_documents import parse_document
from delta_engine.errors import RefusedError
from tests.unit.config.test_model_edits import LAYOUTS

ROOT = Path(__file__).parents[3]
CASES: list[dict[str, Any]] = YAML(typ="safe", pure=True).load(
    (Path(__file__).parent / "model_format" / "cases.yml").read_text("utf-8")
)
FENCED = re.compile(r"^( *)```yaml\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
OWN_MODELS = sorted(
    path
    for folder in ("conf/models", "src/delta_engine/skeleton/conf/models", "docs/recipes")
    for path in (ROOT / folder).rglob("*.yml")
    if "models" in path.parts
)

UNORDERED = """\
tables:
  - name: t
    schema: s
    catalog: c
    columns: [{type: int, name: id}]
"""


def corpus() -> Iterator[tuple[str, str]]:
    """Yield every model in the repository: of files, and of blocks in the documentation."""
    folders = ("conf", "src/delta_engine/skeleton", "tests", "docs", "benchmarks")
    for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.yml")):
        yield str(path.relative_to(ROOT)), path.read_bytes().decode("utf-8", "replace")
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for number, (margin, block) in enumerate(FENCED.findall(path.read_text("utf-8"))):
            yield f"{path.relative_to(ROOT)} {number}", re.sub(f"^{margin}", "", block, flags=re.MULTILINE)


def models(text: str) -> list[object] | None:
    """Return the models of a text, None if it is no model file, or has a broken model."""
    try:
        models_and_refusals = [*models_in(parse_document(text.replace("\r\n", "\n"), "m.yml"))]
    except RefusedError:
        return None
    return (
        None
        if any(isinstance(item, RefusedError) for item in models_and_refusals)
        else [*models_and_refusals]
    )


CORPUS = {name: text for name, text in corpus() if models(text) is not None}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_keys_come_into_order_and_all_else_stays(case: dict[str, Any], layout: str) -> None:
    lay_out, before = LAYOUTS[layout], case["before"]
    if before.startswith("---") and "start" in layout:
        return
    after = case.get("after", before)
    assert formatted(lay_out(before), "m.yml") == lay_out(after)
    assert formatted(lay_out(after), "m.yml") == lay_out(after)


def test_the_corpus_has_what_the_repository_has() -> None:
    assert len([name for name in CORPUS if name.endswith("desired.yml")]) > 100
    assert {"conf/models/silver/orders.yml", "README.md 0"} <= CORPUS.keys()
    assert len([name for name in CORPUS if name.startswith("docs/models.md")]) > 1


@pytest.mark.parametrize("name", CORPUS)
def test_no_model_of_the_repository_changes_its_meaning(name: str) -> None:
    result = formatted(CORPUS[name], name)
    assert models(result) == models(CORPUS[name])
    assert formatted(result, name) == result


@pytest.mark.parametrize("path", OWN_MODELS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_models_that_are_shipped_are_formatted(path: Path) -> None:
    text = path.read_text("utf-8")
    assert formatted(text, path.name) == text


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("tables: [", "m.yml:2: invalid YAML: "),
        ("a: b", "m.yml:1: unknown key 'a': a model file contains lists of models"),
        (
            "a: b\ntables: []\nb: c",
            "m.yml:1: unknown key 'a'. Use one of: functions, policies, schemas, tables, views.\nm.yml:3: "
            "unknown key 'b'.",
        ),
        ("", "m.yml:1: a model file contains lists of models"),
        ("tables: 7", "m.yml:1: tables: expected a list, got an integer."),
        ("a: b\n---\nc: d\n", "m.yml:2: a second YAML document begins here"),
        (UNORDERED.replace("name: t", "name: t\n    name: u"), "m.yml:3: the key 'name' is written twice."),
        (UNORDERED.replace("type: int", "type: text"), "table c.s.t, column id: "),
        (UNORDERED.replace("schema: s", "schemas: s"), "m.yml:3: table c.?.t: unknown key 'schemas'."),
        (
            UNORDERED.replace("t\n", "t\r\n"),
            "it cannot be formatted safely: its lines have different line ends.",
        ),
        (UNORDERED.replace("\n", "\r"), "it cannot be formatted safely: its lines have different line ends."),
        (
            f"{UNORDERED}    comment: |\n      of the last line",
            "m.yml: it cannot be formatted safely: the formatted file would have another meaning. Sort its keys",
        ),
    ],
)
def test_what_is_no_model_file_or_is_not_safe_is_refused(text: str, refused: str) -> None:
    with pytest.raises(RefusedError) as caught:
        formatted(text, "m.yml")
    assert refused in str(caught.value)

"""What `scripts/prose.py` counts, and in which texts."""

import ast
import json

import pytest

from scripts.prose import counted, docstrings, main, markdown_prose, messages

PAGE = """# A heading

Nothing is kept by [the engine](a.md), which has none. `whoever` says so.

- an item; and more
- another

| head | cell |
| --- | --- |
| a cell of its own | `code` |

```sh
beside
```
"""

MODULE = '''"""What a module is."""

SQL = "SELECT a FROM b WHERE this is so"

def refused(name: str) -> str:
    """Return the text of a refusal.

    More.
    """
    return f"{name!r} is no table, or it is hidden"

def _hidden() -> None:
    """Not counted."""
'''


def test_paragraphs_items_and_cells_of_a_page_are_read_without_code() -> None:
    assert list(markdown_prose(PAGE)) == [
        "Nothing is kept by the engine, which has none. code says so.",
        "an item; and more",
        "another",
        "head",
        "cell",
        "a cell of its own",
        "code",
    ]


def test_habits_are_counted() -> None:
    prose = counted("page", markdown_prose(PAGE))
    assert prose.habits == {"negation": 1, "own": 1, "says": 1, "semicolon": 1}
    assert (prose.total, prose.sentences, prose.long_sentences) == (4, 3, 0)
    assert prose.ease is not None
    assert prose.ease > 60


def test_messages_are_told_from_sql_and_from_docstrings() -> None:
    tree = ast.parse(MODULE)
    assert list(messages(tree)) == ["value is no table, or it is hidden"]
    assert list(docstrings(tree)) == ["What a module is.", "Return the text of a refusal."]


def test_the_script_prints_pages_and_rooms(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs/terraform.md", "--json"]) == 0
    (page,) = json.loads(capsys.readouterr().out)
    assert page["name"] == "docs/terraform.md"
    assert page["words"] > 100
    assert main(["telemetry"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == [
        "messages of telemetry",
        "docstrings of telemetry",
        "together",
    ]

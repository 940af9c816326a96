"""Writes what of the documentation follows from the code: docs/capabilities.md, and tables of others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from delta_engine.report.reference_pages import (
    capability_page,
    column_keys,
    hazards_table,
    rights_table,
    rules_table,
    table_keys,
)

DOCS = Path(__file__).parents[1] / "docs"
END = "<!-- end -->"


def main() -> None:
    """Write the pages."""
    (DOCS / "capabilities.md").write_text(capability_page(), "utf-8")
    rules = {"hazards": hazards_table(), "models": rules_table("models"), "plans": rules_table("plans")}
    write_tables(DOCS / "rules.md", rules)
    write_tables(DOCS / "rights.md", {"statements": rights_table()})
    write_tables(DOCS / "models.md", {"table": table_keys(), "column": column_keys()})


def write_tables(path: Path, tables: Mapping[str, str]) -> None:
    """Replace the tables between the marks of a page."""
    page = path.read_text("utf-8")
    for name, table in tables.items():
        before, _, rest = page.partition(f"<!-- {name}: make pages -->\n")
        _, _, after = rest.partition(END)
        page = f"{before}<!-- {name}: make pages -->\n{table}{END}{after}"
    path.write_text(page, "utf-8")


if __name__ == "__main__":
    main()

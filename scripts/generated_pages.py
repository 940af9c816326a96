"""Writes what of the documentation follows from the code: docs/capabilities.md, and the tables of docs/rules.md."""

from __future__ import annotations

from pathlib import Path

from delta_engine.report.capability_page import capability_page
from delta_engine.report.rules_page import hazards_table, rules_table

DOCS = Path(__file__).parents[1] / "docs"
END = "<!-- end -->"


def main() -> None:
    """Write both pages."""
    (DOCS / "capabilities.md").write_text(capability_page(), "utf-8")
    page = (DOCS / "rules.md").read_text("utf-8")
    for name, table in (
        ("hazards", hazards_table()),
        ("models", rules_table("models")),
        ("plans", rules_table("plans")),
    ):
        before, _, rest = page.partition(f"<!-- {name}: make pages -->\n")
        _, _, after = rest.partition(END)
        page = f"{before}<!-- {name}: make pages -->\n{table}{END}{after}"
    (DOCS / "rules.md").write_text(page, "utf-8")


if __name__ == "__main__":
    main()

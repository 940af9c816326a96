"""The table of docs/rights.md, written from the requirements themselves."""

from __future__ import annotations

from delta_engine.validation.needed_rights import REFERENCED_TABLE, REQUIREMENTS


def rights_table() -> str:
    """Return what each kind of statement takes, as Markdown, in the order of the code."""
    rows = (
        f"| `{one.statement}` | {one.demands} | {one.source} |\n"
        for one in (*REQUIREMENTS.values(), REFERENCED_TABLE)
        if one is not None
    )
    return f"| statement | needs | says |\n| --- | --- | --- |\n{''.join(rows)}"

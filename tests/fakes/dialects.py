"""How catalog services word the same answers over HTTP: Databricks, and the server of open-source Unity Catalog 0.6.

The engine reads both: which of them a workspace resembles is not documented for every answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

_OTHER_CODES: Final = {
    "RESOURCE_DOES_NOT_EXIST": "NOT_FOUND",
    "SCHEMA_DOES_NOT_EXIST": "SCHEMA_NOT_FOUND",
    "TABLE_OR_VIEW_ALREADY_EXISTS": "TABLE_ALREADY_EXISTS",
    "TABLE_OR_VIEW_NOT_FOUND": "TABLE_NOT_FOUND",
}
"""Codes of the open-source server, by those of Databricks."""

_OF_A_TABLE: Final = ("comment", "owner", "storage_location", "table_type", "updated_by", "view_definition")
_OF_A_COLUMN: Final = ("comment", "partition_index", "type_interval_type", "type_precision", "type_scale")


class Dialect(Enum):
    """A service, and the number of tables on its pages."""

    DATABRICKS = 50
    OPEN_SOURCE = 100

    def code(self, code: str) -> str:
        """Return the code for one of Databricks; subconditions stay."""
        name, dot, rest = code.partition(".")
        return code if self is Dialect.DATABRICKS else f"{_OTHER_CODES.get(name, name)}{dot}{rest}"

    def error(self, code: str, message: str) -> dict[str, object]:
        """Return the document of an error."""
        body: dict[str, object] = {"error_code": self.code(code), "message": message}
        if self is Dialect.OPEN_SOURCE:
            body["details"] = [{"@type": "google.rpc.ErrorInfo", "reason": body["error_code"]}]
        return body

    def page(self, tables: Sequence[Mapping[str, object]], token: str) -> dict[str, object]:
        """Return a page of tables.

        Databricks numbers its pages, and the first is empty and still has a next one, as the documentation allows. The
        open-source server sorts by name, names the last table of a full page as the token of the next one, which may be
        empty, and writes null where it has no value.
        """
        if self is Dialect.DATABRICKS:
            return self._numbered_page(tables, token)
        following = sorted(
            (table for table in tables if str(table["name"]) > token), key=lambda table: str(table["name"])
        )
        shown = following[: self.value]
        is_full = len(shown) == self.value
        return {
            "tables": [_with_nulls(table) for table in shown],
            "next_page_token": shown[-1]["name"] if is_full else None,
        }

    def _numbered_page(self, tables: Sequence[Mapping[str, object]], token: str) -> dict[str, object]:
        if not token:
            return {"tables": [], "next_page_token": "0"}
        start = int(token)
        page: dict[str, object] = {"tables": tables[start : start + self.value]}
        if start + self.value < len(tables):
            page["next_page_token"] = str(start + self.value)
        return page


def _with_nulls(table: Mapping[str, object]) -> Mapping[str, object]:
    columns = table.get("columns")
    assert isinstance(columns, Sequence)
    return {
        **dict.fromkeys(_OF_A_TABLE),
        **table,
        "columns": [{**dict.fromkeys(_OF_A_COLUMN), **column} for column in columns],
    }

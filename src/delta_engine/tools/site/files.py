"""The paths of the site's files, safe in every file system, and the addresses that lead to them."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from delta_engine.models import AbacPolicy, FunctionName, SchemaName, Table, View

INDEX: Final = "index.html"
STYLES: Final = "assets/site.css"
SCRIPT: Final = "assets/site.js"
SEARCH_INDEX: Final = "assets/search-index.js"

_IS_SAFE: Final = re.compile(r"[a-z0-9_][a-z0-9_-]*").fullmatch
_RESERVED: Final = re.compile(r"(con|prn|aux|nul|index|(com|lpt)\d)").fullmatch
"""Names that Windows reserves, and that of the schema's own page."""

_LONGEST: Final = 100
_HASH_LENGTH: Final = 12


def schema_path(name: SchemaName) -> str:
    """Return the path of a schema's page."""
    return f"{_schema_folder(name.catalog, name.schema)}/index.html"


def table_path(table: Table) -> str:
    """Return the path of a table's page."""
    return f"{_schema_folder(table.catalog_name, table.schema_name)}/{_stem(table.table_name)}.html"


def view_path(view: View) -> str:
    """Return the path of a view's page."""
    return f"{_schema_folder(view.catalog_name, view.schema_name)}/views/{_stem(view.view_name)}.html"


def function_path(name: FunctionName) -> str:
    """Return the path of a function's page."""
    return f"{_schema_folder(name.catalog, name.schema)}/functions/{_stem(name.name)}.html"


def policy_path(policy: AbacPolicy) -> str:
    """Return the path of a policy's page."""
    scope = "/".join(map(_stem, policy.scope.parts))
    return f"policies/{policy.scope.kind.value}/{scope}/{_stem(policy.name)}.html"


@lru_cache(maxsize=4096)
def column_anchor(name: str) -> str:
    """Return the id of a column, by its shown name, on its table's page; encodeURIComponent makes the same."""
    return f"column-{quote(name, safe=_UNRESERVED)}"


_UNRESERVED: Final = "!~*'()"


def _schema_folder(catalog: str, schema: str) -> str:
    return f"schemas/{_stem(catalog)}.{_stem(schema)}"


def _stem(name: str) -> str:
    """Return a name as a part of a path; a hash keeps names apart that have other characters."""
    lowered = name.lower()
    if _IS_SAFE(lowered) and len(lowered) <= _LONGEST and not _RESERVED(lowered):
        return lowered
    readable = re.sub(r"[^a-z0-9_]", "-", lowered)[: _LONGEST - _HASH_LENGTH].strip("-")
    digest = hashlib.sha256(lowered.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{readable}-{digest}".lstrip("-")

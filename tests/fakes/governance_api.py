"""Functions, policies and views of Unity Catalog's REST API on loopback, as databricks-sdk lists them.

A page has two entries, and the first one is empty and still has a next one, as the documentation allows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, unquote, urlsplit

from delta_engine.models.functions import FunctionLanguage
from delta_engine.sql.text import shown_type
from delta_engine.state.function_states import FunctionState
from tests.fakes.dialects import Dialect
from tests.fakes.loopback import served
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.fakes.unity_catalog.policies import Policy
from tests.fakes.unity_catalog.user_views import StoredView

FUNCTIONS = "/api/2.1/unity-catalog/functions"
POLICIES = "/api/2.1/unity-catalog/policies/"
TAG_POLICIES = "/api/2.1/tag-policies"
TABLES = "/api/2.1/unity-catalog/tables"
LISTINGS = (f"{FUNCTIONS}/", f"{TABLES}/", POLICIES)
"""What the paths of listings begin with."""

_PAGE = 2

Listed = Mapping[str, object]


@dataclass
class FakeGovernanceApi:
    """What the fake has.

    Args:
        requests: the paths that were asked for.
        refused: the schemas, catalogs and tables that may not be listed.
    """

    catalog: FakeUnityCatalog
    port: int = 0
    requests: list[str] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)

    @property
    def host(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def functions(self, catalog: str, schema: str) -> list[Listed] | None:
        """Return the functions of a schema that the user may execute or owns; None for a missing schema."""
        if f"{catalog}.{schema}" not in self.catalog.schemas:
            return None
        shown = self.catalog._shown_functions()
        return [
            as_function_info(key, state)
            for key, state in shown.items()
            if key.startswith(f"{catalog}.{schema}.")
        ]

    def views(self, catalog: str, schema: str) -> list[Listed] | None:
        """Return the views of a schema; None for a missing schema. Tables are not listed."""
        if f"{catalog}.{schema}" not in self.catalog.schemas:
            return None
        shown = self.catalog._shown_views()
        return [
            as_table_info(view, is_owner=is_owner)
            for key, (view, is_owner) in shown.items()
            if key.startswith(f"{catalog}.{schema}.")
        ]

    def policies(self, name: str, *, include_inherited: bool) -> list[Listed]:
        """Return the policies of a securable, and those of what it is in."""
        return [
            as_policy_info(policy)
            for policy in self.catalog.policies
            if policy.securable == name or (include_inherited and policy.covers(name))
        ]

    def answer(self, target: str) -> tuple[int, object]:
        """Return the status and the document of a request."""
        url = urlsplit(target)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        self.requests.append(url.path)
        if url.path == TAG_POLICIES:
            about = "tags"
        elif url.path in (FUNCTIONS, TABLES):
            about = f"{query['catalog_name']}.{query['schema_name']}"
        else:
            about = unquote(url.path).rpartition("/")[2].lower()
        if about in self.refused:
            return 403, Dialect.DATABRICKS.error("PERMISSION_DENIED", "no")
        token = query.get("page_token", "")
        if url.path == TAG_POLICIES:
            tags: list[Listed] = [{"tag_key": key} for key in sorted(self.catalog.known_tags or ())]
            return 200, _page("tag_policies", tags, token)
        if url.path in (FUNCTIONS, TABLES):
            what, ask = ("functions", self.functions) if url.path == FUNCTIONS else ("tables", self.views)
            entries = ask(query["catalog_name"], query["schema_name"])
            if entries is None:
                return 404, Dialect.DATABRICKS.error("SCHEMA_DOES_NOT_EXIST", "no")
            return 200, _page(what, entries, token)
        if url.path.startswith(POLICIES):
            policies = self.policies(about, include_inherited=query.get("include_inherited") == "true")
            return 200, _page("policies", policies, token)
        return 404, Dialect.DATABRICKS.error("ENDPOINT_NOT_FOUND", "no")


def as_function_info(key: str, state: FunctionState) -> Listed:
    catalog, schema, name = key.split(".")
    is_python = state.language is FunctionLanguage.PYTHON
    assert state.returns is not None
    return {
        "full_name": key,
        "catalog_name": catalog,
        "schema_name": schema,
        "name": name,
        "full_data_type": shown_type(state.returns),
        "data_type": shown_type(state.returns).partition("(")[0].partition("<")[0].upper(),
        "routine_body": "EXTERNAL" if is_python else "SQL",
        "external_language": "PYTHON" if is_python else None,
        "routine_definition": state.body,
        "is_deterministic": state.is_deterministic is not False,
        "comment": state.comment or None,
        "owner": state.owner,
        "updated_at": _milliseconds(state.audit.altered_at),
        "updated_by": state.audit.altered_by,
        "input_params": {
            "parameters": [
                {
                    "name": parameter.name,
                    "type_text": shown_type(parameter.data_type),
                    "type_name": shown_type(parameter.data_type).partition("(")[0].partition("<")[0].upper(),
                    "position": position,
                    "parameter_default": parameter.default,
                    "comment": parameter.comment or None,
                }
                for position, parameter in enumerate(state.parameters)
            ]
        },
    }


def as_table_info(view: StoredView, *, is_owner: bool) -> Listed:
    catalog, schema, name = view.key.split(".")
    return {
        "full_name": view.key,
        "catalog_name": catalog,
        "schema_name": schema,
        "name": name,
        "table_type": "VIEW",
        "view_definition": view.query if is_owner else None,
        "comment": view.comment or None,
        "owner": view.owner,
        "table_id": f"id {view.number} of {view.key}",
        "created_at": _milliseconds(view.audit.created_at),
        "created_by": view.audit.created_by,
        "updated_at": _milliseconds(view.audit.altered_at),
        "updated_by": view.audit.altered_by,
        "properties": {"view.schemaMode": view.mode.value.upper(), "view.query.out.numCols": "1"},
        "columns": [
            {"name": column.name, "position": position, "comment": column.comment or None}
            for position, column in enumerate(view.columns)
        ],
    }


def as_policy_info(policy: Policy) -> Listed:
    aliases = {alias.lower() for alias, _ in policy.match}
    using = [{"alias" if text.lower() in aliases else "constant": text} for text in policy.using]
    options: dict[str, object] = {"function_name": policy.function, "using": using}
    if policy.policy_type == "ROW_FILTER":
        effect: dict[str, object] = {"row_filter": options}
    elif policy.policy_type == "COLUMN_MASK":
        effect = {"column_mask": {**options, "on_column": policy.column}}
    else:
        effect = {"grant": {"privileges": ["SELECT"]}}
    return {
        "name": policy.name,
        "on_securable_type": ("CATALOG", "SCHEMA", "TABLE")[policy.securable.count(".")],
        "on_securable_fullname": policy.securable,
        "policy_type": f"POLICY_TYPE_{policy.policy_type}",
        "for_securable_type": "TABLE",
        "to_principals": sorted(policy.principals),
        "except_principals": sorted(policy.excepted),
        "when_condition": policy.when,
        "match_columns": [{"alias": alias, "condition": text} for alias, text in policy.match],
        "comment": policy.comment,
        "updated_at": _milliseconds(policy.altered_at),
        "updated_by": policy.altered_by,
        **effect,
    }


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp() * 1000)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: FakeGovernanceApi

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer(*self.api.answer(self.path))

    def _answer(self, status: int, document: object) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _page(what: str, entries: Sequence[Listed], token: str) -> dict[str, object]:
    if not token:
        return {"next_page_token": "0"}
    start = int(token)
    page: dict[str, object] = {what: entries[start : start + _PAGE]}
    if start + _PAGE < len(entries):
        page["next_page_token"] = str(start + _PAGE)
    return page


@contextmanager
def serving(api: FakeGovernanceApi) -> Iterator[FakeGovernanceApi]:
    with served(_Handler, api=api) as api.port:
        yield api

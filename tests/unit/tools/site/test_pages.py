"""The pages of the site: well-formed, whole, the same bytes each time, and no text that becomes markup."""

from __future__ import annotations

import json
import posixpath
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_engine.errors import ConfigError, SourceLocation
from delta_engine.models import Column, Table
from delta_engine.telemetry.visible import has_half_a_character
from delta_engine.tools.site.documented import Documentation, SourceLinks
from delta_engine.tools.site.files import table_path
from delta_engine.tools.site.pages import site_pages
from tests.builders.awkward_drift_reports import HOSTILE_TEXTS
from tests.builders.documentation import everything, many, named, related
from tests.cases.golden_texts import assert_golden
from tests.cases.parsed_pages import Page

GOLDEN = Path(__file__).parents[3] / "golden_reports" / "site"
ORDERS = "schemas/dev.silver/orders.html"
RECENT = "schemas/dev.silver/views/recent.html"
BUYERS = "schemas/dev.gold/views/buyers.html"
MASK = "schemas/dev.ops/functions/mask.html"
MASK_PII = "policies/schema/dev/silver/mask_pii.html"
SILVER = "schemas/dev.silver/index.html"
TEXTS = [text for text in HOSTILE_TEXTS if not has_half_a_character(text)]


def site(documentation: Documentation) -> dict[str, str]:
    pages = list(site_pages(documentation))
    assert len({path for path, _ in pages}) == len(pages)
    return dict(pages)


def structures(documentation: Documentation) -> list[list[tuple[str, tuple[str, ...]]]]:
    return [Page(text).structure for path, text in site(documentation).items() if path.endswith(".html")]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("index", "index.html"),
        ("schema", SILVER),
        ("table", ORDERS),
        ("view", RECENT),
        ("function", MASK),
        ("policy", MASK_PII),
    ],
)
def test_the_exact_pages(name: str, path: str, request: pytest.FixtureRequest) -> None:
    assert_golden(site(everything())[path], GOLDEN / f"{name}.html", request)


def test_the_same_documentation_gives_the_same_bytes() -> None:
    assert site(everything()) == site(everything())
    assert site(related(3)) == site(related(3))


@pytest.mark.parametrize("text", TEXTS)
def test_no_text_becomes_markup(text: str) -> None:
    assert structures(everything(text)) == structures(everything())


@pytest.mark.parametrize("text", [text for text in TEXTS if "`" not in text])
def test_no_name_becomes_markup(text: str) -> None:
    structure, expected = (map(sorted, structures(named(name))) for name in (text, "orders"))
    assert list(structure) == list(expected)  # the order of tables in the diagram is that of their names


@settings(max_examples=40, deadline=None)
@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=40))
def test_no_random_text_becomes_markup(text: str) -> None:
    assert structures(everything(text)) == structures(everything())


def test_every_address_leads_to_a_file_of_the_site() -> None:
    pages = site(everything()) | site(related(2))
    for path, text in pages.items():
        if not path.endswith(".html"):
            continue
        for name, value in Page(text).attributes:
            assert not name.startswith("on")
            if name not in ("href", "src") or value.startswith(
                ("#", "data:", "https://example.com/blob/main/conf/")
            ):
                continue
            address = urlsplit(value)
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), address.path))
            assert target in pages, (path, value)


def test_a_table_page_says_everything() -> None:
    text = Page(site(everything("the buyer's words"))[ORDERS]).text
    for words in (
        "2026-03-01 12:00:00 UTC",
        "0f3e5d7c9b1a48f2a6c4e8d0b2f4a6c8",
        "git:4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        "It was changed outside the engine. The model has changed since it was applied.",
        "conf/models/silver/orders.yml:3",
        "CAST(placed AS DATE)",
        "current_timestamp()",
        "array<struct>",
        "map<string, string>",
        "postcode",
        "with the number",
        "bronze.days",
        "not declared here",
        "id > 0",
        "analysts = SELECT",
        "dev.ops.only_own",
        "domain = the buyer's words",
        "delta.enableChangeDataFeed = true",
    ):
        assert words in text


def test_values_of_keys_that_name_secrets_are_hidden() -> None:
    documentation = everything("postgres://ana:hunter2@db")
    pages = site(documentation)
    for text in pages.values():
        assert "s3cret" not in text
        assert "hunter2" not in text
    assert "api.token = ***" in pages[ORDERS]


def test_places_link_to_the_repository_only_on_request() -> None:
    documentation = everything()
    assert (
        'href="https://example.com/blob/main/conf/models/silver/orders.yml#L3"' in site(documentation)[ORDERS]
    )
    plain = site(replace(documentation, links=SourceLinks()))[ORDERS]
    assert "https:" not in plain
    assert '<span class="source">conf/models/silver/orders.yml:3</span>' in plain


def test_awkward_file_names_are_encoded_and_files_elsewhere_are_not_linked() -> None:
    links = SourceLinks("https://example.com/{file}?line={line}")
    assert links.url(SourceLocation('a b/"#?.yml', 3)) == "https://example.com/a%20b/%22%23%3F.yml?line=3"
    assert links.url(SourceLocation("models.py")) == "https://example.com/models.py?line=1"
    assert links.url(SourceLocation("/elsewhere/models.py", 3)) is None


@pytest.mark.parametrize(
    ("address", "folder", "link"),
    [
        ("https://github.com/acme/tables", "", "https://github.com/acme/tables/blob/HEAD/conf/a%20b.yml#L3"),
        ("git@github.com:acme/tables.git", "", "https://github.com/acme/tables/blob/HEAD/conf/a%20b.yml#L3"),
        (
            "https://github.example.com/acme/tables.git",
            "teams/sales",
            "https://github.example.com/acme/tables/blob/HEAD/teams/sales/conf/a%20b.yml#L3",
        ),
        (
            "https://gitlab.com/acme/data/tables/",
            "",
            "https://gitlab.com/acme/data/tables/-/blob/HEAD/conf/a%20b.yml#L3",
        ),
        (
            "https://bitbucket.org/acme/tables",
            "",
            "https://bitbucket.org/acme/tables/src/HEAD/conf/a%20b.yml#lines-3",
        ),
        (
            "https://dev.azure.com/acme/data/_git/tables",
            "",
            "https://dev.azure.com/acme/data/_git/tables?path=/conf/a%20b.yml&line=3",
        ),
        ("https://x.example/{file}", "teams/sales", "https://x.example/conf/a%20b.yml"),
    ],
)
def test_the_address_of_a_repository_becomes_those_of_its_files(address: str, folder: str, link: str) -> None:
    assert SourceLinks.of(address, folder).url(SourceLocation("conf/a b.yml", 3)) == link


@pytest.mark.parametrize("address", ["https://example.com/acme/tables", "https://github.com/acme", "acme"])
def test_the_address_of_an_unknown_host_needs_a_place_for_the_file(address: str) -> None:
    with pytest.raises(ConfigError, match=r"--source-url.*https://example.com/blob/main/\{file\}"):
        SourceLinks.of(address, "")


@pytest.mark.parametrize(
    "template",
    [
        "javascript:alert({file})",
        "{file}",
        "https://example.com/",
        "https://example.com/{file}/{commit}",
        "https://{file}{",
    ],
)
def test_what_is_no_address_is_refused(template: str) -> None:
    with pytest.raises(ConfigError, match=r"--source-url.*https://example.com/blob/main/\{file\}"):
        SourceLinks(template)


def test_without_a_deployment_state_the_site_shows_no_status() -> None:
    documentation = replace(
        everything(),
        deployment=None,
        applied={},
        why_not_applied="Nothing was applied to this environment yet.",
    )
    pages = site(documentation)
    assert "Nothing was applied to this environment yet." in pages["index.html"]
    assert "badge" not in pages["index.html"]
    assert "Last applied<" not in pages[ORDERS]


def test_the_search_index_has_tables_columns_comments_and_tags() -> None:
    script = site(everything("found"))["assets/search-index.js"]
    rows = json.loads(script.removeprefix("deltaEngineSearch(").removesuffix(");\n"))
    (orders,) = (row for row in rows if row[1] == "orders")
    path, _, schema, comment, tags, columns, _ = orders
    assert (path, schema, comment, tags) == (ORDERS, "dev.silver", "found", "domain = found")
    assert columns[:4] == ["id", "Order number", "customer_id", "found"]


def test_the_search_index_has_functions_and_policies() -> None:
    script = site(everything("found"))["assets/search-index.js"]
    rows = json.loads(script.removeprefix("deltaEngineSearch(").removesuffix(");\n"))
    by_name = {row[1]: row for row in rows}
    assert by_name["mask"] == [
        *(MASK, "mask", "dev.ops", "found", "domain = found"),
        *(["email", "found", "mark", ""], "function"),
    ]
    assert by_name["mask_pii"] == [
        *(MASK_PII, "mask_pii", "dev.silver", "found", "dev.ops.mask has_tag('pii') "),
        *([], "policy"),
    ]


def test_the_search_index_has_views() -> None:
    script = site(everything("found"))["assets/search-index.js"]
    rows = json.loads(script.removeprefix("deltaEngineSearch(").removesuffix(");\n"))
    by_name = {row[1]: row for row in rows}
    assert by_name["recent"] == [
        *(RECENT, "recent", "dev.silver", "found", "domain = found"),
        *(["customer_id", "found", "note", ""], "view"),
    ]


def test_views_lead_to_what_they_read_and_to_what_reads_them() -> None:
    pages = site(everything())
    links = {
        ORDERS: (RECENT,),
        RECENT: (ORDERS, BUYERS, MASK),
        BUYERS: (RECENT,),
        MASK: (RECENT,),
        SILVER: (RECENT,),
        "index.html": (RECENT, BUYERS),
    }
    for path, targets in links.items():
        folder = posixpath.dirname(path)
        hrefs = {value for name, value in Page(pages[path]).attributes if name == "href"}
        for target in targets:
            assert posixpath.relpath(target, folder or ".") in hrefs, (path, target)
    text = Page(pages[BUYERS]).text
    assert "elsewhere.days not declared here" in text
    assert "The 2 reads in words" in text


def test_a_view_page_says_its_columns_and_its_query() -> None:
    pages = site(everything())
    text = Page(pages[RECENT]).text
    assert "Columns3" in text.replace("\n", "")
    assert "From views/recent.sql" in text
    assert "SELECT id, customer_id, dev.ops.mask('as bought', '*') AS note FROM dev.silver.orders" in text
    assert "Schema mode" in text
    assert "NameDescription" in text.replace("\n", "")
    assert "NameTypeDescription" in Page(pages[ORDERS]).text.replace("\n", "")
    unread = Page(pages["schemas/dev.gold/views/unread.html"]).text
    assert "The engine cannot read its query, so it does not know what it reads." in unread
    assert "The engine does not know the columns that its query returns." in unread


def test_tables_functions_and_policies_lead_to_each_other() -> None:
    pages = site(everything())
    customers = "schemas/dev.silver/customers.html"
    links = {
        ORDERS: (MASK, MASK_PII),
        customers: (MASK,),
        MASK: (customers, MASK_PII, "schemas/dev.ops/functions/mask_all.html"),
        "schemas/dev.ops/functions/mask_all.html": (MASK,),
        MASK_PII: (MASK, ORDERS, SILVER),
        SILVER: (MASK_PII, "policies/catalog/dev/own_rows.html"),
        "index.html": (MASK, MASK_PII),
    }
    for path, targets in links.items():
        folder = posixpath.dirname(path)
        hrefs = {value for name, value in Page(pages[path]).attributes if name == "href"}
        for target in targets:
            assert posixpath.relpath(target, folder or ".") in hrefs, (path, target)


def test_a_policy_reaches_the_columns_that_declared_tags_tell() -> None:
    pages = site(everything())
    reached = Page(pages[MASK_PII]).text
    assert "dev.silver.orders→customer_id" in reached.replace("\n", "")
    assert "dev.silver.customers" not in reached
    unreached = Page(pages["policies/catalog/dev/own_rows.html"]).text
    assert "It reaches no declared table." in unreached
    assert "dev.elsewhere.only_own not declared here" in unreached


def test_a_site_of_functions_alone_has_pages() -> None:
    documentation = replace(everything(), tables=(), views=(), policies=(), schemas={}, applied={})
    pages = site(documentation)
    assert MASK in pages
    assert "Foreign keys" not in pages["schemas/dev.ops/index.html"]
    assert "No declared table, view, policy" not in pages[MASK]


def test_the_diagram_names_other_schemas_and_says_the_same_in_words() -> None:
    text = Page(site(everything())[SILVER]).text
    assert "bronze.days" in text
    assert "The 4 relations in words" in text
    assert (
        "The tables of this schema declare no foreign keys."
        in site(everything())["schemas/dev.bronze/index.html"]
    )


def test_a_hundred_related_tables_are_in_the_diagram() -> None:
    page = site(related())["schemas/dev.sales/index.html"]
    assert page.count('<g class="box"') == 100
    assert "foreign keys in words" in page


@pytest.mark.parametrize(
    ("name", "path"),
    [("orders", "orders.html"), ("Orders", "orders.html"), ("a-b_1", "a-b_1.html")],
)
def test_plain_names_are_file_names(name: str, path: str) -> None:
    assert path_of(name) == f"schemas/dev.silver/{path}"


def test_other_names_have_a_hash_and_never_the_same_file() -> None:
    names = [
        "a/b",
        "a b",
        "a.b",
        "../a",
        "con",
        "index",
        "x" * 255,
        "x" * 254,
        "表",
        "表表",
        "",
        ".",
        "..",
        "ü",
        "-a",
    ]
    paths = [path_of(name) for name in names]
    assert len(set(paths)) == len(names)
    for path in paths:
        folder, _, name = path.rpartition("/")
        assert folder == "schemas/dev.silver"
        assert name.isascii()
        assert unquote(name) == name
        assert len(name) < 130
        assert not name.startswith((".", "-"))
        assert name not in ("con.html", "index.html")


def path_of(name: str) -> str:
    return table_path(Table("dev", "silver", name, [Column("id", "int")]))


def test_a_large_site_shares_its_styles_and_scripts() -> None:
    pages = site(many(tables=40, columns=5, schemas=4))
    assert len(pages) == 4 + 4 + 40
    assert all("<style" not in text for text in pages.values())

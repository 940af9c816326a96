"""The models of issue 42: a table, a view over it with comments, tags and rights, and a view over that view."""

from pathlib import Path
from typing import NamedTuple

QUERY = """\
-- Revenue per customer
SELECT
\tcustomer_id,

  sum(amount) AS revenue  -- in cents
FROM ${catalog}.silver.orders
GROUP BY customer_id;
"""
"""The platform shows it without the empty line, and with spaces in place of the tab."""

VIEWS = """\
views:
  - catalog: ${catalog}
    schema: gold
    name: revenue
    comment: Revenue per customer
    query_file: views/revenue.sql
    columns:
      - {name: customer_id, comment: The customer, tags: {pii: "no"}}
      - {name: revenue}
    schema_mode: type evolution
    tags: {domain: sales}
    grants: {analysts: [SELECT]}
  - catalog: ${catalog}
    schema: gold
    name: top_customers
    query: SELECT customer_id FROM ${catalog}.gold.revenue WHERE revenue > 100
    columns: [{name: customer_id, comment: A good customer}]
"""
TABLE = """\
tables:
  - catalog: ${catalog}
    schema: silver
    name: orders
    columns:
      - {name: id, type: bigint}
      - {name: customer_id, type: bigint, comment: From the shop}
      - {name: amount, type: bigint}
"""
RENAMED_COLUMN = "{name: buyer_id, type: bigint, renamed_from: customer_id,"
NEW_COLUMN = "      - {name: discount, type: bigint}\n"
DROPPED_COLUMN = "      - {name: amount, type: bigint}\n"


class Models(NamedTuple):
    """What a project declares: a table, the query of the first view, and both views."""

    table: str = TABLE
    query: str = QUERY
    views: str = VIEWS


RENAMED = Models(
    TABLE.replace("{name: customer_id, type: bigint,", RENAMED_COLUMN),
    QUERY.replace("\tcustomer_id", "\tbuyer_id AS customer_id").replace("BY customer_id", "BY buyer_id"),
)
ADDED = Models(TABLE + NEW_COLUMN, QUERY.replace("sum(amount)", "sum(amount - discount)"))
DROPPED = Models(TABLE.replace(DROPPED_COLUMN, ""), QUERY.replace("sum(amount)", "count(id)"))
MOVED = Models(TABLE.replace("silver", "bronze"), QUERY.replace("silver", "bronze"))
ALL_AT_ONCE = Models(
    RENAMED.table.replace(DROPPED_COLUMN, "") + NEW_COLUMN, RENAMED.query.replace("sum(amount)", "count(id)")
)
ENTANGLED = Models(ALL_AT_ONCE.table, RENAMED.query.replace("sum(amount)", "sum(discount)"))
"""The view reads a renamed and a new column of the table, and no longer a dropped one."""
STEPS = {
    "column renamed": RENAMED,
    "column added": ADDED,
    "column dropped": DROPPED,
    "table moved": MOVED,
    "all at once": ALL_AT_ONCE,
    "entangled": ENTANGLED,
}
"""How the table and the first view change together."""
PROFIT_VIEWS = VIEWS.replace("{name: revenue}", "{name: profit}").replace("revenue > 100", "profit > 100")
PROFIT = Models(query=QUERY.replace("AS revenue", "AS profit"), views=PROFIT_VIEWS)
"""The second view reads a column of the first one that has another name in `Models`: no order serves both."""
BOTH_QUERY = PROFIT.query.replace("AS profit", "AS profit, sum(amount) AS revenue")
EXPAND_THEN_CONTRACT = (Models(query=BOTH_QUERY, views=PROFIT_VIEWS), Models(query=BOTH_QUERY), Models())


def write_viewed_models(folder: Path, models: Models = Models()) -> None:  # noqa: B008 - a tuple
    """Write the models, and the file of a query, into a folder of models."""
    (folder / "views").mkdir(exist_ok=True)
    (folder / "views" / "revenue.sql").write_text(models.query)
    (folder / "viewed.yml").write_text(models.views + models.table)

"""The 24 tables of TPC-DS (public specification 3.2, chapter 2) as DDL: each name is a prefix and a suffix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

TYPES: Final = {
    "k": "BIGINT",
    "K": "BIGINT NOT NULL",
    "i": "INT",
    "d": "DATE",
    "m": "DECIMAL(7,2)",
    "b": "DECIMAL(15,2)",
    "p": "DECIMAL(5,2)",
    "I": "CHAR(16) NOT NULL",
}
"""Short names of types: a number means CHAR of that length, and one behind `v` VARCHAR."""

ADDRESS: Final = (
    "street_number:10 street_name:v60 street_type:15 suite_number:10 city:v60 county:v30 state:2 zip:10 "
    "country:v20 gmt_offset:p"
)
PERIOD: Final = "rec_start_date:d rec_end_date:d"
SALE: Final = (
    "quantity:i wholesale_cost:m list_price:m sales_price:m ext_discount_amt:m ext_sales_price:m ext_wholesale_cost:m "
    "ext_list_price:m ext_tax:m coupon_amt:m"
)
SHIPPED: Final = (
    "ext_ship_cost:m net_paid:m net_paid_inc_tax:m net_paid_inc_ship:m net_paid_inc_ship_tax:m net_profit:m"
)
RETURNED: Final = "return_quantity:i return_amt:m return_tax:m return_amt_inc_tax:m fee:m return_ship_cost:m"
REFUNDED: Final = "refunded_cash:m reversed_charge:m"

TABLES: Final = {
    "customer_address ca": f"address_sk:K address_id:I {ADDRESS} location_type:20",
    "customer_demographics cd": (
        "demo_sk:K gender:1 marital_status:1 education_status:20 purchase_estimate:i credit_rating:10 dep_count:i "
        "dep_employed_count:i dep_college_count:i"
    ),
    "date_dim d": (
        "date_sk:K date_id:I date:d month_seq:i week_seq:i quarter_seq:i year:i dow:i moy:i dom:i qoy:i fy_year:i "
        "fy_quarter_seq:i fy_week_seq:i day_name:9 quarter_name:6 holiday:1 weekend:1 following_holiday:1 first_dom:i "
        "last_dom:i same_day_ly:i same_day_lq:i current_day:1 current_week:1 current_month:1 current_quarter:1 "
        "current_year:1"
    ),
    "warehouse w": f"warehouse_sk:K warehouse_id:I warehouse_name:v20 warehouse_sq_ft:i {ADDRESS}",
    "ship_mode sm": "ship_mode_sk:K ship_mode_id:I type:30 code:10 carrier:20 contract:20",
    "time_dim t": (
        "time_sk:K time_id:I time:i hour:i minute:i second:i am_pm:2 shift:20 sub_shift:20 meal_time:20"
    ),
    "reason r": "reason_sk:K reason_id:I reason_desc:100",
    "income_band ib": "income_band_sk:K lower_bound:i upper_bound:i",
    "item i": (
        f"item_sk:K item_id:I {PERIOD} item_desc:v200 current_price:m wholesale_cost:m brand_id:i brand:50 class_id:i "
        "class:50 category_id:i category:50 manufact_id:i manufact:50 size:20 formulation:20 color:20 units:10 "
        "container:10 manager_id:i product_name:50"
    ),
    "store s": (
        f"store_sk:K store_id:I {PERIOD} closed_date_sk:k store_name:v50 number_employees:i floor_space:i hours:20 "
        "manager:v40 market_id:i geography_class:v100 market_desc:v100 market_manager:v40 division_id:i "
        f"division_name:v50 company_id:i company_name:v50 {ADDRESS} tax_percentage:p"
    ),
    "call_center cc": (
        f"call_center_sk:K call_center_id:I {PERIOD} closed_date_sk:k open_date_sk:k name:v50 class:v50 employees:i "
        "sq_ft:i hours:20 manager:v40 mkt_id:i mkt_class:50 mkt_desc:v100 market_manager:v40 division:i "
        f"division_name:v50 company:i company_name:50 {ADDRESS} tax_percentage:p"
    ),
    "customer c": (
        "customer_sk:K customer_id:I current_cdemo_sk:k current_hdemo_sk:k current_addr_sk:k first_shipto_date_sk:k "
        "first_sales_date_sk:k salutation:10 first_name:20 last_name:30 preferred_cust_flag:1 birth_day:i "
        "birth_month:i birth_year:i birth_country:v20 login:13 email_address:50 last_review_date_sk:k"
    ),
    "web_site web": (
        f"site_sk:K site_id:I {PERIOD} name:v50 open_date_sk:k close_date_sk:k class:v50 manager:v40 mkt_id:i "
        f"mkt_class:v50 mkt_desc:v100 market_manager:v40 company_id:i company_name:50 {ADDRESS} tax_percentage:p"
    ),
    "store_returns sr": (
        "returned_date_sk:k return_time_sk:k item_sk:K customer_sk:k cdemo_sk:k hdemo_sk:k addr_sk:k store_sk:k "
        f"reason_sk:k ticket_number:K {RETURNED} refunded_cash:m reversed_charge:m store_credit:m net_loss:m"
    ),
    "household_demographics hd": "demo_sk:K income_band_sk:k buy_potential:15 dep_count:i vehicle_count:i",
    "web_page wp": (
        f"web_page_sk:K web_page_id:I {PERIOD} creation_date_sk:k access_date_sk:k autogen_flag:1 customer_sk:k "
        "url:v100 type:50 char_count:i link_count:i image_count:i max_ad_count:i"
    ),
    "promotion p": (
        "promo_sk:K promo_id:I start_date_sk:k end_date_sk:k item_sk:k cost:b response_target:i promo_name:50 "
        "channel_dmail:1 channel_email:1 channel_catalog:1 channel_tv:1 channel_radio:1 channel_press:1 "
        "channel_event:1 channel_demo:1 channel_details:v100 purpose:15 discount_active:1"
    ),
    "catalog_page cp": (
        "catalog_page_sk:K catalog_page_id:I start_date_sk:k end_date_sk:k department:v50 catalog_number:i "
        "catalog_page_number:i description:v100 type:v100"
    ),
    "inventory inv": "date_sk:K item_sk:K warehouse_sk:K quantity_on_hand:i",
    "catalog_returns cr": (
        "returned_date_sk:k returned_time_sk:k item_sk:K refunded_customer_sk:k refunded_cdemo_sk:k "
        "refunded_hdemo_sk:k refunded_addr_sk:k returning_customer_sk:k returning_cdemo_sk:k returning_hdemo_sk:k "
        "returning_addr_sk:k call_center_sk:k catalog_page_sk:k ship_mode_sk:k warehouse_sk:k reason_sk:k "
        f"order_number:K return_quantity:i return_amount:m return_tax:m return_amt_inc_tax:m fee:m return_ship_cost:m "
        f"{REFUNDED} store_credit:m net_loss:m"
    ),
    "web_returns wr": (
        "returned_date_sk:k returned_time_sk:k item_sk:K refunded_customer_sk:k refunded_cdemo_sk:k "
        "refunded_hdemo_sk:k refunded_addr_sk:k returning_customer_sk:k returning_cdemo_sk:k returning_hdemo_sk:k "
        f"returning_addr_sk:k web_page_sk:k reason_sk:k order_number:K {RETURNED} {REFUNDED} "
        "account_credit:m net_loss:m"
    ),
    "web_sales ws": (
        "sold_date_sk:k sold_time_sk:k ship_date_sk:k item_sk:K bill_customer_sk:k bill_cdemo_sk:k bill_hdemo_sk:k "
        "bill_addr_sk:k ship_customer_sk:k ship_cdemo_sk:k ship_hdemo_sk:k ship_addr_sk:k web_page_sk:k web_site_sk:k "
        f"ship_mode_sk:k warehouse_sk:k promo_sk:k order_number:K {SALE} {SHIPPED}"
    ),
    "catalog_sales cs": (
        "sold_date_sk:k sold_time_sk:k ship_date_sk:k bill_customer_sk:k bill_cdemo_sk:k bill_hdemo_sk:k "
        "bill_addr_sk:k ship_customer_sk:k ship_cdemo_sk:k ship_hdemo_sk:k ship_addr_sk:k call_center_sk:k "
        "catalog_page_sk:k ship_mode_sk:k warehouse_sk:k item_sk:K promo_sk:k order_number:K "
        f"{SALE} {SHIPPED}"
    ),
    "store_sales ss": (
        "sold_date_sk:k sold_time_sk:k item_sk:K customer_sk:k cdemo_sk:k hdemo_sk:k addr_sk:k store_sk:k promo_sk:k "
        f"ticket_number:K {SALE} net_paid:m net_paid_inc_tax:m net_profit:m"
    ),
}


def tpcds_script(schema: str) -> str:
    """Return one script that creates all tables, with their primary keys."""
    return "\n\n".join(_statement(schema, name, columns) for name, columns in TABLES.items())


def _statement(schema: str, name: str, columns: str) -> str:
    table, prefix = name.split()
    pairs = [column.split(":") for column in columns.split()]
    lines = [f"  {prefix}_{column}  {_type(short)}" for column, short in pairs]
    key = ", ".join(f"{prefix}_{column}" for column, short in pairs if short == "K")
    lines.append(f"  CONSTRAINT {table}_pk PRIMARY KEY ({key})")
    return f"CREATE TABLE {schema}.{table} (\n" + ",\n".join(lines) + "\n) USING DELTA;"


def _type(short: str) -> str:
    if short.isdecimal():
        return f"CHAR({short})"
    return f"VARCHAR({short[1:]})" if short[0] == "v" else TYPES[short]


def columns_of(schema: str) -> Iterator[tuple[str, int]]:
    """Yield the key of each table, and the number of its columns."""
    for name, columns in TABLES.items():
        yield f"{schema}.{name.split()[0]}", len(columns.split())

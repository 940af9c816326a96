"""The catalogs of a Spark session: their classes, and what the connector of open-source Unity Catalog demands.

Facts about the connector are those of version 0.6 (`AuthConfigUtils`, `TokenProvider` and `ErrorCode` in
unitycatalog/unitycatalog).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from delta_engine.backends import error_conditions
from delta_engine.backends.capabilities import UNITY_CATALOG
from delta_engine.errors import StatementError

SETTING: Final = "spark.sql.catalog."
"""The prefix of the settings of catalogs."""

_TOKEN: Final = "token"
_AUTHENTICATION: Final = "auth."

_CONNECTOR: Final = "io.unitycatalog:unitycatalog-spark_4.1_2.13:0.6.0"
"""The connector for Spark 4.1, which brings its own versions of the two artifacts that Delta brings as 0.5.0."""

_JARS: Final = (
    f"set spark.jars.packages in backend.spark to {_CONNECTOR} (Spark 4.1), or list the jars of unitycatalog-spark, "
    "unitycatalog-client and unitycatalog-hadoop in spark.jars, in one version. They come before Delta's own 0.5.0."
)


def catalog_classes(settings: Mapping[str, str]) -> Mapping[str, str]:
    """Return the implementation class of each catalog, by its name in lower case."""
    names = {key.removeprefix(SETTING): text for key, text in settings.items() if key.startswith(SETTING)}
    return {name.lower(): implementation for name, implementation in names.items() if "." not in name}


def empty_tokens(settings: Mapping[str, str]) -> Mapping[str, str]:
    """Return an empty token for each catalog of open-source Unity Catalog that has no authentication.

    The connector refuses to start without a token ("Required configuration key 'type' is missing or empty"). A server
    without authentication takes the empty one (docs.unitycatalog.io: "Unity Catalog Apache Spark Integration").
    """
    return {f"{catalog}.{_TOKEN}": "" for catalog in _without_authentication(settings)}


def _without_authentication(settings: Mapping[str, str]) -> Iterator[str]:
    for key, implementation in settings.items():
        if key.startswith(SETTING) and implementation == UNITY_CATALOG:
            has_token = f"{key}.{_TOKEN}" in settings
            if not has_token and not any(other.startswith(f"{key}.{_AUTHENTICATION}") for other in settings):
                yield key


def catalog_way_out(error: StatementError, catalog: str, implementation: str | None) -> str:
    """Return how to make a catalog visible that Spark cannot list.

    Args:
        implementation: the catalog's class; None if the session does not set it.
    """
    setting, is_unity_catalog = f"{SETTING}{catalog}", implementation == UNITY_CATALOG
    if error_conditions.is_missing_class(error):
        if is_unity_catalog:
            return f"Add the connector: {_JARS}"
        return f"Add the connector's jar to backend.spark (spark.jars or spark.jars.packages), or correct {setting}."
    if error_conditions.is_class_conflict(error):
        if is_unity_catalog:
            return f"Two jars of backend.spark are incompatible: {_JARS}"
        return (
            "Two jars of backend.spark are incompatible. Use the versions that the connector was built for."
        )
    if error_conditions.is_unreachable(error):
        return f"Start the catalog's server, or correct its address in backend.spark ({setting}.uri)."
    if error_conditions.is_unauthenticated(error):
        return (
            f"Set {setting}.{_TOKEN} in backend.spark to a token that the server accepts; ${{env:NAME}} takes it from "
            "an environment variable."
        )
    if error_conditions.is_forbidden(error):
        return "Ask for USE CATALOG on it."
    # Spark interprets an unknown catalog as a schema.
    if error_conditions.is_missing_catalog(error) or error_conditions.is_missing_schema(error):
        return "Correct the catalog's name, or configure it in backend.spark."
    if is_unity_catalog and error_conditions.is_illegal_argument(error):
        return (
            f"Set {setting}.uri and {setting}.{_TOKEN} in the Spark session: the connector needs both. Use an empty "
            "string as the token if the server has no authentication."
        )
    return f"Check the settings of the catalog in backend.spark ({setting})."

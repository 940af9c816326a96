"""What the HTML pages share: templates that escape every text, styles and scripts inline, each named by its hash."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from delta_engine.report.visible import visible

if TYPE_CHECKING:
    from jinja2 import Template


def page_template(
    name: str, filters: Mapping[str, Callable[..., Any]], *, inlined: tuple[str, ...] = ("css",)
) -> Template:
    """Return the template of a page, with the files beside it that it holds inline.

    Args:
        name: the name of its files in `templates/`, without their endings.
        filters: the page's own filters, beside `utc`.
        inlined: the endings of the files to hold inline; each is a global, and so is its hash (`css_hash`).
    """
    # here, because most commands never render a page, and all of them should start at once
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    loader = PackageLoader("delta_engine", "report/templates")
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for kind in inlined:
        text = loader.get_source(environment, f"{name}.{kind}")[0]
        # a Markup is not escaped: these files are the project's own and take no values
        environment.globals |= {kind: Markup(text), f"{kind}_hash": _content_hash(text)}
    environment.filters |= {"utc": _utc, **filters}
    return environment.get_template(f"{name}.html.j2")


def _visible(value: object) -> object:
    """Spell out what cannot be seen; jinja2 calls this for every value before it escapes it."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return visible(value)
    return value


def _content_hash(text: str) -> str:
    """Return how a Content-Security-Policy names a text that may be used."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _utc(moment: datetime) -> str:
    """Return a moment as `2025-01-15 14:30:00`; one without a zone is UTC."""
    aware = moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment.astimezone(timezone.utc)
    return aware.replace(tzinfo=None).isoformat(sep=" ", timespec="seconds")

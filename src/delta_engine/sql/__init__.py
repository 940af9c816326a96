"""SQL: quoting, types, and one pure builder per kind of statement.

Builders receive a table as the SQL that addresses it (`addressing`), because a table by path is not three quoted parts.
They decide nothing. Import them from their modules.
"""

from __future__ import annotations

from delta_engine.sql.text import escape_sql_literal, quote_ident

__all__ = ["escape_sql_literal", "quote_ident"]

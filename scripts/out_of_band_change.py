"""Changes tables of the embedded warehouse with plain SQL, outside the engine."""

from __future__ import annotations

import shutil
from pathlib import Path

from delta_engine.config.settings import load_settings
from delta_engine.orchestrate.opening import open_backend

PROJECT = Path(__file__).resolve().parents[1]

CHANGES = (
    "ALTER TABLE {silver}/orders` ALTER COLUMN o_orderdate COMMENT 'when??'",
    "ALTER TABLE {silver}/orders` ADD COLUMNS (o_hotfix STRING COMMENT 'ask Bob')",
    "ALTER TABLE {silver}/customer` ALTER COLUMN c_custkey DROP NOT NULL",
    "ALTER TABLE {silver}/customer` DROP CONSTRAINT IF EXISTS delta_engine_not_null_c_custkey",
    "COMMENT ON TABLE {silver}/customer` IS 'do not touch'",
    "ALTER TABLE {silver}/region` SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 2 days')",
    "CREATE TABLE IF NOT EXISTS {silver}/scratch` (a INT) USING delta",
)
DROPPED = "nation"


def main() -> None:
    """Run the changes, and say what they are."""
    settings = load_settings(PROJECT / "conf", "local")
    runner = open_backend(settings).runner
    silver = settings.warehouse / "dev" / "silver"
    for change in CHANGES:
        print(change.format(silver="delta.`…/dev/silver"))
        runner.run(change.format(silver=f"delta.`{silver}"))
    print(f"rm -r …/dev/silver/{DROPPED}")
    shutil.rmtree(silver / DROPPED, ignore_errors=True)


if __name__ == "__main__":
    main()

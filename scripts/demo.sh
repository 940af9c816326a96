#!/bin/sh
# The tour: sync, converge, change something behind the engine's back, and see the plan that repairs it.
set -eu
cd "$(dirname "$0")/.."

step() {
    printf '\n── %s\n' "$1"
}

step "1. Sync the example into the embedded warehouse: delta-engine -e local sync"
.venv/bin/delta-engine -e local sync --yes

step "2. Sync again: nothing is left to do"
.venv/bin/delta-engine -e local sync --yes

step "3. Somebody changes tables behind the engine's back"
.venv/bin/python scripts/out_of_band_change.py

step "4. What the engine makes of that: delta-engine -e local state sync"
.venv/bin/delta-engine -e local state sync

step "5. The plan that repairs it: delta-engine -e local plan --sql"
.venv/bin/delta-engine -e local plan --sql

step "Next: repair it with .venv/bin/delta-engine -e local sync, or edit conf/models and look at plan again."

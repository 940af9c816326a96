#!/bin/sh
# The tour: sync, converge, change tables outside the engine, see who changed what, and repair it.
set -eu
cd "$(dirname "$0")/.."

step() {
    printf '\n── %s\n' "$1"
}

step "1. Sync the example into the embedded warehouse: delta-engine -e local sync"
.venv/bin/delta-engine -e local sync --yes

step "2. Sync again: nothing is left to do"
.venv/bin/delta-engine -e local sync --yes

step "3. Change tables outside the engine"
.venv/bin/python scripts/out_of_band_change.py

step "4. Report the drift: delta-engine -e local drift"
.venv/bin/delta-engine -e local drift

step "5. The same as a page: delta-engine -e local drift --record --format html --out .delta-engine/drift.html"
.venv/bin/delta-engine -e local drift --record --format html --out .delta-engine/drift.html

step "6. Consent to dropping the column o_hotfix, as a pull request does: delta-engine -e local plan -t orders --write-consents"
rm -f conf/consents.yml
trap 'rm -f conf/consents.yml' EXIT
.venv/bin/delta-engine -e local plan -t orders --write-consents --reason "o_hotfix was a test of Bob's"
cat conf/consents.yml

step "7. Repair it with that consent: delta-engine -e local drift --revert"
.venv/bin/delta-engine -e local drift --revert --yes

step "8. Only the undeclared table is left: delta-engine -e local drift --fail-on medium"
.venv/bin/delta-engine -e local drift --record --fail-on medium

step "Next: open .delta-engine/drift.html, or edit conf/models and look at delta-engine -e local plan."

#!/bin/sh
# Installs the Chromium that tests/browser/ opens pages in, where Debian's package manager can: for root only. Elsewhere
# it says what is missing, and those tests say that they are skipped.
set -eu

for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "browser: installing Chromium" >&2
    if apt-get update -qq >&2 &&
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >&2; then
        exit 0
    fi
fi
echo "browser: there is no Chromium, so tests/browser/ is skipped. On Debian: apt-get install chromium" >&2

#!/bin/sh
# Sets up .venv/ with the pinned requirements and the CLI, and fetches Delta's jars once.
# Safe to interrupt: .venv/ready appears last, and without it the next run starts over where it must.
set -eu
cd "$(dirname "$0")/.."

refuse() {
    echo "setup: $1" >&2
    exit 1
}

find_python() {
    for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.10; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
}

java_version() {
    # "17.0.15" is 17, and "1.8.0_412" is 8
    "$1" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1
}

python=$(find_python)
[ -n "$python" ] || refuse "Python 3.10 or newer is missing: install it (Debian: apt-get install python3 python3-venv; macOS: brew install python)"
"$python" -c 'import venv, ensurepip' 2>/dev/null || refuse "Python's venv module is missing: install it (Debian: apt-get install python3-venv)"

java=java
[ -z "${JAVA_HOME:-}" ] || java="$JAVA_HOME/bin/java"
install_java="install a JDK 17 (Debian: apt-get install openjdk-17-jdk-headless; macOS: brew install openjdk@17) or point JAVA_HOME at one"
command -v "$java" >/dev/null 2>&1 || refuse "Java is missing: $install_java"
version=$(java_version "$java")
case "$version" in
    17 | 18 | 19 | 2[01]) ;;
    *) refuse "Spark needs Java 17 to 21, and this is ${version:-unknown} ($java): $install_java" ;;
esac

rm -f .venv/ready
# A folder that was moved, or a half-made one, has a python that does not start from here.
if ! [ "$(.venv/bin/python -c 'import sys; print(sys.prefix)' 2>/dev/null)" = "$(pwd -P)/.venv" ] ||
    ! head -n 1 .venv/bin/pip 2>/dev/null | grep -qF "$(pwd -P)/.venv/bin/"; then
    rm -rf .venv
    echo "setup: creating .venv with $("$python" --version)"
    "$python" -m venv .venv
fi
echo "setup: installing the pinned requirements"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
.venv/bin/python -m delta_engine.execute.local_jars
touch .venv/ready

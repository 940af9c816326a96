#!/bin/sh
# Sets up .venv/ with the pinned requirements and the CLI, and fetches Delta's jars once.
# .venv/ready is written last and says what the setup was made of. A further call that finds the same is
# done at once; after a change it installs what changed; a half-made or moved .venv is made anew.
set -eu
cd "$(dirname "$0")/.."

refuse() {
    echo "setup: $1" >&2
    exit 1
}

# Prints the real interpreter, not a shim or a .venv that is about to go, and its version.
describe_python() {
    "$1" -c 'import sys; print(getattr(sys, "_base_executable", sys.executable)); print(*sys.version_info[:2], sep=".")
sys.exit(sys.version_info < (3, 10))' 2>/dev/null
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        describe_python "$PYTHON" && return
        refuse "PYTHON=$PYTHON is not Python 3.10 or newer: $install_python"
    fi
    for candidate in python3 python3.13 python3.12 python3.11 python3.10; do
        ! describe_python "$candidate" >/dev/null || { describe_python "$candidate" && return; }
    done
    refuse "Python 3.10 or newer is missing: $install_python"
}

check_java() {
    java=java
    if [ -n "${JAVA_HOME:-}" ]; then
        java=$JAVA_HOME/bin/java
        [ -x "$java" ] || refuse "JAVA_HOME is $JAVA_HOME, and $java is not a program: $install_java"
    fi
    # "17.0.15" is 17, and "1.8.0_412" is 8; macOS has a java that only says that there is none
    version=$("$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1)
    case "$version" in
        17 | 18 | 19 | 20 | 21) ;;
        "") refuse "Java 17 to 21 is missing${JAVA_HOME:+ (JAVA_HOME is $JAVA_HOME)}: $install_java" ;;
        *) refuse "Spark needs Java 17 to 21, and $java is Java $version: $install_java" ;;
    esac
}

# Prints how far a command is, from what pip logs of the packages that it collects.
progress() {
    collected=$(grep -c '^ *Collecting ' "$log" || true)
    elapsed=$(($(date +%s) - started))
    if grep -q '^ *Installing collected' "$log"; then
        echo "installing, $elapsed s"
    elif [ "$collected" -gt 0 ]; then
        echo "$collected of $count packages found, $elapsed s"
    else
        echo "$elapsed s"
    fi
}

# Runs a step, and shows its progress: in place on a terminal, elsewhere as a line every half minute.
# step TITLE PACKAGES COMMAND…
step() {
    number=$((number + 1)) title=$1 count=$2 started=$(date +%s) shown=0
    shift 2
    echo "setup: step $number of 4: $title"
    "$@" >"$log" 2>&1 &
    running=$!
    while kill -0 "$running" 2>/dev/null; do
        sleep 1
        if [ -t 1 ]; then
            printf '\r\033[K  … %s' "$(progress)"
        elif [ $(($(date +%s) - started - shown)) -ge 30 ]; then
            shown=$(($(date +%s) - started))
            echo "  … $(progress)"
        fi
    done
    [ ! -t 1 ] || printf '\r\033[K'
    if ! wait "$running"; then
        tail -n 30 "$log" >&2
        running=
        refuse "step $number failed: $title. Run make again: it goes on with what is there"
    fi
    running=
    echo "  done in $(($(date +%s) - started)) s"
}

stop() {
    [ -z "$running" ] || { kill "$running" 2>/dev/null && wait "$running"; } || true
    rm -f "$log"
}

# Becomes pip, so that a signal reaches it: steps run beside the script.
install() {
    exec .venv/bin/python -m pip install --progress-bar off --disable-pip-version-check "$@"
}

count_packages() {
    grep -c '==' "$1"
}

install_python="install it (Debian: apt-get install python3 python3-venv; macOS: brew install python@3.13), or name one with PYTHON="
install_java="install a JDK 17 (Debian: apt-get install openjdk-17-jdk-headless; macOS: brew install openjdk@17), or set JAVA_HOME to one"

found=$(find_python)
python=$(echo "$found" | sed -n 1p)
python_version=$(echo "$found" | sed -n 2p)
"$python" -c 'import venv, ensurepip' 2>/dev/null ||
    refuse "the venv module of Python $python_version is missing: install it (Debian: apt-get install python3-venv)"
check_java

place="Python $python_version in $(pwd -P)"
inputs=$(cat requirements/build.txt requirements/dev.txt pyproject.toml scripts/setup.sh | cksum)
ready=$(cat .venv/ready 2>/dev/null) || ready=
if [ "$ready" = "$place, $inputs" ] && .venv/bin/python -c '' 2>/dev/null; then
    exit 0
fi

rm -f .venv/ready
number=0 running=
log=$(mktemp)
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
echo "setup: once, this fetches"
echo "  about 660 MB of Python packages into $(pwd -P)/.venv (1.3 GB there)"
[ -d "${XDG_CACHE_HOME:-$HOME/.cache}/delta-engine" ] ||
    echo "  about 91 MiB of Delta's jars into ${XDG_CACHE_HOME:-$HOME/.cache}/delta-engine (185 MiB there)"
echo "  It takes about 3 to 5 minutes with a fast connection. The next call takes no time."
create_venv() {
    case "$ready" in
        "$place, "*) ;;
        *)
            rm -rf .venv
            "$python" -m venv .venv
            ;;
    esac
}
# pyspark comes as source alone: it is built with pinned tools, not with whatever pip would fetch to build it.
install_build() {
    create_venv
    install --require-hashes --requirement requirements/build.txt
}
install_engine() {
    .venv/bin/python -m pip uninstall --yes --quiet --disable-pip-version-check delta-engine # its name up to 0.2
    install --no-deps --no-build-isolation --editable .
}

step "creating .venv with Python $python_version, and the tools that build packages" \
    "$(count_packages requirements/build.txt)" install_build
step "installing the pinned requirements, of which Spark is 455 MB" "$(count_packages requirements/dev.txt)" \
    install --require-hashes --no-build-isolation --use-pep517 --requirement requirements/dev.txt
step "installing the command delta-engine" 1 install_engine
step "fetching Delta's jars from Maven Central, unless they are there" 0 .venv/bin/python -m delta_engine.backends.local_jars
echo "$place, $inputs" >.venv/ready

# shellcheck shell=bash
# Shared by the scripts in hack/: where things are kept, what a step says, which Python and which packages there are.
# Use: . "$(dirname "$0")/lib.sh"

set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${IPU_FABRIC_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ipu-fabric}
export IPU_FABRIC_CACHE=$CACHE
cd "$ROOT"

say() { printf '%s\n' "$*" >&2; }

die() {
    say "error: $1"
    say "  next: $2"
    exit 1
}

# python_of VERSION: a Python of that minor version that really starts, from PATH or from pyenv; nothing when there is none.
python_of() {
    local candidate
    for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
        if "$candidate" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
}

# some_python: the first of these releases that is here.
some_python() {
    local version python
    for version in 3.11 3.12 3.13; do
        python=$(python_of $version)
        [[ -z $python ]] || { printf '%s\n' "$python" && return; }
    done
    die "no Python 3.11, 3.12 or 3.13 found in PATH or pyenv" "install one: apt install python3 (Debian 12 has 3.11, Debian 13 has 3.13)"
}

# need_packages PACKAGE...: install the Debian packages that are missing, and say so.
need_packages() {
    local missing=() package sudo=()
    for package in "$@"; do
        [[ $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) == *"ok installed" ]] || missing+=("$package")
    done
    [[ ${#missing[@]} -gt 0 ]] || return 0
    command -v apt-get >/dev/null || die "missing packages: ${missing[*]}" "install them with this system's package manager"
    [[ $(id -u) == 0 ]] || sudo=(sudo)
    say "setup: installing Debian packages: ${missing[*]}"
    "${sudo[@]}" apt-get -qq update
    DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}" >/dev/null
}

# kept NAME KEY COMMAND...: path of the directory CACHE/NAME/KEY, made by `COMMAND... DIRECTORY` when it is not there. Outside
# the checkout, under a hash of what went into it, so that every clone shares it.
kept() {
    local place=$CACHE/$1 dir=$CACHE/$1/$2
    shift 2
    mkdir -p "$place"
    (
        flock 9
        [[ -e $dir/.complete ]] && exit 0
        rm -rf "$dir"
        # Joined, because `set -e` does not reach into $(kept ...).
        "$@" "$dir" && touch "$dir/.complete"
    ) 9>"$dir.lock" >&2 || return
    printf '%s\n' "$dir"
}

key_of() { cat "$@" | sha256sum | cut -c1-16; }

# pins [CORE] [NAME...]: these packages of the lock file, all without a name. In its comments is what a release of ansible-core, such as
# core-2.18, has in place of others.
pins() {
    awk -v core="# ${1:-}: " -v names=" ${*:2} " '
        NR == FNR { if (index($0, core) == 1 && /==/) { split($3, name, "=="); has[name[1]] }; next }
        { own = index($0, core) == 1 }
        own { sub(core, "") }
        /==/ { split($1, name, "=="); take = (own || !(name[1] in has)) && (names == "  " || index(names, " " name[1] " ")) }
        take && !/^#/' requirements.txt requirements.txt
}

make_uv() {
    "$1" -m venv "$2" && "$2/bin/python" -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r <(pins "" uv)
}

# with_uv PYTHON ARGUMENT...: uv, which installs and locks packages. It does not read pip's configuration, where a site behind a mirror
# has its address.
with_uv() {
    local python=$1 uv index
    shift
    uv=$(kept uv "$(key_of <("$python" -VV) <(pins "" uv))" make_uv "$python") || return
    index=${UV_DEFAULT_INDEX:-${PIP_INDEX_URL:-$("$python" -m pip config get global.index-url 2>/dev/null || true)}}
    UV_CACHE_DIR=$CACHE/uv/cache ${index:+env UV_DEFAULT_INDEX="$index"} "$uv/bin/uv" "$@"
}

make_venv() {
    local python=$1 core=$2 dir=${*: -1} names=("${@:3:$#-3}")
    if [[ ${#names[@]} == 0 ]]; then say "setup: Python packages for $("$python" -V) into $dir, in one to three minutes"
    else say "setup: ${names[*]} for $("$python" -V) into $dir, in half a minute"; fi
    "$python" -m venv "$dir" &&
        pins "$core" >"$dir/pins" &&
        pins "$core" "${names[@]}" | sed 's/ .*//' >"$dir/wanted" &&
        with_uv "$python" pip install --quiet --python "$dir/bin/python" --require-hashes -c "$dir/pins" -r "$dir/wanted"
}

# venv_for PYTHON [CORE NAME...]: path of a virtual environment, made when it is not there: with all of the lock file, or with the
# packages of these names and what they need.
venv_for() {
    kept venv "$(key_of <("$1" -VV; echo "${@:2}") <(pins "${@:2:1}"))" make_venv "$1" "${2:-}" "${@:3}"
}

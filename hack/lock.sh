#!/usr/bin/env bash
# Rewrite requirements.txt from requirements.in: exact versions with hashes, and no address of any registry. In comments it has what
# other releases of ansible-core have instead, in tests/matrix.
. "$(dirname "$0")/lib.sh"

python=$(python_of 3.11)
[[ -n $python ]] || die "no Python 3.11 found" "it is the oldest Python that the project runs on: install it"

# lock PYTHON OUTPUT OPTION...: for the oldest Python that the packages are installed on.
lock() {
    with_uv "$python" pip compile --quiet --generate-hashes --no-header --no-annotate --python-version "$1" --output-file "$2" "${@:3}"
}

lock 3.11 requirements.txt --upgrade requirements.in
others=$(mktemp -d)
trap 'rm -r "$others"' EXIT
# other CORE PYTHON: of what is read from stdin. As much as can be stays as it is.
other() {
    cp requirements.txt "$others/$1"
    lock "$2" "$others/$1" -
}
# The oldest releases that the collection says it works with, and the newest of each later ansible-core.
{ echo ansible-core==2.18.0 && sed 's/>=/==/' ee-requirements.txt; } | other core-2.18 3.11
{ echo ansible-core~=2.20.0 && cat ee-requirements.txt; } | other core-2.20 3.12
{ echo ansible-core~=2.21.0 && cat ee-requirements.txt; } | other core-2.21 3.12
for core in core-2.18 core-2.20 core-2.21; do
    awk -v core="# $core: " 'NR == FNR { known[$1]; next } /==/ { own = !($1 in known) } own { print core $0 }' requirements.txt "$others/$core"
done >"$others/pins"
cat "$others/pins" >>requirements.txt
say "lock: $(grep -c '^[^# ].*==' requirements.txt) packages in requirements.txt"


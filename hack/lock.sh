#!/usr/bin/env bash
# Rewrite the lock files from the requirements.in files: exact versions with hashes, and no address of any registry.
. "$(dirname "$0")/lib.sh"

python=$(python_of 3.11)
[[ -n $python ]] || die "no Python 3.11 found" "it is the oldest Python that the project runs on: install it"

# lock PYTHON DIRECTORY [OPTION...]: for the oldest Python that the packages are installed on.
lock() {
    with_uv "$python" --directory "$2" pip compile --quiet --upgrade --generate-hashes --no-header --python-version "$1" "${@:3}" \
        --output-file requirements.txt requirements.in
    say "lock: $(grep -c == "$2/requirements.txt") packages in $2/requirements.txt"
}

for directory in . tests/unit hack/uv hack/site; do
    lock 3.11 "$directory"
done
lock 3.11 tests/matrix/core-2.18 --resolution lowest-direct
lock 3.11 tests/matrix/core-2.19
lock 3.11 tests/matrix/runner
lock 3.12 tests/matrix/core-2.20
lock 3.12 tests/matrix/core-2.21

#!/usr/bin/env bash
# Rewrite the lock files from the requirements.in files: exact versions with hashes, and no address of any registry.
. "$(dirname "$0")/lib.sh"

tools=$CACHE/lock-tools
python=$(python_of 3.11)
[[ -n $python ]] || die "no Python 3.11 found" "the lock is made for the oldest Python that the project runs on: install it"
[[ -x $tools/bin/pip-compile ]] || { "$python" -m venv "$tools" && "$tools/bin/pip" install -q pip-tools; }
for directory in . tests/unit hack/uv hack/site; do
    (
        cd "$directory"
        "$tools/bin/pip-compile" -q --upgrade --generate-hashes --strip-extras --allow-unsafe --no-header \
            --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --output-file requirements.txt requirements.in
    )
done
say "lock: $(grep -c == requirements.txt) packages in requirements.txt, $(grep -c == tests/unit/requirements.txt) in tests/unit/requirements.txt"

#!/usr/bin/env bash
# pytest.sh PYTHON REPORT PATH...: pytest on these tests, under that minor version of Python, with a JUnit report.
. "$(dirname "$0")/lib.sh"

version=$1 report=$2
shift 2
venv=$ROOT/.cache/venv
packages=$(echo "$venv"/lib/python3*/site-packages)
export PYTHONPATH=$ROOT/.cache/collections
if [[ $packages != */python"$version"/* ]]; then
    python=$(python_of "$version")
    if [[ -z $python ]]; then
        say "no Python $version here"
        exit 77
    fi
    venv=$(venv_for "$python" tests/unit/requirements.txt)
    # Modules build on kubernetes.core: take its collections from the main environment, and none of its packages.
    mkdir -p .cache/borrowed
    ln -sfn "$packages/ansible_collections" .cache/borrowed/ansible_collections
    PYTHONPATH+=:$ROOT/.cache/borrowed
fi
exec "$venv/bin/python" -m pytest --junitxml "$report" "$@"

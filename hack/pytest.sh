#!/usr/bin/env bash
# pytest.sh PYTHON REPORT PATH...: pytest on these tests, under that minor version of Python, with a JUnit report.
. "$(dirname "$0")/lib.sh"

version=$1 report=$2
shift 2
venv=$ROOT/.cache/venv
packages=$(echo "$venv"/lib/python3*/site-packages)
export PYTHONPATH=$ROOT/.cache/collections PATH=$venv/bin:$PATH  # tests start ansible-playbook by its name
if [[ $packages != */python"$version"/* ]]; then
    python=$(python_of "$version")
    if [[ -z $python ]]; then
        say "no Python $version here"
        exit 77
    fi
    venv=$(venv_for "$python")
fi
exec "$venv/bin/python" -m pytest --junitxml "$report" "$@"

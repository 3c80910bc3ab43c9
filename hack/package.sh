#!/usr/bin/env bash
# Build the collection into .cache/dist, install it from there, and run galaxy-importer's checks on it.
. "$(dirname "$0")/lib.sh"

export PATH=$ROOT/.cache/venv/bin:$PATH
rm -rf .cache/dist .cache/installed
ansible-galaxy collection build --force --output-path .cache/dist
tarball=$(echo .cache/dist/*.tar.gz)
ansible-galaxy collection install --no-deps --offline --collections-path .cache/installed "$tarball"
cd .cache/dist
cat >galaxy-importer.cfg <<'C'
[galaxy-importer]
CHECK_REQUIRED_TAGS = True
REQUIRE_V1_OR_GREATER = False
RUN_ANSIBLE_DOC = True
RUN_ANSIBLE_LINT = False
RUN_ANSIBLE_TEST = False
RUN_FLAKE8 = False
CHECK_CHANGELOG = True
C
GALAXY_IMPORTER_CONFIG=$PWD/galaxy-importer.cfg python -m galaxy_importer.main "$ROOT/$tarball"

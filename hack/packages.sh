#!/usr/bin/env bash
# packages.sh PACKAGE...: Debian packages that have to be here; those that are missing are installed.
. "$(dirname "$0")/lib.sh"

need_packages "$@"

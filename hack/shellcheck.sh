#!/usr/bin/env bash
# Runs shellcheck on every shell script of the checkout.
. "$(dirname "$0")/lib.sh"

need_packages shellcheck
git ls-files --cached --others --exclude-standard | while IFS= read -r file; do
    [[ -f $file ]] && head -c 64 "$file" | head -1 | grep -qaE '^#!.*\b(ba|da)?sh\b' && printf '%s\0' "$file"
done | xargs -0 shellcheck --external-sources --source-path=SCRIPTDIR

#!/usr/bin/env bash
# Runs shellcheck on every shell script of the checkout.
. "$(dirname "$0")/lib.sh"

scripts=()
while IFS= read -r file; do
    [[ ! -f $file || ! $(head -c 64 "$file" | tr -d '\0' | head -1) =~ ^#!.*sh($|\ ) ]] || scripts+=("$file")
done < <(git ls-files --cached --others --exclude-standard)
shellcheck --external-sources --source-path=SCRIPTDIR "${scripts[@]}" hack/lib.sh

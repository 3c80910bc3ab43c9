#!/usr/bin/env bash
# gofmt, go vet and go test on the modules that have Go code of this project (the others only pin programs to build).
. "$(dirname "$0")/lib.sh"

command -v go >/dev/null || die "no go in PATH" "install Go 1.26 or newer; the testbed's programs are built with it"
while IFS= read -r module; do
    dir=$(dirname "$module")
    [[ -n $(find "$dir" -name '*.go' -print -quit) ]] || continue
    bad=$(gofmt -l "$dir")
    [[ -z $bad ]] || die "not formatted: $bad" "gofmt -w $dir"
    say "go vet and test in $dir"
    (cd "$dir" && go vet ./... && go test ./...)
done < <(git ls-files --cached --others --exclude-standard '*go.mod')

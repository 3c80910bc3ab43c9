#!/usr/bin/env bash
# gofmt, go vet and go test on the modules that have Go code of this project. Those in testbed/programs pin programs to build;
# what they have of their own is formatted here and compiled there, with all of Kubernetes.
. "$(dirname "$0")/lib.sh"

command -v go >/dev/null || die "no go in PATH" "install Go 1.26 or newer; the testbed's programs are built with it"
while IFS= read -r module; do
    dir=$(dirname "$module")
    [[ -n $(find "$dir" -name '*.go' -print -quit) ]] || continue
    bad=$(gofmt -l "$dir")
    [[ -z $bad ]] || die "not formatted: $bad" "gofmt -w $dir"
    [[ $dir != testbed/programs/* ]] || continue
    say "go vet and test in $dir"
    (cd "$dir" && go vet ./... && go test ./...)
done < <(git ls-files --cached --others --exclude-standard '*go.mod')

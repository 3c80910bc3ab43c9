#!/usr/bin/env bash
# The documentation as a site in .cache/docs-site/html: pages of docs/ and of the checkout, and the reference of modules, filters and
# roles, each as HTML and as Markdown, which llms.txt lists. Nothing is fetched while it is built, and a warning is an error, as is a
# link that leads nowhere.
. "$(dirname "$0")/lib.sh"

site=$ROOT/.cache/docs-site
collection=$site/collections/ansible_collections/ipu/fabric
export PATH=$ROOT/.cache/venv/bin:$PATH
rm -rf "$site"
mkdir -p "$collection" "$site/source/testbed"

cp -r docs README.md CONTRIBUTING.md CHANGELOG.rst hack/site/{conf.py,index.md,static} "$site/source"
cp testbed/README.md "$site/source/testbed"
python hack/site/documented.py "$collection"
install -d -m 755 "$site/source/reference"
ANSIBLE_COLLECTIONS_PATH=$site/collections antsibull-docs collection \
    --use-current --squash-hierarchy --fail-on-error --no-add-antsibull-docs-version --dest-dir "$site/source/reference" ipu.fabric
hack/rack.sh "$site/rack" >/dev/null
mkdir -p "$site/source/extra/rack"
cp "$site/rack/recorded/"{plan,report}.html "$site/source/extra/rack"
sphinx-build --quiet --fail-on-warning --jobs 2 --doctree-dir "$site/doctrees" "$site/source" "$site/html"
python hack/site/markdown.py "$site/source" "$site/html"
say "site: .cache/docs-site/html/index.html"

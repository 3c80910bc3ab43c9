"""Settings of Sphinx for hack/docs_site.sh, which lays the pages out as they are in the checkout."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

project = "ipu.fabric"
author = "ipu.fabric contributors"
html_title = project
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_extra_path = ["extra"]  # plan and report of the recorded rack
html_show_copyright = False
html_copy_source = False
extensions = ["myst_parser", "sphinx_antsibull_ext"]
exclude_patterns = ["docs/examples", "extra", "reference/environment_variables.rst"]
highlight_language = "none"
myst_heading_anchors = 4  # as GitHub names headings

CHECKOUT = "https://github.com/ipu-fabric/ipu.fabric/blob/main/"
ANSIBLE = "https://docs.ansible.com/ansible/latest/"
BUILTIN = f"{ANSIBLE}collections/ansible/builtin/"
# What pages of the reference link to in Ansible's own documentation, which is not there when the site is built.
ELSEWHERE = {
    "action_plugins": f"{ANSIBLE}plugins/action.html",
    "callback_plugins": f"{ANSIBLE}plugins/callback.html",
    "ansible_collections.ansible.builtin.debug_module": f"{BUILTIN}debug_module.html",
    "ansible_collections.ansible.builtin.fail_module": f"{BUILTIN}fail_module.html",
    "ansible_collections.ansible.builtin.default_callback": f"{BUILTIN}default_callback.html",
    "ansible_collections.ansible.builtin.config_lookup": f"{BUILTIN}config_lookup.html",
    "ansible_collections.community.okd.k8s_auth_module": f"{ANSIBLE}collections/community/okd/k8s_auth_module.html",
    "ansible_collections.kubernetes.core.k8s_module": f"{ANSIBLE}collections/kubernetes/core/k8s_module.html",
    "ansible_collections.ipu.fabric.workloads_playbook": f"{CHECKOUT}playbooks/workloads.yml",
    "common_return_values": f"{ANSIBLE}reference_appendices/common_return_values.html",
}
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)(?=[)#])")
REFERENCE = re.compile(r":ref:`(?:([^`<]*)<)?([^`<>]*)>?`")
# The theme has contents beside each page, and a hundred modules would hide all else in its list of pages.
LISTS = re.compile(r"^\.\. (?:contents|toctree)::.*\n(?:(?: +\S.*)?\n)*", re.MULTILINE)
SITE = Path(__file__).parent


def shown_at(page: str, link: str) -> str:
    """Where a link of a page leads in the site: a page, the reference of a role, or a file of the checkout."""
    folder = posixpath.dirname(page)
    target = posixpath.normpath(posixpath.join(folder, link))
    if (SITE / target).is_file() and target.endswith((".md", ".rst", ".svg", ".png")):
        return link
    if role := re.fullmatch(r"roles/(\w+)/README\.md", target):
        return posixpath.relpath(f"reference/{role[1]}_role.rst", folder)
    return CHECKOUT + target


def elsewhere(found: re.Match[str]) -> str:
    text = found[1] or found[2].replace("_", " ") + " "
    return f"`{text}<{ELSEWHERE[found[2]]}>`__" if found[2] in ELSEWHERE else found[0]


def lead_links(app: Any, page: str, source: list[str]) -> None:
    if app.env.doc2path(page, base=False).suffix == ".md":
        source[0] = LINK.sub(lambda link: shown_at(page, link[1]), source[0])
    else:
        source[0] = LISTS.sub("", REFERENCE.sub(elsewhere, source[0]))


def setup(app: Any) -> None:
    app.connect("source-read", lead_links)

"""docs/examples/awx: its tasks are what awx.awx takes, and its job templates and surveys what the collection has."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import FIXTURES, ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play, shadow

EXAMPLE = ROOT / "docs/examples/awx"
MODULES = ("credential", "execution_environment", "inventory", "inventory_source", "job_template", "project")
SPECS = yaml.safe_load((ROOT / "roles/fabric/meta/argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
VARIABLES = SPECS["main"]["options"]
# Types of questions, and those of variables that can take the answers. No answer is a bool, and "false" would be true.
ANSWERS = {
    "text": ("str", "path", "raw"),
    "multiplechoice": ("str",),
    "integer": ("int", "raw"),
    "float": ("float",),
    "multiselect": ("list",),
}
CHOOSING = ("multiplechoice", "multiselect")


def wrong_question(question):
    """What is wrong with a question of a survey; empty if nothing is."""
    missing = {"question_name", "variable", "type", "required"} - set(question)
    if missing:
        return f"no {', '.join(sorted(missing))}"
    variable = VARIABLES.get(question["variable"])
    if variable is None:
        return "no such variable"
    if variable["type"] not in ANSWERS[question["type"]]:
        return f"{question['type']} for {variable['type']}"
    if (question["type"] in CHOOSING or "choices" in variable) and question.get("choices") != variable.get("choices"):
        return "other choices"
    if "default" in question and str(question["default"]) != str(variable["default"]):
        return "another default"
    return ""


@pytest.mark.parametrize(
    ("question", "wrong"),
    [
        ({"variable": "fabric_kubernetes_version", "type": "text"}, ""),
        ({"variable": "fabric_upgrade_batch", "type": "text", "default": "1"}, ""),
        ({"variable": "fabric_upgrade_batch", "type": "text", "default": "2"}, "another default"),
        ({"variable": "fabric_hardening", "type": "multiplechoice", "choices": ["none", "baseline", "cis"]}, ""),
        ({"variable": "fabric_hardening", "type": "multiplechoice", "choices": ["none", "cis"]}, "other choices"),
        ({"variable": "fabric_hardening", "type": "text"}, "other choices"),
        ({"variable": "fabric_cni", "type": "multiplechoice", "choices": ["calico"]}, "other choices"),
        ({"variable": "fabric_renew_days", "type": "text"}, "text for int"),
        ({"variable": "fabric_gpu", "type": "multiplechoice", "choices": ["true", "false"]}, "multiplechoice for bool"),
        ({"variable": "fabric_kubernetes", "type": "text"}, "no such variable"),
        ({"type": "text"}, "no variable"),
    ],
)
def test_wrong_questions_are_found(question, wrong):
    assert wrong_question({"question_name": "", "required": True, **question}) == wrong


@pytest.fixture(scope="module")
def options():
    """What the modules take, as awx.awx documents it."""
    program = Path(sys.executable).parent / "ansible-doc"
    names = [f"awx.awx.{name}" for name in MODULES]
    done = subprocess.run([program, "--json", *names], stdout=subprocess.PIPE, check=True)
    documented = json.loads(done.stdout)
    return {name: documented[f"awx.awx.{name}"]["doc"]["options"] for name in MODULES}


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """The modules that the example calls, without a controller."""
    folder = tmp_path_factory.mktemp("awx")
    collections = shadow(folder / "collections")
    actions = collections / "ansible_collections/awx/awx/plugins/action"
    actions.mkdir(parents=True)
    for name in MODULES:
        (actions / f"{name}.py").symlink_to(FIXTURES / "module_stand_in.py")
    (folder / "key").write_text("a key")
    run = play(folder, str(EXAMPLE / "awx.yml"), {}, {}, awx_ssh_key_file=str(folder / "key"))
    assert run.code == 0, run.text
    return run.calls


def test_tasks_are_what_the_modules_take(calls, options):
    assert {call.module for call in calls} == set(MODULES)
    for call in calls:
        result = ArgumentSpecValidator(options[call.module]).validate(call.options)
        assert result.error_messages == [], call


def test_job_templates_name_playbooks_of_the_project(calls):
    templates = [call.options for call in calls if call.module == "job_template"]
    assert {each["playbook"] for each in templates} == {path.name for path in (EXAMPLE / "project").iterdir()}
    for path in (EXAMPLE / "project").iterdir():
        [imported] = yaml.safe_load(path.read_text())
        assert imported["ansible.builtin.import_playbook"] == f"ipu.fabric.{path.stem}"
        assert (ROOT / "playbooks" / path.name).exists()
    for template in templates:
        assert set(template["extra_vars"]) <= set(VARIABLES)


def test_questions_of_surveys(calls):
    surveys = [call.options["survey_spec"] for call in calls if "survey_spec" in call.options]
    assert [set(survey) for survey in surveys] == [{"name", "description", "spec"}]
    assert [wrong_question(question) for survey in surveys for question in survey["spec"]] == ["", ""]

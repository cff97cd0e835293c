#!/usr/bin/env python3
"""Compares the JSON Schema of recipes with dtrun, with another program's validator: the schema accepts all recipes that
dtrun accepts, and refuses the wrong ones, except those below whose fault a schema cannot see.

    schema.py           DTRUN_BIN names the folder of the programs; needs python3-jsonschema, python3-yaml
"""
import glob
import json
import os
import subprocess
import sys

try:
    import jsonschema
    import yaml
except ImportError as missing:
    print("skipped: %s" % missing)
    sys.exit(77)

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")

# The faults of wrong/ that a schema can see. The others concern missing values, other fields or files, the environment,
# or the syntax of YAML.
SEEN = """
braces_in_a_command byte_unit chat_in_another_form command_checkpoints dotted_key dropout_of_one env_as_in_a_shell_in_lists
env_no_name extends_a_map extends_what_is_no_yaml extends_wrong_layer fraction_for_whole gpus_by_number
key_of_another_program keys_of_another_program layer_wrong list_for_number list_for_recipe long_line
many_at_once map_for_text misplaced_key mixture_in_train mixture_weights newer_version no_blank_alone no_blank_in_all
no_blank_in_braces
no_value no_version not_a_choice not_a_choice_in_map nothing null_map only_a_comment open_range
samples_too_many samples_without_prompts sweep_of_no_field text_for_number too_high too_low unit_not_known unit_not_known_either unknown_key
unknown_key_far_from_any unknown_key_in_map wrong_alphabet
""".split()


def main():
    program = os.path.join(os.environ["DTRUN_BIN"], "dtrun")
    said = subprocess.run([program, "schema"], capture_output=True, check=True).stdout
    schema = json.loads(said)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    faults = []
    with open(os.path.join(ROOT, "docs", "recipe.schema.json"), "rb") as kept:
        if kept.read() != said:
            faults.append("docs/recipe.schema.json: dtrun schema > docs/recipe.schema.json")
    for path in sorted(glob.glob(os.path.join(ROOT, "examples", "*.yaml"))):
        with open(path, encoding="utf-8") as text:
            lines = text.read()
        if not lines.startswith("# yaml-language-server: $schema=../docs/recipe.schema.json\n"):
            faults.append("%s: its first line does not name the schema" % path)
        for fault in validator.iter_errors(yaml.safe_load(lines)):
            faults.append("%s: %s" % (path, fault.message[:200]))
    seen = set()
    for path in sorted(glob.glob(os.path.join(ROOT, "tests", "recipes", "wrong", "*.yaml"))):
        name = os.path.basename(path)[:-5]
        with open(path, encoding="utf-8") as text:
            try:
                recipe = yaml.safe_load(text)
            except yaml.YAMLError:
                continue
        if not validator.is_valid(recipe):
            seen.add(name)
    for name in sorted(seen ^ set(SEEN)):
        faults.append("%s: the schema %s" % (name, "sees it now: add it to SEEN" if name in seen
                                             else "does not see it any more"))
    print("\n".join(faults) or "good: %d wrong recipes are seen" % len(seen))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Prints what tests/run.sh --kind needs: a line of targets to build, and a regular expression of the tests to run.

  kind_tests.py BUILD_FOLDER KIND
"""
import json
import os
import re
import subprocess
import sys

# Tests that cover every kind. All other tests that concern a kind have its name in theirs.
SHARED = """unit.layers unit.type_names unit.recipes_errors unit.recipes_pages unit.recipes_huggingface
    unit.model_golden unit.model_pass unit.model_sequences unit.model_documents unit.weights_read
    unit.strategy_memory unit.strategy_ragged cli.schema_takes_what_dtrun_takes cli.examples dist.golden_losses""".split()
# Programs that the scripts among them run.
PROGRAMS = "dtrun dtrun-agent dtrun-engine dtrun-reach dtrun-recipe-doc dist_spawn dist_make_plan dist_compare".split()


def main(build, kind):
    kinds = sorted(name for name in os.listdir("engine/model")
                   if name != "decoder" and os.path.exists(f"engine/model/{name}/kind.c"))
    if kind not in kinds:
        sys.exit(f"cannot test kind '{kind}': it has no engine/model/{kind}/kind.c (expected {', '.join(kinds)})")
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True)
    tests = [test["name"] for test in json.loads(listed.stdout)["tests"]]
    missing = [name for name in SHARED if name not in tests]
    if missing:
        sys.exit(f"tests/kind_tests.py names tests that do not exist: {' '.join(missing)}")
    own = [name for name in tests if kind in re.split(r"[._]", name)]
    if not own:
        sys.exit(f"cannot test kind '{kind}': no test has its name (docs/adding-a-model.md, step 4)")
    chosen = SHARED + own
    stems = [name.removeprefix("unit.") for name in chosen if name.startswith("unit.")]
    print(*PROGRAMS, *(f"test_{stem}" for stem in stems if os.path.exists(f"tests/unit/test_{stem}.c")))
    print("^(" + "|".join(re.escape(name) for name in chosen) + ")$")


if __name__ == "__main__":
    main(*sys.argv[1:])

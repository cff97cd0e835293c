# One script a subject; each says in its first line what it shows. Run one with
#   DTRUN_BIN=build/dev/bin bash tests/cli/help.sh
set(scripts help usage serve recipe_errors data_errors launch_checks run_names)
if(TARGET dtrun-engine AND TARGET dtrun-agent)
  list(APPEND scripts train stop_resume interrupt failure damaged_checkpoint view together)
endif()
if(TARGET dtrun)
  foreach(script ${scripts})
    dt_script_test(NAME ${script} LABEL cli TIMEOUT 120
      COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/${script}.sh)
  endforeach()
endif()

foreach(part term format table live)
  dt_test(NAME term_${part} LABEL unit
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_term_${part}.c LIBS dt_term)
endforeach()
dt_test(NAME cli_options LABEL unit LIBS dt_base
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_cli_options.c ${PROJECT_SOURCE_DIR}/runner/cli/options.c
    ${PROJECT_SOURCE_DIR}/runner/cli/suggest.c)
dt_test(NAME cli_room LABEL unit LIBS dt_base
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_cli_room.c ${PROJECT_SOURCE_DIR}/runner/cli/room.c)
dt_test(NAME cli_attempt LABEL unit LIBS dt_supervisor dt_recipe_reader dt_data dt_store_support dt_term
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_cli_attempt.c ${PROJECT_SOURCE_DIR}/runner/cli/attempt.c
    ${PROJECT_SOURCE_DIR}/runner/cli/changes.c ${PROJECT_SOURCE_DIR}/runner/cli/preflight_steps.c
    ${PROJECT_SOURCE_DIR}/runner/cli/run_id.c)
dt_test(NAME cli_log_tail LABEL unit LIBS dt_supervisor dt_store_support
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_cli_log_tail.c ${PROJECT_SOURCE_DIR}/runner/cli/log_tail.c)

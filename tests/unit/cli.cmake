foreach(part term format table live plot)
  dt_test(NAME term_${part} LABEL unit
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_term_${part}.c LIBS dt_term)
endforeach()
dt_test(NAME cli_options LABEL unit LIBS dt_json
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_cli_options.c ${PROJECT_SOURCE_DIR}/runner/cli/options.c
    ${PROJECT_SOURCE_DIR}/runner/cli/suggest.c)
dt_test(NAME base_resources LABEL unit LIBS dt_base
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_base_resources.c)
dt_test(NAME launch_attempt LABEL unit LIBS dt_supervisor dt_recipe_reader dt_data dt_checkpoint dt_weights dt_store_support dt_term
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_launch_attempt.c ${PROJECT_SOURCE_DIR}/runner/launch/attempt.c
    ${PROJECT_SOURCE_DIR}/runner/launch/mixture_facts.c
    ${PROJECT_SOURCE_DIR}/runner/launch/preflight_steps.c
    ${PROJECT_SOURCE_DIR}/runner/launch/provenance.c ${PROJECT_SOURCE_DIR}/runner/launch/weights.c)
dt_test(NAME base_child LABEL unit LIBS dt_base SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_base_child.c)
dt_test(NAME launch_task_parts LABEL unit LIBS dt_base
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_launch_task_parts.c ${PROJECT_SOURCE_DIR}/runner/launch/task_parts.c)
dt_test(NAME relay_frames LABEL unit LIBS dt_base
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_relay_frames.c ${PROJECT_SOURCE_DIR}/runner/relay/frames.c)
dt_test(NAME view_log_tail LABEL unit LIBS dt_supervisor dt_store_support
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_view_log_tail.c ${PROJECT_SOURCE_DIR}/runner/view/follow/log_tail.c)
dt_test(NAME view_node_lines LABEL unit LIBS dt_supervisor dt_store_support dt_term m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_view_node_lines.c ${PROJECT_SOURCE_DIR}/runner/view/runs/progress.c
   )
dt_test(NAME sweep_halving LABEL unit LIBS m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_sweep_halving.c ${PROJECT_SOURCE_DIR}/runner/sweep/halving.c)
dt_test(NAME smoke_shrink LABEL unit LIBS dt_recipe_reader
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_smoke_shrink.c ${PROJECT_SOURCE_DIR}/runner/smoke/shrink.c
    ${PROJECT_SOURCE_DIR}/runner/smoke/fault.c)
dt_test(NAME convert_command_lines LABEL unit LIBS dt_convert
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_convert_command_lines.c)
dt_test(NAME queue_days LABEL unit LIBS dt_base
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_queue_days.c ${PROJECT_SOURCE_DIR}/runner/queue/order.c)
dt_test(NAME queue_places LABEL unit LIBS dt_base
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_queue_places.c ${PROJECT_SOURCE_DIR}/runner/queue/order.c
    ${PROJECT_SOURCE_DIR}/runner/queue/expect.c)

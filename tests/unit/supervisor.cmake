# The supervisor's decisions.
foreach(name launch_env notify)
  dt_test(NAME supervisor_${name} LABEL unit
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_supervisor_${name}.c LIBS dt_supervisor)
endforeach()
foreach(name nodes restart silence slow straggler verdict watchdog)
  dt_test(NAME policy_${name} LABEL unit
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_policy_${name}.c LIBS dt_supervisor)
endforeach()
foreach(name rebuild resume_point)
  dt_test(NAME supervisor_${name} LABEL unit LIBS dt_supervisor dt_store_support dt_checkpoint dt_comm Threads::Threads m
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_supervisor_${name}.c
            ${CMAKE_CURRENT_SOURCE_DIR}/checkpoint_support.c)
endforeach()
dt_test(NAME supervisor_store_writer LABEL unit LIBS dt_supervisor dt_store_support dt_channel Threads::Threads
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_supervisor_store_writer.c)
dt_test(NAME policy_liveness LABEL unit
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_policy_liveness.c LIBS dt_supervisor dt_channel)
# Connections to nodes.
foreach(name clock_offset node)
  dt_test(NAME connection_${name} LABEL unit LIBS dt_supervisor dt_channel m
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_connection_${name}.c)
endforeach()
dt_test(NAME session_state LABEL unit LIBS dt_supervisor
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_session_state.c)
dt_test(NAME collect_collector LABEL unit LIBS dt_supervisor dt_store_support dt_channel Threads::Threads m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_collect_collector.c)

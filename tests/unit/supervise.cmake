# Agent, supervisor and the code between them.
foreach(name agent_cgroup agent_command agent_devices agent_journal agent_kernel agent_load agent_process agent_text agent_usage)
  dt_test(NAME ${name} LABEL unit SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_${name}.c
    LIBS dt_agent_core dt_channel)
endforeach()
dt_test(NAME transport_local LABEL unit
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_transport_local.c
  LIBS dt_supervisor dt_transport dt_channel)
dt_test(NAME channel_stopwatch LABEL unit THREADS
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_channel_stopwatch.c LIBS dt_events)
dt_test(NAME channel_activity LABEL unit THREADS
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_channel_activity.c LIBS dt_events)
dt_test(NAME channel_stream LABEL unit
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_channel_stream.c LIBS dt_channel)

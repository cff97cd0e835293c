# How nodes are reached, and what is done on them before an agent is started.
dt_test(NAME transport_ssh LABEL unit SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_transport_ssh.c
  LIBS dt_transport)

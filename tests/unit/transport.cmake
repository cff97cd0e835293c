# Connections to nodes, and the work on a node before its agent is started.
dt_test(NAME transport_ssh LABEL unit SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_transport_ssh.c
  LIBS dt_transport)
dt_test(NAME node_setup_ignore LABEL unit SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_node_setup_ignore.c
  LIBS dt_nodes)
if(TARGET test_node_setup_ignore)
  dt_script_test(NAME ignore_like_git LABEL unit
    COMMAND python3 tests/unit/ignore_like_git.py $<TARGET_FILE:test_node_setup_ignore>)
  dt_script_test(NAME workdir_like_git LABEL unit
    COMMAND python3 tests/unit/workdir_like_git.py $<TARGET_FILE:test_node_setup_ignore>)
endif()

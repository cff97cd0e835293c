# Communicators.
set(comm_support ${CMAKE_CURRENT_SOURCE_DIR}/comm_support.c ${PROJECT_SOURCE_DIR}/tests/dist/ranks.c)

if(TARGET gloo)
  dt_test(NAME comm_processes LABEL unit THREADS LIBS dt_comm
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_comm_processes.c ${comm_support})
  add_test(NAME unit.comm_processes_in_every_layout COMMAND test_comm_processes all)
  set_tests_properties(unit.comm_processes_in_every_layout PROPERTIES LABELS "unit;threads;long"
    TIMEOUT ${DT_TEST_SECONDS} SKIP_RETURN_CODE 77)
  dt_test(NAME comm_mesh LABEL unit THREADS LIBS dt_comm
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_comm_mesh.c ${comm_support})
endif()

dt_test(NAME comm_nccl LABEL unit THREADS LIBS dt_comm
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_comm_nccl.c)

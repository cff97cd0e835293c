# Communicators.
set(comm_support ${CMAKE_CURRENT_SOURCE_DIR}/comm_support.c ${PROJECT_SOURCE_DIR}/tests/dist/ranks.c)

if(TARGET gloo)
  dt_test(NAME comm_processes LABEL unit THREADS LIBS dt_comm
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_comm_processes.c ${comm_support})
  dt_test(NAME comm_mesh LABEL unit THREADS LIBS dt_comm
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_comm_mesh.c ${comm_support})
endif()

dt_test(NAME comm_nccl LABEL unit THREADS LIBS dt_comm
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_comm_nccl.c)

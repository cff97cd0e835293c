dt_test(NAME program_output LABEL unit SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_program_output.c
  LIBS dt_agent_core)
dt_test(NAME program_saves LABEL unit SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_program_saves.c
  LIBS dt_agent_core)
dt_test(NAME gpu_claims LABEL unit SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_gpu_claims.c
  LIBS dt_remote_helper dt_json)

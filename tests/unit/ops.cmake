# cuDNN's attention, against a stand-in for its library; and what of the true one can be checked
# without a card.
set(cudnn ${PROJECT_SOURCE_DIR}/engine/ops/cuda)
set(cudnn_standin ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/standin)
add_library(cudnn_standin MODULE ${CMAKE_CURRENT_SOURCE_DIR}/cudnn_standin.c)
target_link_libraries(cudnn_standin PRIVATE dt_flags m)
set_target_properties(cudnn_standin PROPERTIES OUTPUT_NAME cudnn SUFFIX .so.9
  C_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY ${cudnn_standin})

dt_test(NAME ops_cudnn LABEL unit LIBS dt_tensor m ${CMAKE_DL_LIBS}
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_ops_cudnn.c ${PROJECT_SOURCE_DIR}/tests/ops/reference.c
    ${cudnn}/cudnn.c ${cudnn}/cudnn_graph.c ${cudnn}/cudnn_plan.c)
add_dependencies(test_ops_cudnn cudnn_standin)
set_tests_properties(unit.ops_cudnn PROPERTIES ENVIRONMENT LD_LIBRARY_PATH=${cudnn_standin})
dt_test(NAME ops_attention_choice LABEL unit LIBS dt_tensor
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_ops_attention_choice.c ${cudnn}/attention_choice.c
    ${cudnn}/tuned.c)

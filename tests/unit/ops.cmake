# cuDNN's attention with a stand-in for its library, and the checks of the real library that need no card.
set(cudnn ${PROJECT_SOURCE_DIR}/engine/ops/cuda)
set(cudnn_standin ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/standin)
add_library(cudnn_standin MODULE ${CMAKE_CURRENT_SOURCE_DIR}/cudnn_standin.c)
target_link_libraries(cudnn_standin PRIVATE dt_flags m)
set_target_properties(cudnn_standin PROPERTIES OUTPUT_NAME cudnn SUFFIX .so.9
  C_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY ${cudnn_standin})

dt_test(NAME ops_cudnn LABEL unit LIBS dt_tensor m ${CMAKE_DL_LIBS}
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_ops_cudnn.c ${PROJECT_SOURCE_DIR}/tests/ops/reference.c
    ${cudnn}/cudnn.c)
add_dependencies(test_ops_cudnn cudnn_standin)
set_tests_properties(unit.ops_cudnn PROPERTIES ENVIRONMENT LD_LIBRARY_PATH=${cudnn_standin})
dt_test(NAME ops_attention_choice LABEL unit LIBS dt_tensor
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_ops_attention_choice.c ${cudnn}/tuned.c)

# Sanitizers would check that library as well.
if(NOT DT_SANITIZE)
  dt_test(NAME ops_cudnn_true LABEL unit LIBS dt_tensor m ${CMAKE_DL_LIBS}
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_ops_cudnn_true.c ${cudnn}/cudnn.c)
  if(DT_HAVE_CUDA)
    find_path(DT_CUDNN_INCLUDE cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    find_file(DT_CUDNN_LIBRARY libcudnn.so.9 HINTS ${CUDAToolkit_LIBRARY_DIR}
      ${CUDAToolkit_LIBRARY_ROOT}/lib NO_CACHE)
    if(DT_CUDNN_INCLUDE)
      target_include_directories(test_ops_cudnn_true SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS}
        ${DT_CUDNN_INCLUDE})
      target_compile_definitions(test_ops_cudnn_true PRIVATE DT_HAVE_CUDNN_HEADER)
    endif()
    # The toolkit's empty driver, under the name that programs request.
    set(driver ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/empty_driver)
    if(CUDA_cuda_driver_LIBRARY MATCHES stubs)
      file(MAKE_DIRECTORY ${driver})
      file(CREATE_LINK ${CUDA_cuda_driver_LIBRARY} ${driver}/libcuda.so.1 SYMBOLIC)
    endif()
    if(DT_CUDNN_LIBRARY)
      get_filename_component(place ${DT_CUDNN_LIBRARY} DIRECTORY)
      set_tests_properties(unit.ops_cudnn_true PROPERTIES ENVIRONMENT
        "LD_LIBRARY_PATH=${place}:${driver}:${CUDAToolkit_LIBRARY_DIR}")
    endif()
  endif()
endif()

# The CPU's threads in generation.
dt_test(NAME ops_team LABEL unit THREADS NUMERIC LIBS dt_cpu
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_ops_team.c)

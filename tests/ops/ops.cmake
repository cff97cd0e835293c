# Each copy of the ops (engine/ops/cpu/isa.h) is driven; one the processor lacks is skipped.
foreach(isa x86-64 avx2 avx512)
  if(NOT TARGET test_ops)
    dt_test(NAME ops LABEL ops TIMEOUT 120 LIBS dt_cpu m
      SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_ops.c ${CMAKE_CURRENT_SOURCE_DIR}/harness.c
        ${CMAKE_CURRENT_SOURCE_DIR}/reference.c ${CMAKE_CURRENT_SOURCE_DIR}/cases_rows.c
        ${CMAKE_CURRENT_SOURCE_DIR}/cases_products.c ${CMAKE_CURRENT_SOURCE_DIR}/cases_flat.c)
  endif()
  add_test(NAME ops.every_op_as_compiled_for_${isa} COMMAND test_ops)
  set_tests_properties(ops.every_op_as_compiled_for_${isa} PROPERTIES LABELS ops TIMEOUT 120
    SKIP_RETURN_CODE 77 ENVIRONMENT DTRUN_CPU_ISA=${isa})
endforeach()
# oneDNN held to processors without bf16 products: these then go through fp32
add_test(NAME ops.every_op_without_bf16_products COMMAND test_ops)
set_tests_properties(ops.every_op_without_bf16_products PROPERTIES LABELS ops TIMEOUT 120
  SKIP_RETURN_CODE 77 ENVIRONMENT ONEDNN_MAX_CPU_ISA=AVX2)

dt_test(NAME ops_reference LABEL ops LIBS dt_cpu m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_ops_reference.c ${CMAKE_CURRENT_SOURCE_DIR}/reference.c)
dt_test(NAME ops_philox LABEL ops LIBS dt_base
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_ops_philox.c)
dt_test(NAME ops_device LABEL ops LIBS dt_cpu
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_ops_device.c)

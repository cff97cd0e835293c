add_executable(bench_ops ${CMAKE_CURRENT_LIST_DIR}/bench_ops.c)
target_link_libraries(bench_ops PRIVATE dt_flags dt_cpu)

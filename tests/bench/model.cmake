add_executable(bench_step ${CMAKE_CURRENT_LIST_DIR}/bench_step.c)
target_link_libraries(bench_step PRIVATE dt_flags dt_model dt_cpu)

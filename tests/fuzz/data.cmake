# fuzz_checkpoint: under libFuzzer where the build is made for it (clang and
# -DDT_SANITIZE=fuzzer-no-link,address), else a plain program that mutates valid inputs for a few
# seconds.
add_executable(fuzz_checkpoint ${CMAKE_CURRENT_SOURCE_DIR}/fuzz_checkpoint.c)
target_link_libraries(fuzz_checkpoint PRIVATE dt_flags dt_checkpoint dt_data)
if(DT_SANITIZE MATCHES fuzzer)
  target_compile_definitions(fuzz_checkpoint PRIVATE DT_LIBFUZZER)
  target_link_options(fuzz_checkpoint PRIVATE -fsanitize=fuzzer)
else()
  dt_script_test(NAME checkpoint LABEL fuzz TIMEOUT 60 COMMAND fuzz_checkpoint 5)
endif()

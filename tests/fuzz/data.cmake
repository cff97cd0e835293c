# fuzz_checkpoint: under libFuzzer where the build is made for it (clang and
# -DDT_SANITIZE=fuzzer-no-link,address), else with driver.c, which mutates the corpus for a few
# seconds.
add_executable(fuzz_checkpoint ${CMAKE_CURRENT_SOURCE_DIR}/fuzz_checkpoint.c)
target_link_libraries(fuzz_checkpoint PRIVATE dt_flags dt_checkpoint dt_data)
if(DT_SANITIZE MATCHES fuzzer)
  target_link_options(fuzz_checkpoint PRIVATE -fsanitize=fuzzer)
else()
  file(GLOB checkpoint_corpus CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/corpus/checkpoint/*)
  target_sources(fuzz_checkpoint PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/driver.c)
  dt_script_test(NAME checkpoint LABEL fuzz TIMEOUT 60 COMMAND fuzz_checkpoint 1 5
    ${checkpoint_corpus})
endif()

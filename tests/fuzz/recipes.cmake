# fuzz_recipe: under libFuzzer where the build is made for it (clang and
# -DDT_SANITIZE=fuzzer-no-link,address), else with driver.c, which mutates the corpus for a few
# seconds.
add_executable(fuzz_recipe ${CMAKE_CURRENT_SOURCE_DIR}/fuzz_recipe.c)
target_link_libraries(fuzz_recipe PRIVATE dt_flags dt_recipe_reader)
if(DT_SANITIZE MATCHES fuzzer)
  target_link_options(fuzz_recipe PRIVATE -fsanitize=fuzzer)
else()
  file(GLOB recipe_corpus CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.yaml
    ${CMAKE_CURRENT_SOURCE_DIR}/corpus/recipe/*.yaml)
  target_sources(fuzz_recipe PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/driver.c)
  dt_script_test(NAME recipe LABEL fuzz TIMEOUT 60 COMMAND fuzz_recipe 1 5 ${recipe_corpus})
endif()

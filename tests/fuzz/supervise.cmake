# fuzz_protocol: under libFuzzer where the build is made for it (clang and
# -DDT_SANITIZE=fuzzer-no-link,address), else with driver.c, which mutates the corpus for a few
# seconds.
if(TARGET dt_supervisor AND TARGET dt_agent_core)
  add_executable(fuzz_protocol ${CMAKE_CURRENT_SOURCE_DIR}/fuzz_protocol.c)
  target_link_libraries(fuzz_protocol PRIVATE dt_supervisor dt_agent_core dt_channel)
  if(DT_SANITIZE MATCHES fuzzer)
    target_link_options(fuzz_protocol PRIVATE -fsanitize=fuzzer)
  else()
    file(GLOB protocol_corpus CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/corpus/protocol/*)
    target_sources(fuzz_protocol PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/driver.c)
    dt_script_test(NAME protocol LABEL fuzz TIMEOUT 60 COMMAND fuzz_protocol 1 5
      ${protocol_corpus})
  endif()
endif()

# The page in a real browser; skipped where python3-selenium or Chromium is missing.
foreach(helper fill_store serve_store)
  add_executable(${helper} ${CMAKE_CURRENT_SOURCE_DIR}/${helper}.c)
  target_link_libraries(${helper} PRIVATE dt_store dt_web m)
  set_target_properties(${helper} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endforeach()
dt_script_test(NAME page LABEL browser TIMEOUT 180
  COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/test_page.py $<TARGET_FILE:fill_store>
    $<TARGET_FILE:serve_store>)

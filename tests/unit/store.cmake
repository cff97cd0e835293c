# The run history and the page's server.
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
if(TARGET dt_store)
  foreach(subject run attempt metric event open shared)
    dt_test(NAME store_${subject} LABEL unit TIMEOUT 120
      SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_store_${subject}.c
              ${CMAKE_CURRENT_SOURCE_DIR}/store_support.c
      LIBS dt_store PkgConfig::SQLITE m)
  endforeach()
endif()

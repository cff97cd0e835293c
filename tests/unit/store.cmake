# The run history and the page's server.
if(TARGET dt_store)
  pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
endif()
foreach(subject run attempt metric event open shared)
  dt_test(NAME store_${subject} LABEL unit
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_store_${subject}.c
            ${CMAKE_CURRENT_SOURCE_DIR}/store_support.c
    LIBS dt_store PkgConfig::SQLITE m)
endforeach()
foreach(subject api gate pages)
  dt_test(NAME web_${subject} LABEL unit THREADS
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_web_${subject}.c
            ${CMAKE_CURRENT_SOURCE_DIR}/store_support.c ${CMAKE_CURRENT_SOURCE_DIR}/web_support.c
    LIBS dt_web dt_store dt_json PkgConfig::SQLITE Threads::Threads m)
endforeach()

# What the supervisor decides by.
foreach(name notify watch)
  dt_test(NAME supervisor_${name} LABEL unit
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_supervisor_${name}.c LIBS dt_supervisor)
endforeach()

dt_test(NAME base LABEL unit SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_base.c LIBS dt_json)
dt_test(NAME base_cgroups LABEL unit SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_base_cgroups.c LIBS dt_base)
dt_test(NAME base_display LABEL unit SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_base_display.c LIBS dt_json)
dt_test(NAME base_library LABEL unit SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_base_library.c
  LIBS dt_base m)
dt_test(NAME base_named_groups LABEL unit SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_base_named_groups.c
  LIBS dt_base)
dt_test(NAME base_utf8 LABEL unit SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_base_utf8.c LIBS dt_json)
dt_script_test(NAME layers LABEL unit TEXT COMMAND bash tests/unit/layers.sh)
dt_script_test(NAME optimizers_stand_in_one_table LABEL unit TEXT COMMAND bash tests/unit/optimizers.sh)
dt_script_test(NAME circles LABEL unit TEXT COMMAND python3 tests/unit/circles.py)
dt_script_test(NAME type_names LABEL unit TEXT COMMAND python3 tests/unit/type_names.py)
dt_script_test(NAME plain_english LABEL unit TEXT COMMAND python3 tests/unit/plain_english.py)
dt_script_test(NAME docs_name_files LABEL unit TEXT COMMAND bash tests/unit/docs_name_files.sh)
if(DT_PARTS STREQUAL all) # else most are left out
  dt_script_test(NAME docs_name_tests LABEL unit TEXT
    COMMAND bash tests/unit/docs_name_tests.sh ${PROJECT_BINARY_DIR})
endif()
dt_test(NAME metric_kinds LABEL unit SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_metric_kinds.c LIBS dt_base)
add_dependencies(test_metric_kinds dtrun-metric-doc)

# The run history and the page's server.
foreach(subject run search activity attempt metric points pyramid event open shared)
  dt_test(NAME store_${subject} LABEL unit
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_store_${subject}.c LIBS dt_store_support m)
endforeach()
dt_test(NAME store_faults LABEL unit LONG # a separate store for each place that fails
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_store_faults.c LIBS dt_store_support m)
foreach(subject access activity admission api gate live pages)
  dt_test(NAME web_${subject} LABEL unit THREADS
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_web_${subject}.c
            ${CMAKE_CURRENT_SOURCE_DIR}/web_support.c
    LIBS dt_web dt_json dt_store_support Threads::Threads m)
endforeach()
dt_test(NAME export_mlflow_body LABEL unit
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_export_mlflow_body.c ${PROJECT_SOURCE_DIR}/runner/export/mlflow_protocol.c
  LIBS dt_store dt_json m)
dt_test(NAME export_mlflow_patience LABEL unit
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_export_mlflow_patience.c ${PROJECT_SOURCE_DIR}/runner/export/mlflow_protocol.c
  LIBS dt_store dt_json m)

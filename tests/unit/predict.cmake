dt_test(NAME recipes_traffic LABEL unit LIBS dt_recipe
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_recipes_traffic.c)
dt_test(NAME predict LABEL unit LIBS dt_prediction dt_model dt_cpu m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_predict.c)

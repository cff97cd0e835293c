if(TARGET dt_recipe_reader)
  add_library(recipes_support STATIC ${CMAKE_CURRENT_SOURCE_DIR}/recipes_support.c)
  target_link_libraries(recipes_support PUBLIC dt_recipe_reader dt_cmocka)
endif()

foreach(part reader errors sets source presets)
  dt_test(NAME recipes_${part} LABEL unit SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_recipes_${part}.c
    LIBS recipes_support)
endforeach()
# Has its own table of fields, which the linker uses instead of the library's.
dt_test(NAME recipes_shapes LABEL unit LIBS dt_recipe_reader
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_recipes_shapes.c)
dt_test(NAME recipes_secret LABEL unit LIBS dt_recipe_reader
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_recipes_secret.c)
# Links the same as the engine, without the reader.
foreach(part division fields memory nodes plan)
  dt_test(NAME recipes_${part} LABEL unit SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_recipes_${part}.c
    LIBS dt_recipe)
endforeach()
dt_test(NAME recipes_pages LABEL unit SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_recipes_pages.c
  LIBS recipes_support)

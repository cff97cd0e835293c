# dt_jinja and dt_chat
foreach(part language origins)
  dt_test(NAME jinja_${part} LABEL unit LIBS dt_jinja
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_jinja_${part}.c)
endforeach()
foreach(part encode random)
  dt_test(NAME chat_${part} LABEL unit LIBS dt_chat
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_chat_${part}.c ${CMAKE_CURRENT_SOURCE_DIR}/chat_support.c)
endforeach()

# Programs for tests/peers/chat_templates.py
add_executable(jinja_render ${CMAKE_CURRENT_SOURCE_DIR}/jinja_render.c)
target_link_libraries(jinja_render PRIVATE dt_flags dt_jinja)
add_executable(chat_encode ${CMAKE_CURRENT_SOURCE_DIR}/chat_encode.c)
target_link_libraries(chat_encode PRIVATE dt_flags dt_chat)

# dt_embed(TARGET NAME FILE): the bytes of FILE inside TARGET, as dt_embedded_NAME up to
# dt_embedded_NAME_end, with a zero byte behind them (base: DT_EMBEDDED in the users' sources).
function(dt_embed target name file)
  get_filename_component(DT_EMBED_FILE ${file} ABSOLUTE)
  set(DT_EMBED_NAME ${name})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded_${name}.c)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/embed.c.in ${source} @ONLY)
  set_property(SOURCE ${source} PROPERTY OBJECT_DEPENDS ${DT_EMBED_FILE})
  target_sources(${target} PRIVATE ${source})
endfunction()

# dt_bundle(TARGET NAME CALL MODULE=FILE...): the modules of a page as one script inside TARGET (cmake/bundle.cmake).
function(dt_bundle target name call)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${name})
  foreach(module ${ARGN})
    string(REGEX MATCH "^(.*)=(.*)$" matched ${module})
    set(file ${CMAKE_CURRENT_SOURCE_DIR}/${CMAKE_MATCH_2})
    list(APPEND files ${file})
    list(APPEND modules ${CMAKE_MATCH_1}=${file})
  endforeach()
  add_custom_command(OUTPUT ${out} VERBATIM DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/bundle.cmake
    COMMAND ${CMAKE_COMMAND} "-DMODULES=${modules}" "-DCALL=${call}" -DOUT=${out} -P ${PROJECT_SOURCE_DIR}/cmake/bundle.cmake)
  dt_embed(${target} ${name} ${out})
endfunction()

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

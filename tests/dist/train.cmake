# Several ranks of dtrun-engine on this machine, without an agent: spawn stands in for it.
if(TARGET dtrun-engine)
  foreach(helper spawn make_plan compare)
    add_executable(dist_${helper} ${CMAKE_CURRENT_SOURCE_DIR}/${helper}.c)
    target_link_libraries(dist_${helper} PRIVATE dt_flags dt_json m)
  endforeach()
  target_sources(dist_spawn PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/ranks.c)
  target_link_libraries(dist_make_plan PRIVATE dt_recipe)
endif()

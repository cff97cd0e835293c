# Agent and supervisor under faults, with a program in the engine's place.
if(TARGET dt_supervisor AND TARGET dtrun-agent)
  add_executable(fake_engine ${CMAKE_CURRENT_SOURCE_DIR}/fake_engine.c)
  target_link_libraries(fake_engine PRIVATE dt_flags)
  add_executable(fault_driver ${CMAKE_CURRENT_SOURCE_DIR}/fault_driver.c)
  target_link_libraries(fault_driver PRIVATE dt_supervisor dt_store dt_recipe)
  add_dependencies(fault_driver dtrun-agent fake_engine)
  foreach(name agent_killed full_disk_heals rank_killed_mid_step start_fails stop_after_supervisor_killed
          stop_leaves_nothing supervisor_killed_loses_nothing two_runs_are_apart)
    dt_script_test(NAME ${name} LABEL fault TIMEOUT 120
      COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/${name}.sh)
  endforeach()
endif()
if(TARGET dtrun AND TARGET dtrun-engine)
  dt_script_test(NAME true_engine_under_faults LABEL fault TIMEOUT 180
    COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/true_engine_under_faults.sh)
endif()

# Several ranks of dtrun-engine on this machine, without an agent: spawn stands in for it.
if(TARGET dtrun-engine)
  foreach(helper spawn make_plan compare)
    add_executable(dist_${helper} ${CMAKE_CURRENT_SOURCE_DIR}/${helper}.c)
    target_link_libraries(dist_${helper} PRIVATE dt_flags dt_json m)
  endforeach()
  target_sources(dist_spawn PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/ranks.c)
  target_link_libraries(dist_make_plan PRIVATE dt_recipe)

  foreach(name ddp_matches_one_process cuts_of_a_batch_agree resume_is_bit_exact
      same_recipe_same_bits killed_rank_ends_the_others stop_saves_and_ends_well
      bf16_trains_like_fp32 generate_from_checkpoint failures_say_why)
    dt_script_test(NAME ${name} LABEL dist COMMAND bash tests/dist/${name}.sh)
  endforeach()
endif()

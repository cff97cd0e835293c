set(harness ${CMAKE_CURRENT_SOURCE_DIR}/model_harness.c)
set(golden ${CMAKE_CURRENT_SOURCE_DIR}/../golden/safetensors.c)

dt_test(NAME optim_schedule LABEL unit LIBS dt_optim m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_optim_schedule.c)
dt_test(NAME model_params LABEL unit NUMERIC LIBS dt_model dt_cpu m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_model_params.c ${harness})
dt_test(NAME model_pass LABEL unit NUMERIC LIBS dt_model dt_cpu m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_model_pass.c ${harness})
dt_test(NAME model_extend LABEL unit NUMERIC LIBS dt_model dt_cpu m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_model_extend.c ${harness})
dt_test(NAME model_sequences LABEL unit NUMERIC LIBS dt_model dt_cpu m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_model_sequences.c ${harness})
dt_test(NAME model_recompute LABEL unit NUMERIC LIBS dt_model dt_cpu m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_model_recompute.c ${harness})
dt_test(NAME model_frozen LABEL unit NUMERIC LIBS dt_model dt_cpu m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_model_frozen.c ${harness})
dt_test(NAME model_lora LABEL unit NUMERIC LIBS dt_model dt_cpu dt_json m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_model_lora.c ${harness} ${golden})
dt_test(NAME model_sums LABEL unit LIBS dt_model dt_cpu m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_model_sums.c ${harness})
dt_test(NAME model_golden LABEL unit NUMERIC LIBS dt_model dt_optim dt_cpu dt_json m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_model_golden.c ${harness} ${golden})
dt_test(NAME optim_golden LABEL unit NUMERIC LIBS dt_optim dt_cpu dt_json m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_optim_golden.c ${golden})
dt_test(NAME model_mlp LABEL unit NUMERIC LIBS dt_model dt_cpu dt_json m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_model_mlp.c ${harness} ${golden})
dt_test(NAME model_documents LABEL unit NUMERIC LIBS dt_model dt_data dt_cpu m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_model_documents.c ${harness})
dt_test(NAME model_packs LABEL unit NUMERIC LIBS dt_model dt_data dt_cpu m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_model_packs.c ${CMAKE_CURRENT_SOURCE_DIR}/data_support.c ${harness})
dt_test(NAME model_llama LABEL unit NUMERIC LIBS dt_model dt_cpu m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_model_llama.c ${harness})
dt_test(NAME model_transformer LABEL unit NUMERIC LIBS dt_model dt_cpu m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_model_transformer.c ${harness})
dt_test(NAME generate_beam LABEL unit LIBS dt_train m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_generate_beam.c)
dt_test(NAME generate_text LABEL unit LIBS dt_train dt_model dt_cpu dt_json m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_generate_text.c)
dt_test(NAME model_memory LABEL unit NUMERIC LIBS dt_recipe dt_model dt_cpu m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_model_memory.c ${harness})

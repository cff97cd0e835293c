# Parameters from files of other programs.
dt_test(NAME weights_read LABEL unit NUMERIC LIBS dt_weights dt_model dt_cpu dt_json m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_weights_read.c ${CMAKE_CURRENT_SOURCE_DIR}/weights_harness.c
          ${CMAKE_CURRENT_SOURCE_DIR}/model_harness.c ${CMAKE_CURRENT_SOURCE_DIR}/../golden/safetensors.c)
dt_test(NAME weights_families LABEL unit NUMERIC LIBS dt_weights dt_model dt_cpu dt_json m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_weights_families.c ${CMAKE_CURRENT_SOURCE_DIR}/weights_harness.c
          ${CMAKE_CURRENT_SOURCE_DIR}/model_harness.c ${CMAKE_CURRENT_SOURCE_DIR}/../golden/safetensors.c)
dt_test(NAME weights_bin LABEL unit NUMERIC LIBS dt_weights dt_model dt_cpu dt_json m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_weights_bin.c ${CMAKE_CURRENT_SOURCE_DIR}/weights_harness.c
          ${CMAKE_CURRENT_SOURCE_DIR}/model_harness.c ${CMAKE_CURRENT_SOURCE_DIR}/../golden/safetensors.c)
dt_test(NAME weights_torch LABEL unit NUMERIC LIBS dt_weights dt_model dt_cpu dt_json m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_weights_torch.c ${CMAKE_CURRENT_SOURCE_DIR}/weights_harness.c
          ${CMAKE_CURRENT_SOURCE_DIR}/model_harness.c ${CMAKE_CURRENT_SOURCE_DIR}/../golden/safetensors.c)
dt_test(NAME gguf_settings LABEL unit LIBS dt_gguf dt_json
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_gguf_settings.c)
dt_test(NAME recipes_huggingface LABEL unit LIBS dt_recipe
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_recipes_huggingface.c)

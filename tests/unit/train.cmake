# The channel, the strategies, and the parts of the training loop.
dt_test(NAME channel_events LABEL unit THREADS LIBS dt_events
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_channel_events.c)
dt_test(NAME strategy_async_comm LABEL unit THREADS LIBS dt_strategy
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_strategy_async_comm.c)
dt_test(NAME strategy_queues LABEL unit LIBS dt_strategy
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_strategy_queues.c)
dt_test(NAME strategy_graph_cache LABEL unit LIBS dt_strategy
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_strategy_graph_cache.c)
dt_test(NAME strategy_recorded LABEL unit THREADS NUMERIC LIBS dt_strategy
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_strategy_recorded.c
    ${CMAKE_CURRENT_SOURCE_DIR}/strategy_support.c)
dt_test(NAME strategy_ddp LABEL unit THREADS NUMERIC LIBS dt_strategy
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_strategy_ddp.c)
dt_test(NAME train_sample LABEL unit LIBS dt_train
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_train_sample.c)
dt_test(NAME train_budget LABEL unit LIBS dt_train
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_train_budget.c ${CMAKE_CURRENT_SOURCE_DIR}/data_support.c)
dt_test(NAME train_samples LABEL unit LIBS dt_train
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_train_samples.c ${CMAKE_CURRENT_SOURCE_DIR}/data_support.c)
dt_test(NAME train_best LABEL unit LIBS dt_train
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_train_best.c)
dt_test(NAME train_replicas LABEL unit LIBS dt_train
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_train_replicas.c)
dt_test(NAME strategy_thread_pool LABEL unit THREADS LIBS dt_strategy
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_strategy_thread_pool.c)
if(TARGET gloo)
  foreach(name accounts frozen memory ragged shards)
    dt_test(NAME strategy_${name} LABEL unit THREADS NUMERIC LIBS dt_checkpoint_writer dt_strategy dt_events dt_recipe dt_config
      SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_strategy_${name}.c
        ${CMAKE_CURRENT_SOURCE_DIR}/strategy_support.c ${PROJECT_SOURCE_DIR}/tests/dist/ranks.c)
  endforeach()
  add_test(NAME unit.strategy_memory_of_every_optimizer COMMAND test_strategy_memory all)
  set_tests_properties(unit.strategy_memory_of_every_optimizer PROPERTIES LABELS "unit;threads;long;numeric"
    TIMEOUT ${DT_TEST_SECONDS} SKIP_RETURN_CODE 77)
endif()
dt_test(NAME ops_tuned LABEL unit LIBS dt_base
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_ops_tuned.c ${PROJECT_SOURCE_DIR}/engine/ops/cuda/tuned.c)
dt_test(NAME task_share LABEL unit SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_task_share.c LIBS dt_train)

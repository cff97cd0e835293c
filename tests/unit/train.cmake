# The channel, the communicators, the strategies, and what the loop is made of.
if(TARGET dt_events)
  dt_test(NAME events_channel LABEL unit LIBS dt_events
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_events_channel.c)
endif()
if(TARGET dt_comm)
  dt_test(NAME strategy_reducer LABEL unit LIBS dt_strategy
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_strategy_reducer.c)
endif()
if(TARGET dt_comm AND TARGET gloo)
  dt_test(NAME comm_gloo LABEL unit LIBS dt_comm
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_comm_gloo.c ${PROJECT_SOURCE_DIR}/tests/dist/ranks.c)
endif()
if(TARGET dt_strategy AND TARGET dt_model)
  dt_test(NAME strategy_ddp LABEL unit LIBS dt_strategy
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_strategy_ddp.c)
endif()
if(TARGET dt_train)
  dt_test(NAME train_sample LABEL unit LIBS dt_train
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_train_sample.c)
endif()

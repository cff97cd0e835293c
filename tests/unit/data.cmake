# dt_data and dt_checkpoint
foreach(part tokenizer dataset sampler check)
  dt_test(NAME data_${part} LABEL unit LIBS dt_data
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_data_${part}.c ${CMAKE_CURRENT_SOURCE_DIR}/data_support.c)
endforeach()

foreach(part layouts faults damage)
  dt_test(NAME checkpoint_${part} LABEL unit LIBS dt_checkpoint Threads::Threads m
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_checkpoint_${part}.c
            ${CMAKE_CURRENT_SOURCE_DIR}/checkpoint_support.c)
endforeach()

# dt_data and dt_checkpoint
foreach(part tokenizer dataset documents chats packs rows npy pairs sampler mixture check fingerprint)
  dt_test(NAME data_${part} LABEL unit LIBS dt_data
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_data_${part}.c ${CMAKE_CURRENT_SOURCE_DIR}/data_support.c)
endforeach()

# Token files written in Python.
add_executable(data_show ${CMAKE_CURRENT_SOURCE_DIR}/data_show.c)
target_link_libraries(data_show PRIVATE dt_flags dt_data)
dt_tests_need(unit data_show)
dt_tests_need(gate data_show)
dt_script_test(NAME data_bins LABEL unit
  COMMAND python3 tests/unit/data_bins.py $<TARGET_FILE:data_show>)

foreach(part layouts faults damage)
  dt_test(NAME checkpoint_${part} LABEL unit LIBS dt_checkpoint dt_comm Threads::Threads m
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_checkpoint_${part}.c
            ${CMAKE_CURRENT_SOURCE_DIR}/checkpoint_support.c)
endforeach()
dt_test(NAME bleu LABEL unit SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_bleu.c LIBS dt_bleu dt_json)
dt_test(NAME evaluation LABEL unit SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_evaluation.c LIBS dt_evaluation m)

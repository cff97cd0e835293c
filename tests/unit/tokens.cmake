# dt_tokens
foreach(part around encode joints pattern refused split unigram words)
  dt_test(NAME tokens_${part} LABEL unit LIBS dt_tokens
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_tokens_${part}.c)
endforeach()

# dt_corpus
dt_test(NAME corpus_learn LABEL unit LIBS dt_corpus dt_tokens
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_corpus_learn.c)

dt_test(NAME corpus_json_line LABEL unit LIBS dt_corpus
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_corpus_json_line.c)

# Prints the ids of texts, for tests/golden/tokens_by_libraries.py, and their speed.
add_executable(tokens_show ${CMAKE_CURRENT_SOURCE_DIR}/tokens_show.c)
target_link_libraries(tokens_show PRIVATE dt_flags dt_tokens Threads::Threads)
dt_tests_need(gate tokens_show)

dt_test(NAME corpus_pairs LABEL unit LIBS dt_corpus dt_data dt_tokens
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_corpus_pairs.c ${CMAKE_CURRENT_SOURCE_DIR}/data_support.c)

# Saves without the page cache and in the background, which checkpoints are kept, and the loss scale in a checkpoint.
dt_test(NAME slice LABEL unit LIBS dt_tensor
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_slice.c)
dt_test(NAME checkpoint_pieces LABEL unit LIBS dt_checkpoint
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_checkpoint_pieces.c)
if(TARGET gloo)
  dt_test(NAME checkpoint_mesh LABEL unit THREADS LIBS dt_checkpoint dt_comm Threads::Threads m
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_checkpoint_mesh.c
            ${CMAKE_CURRENT_SOURCE_DIR}/checkpoint_support.c ${PROJECT_SOURCE_DIR}/tests/dist/ranks.c)
endif()
dt_test(NAME checkpoint_rows LABEL unit LIBS dt_checkpoint dt_comm Threads::Threads m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_checkpoint_rows.c
          ${CMAKE_CURRENT_SOURCE_DIR}/checkpoint_support.c)
dt_test(NAME checkpoint_keep LABEL unit LIBS dt_checkpoint dt_comm Threads::Threads m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_checkpoint_keep.c
          ${CMAKE_CURRENT_SOURCE_DIR}/checkpoint_support.c)
dt_test(NAME checkpoint_writer LABEL unit THREADS LIBS dt_checkpoint_writer dt_comm Threads::Threads m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_checkpoint_writer.c
          ${CMAKE_CURRENT_SOURCE_DIR}/checkpoint_support.c)
dt_test(NAME checkpoint_sink LABEL unit LIBS dt_checkpoint
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_checkpoint_sink.c)
dt_test(NAME train_scaler LABEL unit LIBS dt_optim m
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_train_scaler.c)

# Slurm's environment variables and names.
dt_test(NAME slurm LABEL unit SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/test_slurm.c LIBS dt_transport)

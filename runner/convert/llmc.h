/* llmc: declares the table of llm.c's flags. */
#ifndef DT_RUNNER_CONVERT_LLMC_H
#define DT_RUNNER_CONVERT_LLMC_H

#include "runner/convert/launcher.h"

extern const dt_flag_table dt_llmc_flags;

#endif

/* digest_file: writes the record of a rank (engine/record/record.h) to the folder of its run, as the ranks send it.
 *
 * Path       runs/ID/record/attempt-A-rank-R.txt; runner/verify/record_file.h reads it
 * Once       a piece is written at its offset: one that comes again changes nothing
 */
#ifndef DT_RUNNER_SUPERVISOR_FOLDER_DIGEST_FILE_H
#define DT_RUNNER_SUPERVISOR_FOLDER_DIGEST_FILE_H

#include <stdint.h>

#include "base/error.h"

/* The folder, within that of the run, and the name of a file there. */
#define DT_DIGEST_FOLDER "record"
#define DT_DIGEST_NAME   "attempt-%lld-rank-%lld.txt"

/* folder: runs/ID. */
dt_status dt_digest_file_write(const char *folder, int64_t attempt, int64_t rank, int64_t offset,
                               const char *text, dt_error *err);

#endif

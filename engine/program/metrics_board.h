/* metrics_board: follows the event files of TensorBoard that a program writes below a folder.
 *
 * Files of an earlier run or attempt are not read: what they have when the program starts is skipped. Scalars are
 * metrics with their tag as name; a new file is found within five seconds. Hidden folders are left out.
 */
#ifndef DT_ENGINE_PROGRAM_METRICS_BOARD_H
#define DT_ENGINE_PROGRAM_METRICS_BOARD_H

#include "engine/program/output_metrics.h"

typedef struct dt_metrics_board dt_metrics_board;

/* Borrows the folder, relative to the current one. */
void dt_metrics_board_open(dt_metrics_board **out, const char *folder);
void dt_metrics_board_close(dt_metrics_board *board); /* accepts NULL */
/* Reads what was added. ended: looks for new files now. Errors are those of the metrics. */
dt_status dt_metrics_board_read(dt_metrics_board *board, dt_output_metrics *metrics, bool ended,
                                dt_error *err);

#endif

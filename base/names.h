/* names: checks the names of runs, reads those of devices, and compares a mistyped name with known ones. */
#ifndef DT_BASE_NAMES_H
#define DT_BASE_NAMES_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* run_name: checks the name of a run.
 *
 * A name is typed in commands and names folders: 1 to 64 letters, digits, '.', '_' or '-', the first neither '.'
 * nor '-'. DT_RUN_LAST is reserved: in commands it means the newest run.
 */

/* The fewest characters of an id that stand for it: a shorter word is never taken for the beginning of an id. */
#define DT_RUN_PREFIX_LEAST   4
#define DT_RUN_LAST           "last"
#define DT_RUN_NAME_MAX_BYTES 64

bool dt_run_name_is_valid(const char *name);
/* Returns what is expected instead of an invalid name, for messages. Static text. */
const char *dt_run_name_expected(const char *name);

/* device: reads the name of a rank's device, which is "cpu" or "cuda:N". */

#define DT_DEVICE_CPU "cpu"
#define DT_DEVICE_GPU "cuda:" /* followed by the GPU's number on its node */

/* Returns the number of the GPU; -1 for any other name, and for NULL. */
int dt_device_gpu(const char *name);

/* distance: computes the edit distance of two words, for "did you mean".
 *
 * Counts insertions, deletions, replacements and swaps of neighbours that turn one into the other
 * (optimal string alignment). The distance of a word of DT_DISTANCE_MAX bytes or more is DT_DISTANCE_MAX: such words
 * are not typed by hand.
 */

#define DT_DISTANCE_MAX 64

int dt_distance(const char *a, const char *b);

#ifdef __cplusplus
}
#endif

#endif

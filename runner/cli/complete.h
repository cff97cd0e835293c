/* complete: what a shell may offer for the word that is being typed, from the tables that also
 * parse it: commands, options, fields of recipes, and the runs of the store.
 *
 * A line a candidate, "VALUE" or "VALUE<tab>what it is"; a value that ends with '=' wants more.
 * ":files" alone means: names of files, recipes (*.yaml, *.yml) first.
 */
#ifndef DT_RUNNER_COMPLETE_H
#define DT_RUNNER_COMPLETE_H

#include "base/strbuf.h"
#include "runner/cli/command.h"

#define DT_COMPLETE_FILES ":files"

/* words: those after `dtrun`; the last is being typed and may be "". */
dt_status dt_complete(dt_strbuf *out, char *const *words, int count, dt_arena *arena,
                      dt_error *err);

#endif

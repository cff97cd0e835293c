/* complete: prints the candidates for the word that is being typed in a shell: commands, options, fields of
 * recipes, and the runs of the store, from the tables that also parse them.
 *
 * One candidate a line, "VALUE" or "VALUE<tab>description"; after a value that ends with '=' typing continues.
 * The single line ":files" means: file names, recipes (*.yaml, *.yml) first.
 */
#ifndef DT_RUNNER_COMPLETE_H
#define DT_RUNNER_COMPLETE_H

#include "base/strbuf.h"
#include "runner/cli/command.h"

#define DT_COMPLETE_FILES ":files"

/* words: those after `dtrun`; the last one is being typed and may be "". */
dt_status dt_complete(dt_strbuf *out, char *const *words, int count, dt_arena *arena,
                      dt_error *err);

#endif

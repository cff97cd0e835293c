/* suggest: finds the name that a mistyped word is closest to ("did you mean ...?"). */
#ifndef DT_RUNNER_SUGGEST_H
#define DT_RUNNER_SUGGEST_H

/* Returns the closest name of a NULL-terminated list: one that starts with `word`, or whose edit distance is
 * at most a third of the longer word. NULL if there is none. */
const char *dt_suggest(const char *word, const char *const *names);

#endif

/* suggest: did you mean ...? */
#ifndef DT_RUNNER_SUGGEST_H
#define DT_RUNNER_SUGGEST_H

/* The name (of a NULL-terminated list) that `word` is nearest to, when it begins like it or is
 * at most a third of its letters away; else NULL. */
const char *dt_suggest(const char *word, const char *const *names);

#endif

/* secret: whether a URL holds, as it is written, what looks like a secret.
 *
 * A recipe is copied into the history, the run's folder, the plan and the page, and compared and
 * mailed by people; a secret in it is no longer one. The rule is one that can be told in a
 * sentence, not a proof:
 *   - a name or password before '@';
 *   - a part of its path, or a value after '?', of 20 or more letters, digits, '-' and '_' that
 *     mixes upper case, lower case and digits (two of the three), as keys that were drawn do;
 *   - for a webhook any value after '?' at all.
 * "${env:NAME}" is no literal; the default in "${env:NAME:-default}" is.
 */
#ifndef DT_RECIPES_SECRET_H
#define DT_RECIPES_SECRET_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_url_use {
    DT_URL_WEBHOOK,
    DT_URL_DATA /* its path may name a commit or a digest, which look like keys: only the rest */
} dt_url_use;

/* What it is, to be said behind "holds": "a password before '@'"; NULL where there is nothing. */
const char *dt_url_secret(const char *url, dt_url_use use);

#ifdef __cplusplus
}
#endif
#endif

/* secret: detects literal secrets in a URL.
 *
 * A recipe is copied into the history, the run's folder, the plan and the page, and people compare and mail
 * it; it must not contain secrets. The rule is a simple heuristic:
 *   - a name or password before '@';
 *   - a part of its path, or a value after '?', of 20 or more letters, digits, '-' and '_' that mixes upper case,
 *     lower case and digits (two of the three), as random keys do;
 *   - for a webhook any value after '?'.
 * "${env:NAME}" is not a literal; the default in "${env:NAME:-default}" is.
 */
#ifndef DT_RECIPES_READ_SECRET_H
#define DT_RECIPES_READ_SECRET_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_url_use {
    DT_URL_WEBHOOK,
    DT_URL_DATA /* the path is not checked: it may contain a commit or a digest, which look like keys */
} dt_url_use;

/* Returns a description of the secret for messages, "a password before '@'"; NULL if there is none. */
const char *dt_url_secret(const char *url, dt_url_use use);

#ifdef __cplusplus
}
#endif
#endif

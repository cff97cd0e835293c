#include "runner/export/mlflow_open.h"

#include <stdlib.h>
#include <string.h>

#include "runner/cli/report.h"

#define TOKEN    "MLFLOW_TRACKING_TOKEN"
#define NAME     "MLFLOW_TRACKING_USERNAME"
#define PASSWORD "MLFLOW_TRACKING_PASSWORD"
#define TIMEOUT  "MLFLOW_HTTP_REQUEST_TIMEOUT"
#define RETRIES  "MLFLOW_HTTP_REQUEST_MAX_RETRIES"

/* Reads an environment variable; NULL if unset or empty. DT_ERR_USAGE if it has a control character. */
static dt_status variable(const char **out, const char *name, dt_error *err)
{
    const char *text = getenv(name);

    *out = text != NULL && text[0] != '\0' ? text : NULL;
    for (; text != NULL && *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return DT_FAIL(err, DT_ERR_USAGE, "%s contains a %s", name,
                           *text == '\r' || *text == '\n' ? "line break" : "control character");
    return DT_OK;
}

/* Reads a number from an environment variable; 0 if unset. */
static dt_status limit(int *out, const char *name, int least, int most, dt_error *err)
{
    const char *text;
    char *end;
    long value;
    dt_status st;

    *out = 0;
    DT_TRY(variable(&text, name, err));
    if (text == NULL)
        return DT_OK;
    value = strtol(text, &end, 10);
    if (*end != '\0' || value < least || value > most)
        DT_THROW(err, DT_ERR_USAGE, "%s: expected a number from %d to %d", name, least, most);
    *out = (int)value;
out:
    return st;
}

static dt_status access_find(dt_rest_access *access, dt_error *err)
{
    int seconds, retries;
    dt_status st;

    DT_TRY(variable(&access->name, NAME, err));
    DT_TRY(variable(&access->password, PASSWORD, err));
    DT_TRY(variable(&access->token, TOKEN, err));
    DT_TRY(limit(&seconds, TIMEOUT, 1, 3600, err));
    DT_TRY(limit(&retries, RETRIES, 0, 100, err));
    access->try_seconds = seconds;
    access->tries = getenv(RETRIES) != NULL && getenv(RETRIES)[0] != '\0' ? retries + 1 : 0;
    if (access->name != NULL && access->password != NULL) {
        access->remedy = access->token != NULL ? "used " NAME " and " PASSWORD
                                                 ", which override " TOKEN
                                               : "used " NAME " and " PASSWORD;
        access->token = NULL;
        return DT_OK;
    }
    if (access->token != NULL)
        access->remedy = "used " TOKEN;
    else if (access->name != NULL)
        access->remedy = NAME " needs " PASSWORD ", which is not set";
    else
        access->remedy = "set " NAME " and " PASSWORD ", or " TOKEN;
    access->name = access->password = NULL;
out:
    return st;
}

/* Whether the host is this machine. */
static bool is_local(const char *host)
{
    size_t length = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/");

    return (strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == length) ||
           (length == 5 && strncmp(host, "[::1]", 5) == 0) ||
           (length == 9 && strncasecmp(host, "localhost", 9) == 0) ||
           (length > 10 && strncasecmp(host + length - 10, ".localhost", 10) == 0);
}

dt_status dt_mlflow_open(dt_rest **out, const char *url, dt_error *err)
{
    dt_rest_access access = {0};
    dt_status st;

    *out = NULL;
    DT_TRY(access_find(&access, err));
    DT_TRY(dt_rest_open(out, url, &access, err));
    if (strncmp(url, "http://", 7) == 0 && !is_local(url + 7) &&
        (access.token != NULL || access.name != NULL))
        dt_report_say("warning: '%s' is unencrypted http; others on the network can read %s", url,
                      access.token != NULL ? TOKEN : PASSWORD);
out:
    return st;
}

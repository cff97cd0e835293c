#include "runner/fetch/fetch.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

#define TRIES              5
#define PAUSE_SECONDS      0.5  /* before the second try; doubled for each further try */
#define PAUSE_SECONDS_MOST 60.0 /* longest pause that is accepted from a server */
#define CONNECT_SECONDS    10L
#define TRY_SECONDS        120.0
#define ANSWER_BYTES_MOST  ((size_t)64 << 20)
#define WORDS_MOST         300 /* of a server's error message */

struct dt_rest {
    CURL *curl;
    struct curl_slist *headers;
    char *base;
    char *name, *password;
    char *remedy;
    int tries;
    double try_seconds;
    double wanted_seconds; /* Retry-After of the last response; 0: none */
    dt_strbuf answer;
};

static size_t on_bytes(char *bytes, size_t size, size_t count, void *context)
{
    dt_strbuf *answer = context;

    if (answer->length + size * count > ANSWER_BYTES_MOST)
        return 0;
    dt_strbuf_add(answer, bytes, size * count);
    return size * count;
}

static dt_status headers_make(dt_rest *rest, const dt_rest_access *access, dt_error *err)
{
    struct curl_slist *all = curl_slist_append(NULL, "Content-Type: application/json");
    dt_strbuf text;

    rest->headers = all;
    if (all == NULL || access->token == NULL)
        return all != NULL ? DT_OK : DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&text, "Authorization: Bearer %s", access->token);
    all = curl_slist_append(all, text.data);
    explicit_bzero(text.data, text.length);
    dt_strbuf_release(&text);
    return all != NULL ? DT_OK : DT_FAIL(err, DT_ERR_NOMEM, "no memory");
}

static char *copy(const char *text)
{
    return text != NULL ? dt_strdup(text) : NULL;
}

/* Checks the base address. A query, a fragment or spaces would break the URLs made from it, control
 * characters would reach the terminal, and a password would be shown and stored. */
static dt_status base_check(const char *base, dt_error *err)
{
    const char *at = strstr(base, "://");

    if (strncmp(base, "http://", 7) != 0 && strncmp(base, "https://", 8) != 0)
        return DT_FAIL(err, DT_ERR_USAGE, "the address must begin with http:// or https://");
    if (memchr(at + 3, '@', strcspn(at + 3, "/?#")) != NULL)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "an address with a password would be shown and stored: put the password "
                       "into the environment");
    for (; *base != '\0'; base++)
        if ((unsigned char)*base <= ' ' || *base == 0x7f || *base == '?' || *base == '#')
            return DT_FAIL(err, DT_ERR_USAGE,
                           "the address must end with its path, without spaces, '?' or '#'");
    return DT_OK;
}

dt_status dt_rest_open(dt_rest **out, const char *base, const dt_rest_access *access, dt_error *err)
{
    dt_rest *rest = dt_calloc(1, sizeof(*rest));
    dt_status st = DT_OK;

    *out = NULL;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(rest);
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for libcurl");
    }
    dt_strbuf_init(&rest->answer);
    rest->base = copy(base);
    rest->name = copy(access->name);
    rest->password = copy(access->password);
    rest->remedy = copy(access->remedy);
    rest->tries = access->tries > 0 ? access->tries : TRIES;
    rest->try_seconds = access->try_seconds > 0 ? access->try_seconds : TRY_SECONDS;
    for (size_t end = strlen(rest->base); end > 0 && rest->base[end - 1] == '/';)
        rest->base[--end] = '\0';
    DT_TRY(base_check(base, err));
    DT_TRY(headers_make(rest, access, err));
    rest->curl = curl_easy_init();
    if (rest->curl == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for libcurl");
    *out = rest;
    rest = NULL;
out:
    dt_rest_close(rest);
    return st;
}

void dt_rest_close(dt_rest *rest)
{
    if (rest == NULL)
        return;
    curl_slist_free_all(rest->headers);
    curl_easy_cleanup(rest->curl);
    dt_strbuf_release(&rest->answer);
    free(rest->base);
    free(rest->name);
    free(rest->password);
    free(rest->remedy);
    free(rest);
    curl_global_cleanup();
}

static void options_set(dt_rest *rest, const char *url, const char *body)
{
    CURL *curl = rest->curl;

    curl_easy_reset(curl); /* keeps the connection */
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, rest->headers);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "dtrun");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(rest->try_seconds * 1e3));
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &rest->answer);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    if (body != NULL)
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    if (rest->name != NULL) {
        curl_easy_setopt(curl, CURLOPT_USERNAME, rest->name);
        curl_easy_setopt(curl, CURLOPT_PASSWORD, rest->password != NULL ? rest->password : "");
    }
}

/* Appends a server's text as one line without control characters. */
static void line_add(dt_strbuf *out, const char *text, size_t most)
{
    for (size_t i = 0; i < most && text[i] != '\0'; i++)
        dt_strbuf_add_char(out, (unsigned char)text[i] < ' ' || text[i] == 0x7f ? ' ' : text[i]);
}

/* Appends the server's message about its refusal; nothing if it is not safe to show. */
static void words_add(dt_strbuf *out, const dt_strbuf *answer)
{
    const char *text;
    json_t *json;

    if (dt_json_parse(&json, answer->data, answer->length, "answer", NULL) != DT_OK)
        return;
    text = json_string_value(json_object_get(json, "message"));
    if (text != NULL && text[0] != '\0') {
        dt_strbuf_add_str(out, ": ");
        line_add(out, text, WORDS_MOST);
    }
    json_decref(json);
}

static void hint_add(dt_strbuf *out, const dt_rest *rest, long status)
{
    const char *where = NULL;

    if ((status == 401 || status == 403) && rest->remedy != NULL) {
        dt_strbuf_add_fmt(out, "; %s", rest->remedy);
    } else if (status >= 300 && status < 400) {
        curl_easy_getinfo(rest->curl, CURLINFO_REDIRECT_URL, &where);
        dt_strbuf_add_str(out, ": it redirects to '");
        line_add(out, where != NULL ? where : "", where != NULL ? strcspn(where, "?#") : 0);
        dt_strbuf_add_str(out, "', which is not followed; give the tracking server's own address");
    } else if (rest->wanted_seconds > PAUSE_SECONDS_MOST) {
        dt_strbuf_add_fmt(out, "; it asks to retry in %.0f s", rest->wanted_seconds);
    }
}

static dt_status refusal(const dt_rest *rest, long status, dt_error *err)
{
    dt_status st = status == 429 || status == 408 || status >= 500 ? DT_ERR_BUSY
                   : status == 404                                 ? DT_ERR_NOT_FOUND
                                                                   : DT_ERR_USAGE;
    dt_strbuf text;

    dt_strbuf_init(&text);
    words_add(&text, &rest->answer);
    hint_add(&text, rest, status);
    DT_FAIL(err, st, "'%s' answered %ld%s", rest->base, status, text.data);
    dt_strbuf_release(&text);
    return st;
}

static dt_status try_once(dt_rest *rest, const char *url, const char *body, bool again,
                          dt_error *err)
{
    curl_off_t wanted = 0;
    long status = 0;
    CURLcode code;

    dt_strbuf_reset(&rest->answer);
    rest->wanted_seconds = 0;
    options_set(rest, url, body);
    /* libcurl itself sends a request again if a reused connection closes without a response */
    curl_easy_setopt(rest->curl, CURLOPT_FRESH_CONNECT, again ? 0L : 1L);
    code = curl_easy_perform(rest->curl);
    if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
        return DT_FAIL(err, DT_ERR_USAGE, "'%s': %s", rest->base, curl_easy_strerror(code));
    if (code == CURLE_WRITE_ERROR)
        return DT_FAIL(err, DT_ERR_CORRUPT, "'%s' answers with more than %zu MB", rest->base,
                       ANSWER_BYTES_MOST >> 20);
    if (code != CURLE_OK)
        return DT_FAIL(err, DT_ERR_BUSY, "'%s': %s", rest->base, curl_easy_strerror(code));
    curl_easy_getinfo(rest->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(rest->curl, CURLINFO_RETRY_AFTER, &wanted); /* seconds, also of a date */
    rest->wanted_seconds = (double)wanted;
    return status >= 200 && status < 300 ? DT_OK : refusal(rest, status, err);
}

/* Returns true, after a pause, if another try can succeed. False if the tries are used up, the
 * server asks for a longer pause than PAUSE_SECONDS_MOST, or most of the time of a try has
 * passed. */
static bool pause_before(const dt_rest *rest, int try, double began)
{
    double pause = PAUSE_SECONDS * (double)(1 << (try < 10 ? try - 1 : 9));

    if (try >= rest->tries || rest->wanted_seconds > PAUSE_SECONDS_MOST ||
        dt_clock_monotonic_seconds() - began >= 0.9 * rest->try_seconds)
        return false;
    dt_clock_sleep_seconds(pause > rest->wanted_seconds ? pause : rest->wanted_seconds);
    return true;
}

static dt_status ask(dt_rest *rest, json_t **answer, const char *path, const char *body, bool again,
                     dt_error *err)
{
    double began = dt_clock_monotonic_seconds();
    dt_error problem = DT_ERROR_INIT;
    dt_status st;
    dt_strbuf url;
    int try = 0;

    *answer = NULL;
    dt_strbuf_init(&url);
    dt_strbuf_add_fmt(&url, "%s/%s", rest->base, path);
    do {
        dt_error_clear(&problem);
        st = try_once(rest, url.data, body, again, &problem);
        try++;
    } while (st == DT_ERR_BUSY && again && pause_before(rest, try, began));
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
    if (dt_json_parse(answer, rest->answer.data, rest->answer.length, "answer", NULL) != DT_OK)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' answers with something that is not JSON", rest->base);
out:
    dt_strbuf_release(&url);
    return st;
}

dt_status dt_rest_get(dt_rest *rest, json_t **answer, const char *path, dt_error *err)
{
    return ask(rest, answer, path, NULL, true, err);
}

static dt_status post(dt_rest *rest, json_t **answer, const char *path, json_t *body, bool again,
                      dt_error *err)
{
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    dt_json_write(&text, body);
    json_decref(body);
    st = ask(rest, answer, path, text.data, again, err);
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_rest_post(dt_rest *rest, json_t **answer, const char *path, json_t *body,
                       dt_error *err)
{
    return post(rest, answer, path, body, true, err);
}

dt_status dt_rest_post_once(dt_rest *rest, json_t **answer, const char *path, json_t *body,
                            dt_error *err)
{
    return post(rest, answer, path, body, false, err);
}

bool dt_rest_pause(const dt_rest *rest, int tries)
{
    return pause_before(rest, tries, dt_clock_monotonic_seconds());
}

void dt_rest_escape(dt_strbuf *out, const char *text)
{
    static const char plain[] =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.~";

    for (; *text != '\0'; text++) {
        if (strchr(plain, *text) != NULL)
            dt_strbuf_add_char(out, *text);
        else
            dt_strbuf_add_fmt(out, "%%%02X", (unsigned)(unsigned char)*text);
    }
}

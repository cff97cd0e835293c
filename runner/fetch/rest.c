#define _GNU_SOURCE
#include "runner/fetch/rest.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#include "base/banned.h"

#define TRIES             5
#define PAUSE_SECONDS     0.5 /* before the second try; then twice as long each time */
#define CONNECT_SECONDS   10L
#define TRY_SECONDS       120L
#define ANSWER_BYTES_MOST ((size_t)256 << 20)
#define WORDS_MOST        300 /* of what a server says is wrong */

struct dt_rest {
    CURL *curl;
    struct curl_slist *headers;
    char *base;
    char *name, *password;
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
    char *out = text != NULL ? strdup(text) : NULL;

    DT_ASSERT(text == NULL || out != NULL);
    return out;
}

dt_status dt_rest_open(dt_rest **out, const char *base, const dt_rest_access *access, dt_error *err)
{
    dt_rest *rest = calloc(1, sizeof(*rest));
    dt_status st = DT_OK;
    const char *at;

    *out = NULL;
    if (rest == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(rest);
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for libcurl");
    }
    dt_strbuf_init(&rest->answer);
    rest->base = copy(base);
    rest->name = copy(access->name);
    rest->password = copy(access->password);
    for (size_t end = strlen(rest->base); end > 0 && rest->base[end - 1] == '/';)
        rest->base[--end] = '\0';
    at = strstr(base, "://");
    if (strncmp(base, "http://", 7) != 0 && strncmp(base, "https://", 8) != 0)
        DT_THROW(err, DT_ERR_USAGE, "the address begins with http:// or https://");
    if (memchr(at + 3, '@', strcspn(at + 3, "/")) != NULL)
        DT_THROW(err, DT_ERR_USAGE,
                 "an address with a password would be shown and kept: the environment has room for "
                 "it");
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
    free(rest);
    curl_global_cleanup();
}

static void options_set(dt_rest *rest, const char *url, const char *body)
{
    CURL *curl = rest->curl;

    curl_easy_reset(curl); /* the connection stays */
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, rest->headers);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "dtrun");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, TRY_SECONDS);
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

/* What the server says of its refusal, in a line; "" nothing that is fit to be shown. */
static void words_of(char *out, size_t size, const dt_strbuf *answer)
{
    const char *text;
    json_t *json;

    out[0] = '\0';
    if (dt_json_parse(&json, answer->data, answer->length, "answer", NULL) != DT_OK)
        return;
    text = json_string_value(json_object_get(json, "message"));
    for (size_t i = 0; text != NULL && text[i] != '\0' && i + 3 < size; i++) {
        out[i] = (unsigned char)text[i] < ' ' ? ' ' : text[i];
        out[i + 1] = '\0';
    }
    json_decref(json);
}

static dt_status refusal(const dt_rest *rest, long status, dt_error *err)
{
    dt_status st = status == 429 || status == 408 || status >= 500 ? DT_ERR_BUSY
                   : status == 404                                 ? DT_ERR_NOT_FOUND
                                                                   : DT_ERR_USAGE;
    char words[WORDS_MOST];

    words_of(words, sizeof(words), &rest->answer);
    return DT_FAIL(err, st, "'%s' answered %ld%s%s", rest->base, status,
                   words[0] != '\0' ? ": " : "", words);
}

static dt_status try_once(dt_rest *rest, const char *url, const char *body, dt_error *err)
{
    long status = 0;
    CURLcode code;

    dt_strbuf_reset(&rest->answer);
    options_set(rest, url, body);
    code = curl_easy_perform(rest->curl);
    if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
        return DT_FAIL(err, DT_ERR_USAGE, "'%s': %s", rest->base, curl_easy_strerror(code));
    if (code != CURLE_OK)
        return DT_FAIL(err, DT_ERR_BUSY, "'%s': %s", rest->base, curl_easy_strerror(code));
    curl_easy_getinfo(rest->curl, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status < 300 ? DT_OK : refusal(rest, status, err);
}

static dt_status ask(dt_rest *rest, json_t **answer, const char *path, const char *body,
                     dt_error *err)
{
    double pause = PAUSE_SECONDS;
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_ERR_BUSY;
    dt_strbuf url;

    *answer = NULL;
    dt_strbuf_init(&url);
    dt_strbuf_add_fmt(&url, "%s/%s", rest->base, path);
    for (int i = 0; i < TRIES && st == DT_ERR_BUSY; i++, pause *= 2) {
        if (i > 0)
            dt_clock_sleep_seconds(pause / 2);
        dt_error_clear(&problem);
        st = try_once(rest, url.data, body, &problem);
    }
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
    DT_TRY(
        dt_json_parse(answer, rest->answer.data, rest->answer.length, "the server's answer", err));
out:
    dt_strbuf_release(&url);
    return st;
}

dt_status dt_rest_get(dt_rest *rest, json_t **answer, const char *path, dt_error *err)
{
    return ask(rest, answer, path, NULL, err);
}

dt_status dt_rest_post(dt_rest *rest, json_t **answer, const char *path, json_t *body,
                       dt_error *err)
{
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    dt_json_write(&text, body);
    json_decref(body);
    st = ask(rest, answer, path, text.data, err);
    dt_strbuf_release(&text);
    return st;
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

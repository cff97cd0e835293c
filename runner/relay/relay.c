/* relay: decides whether a command can run on another machine's server, finds the server and its token,
 * runs the command there and shows its output. */
#include "runner/relay/relay.h"

#include <ctype.h>
#include <curl/curl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/version.h"
#include "runner/cli/report.h"
#include "runner/term/term.h"
#include "web/command.h"

/* Appends the names of the commands that a server runs: "list, show, ..." */
static void list_remote(dt_strbuf *out)
{
    for (size_t i = 0; dt_commands[i] != NULL; i++)
        if (dt_commands[i]->runs == DT_RUNS_REMOTE)
            dt_strbuf_add_fmt(out, "%s%s", out->length > 0 ? ", " : "", dt_commands[i]->name);
}

static const dt_command *find_remote(const char *name)
{
    for (size_t i = 0; dt_commands[i] != NULL; i++)
        if (dt_commands[i]->runs == DT_RUNS_REMOTE && strcmp(dt_commands[i]->name, name) == 0)
            return dt_commands[i];
    return NULL;
}

dt_status dt_relay_server(const char **url, const dt_command *command, const dt_arguments *args,
                          dt_error *err)
{
    const char *wanted = getenv("DTRUN_SERVER");
    dt_status st = DT_OK;
    dt_strbuf remote;

    *url = wanted != NULL && wanted[0] != '\0' ? wanted : NULL;
    if (command->runs == DT_RUNS_REMOTE) {
        if (dt_arguments_get(args, "server")->given)
            *url = dt_arguments_get(args, "server")->text;
        return DT_OK;
    }
    if (*url == NULL)
        return DT_OK;
    *url = NULL;
    if (command->runs != DT_RUNS_LOCAL)
        return DT_OK;
    dt_strbuf_init(&remote);
    list_remote(&remote);
    st = DT_FAIL(err, DT_ERR_USAGE,
                 "DTRUN_SERVER is set, but '%s' only works on local runs: unset it, or run this "
                 "there (a server runs: %s)",
                 command->name, remote.data);
    dt_strbuf_release(&remote);
    return st;
}

dt_status dt_relay_check(int argc, char **argv, dt_error *err)
{
    const dt_command *command = find_remote(argv[0]);
    dt_status st = DT_OK;
    dt_strbuf remote;
    dt_arguments args;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&remote);
    list_remote(&remote);
    if (command == NULL)
        DT_THROW(err, DT_ERR_USAGE, "a server does not run '%s' for clients (supported: %s)",
                 argv[0], remote.data);
    DT_TRY(dt_arguments_parse(&args, command, argc, argv, &arena, err));
    if (dt_arguments_get(&args, "server")->given)
        DT_THROW(err, DT_ERR_USAGE, "--server cannot be used in a request to a server");
out:
    dt_strbuf_release(&remote);
    dt_arena_release(&arena);
    return st;
}

bool dt_relay_is_served(void)
{
    return getenv("DTRUN_TERMINAL") != NULL;
}

void dt_relay_follow_server(void)
{
    pid_t server = getppid();

    if (!dt_relay_is_served())
        return;
    /* not SIGKILL: a command that started others passes the signal on */
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != server)
        _exit(DT_EXIT_SYSTEM);
}

#define TOKEN_BYTES_MOST ((size_t)4096)

static dt_status read_token(dt_strbuf *out, const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;

    if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & 077) != 0)
        DT_THROW(err, DT_ERR_USAGE, "DTRUN_TOKEN_FILE: other users can read '%s': 'chmod 600' it",
                 path);
    st = dt_file_read(out, path, TOKEN_BYTES_MOST, err);
    dt_error_prefix(err, "DTRUN_TOKEN_FILE");
    while (st == DT_OK && out->length > 0 && isspace((unsigned char)out->data[out->length - 1]))
        out->data[--out->length] = '\0';
out:
    return st;
}

/* Refuses spaces and control characters: the token goes into an HTTP header, where a line break
 * would begin another one. */
static dt_status check(const dt_strbuf *token, const char *from, dt_error *err)
{
    for (size_t i = 0; i < token->length; i++)
        if (!isgraph((unsigned char)token->data[i]))
            return DT_FAIL(err, DT_ERR_USAGE,
                           "%s: expected letters and digits without blanks, as after 'token=' in "
                           "the link that 'dtrun serve --link' prints there",
                           from);
    return DT_OK;
}

/* Appends the token from DTRUN_TOKEN or the file that DTRUN_TOKEN_FILE names; nothing if neither is set. DT_ERR_USAGE:
 * malformed token, or a file that other users can read. */
static dt_status relay_token(dt_strbuf *out, dt_error *err)
{
    const char *token = getenv("DTRUN_TOKEN"), *path = getenv("DTRUN_TOKEN_FILE");
    const char *from = "DTRUN_TOKEN";
    dt_status st = DT_OK;

    if (token != NULL && token[0] != '\0') {
        dt_strbuf_add_str(out, token);
    } else if (path != NULL && path[0] != '\0') {
        from = "DTRUN_TOKEN_FILE";
        DT_TRY(read_token(out, path, err));
    }
    DT_TRY(check(out, from, err));
out:
    return st;
}

#define CONNECT_SECONDS    10L
#define SILENCE_SECONDS    (6 * DT_WEB_COMMAND_SIGN_SECONDS)
#define REFUSAL_BYTES_MOST ((size_t)64 << 10)
#define LINE_BYTES_MOST    ((size_t)1 << 20) /* a longer line is shown in pieces */
#define LINK_HINT          "'dtrun serve --link' prints it there, after 'token='"

typedef struct relay {
    const char *url; /* as the user gave it */
    CURL *curl;
    long status;       /* HTTP status of the response; 0 before it arrives */
    double heard;      /* time of the last byte received */
    bool silent;       /* nothing was received for SILENCE_SECONDS */
    dt_frames frames;  /* parser of a successful response */
    dt_strbuf refusal; /* body of any other response */
    dt_strbuf line[2]; /* incomplete lines of stdout and stderr */
    bool had_token;
    dt_error problem; /* error on this side while bytes are received */
} relay;

/* --- showing the output */

static dt_status show(relay *r, int which, size_t until, dt_error *err)
{
    dt_strbuf *line = &r->line[which], part;
    dt_status st = DT_OK;

    if (until == 0)
        return DT_OK;
    dt_strbuf_init(&part);
    dt_strbuf_add(&part, line->data, until);
    st = dt_report_relayed(which == 0 ? STDOUT_FILENO : STDERR_FILENO, &part, err);
    dt_strbuf_reset(&part);
    dt_strbuf_add(&part, line->data + until, line->length - until);
    dt_strbuf_release(line);
    *line = part;
    return st;
}

/* Shows complete lines only, so that a line that spans two frames is not interleaved with the other
 * stream. */
static dt_status take(void *context, char what, const char *bytes, size_t length, dt_error *err)
{
    relay *r = context;
    int which = what == 'e';
    dt_strbuf *line = &r->line[which];
    const char *last;

    dt_strbuf_add(line, bytes, length);
    last = memrchr(line->data, '\n', line->length);
    if (last != NULL)
        return show(r, which, (size_t)(last - line->data) + 1, err);
    if (length == 0 || line->length > LINE_BYTES_MOST) /* the server has no more output for now */
        return show(r, which, line->length, err);
    return DT_OK;
}

static size_t on_bytes(char *bytes, size_t size, size_t count, void *context)
{
    relay *r = context;
    size_t length = size * count;
    const char *type = NULL;

    r->heard = dt_clock_monotonic_seconds();
    curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &r->status);
    curl_easy_getinfo(r->curl, CURLINFO_CONTENT_TYPE, &type);
    if (r->status == 200 && (type == NULL || strcmp(type, DT_WEB_COMMAND_TYPE) != 0)) {
        r->status = 0;
        DT_FAIL(&r->problem, DT_ERR_CORRUPT,
                "'%s' is not a dtrun server: its answer has another format", r->url);
        return 0;
    }
    if (r->status == 200)
        return dt_frames_add(&r->frames, bytes, length, &r->problem) == DT_OK ? length : 0;
    if (r->refusal.length + length > REFUSAL_BYTES_MOST)
        return 0;
    dt_strbuf_add(&r->refusal, bytes, length);
    return length;
}

/* libcurl calls this about once a second; a result other than 0 aborts the transfer. */
static int on_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    relay *r = context;

    r->silent = dt_clock_monotonic_seconds() - r->heard > SILENCE_SECONDS;
    return r->silent;
}

/* --- the address */

static bool is_loopback(const char *host, size_t length)
{
    return (length == 9 && strncasecmp(host, "localhost", 9) == 0) ||
           (length > 4 && strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") >= length) ||
           (length == 5 && strncmp(host, "[::1]", 5) == 0);
}

static size_t host_length(const char *host)
{
    if (host[0] == '[')
        return strcspn(host, "]") + (strchr(host, ']') != NULL);
    return strcspn(host, ":/");
}

/* Checks the server's address. *local: it is on this machine, so that http is safe. */
static dt_status check_address(bool *local, const char *url, bool has_token, dt_error *err)
{
    const char *host = strstr(url, "://");
    dt_status st = DT_OK;

    *local = strncmp(url, "unix:", 5) == 0;
    if (*local)
        return url[5] != '\0'
                   ? DT_OK
                   : DT_FAIL(err, DT_ERR_USAGE, "--server: 'unix:' needs the path of a socket");
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        DT_THROW(err, DT_ERR_USAGE,
                 "--server: unsupported address '%s': expected http://HOST:PORT, https://HOST or "
                 "unix:PATH",
                 url);
    if (strpbrk(url, "?#") != NULL)
        DT_THROW(err, DT_ERR_USAGE,
                 "--server: give the address without '?': put what follows 'token=' into "
                 "DTRUN_TOKEN, which 'ps' does not show");
    host += strlen("://");
    if (memchr(host, '@', strcspn(host, "/")) != NULL)
        DT_THROW(err, DT_ERR_USAGE, "--server: an address with a password would be seen by others");
    if (host_length(host) == 0)
        DT_THROW(err, DT_ERR_USAGE, "--server: '%s' has no host", url);
    *local = is_loopback(host, host_length(host));
    if (has_token && !*local && strncmp(url, "http://", 7) == 0)
        DT_THROW(err, DT_ERR_USAGE,
                 "--server: over http anybody on the network path to '%s' can read the token: give "
                 "an https "
                 "address, or forward the port ('ssh -L 8642:127.0.0.1:8642 HOST') and ask "
                 "http://localhost:8642",
                 url);
out:
    return st;
}

/* --- the request */

/* Appends "&word=" with the escaped "NAME", or "NAME=VALUE" if there is a value. */
static dt_status add_word(dt_strbuf *out, CURL *curl, const char *dashes, const char *name,
                          const char *value, dt_error *err)
{
    dt_strbuf word;
    char *escaped;

    dt_strbuf_init(&word);
    dt_strbuf_add_fmt(&word, "%s%s%s%s", dashes, name, value != NULL ? "=" : "",
                      value != NULL ? value : "");
    escaped = curl_easy_escape(curl, word.data, (int)word.length);
    dt_strbuf_release(&word);
    if (escaped == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    dt_strbuf_add_fmt(out, "&word=%s", escaped);
    curl_free(escaped);
    return DT_OK;
}

static dt_status add_option(dt_strbuf *out, CURL *curl, const dt_option *option,
                            const dt_value *value, dt_error *err)
{
    dt_status st = DT_OK;

    if (!value->given || strcmp(option->name, "server") == 0)
        return DT_OK;
    if (option->kind == DT_OPTION_FLAG)
        return add_word(out, curl, "--", option->name, NULL, err);
    if (option->kind != DT_OPTION_LIST)
        return add_word(out, curl, "--", option->name, value->text, err);
    for (size_t i = 0; i < value->items_count; i++)
        DT_TRY(add_word(out, curl, "--", option->name, value->items[i], err));
out:
    return st;
}

static dt_status make_question(dt_strbuf *out, CURL *curl, const char *url, const dt_call *call,
                               dt_error *err)
{
    const dt_arguments *args = call->args;
    size_t length = strlen(url);
    dt_status st = DT_OK;
    dt_term term;

    dt_term_init(&term, STDOUT_FILENO);
    while (length > 0 && url[length - 1] == '/')
        length--;
    if (strncmp(url, "unix:", 5) == 0)
        dt_strbuf_add_str(out, "http://localhost");
    else
        dt_strbuf_add(out, url, length);
    dt_strbuf_add_fmt(out, "/api/v1/command?columns=%d&rows=%d&colour=%d&unicode=%d&terminal=%d",
                      term.columns, term.rows, term.colour, term.unicode, dt_term_is_seen());
    DT_TRY(add_word(out, curl, "", args->command->name, NULL, err));
    for (size_t i = 0; i < args->options_count; i++)
        DT_TRY(add_option(out, curl, &args->options[i], &args->values[i], err));
    DT_TRY(add_word(out, curl, "--", "", NULL, err));
    for (int i = 0; i < args->operands_count; i++)
        DT_TRY(add_word(out, curl, "", args->operands[i], NULL, err));
out:
    return st;
}

static void set_options(relay *r, const char *question, struct curl_slist *headers, bool local)
{
    const char *authority = getenv("CURL_CA_BUNDLE"); /* the variable that the curl program reads */
    CURL *curl = r->curl;

    curl_easy_setopt(curl, CURLOPT_URL, question);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "dtrun/" DT_VERSION);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, r);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, r);
    if (strncmp(r->url, "unix:", 5) == 0)
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, r->url + 5);
    if (authority != NULL && authority[0] != '\0')
        curl_easy_setopt(curl, CURLOPT_CAINFO, authority);
    if (local) /* use no proxy */
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

/* --- the response */

/* Appends the message in a JSON error response; nothing if there is none. */
static void words_of(dt_strbuf *out, const dt_strbuf *answer)
{
    json_t *json;
    const char *text;

    if (dt_json_parse(&json, answer->data, answer->length, "answer", NULL) != DT_OK)
        return;
    text = json_string_value(json_object_get(json_object_get(json, "error"), "message"));
    if (text != NULL)
        dt_strbuf_add_str(out, text);
    json_decref(json);
}

static dt_status refusal(const relay *r, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf words;

    dt_strbuf_init(&words);
    words_of(&words, &r->refusal);
    if (r->status == 401)
        DT_THROW(err, DT_ERR_USAGE,
                 "'%s' requires its token: put it into DTRUN_TOKEN, or into a file that "
                 "DTRUN_TOKEN_FILE "
                 "names (" LINK_HINT ")",
                 r->url);
    if (r->status == 403 && r->had_token && words.length > 0)
        DT_THROW(err, DT_ERR_USAGE, "'%s' refuses the command: %s", r->url, words.data);
    if (r->status == 404)
        DT_THROW(
            err, DT_ERR_USAGE,
            "'%s' does not run commands for clients: it is not a dtrun server, or older than %s",
            r->url, DT_VERSION);
    if (r->status >= 300 && r->status < 400)
        DT_THROW(err, DT_ERR_USAGE,
                 "'%s' redirects to another address, which dtrun does not follow with a token: "
                 "give that address",
                 r->url);
    st = DT_FAIL(err, r->status == 503 ? DT_ERR_BUSY : DT_ERR_USAGE, "'%s' answered %ld%s%s",
                 r->url, r->status, words.length > 0 ? ": " : "", words.data);
out:
    dt_strbuf_release(&words);
    return st;
}

static dt_status judge(relay *r, CURLcode code, dt_error *err)
{
    dt_status st = DT_OK;

    if (r->problem.code != DT_OK) {
        st = r->problem.code;
        *err = r->problem;
        goto out;
    }
    if (r->status != 0 && r->status != 200)
        DT_TRY(refusal(r, err));
    if (r->silent)
        DT_THROW(err, DT_ERR_BUSY, "'%s' has not answered for %g seconds", r->url, SILENCE_SECONDS);
    if (r->status == 200 && !r->frames.ended)
        DT_THROW(err, DT_ERR_BUSY, "'%s' closed the connection: try again", r->url);
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
        DT_THROW(err, DT_ERR_USAGE,
                 "cannot verify the certificate of '%s': %s (CURL_CA_BUNDLE names the certificates "
                 "to trust)",
                 r->url, curl_easy_strerror(code));
    if (code != CURLE_OK)
        DT_THROW(err, DT_ERR_BUSY, "'%s': %s (is 'dtrun serve' running there?)", r->url,
                 curl_easy_strerror(code));
    if (r->status != 200)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' is not a dtrun server: its answer is empty", r->url);
out:
    return st;
}

static dt_status ask(relay *r, const char *question, const dt_strbuf *token, bool local,
                     dt_error *err)
{
    struct curl_slist *headers = NULL;
    dt_status st = DT_OK;
    dt_strbuf header;
    CURLcode code;

    dt_strbuf_init(&header);
    if (token->length > 0) {
        dt_strbuf_add_fmt(&header, "Authorization: Bearer %s", token->data);
        headers = curl_slist_append(NULL, header.data);
        explicit_bzero(header.data, header.length);
        if (headers == NULL)
            DT_THROW(err, DT_ERR_NOMEM, "no memory for libcurl");
    }
    set_options(r, question, headers, local);
    r->heard = dt_clock_monotonic_seconds();
    code = curl_easy_perform(r->curl);
    curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &r->status);
    for (int i = 0; i < 2; i++)
        DT_TRY(show(r, i, r->line[i].length, err));
    DT_TRY(judge(r, code, err));
out:
    curl_slist_free_all(headers);
    dt_strbuf_release(&header);
    return st;
}

dt_status dt_relay_call(dt_call *call, const char *url, dt_error *err)
{
    relay r = {.url = url, .problem = DT_ERROR_INIT};
    dt_strbuf token, question;
    dt_status st = DT_OK;
    bool local;

    dt_frames_init(&r.frames, take, &r);
    dt_strbuf_init(&r.refusal);
    dt_strbuf_init(&r.line[0]);
    dt_strbuf_init(&r.line[1]);
    dt_strbuf_init(&token);
    dt_strbuf_init(&question);
    DT_TRY(relay_token(&token, err));
    DT_TRY(check_address(&local, url, token.length > 0, err));
    r.had_token = token.length > 0;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || (r.curl = curl_easy_init()) == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for libcurl");
    DT_TRY(make_question(&question, r.curl, url, call, err));
    DT_TRY(ask(&r, question.data, &token, local, err));
    call->exit_code = r.frames.exit_code;
out:
    if (token.length > 0)
        explicit_bzero(token.data, token.length);
    curl_easy_cleanup(r.curl);
    dt_strbuf_release(&token);
    dt_strbuf_release(&question);
    dt_strbuf_release(&r.refusal);
    dt_strbuf_release(&r.line[0]);
    dt_strbuf_release(&r.line[1]);
    dt_frames_release(&r.frames);
    return st;
}

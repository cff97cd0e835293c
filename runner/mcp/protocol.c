/* protocol: what a message of the client asks for, and the lines of the answers. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/version.h"
#include "runner/mcp/mcp.h"

#define META_VERSION      "io.modelcontextprotocol/protocolVersion"
#define META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define META_SERVER       "io.modelcontextprotocol/serverInfo"
#define TOOLS_LIVE_MS     3600000 /* the tools of a server do not change; an update of dtrun can */

/* Codes of JSON-RPC 2.0, and one of the protocol. */
enum {
    NOT_JSON = -32700,
    NOT_A_REQUEST = -32600,
    NO_METHOD = -32601,
    WRONG_PARAMS = -32602,
    WRONG_REVISION = -32022
};

/* The newest first. The first has no session; the others begin with `initialize`. */
static const char *const revisions[] = {"2026-07-28", "2025-11-25", "2025-06-18", NULL};
enum { LEGACY_FIRST = 1 };

static const char instructions[] =
    "dtrun runs trainings on one or more machines. A run has an id, a name, a state, metrics by "
    "step, a log and checkpoints. Begin with 'list', then 'status', 'metrics' or 'compare'; "
    "'launch_dry_run' checks a recipe without starting anything.";

/* --- lines */

static json_t *envelope(const json_t *id)
{
    json_t *line = json_pack("{s:s}", "jsonrpc", "2.0");

    json_object_set(line, "id", id != NULL ? (json_t *)id : json_null());
    return line;
}

static json_t *server_info(void)
{
    return json_pack("{s:s, s:s, s:s}", "name", "dtrun", "title", "dtrun", "version", DT_VERSION);
}

json_t *dt_mcp_reply(const json_t *id, bool modern, json_t *result)
{
    json_t *line = envelope(id);

    if (modern) {
        json_object_set_new(result, "resultType", json_string("complete"));
        json_object_set_new(result, "_meta", json_pack("{s:o}", META_SERVER, server_info()));
    }
    json_object_set_new(line, "result", result);
    return line;
}

static json_t *refuse(const json_t *id, int code, const char *fmt, ...) DT_PRINTF(3, 4);
static json_t *refuse(const json_t *id, int code, const char *fmt, ...)
{
    char message[512];
    json_t *line = envelope(id);
    va_list args;

    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    json_object_set_new(line, "error",
                        json_pack("{s:i, s:o}", "code", code, "message", dt_json_text(message)));
    return line;
}

json_t *dt_mcp_unreadable(const char *why)
{
    return refuse(NULL, NOT_JSON, "%s", why);
}

/* --- methods */

static json_t *supported(void)
{
    json_t *all = json_array();

    for (size_t i = 0; revisions[i] != NULL; i++)
        json_array_append_new(all, json_string(revisions[i]));
    return all;
}

static json_t *capabilities(void)
{
    return json_pack("{s:{}}", "tools");
}

/* Says how long and by whom a result may be kept. */
static void add_cache(json_t *result)
{
    json_object_set_new(result, "ttlMs", json_integer(TOOLS_LIVE_MS));
    json_object_set_new(result, "cacheScope", json_string("private"));
}

static json_t *initialize(dt_mcp_session *session, const json_t *id, const json_t *params)
{
    const char *wanted = json_string_value(json_object_get(params, "protocolVersion"));
    const char *agreed = revisions[LEGACY_FIRST];

    if (wanted == NULL)
        return refuse(id, WRONG_PARAMS, "'protocolVersion': expected a text");
    for (size_t i = LEGACY_FIRST; revisions[i] != NULL; i++)
        if (strcmp(revisions[i], wanted) == 0)
            agreed = revisions[i];
    session->begun = true;
    return dt_mcp_reply(id, false,
                        json_pack("{s:s, s:o, s:o, s:s}", "protocolVersion", agreed, "capabilities",
                                  capabilities(), "serverInfo", server_info(), "instructions",
                                  instructions));
}

static json_t *discover(const json_t *id)
{
    json_t *result = json_pack("{s:o, s:o, s:s}", "supportedVersions", supported(), "capabilities",
                               capabilities(), "instructions", instructions);

    add_cache(result);
    return dt_mcp_reply(id, true, result);
}

static json_t *list_tools(const dt_mcp_session *session, const json_t *id, bool modern,
                          const json_t *params)
{
    json_t *tools, *result;

    if (json_object_get(params, "cursor") != NULL)
        return refuse(id, WRONG_PARAMS, "'cursor': the list of tools has one page");
    tools = json_array();
    for (size_t i = 0; dt_mcp_tools[i].name != NULL; i++)
        if (session->writes || !dt_mcp_tools[i].writes)
            json_array_append_new(tools, dt_mcp_tool_to_json(&dt_mcp_tools[i]));
    result = json_pack("{s:o}", "tools", tools);
    if (modern)
        add_cache(result);
    return dt_mcp_reply(id, modern, result);
}

static void call_tool(dt_mcp_request *out, const dt_mcp_session *session, json_t *id, bool modern,
                      const json_t *params, dt_arena *arena)
{
    const char *name = json_string_value(json_object_get(params, "name"));
    const json_t *arguments = json_object_get(params, "arguments");
    dt_error err = DT_ERROR_INIT;
    size_t i = 0;

    if (name == NULL) {
        out->reply = refuse(id, WRONG_PARAMS, "'name': expected the name of a tool");
        return;
    }
    while (dt_mcp_tools[i].name != NULL && strcmp(dt_mcp_tools[i].name, name) != 0)
        i++;
    if (dt_mcp_tools[i].name == NULL) {
        out->reply = refuse(id, WRONG_PARAMS, "unknown tool '%.100s'", name);
        return;
    }
    if (dt_mcp_tools[i].writes && !session->writes) {
        out->reply =
            refuse(id, WRONG_PARAMS,
                   "tool '%s' changes runs: start the server as 'dtrun mcp --write'", name);
        return;
    }
    if (arguments != NULL && !json_is_object(arguments) && !json_is_null(arguments)) {
        out->reply = refuse(id, WRONG_PARAMS, "'arguments': expected an object");
        return;
    }
    if (dt_mcp_tool_words(&out->words, &dt_mcp_tools[i], arguments, arena, &err) != DT_OK) {
        out->reply = dt_mcp_reply(id, modern, dt_mcp_answer_error(err.message));
        return;
    }
    out->tool = &dt_mcp_tools[i];
    out->id = json_incref(id);
    out->modern = modern;
}

/* --- messages */

/* Checks the fields of _meta that each request of a revision without a session has. Returns the refusal, or NULL. */
static json_t *check_meta(const json_t *id, const json_t *meta)
{
    const char *version = json_string_value(json_object_get(meta, META_VERSION));
    json_t *line;

    if (version == NULL)
        return refuse(id, WRONG_PARAMS, "'" META_VERSION "': expected a text");
    if (strcmp(version, revisions[0]) != 0) {
        line = refuse(id, WRONG_REVISION, "unsupported protocol version '%.40s'", version);
        json_object_set_new(
            json_object_get(line, "error"), "data",
            json_pack("{s:o, s:o}", "supported", supported(), "requested", dt_json_text(version)));
        return line;
    }
    if (!json_is_object(json_object_get(meta, META_CAPABILITIES)))
        return refuse(id, WRONG_PARAMS, "'" META_CAPABILITIES "': expected an object");
    return NULL;
}

static void answer_request(dt_mcp_request *out, dt_mcp_session *session, json_t *id,
                           const char *method, const json_t *params, dt_arena *arena)
{
    const json_t *meta = json_object_get(params, "_meta");
    bool modern = json_object_get(meta, META_VERSION) != NULL;

    if (strcmp(method, "initialize") == 0) {
        out->reply = initialize(session, id, params);
        return;
    }
    if (strcmp(method, "ping") == 0 && !modern) {
        out->reply = dt_mcp_reply(id, false, json_object());
        return;
    }
    if (!modern && (!session->begun || strcmp(method, "server/discover") == 0)) {
        out->reply = refuse(id, WRONG_PARAMS,
                            "expected 'initialize' first, or params._meta with '" META_VERSION "'");
        return;
    }
    out->reply = modern ? check_meta(id, meta) : NULL;
    if (out->reply != NULL)
        return;
    if (strcmp(method, "tools/list") == 0)
        out->reply = list_tools(session, id, modern, params);
    else if (strcmp(method, "tools/call") == 0)
        call_tool(out, session, id, modern, params, arena);
    else if (modern && strcmp(method, "server/discover") == 0)
        out->reply = discover(id);
    else
        out->reply = refuse(id, NO_METHOD, "unknown method '%.100s'", method);
}

static bool is_id(const json_t *id)
{
    return json_is_string(id) || json_is_integer(id);
}

static void read_object(dt_mcp_request *out, dt_mcp_session *session, json_t *message,
                        dt_arena *arena)
{
    json_t *id = json_object_get(message, "id"), *params = json_object_get(message, "params");
    const char *method = json_string_value(json_object_get(message, "method"));
    const char *version = json_string_value(json_object_get(message, "jsonrpc"));
    bool answers =
        json_object_get(message, "result") != NULL || json_object_get(message, "error") != NULL;

    if (method == NULL && answers)
        return; /* the server asks for nothing */
    if (id != NULL && !is_id(id)) {
        out->reply = refuse(NULL, NOT_A_REQUEST, "'id': expected a text or a whole number");
        return;
    }
    if (version == NULL || strcmp(version, "2.0") != 0 || method == NULL) {
        out->reply =
            refuse(id, NOT_A_REQUEST,
                   method == NULL ? "'method': expected a text" : "'jsonrpc': expected \"2.0\"");
        return;
    }
    if (id == NULL) { /* a notification is never answered */
        if (strcmp(method, "notifications/cancelled") == 0 &&
            is_id(json_object_get(params, "requestId")))
            out->cancelled = json_incref(json_object_get(params, "requestId"));
        return;
    }
    if (params != NULL && !json_is_object(params)) {
        out->reply = refuse(id, WRONG_PARAMS, "'params': expected an object");
        return;
    }
    answer_request(out, session, id, method, params, arena);
}

void dt_mcp_read(dt_mcp_request *out, dt_mcp_session *session, const char *line, size_t length,
                 dt_arena *arena)
{
    dt_error err = DT_ERROR_INIT;
    json_t *message;

    *out = (dt_mcp_request){0};
    if (dt_json_parse(&message, line, length, "message", &err) != DT_OK) {
        out->reply = refuse(NULL, NOT_JSON, "%s", err.message);
        return;
    }
    if (json_is_object(message))
        read_object(out, session, message, arena);
    else
        out->reply =
            refuse(NULL, NOT_A_REQUEST,
                   json_is_array(message) ? "batches are not supported: send one message a line"
                                          : "expected an object");
    json_decref(message);
}

void dt_mcp_request_release(dt_mcp_request *request)
{
    json_decref(request->reply);
    json_decref(request->id);
    json_decref(request->cancelled);
    *request = (dt_mcp_request){0};
}
